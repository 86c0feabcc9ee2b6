"""Write the list of kernels that are compiled ahead of time: ``make catalogue``.

It runs the usual calls on a CUDA device and notes which kernels they launch, in which variants.
"""

from dataclasses import replace

from benchmarks.cuda.usual_calls import usual_calls
from bilateral.backends.cuda import kernel
from bilateral.backends.cuda.compiler import catalogue
from bilateral.backends.cuda.compiler.variant import Variant

_LEVELS = range(2, 10)
"""Levels of the pyramid above the first: by the image's size and the sigmas."""
_REPEATS = 3
"""The second call of a kind makes a recording, and later ones replay it."""


def main() -> None:
    kernel.recorded = recorded = {}
    for call in usual_calls():
        before = len(recorded)
        tensors = call.tensors("cuda")
        for _ in range(_REPEATS):
            call.run(*tensors)
        print(f"{call.name}: {len(recorded) - before} new", flush=True)
    others = (other for variant in recorded for other in _other_levels(variant))
    variants = dict.fromkeys([*recorded, *others])
    catalogue.write(list(variants))
    print(f"{len(variants)} variants in {catalogue.FILE}")


def _other_levels(variant: Variant) -> list[Variant]:
    """Return the like of a variant for other numbers of levels."""
    names = variant.load().function.arg_names
    if "LEVELS" not in names:
        return []
    at = names.index("LEVELS")
    kinds = variant.kinds
    return [replace(variant, kinds=(*kinds[:at], (n,), *kinds[at + 1 :])) for n in _LEVELS]


if __name__ == "__main__":
    main()
