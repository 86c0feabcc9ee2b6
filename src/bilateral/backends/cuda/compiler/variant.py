"""Describe one compilation of a kernel: its types, constants and options."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

PACKAGE = "bilateral.backends.cuda."


@dataclass(frozen=True)
class Variant:
    """A kernel with the types of its run-time arguments and the values of the others."""

    kernel: str
    """Module below `backends.cuda` and name, as "grid.laplacian:_step"."""
    kinds: tuple[Any, ...]
    """One per parameter: Triton's name of a type for run-time arguments, else (value,)."""
    options: tuple[tuple[str, Any], ...] = ()
    """Launch options that the compiler needs, as num_warps; sorted by name."""
    aligned: bool = True
    """Whether all tensors begin at multiples of 16 bytes."""

    @property
    def types(self) -> list[str]:
        """Types of the run-time arguments, in order."""
        return [kind for kind in self.kinds if isinstance(kind, str)]

    def load(self) -> Any:
        """Import the kernel."""
        module, _, name = self.kernel.partition(":")
        return getattr(import_module(PACKAGE + module), name)

    @staticmethod
    def import_all() -> None:
        """Import all modules with kernels, and the compiler."""
        package = import_module(PACKAGE.rstrip("."))
        for module in walk_packages(package.__path__, PACKAGE):
            if ".compiler." not in module.name:
                import_module(module.name)
        import_module("triton.compiler")

    def to_json(self) -> str:
        """Describe the variant in one line."""
        fields = self.kernel, self.kinds, self.options, self.aligned
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Variant:
        """Read the line that `to_json` wrote."""
        kernel, kinds, options, aligned = json.loads(line)
        frozen = tuple(kind if isinstance(kind, str) else tuple(kind) for kind in kinds)
        return cls(kernel, frozen, tuple((name, value) for name, value in options), aligned)


def compile_variant(variant: Variant, capability: int) -> tuple[dict[str, Any], bytes]:
    """Compile a variant for a compute capability, as 90; return its description and its code."""
    from triton import compile as triton_compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = variant.load()
    function = kernel.function
    signature, constants, attributes = {}, {}, {}
    for i, (name, kind) in enumerate(zip(function.arg_names, variant.kinds, strict=True)):
        if not isinstance(kind, str):
            signature[name], constants[i,] = "constexpr", kind[0]
            continue
        signature[name] = kind
        if variant.aligned and kind.startswith("*") and name not in kernel.unaligned:
            attributes[i,] = [["tt.divisibility", 16]]
    source = ASTSource(function, signature, constants, attributes)
    options = {"enable_fp_fusion": True, **dict(variant.options)}
    compiled = triton_compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    metadata = compiled.metadata
    for scratch in ("global_scratch_size", "profile_scratch_size"):
        if getattr(metadata, scratch, 0):
            raise RuntimeError(f"kernel {variant.kernel} needs {scratch}, which nobody allocates")
    described = {
        "name": metadata.name,
        "shared": metadata.shared,
        "threads": 32 * metadata.num_warps,
    }
    return described, compiled.asm["cubin"]
