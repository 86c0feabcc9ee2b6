"""The examples in docstrings run and print the documented results."""

import doctest
import importlib
import pkgutil

import pytest

import bilateral

MODULES = [
    "bilateral",
    *(
        module.name
        for module in pkgutil.walk_packages(
            bilateral.__path__, "bilateral.", onerror=lambda _: None
        )
        if not module.name.rpartition(".")[2].startswith("_")  # __main__ runs, _core is C++
    ),
]


def load(name: str) -> object:
    """Import a module; skip the test where an extra it needs is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "bilateral":
            raise
        pytest.skip(f"{name} needs {error.name}")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    outcome = doctest.testmod(load(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_the_main_entry_points_have_examples() -> None:
    finder = doctest.DocTestFinder()
    for thing in (bilateral, bilateral.solve, bilateral.BilateralGrid, bilateral.BilateralSolver):
        name = getattr(thing, "__qualname__", thing.__name__)
        assert any(test.examples for test in finder.find(thing, name))
