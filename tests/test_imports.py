"""Direction of imports: every module uses only modules below it and no private members.

The test reads the source with `ast`; it counts imports inside functions, too.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# From top to bottom. A module may import modules of its own layer and of the layers below.
LAYERS = [
    {"__main__", "cli", "studio"},
    {"compat"},
    {""},  # the package itself: `import bilateral`
    {"tasks", "torch", "dask"},
    {"solver", "functional", "streaming"},
    {"numerics"},
    {"grid", "filters", "losses", "confidence", "color"},
    {"backends"},
    {"_core"},
]
# Every module may import these; they import nothing but each other.
LEAVES = {"validation", "threads", "info", "io", "numerics.policy"}
# Only these modules may import `backends`, and only `backends` may import `_core`.
MAY_USE_BACKENDS = ("numerics", "filters", "grid", "torch.cuda", "backends")


class Module(NamedTuple):
    """A module of the package, its name without the leading ``bilateral.``."""

    name: str
    is_package: bool
    tree: ast.Module


def parse() -> dict[str, Module]:
    modules = {}
    for path in sorted((SOURCE / "bilateral").rglob("*.py")):
        parts = path.relative_to(SOURCE / "bilateral").with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = Module(name, is_package, ast.parse(path.read_text()))
    return modules


MODULES = parse()


def is_type_check(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, without what only the type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not is_type_check(child):
            yield child
            yield from statements(child)


def base_of(module: Module, node: ast.ImportFrom) -> str:
    """Absolute name of the module after ``from``."""
    if node.level == 0:
        return node.module or ""
    package = ["bilateral", *filter(None, module.name.split("."))]
    parents = len(package) - node.level + module.is_package
    return ".".join([*package[:parents], *filter(None, [node.module])])


def imported_names(module: Module) -> Iterator[str]:
    """Absolute names after ``import`` and ``from ... import``."""
    for node in statements(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(module, node)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def imports(module: Module) -> set[str]:
    """Modules of the package that a module imports, without the leading ``bilateral.``."""
    found = set()
    for name in imported_names(module):
        package, _, rest = name.partition(".")
        if package == "bilateral":
            known = rest == "_core" or rest in MODULES
            found.add(rest if known else rest.rpartition(".")[0])
    return found - {module.name}


def below(name: str, *parents: str) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def layer(name: str) -> int:
    """Number of the layer from the top; leaves are below all layers."""
    if below(name, *LEAVES):
        return len(LAYERS)
    return next(i for i, roots in enumerate(LAYERS) if name.partition(".")[0] in roots)


def layer_leaks(module: Module) -> set[str]:
    mine = layer(module.name)
    return {other for other in imports(module) if layer(other) < mine}


def backend_leaks(module: Module) -> set[str]:
    if below(module.name, *MAY_USE_BACKENDS):
        return set()
    return {other for other in imports(module) if below(other, "backends", "_core")}


def own_names(module: Module) -> set[str]:
    """Names that a module defines: functions, classes, variables, attributes it assigns."""
    names = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return names


def other_packages(module: Module) -> set[str]:
    """Names that come from imports of other packages, such as ``os``."""
    names = set()
    for node in statements(module.tree):
        if isinstance(node, ast.Import):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and not base_of(module, node).startswith("bilateral"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names - {"bilateral"}


def is_private(name: str) -> bool:
    of_named_tuples = name in ("_replace", "_asdict", "_fields", "_make")
    return name.startswith("_") and not name.startswith("__") and not of_named_tuples


def private_leaks(module: Module) -> set[str]:
    """Private members that a module uses without defining them."""
    names, others, leaks = own_names(module), other_packages(module), set()
    for name in imported_names(module):
        private = is_private(name.rpartition(".")[2]) and name != "bilateral._core"
        if private and name.startswith("bilateral"):
            leaks.add(name.rpartition(".")[2])
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in names:
            root = ast.unparse(node).partition(".")[0]
            if root not in others:
                leaks.add(node.attr)
    return leaks


@pytest.mark.parametrize("name", MODULES)
def test_a_module_uses_only_what_is_below_it(name: str) -> None:
    module = MODULES[name]
    leaks = layer_leaks(module) | backend_leaks(module) | private_leaks(module)
    assert leaks == set()


def test_only_backends_import_the_core() -> None:
    users = {name for name, module in MODULES.items() if "_core" in imports(module)}
    assert all(below(name, "backends") for name in users)
    assert users


def test_no_imports_form_a_cycle() -> None:
    """The package's own `__init__` collects public names: it is left out."""
    graph = {
        name: {other for other in imports(module) if other}
        for name, module in MODULES.items()
        if name
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


EXTRAS = ("scipy", "skimage", "torch", "rich", "PIL", "triton", "typer", "matplotlib", "dask", "av")


@pytest.mark.parametrize("module", ["bilateral", "bilateral.tasks", "bilateral.confidence"])
def test_an_import_needs_no_extra(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({set(EXTRAS)} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")
