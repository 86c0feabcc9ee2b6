"""Write the list of kernels that are compiled ahead of time: ``make catalogue``.

It runs the usual calls on a CUDA device, then the tasks, and notes which kernels they launch, in
which variants. ``--output file`` writes the list elsewhere. What it has is written after each call.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.cuda.usual_calls import usual_calls
from benchmarks.cuda.usual_tasks import usual_tasks
from bilateral.backends.cuda import kernel
from bilateral.backends.cuda.compiler import catalogue
from bilateral.backends.cuda.compiler.variant import Variant

_LEVELS = range(2, 10)
"""Levels of the pyramid above the first: by the image's size and the sigmas."""
_REPEATS = 3
"""The second call of a kind makes a recording, and later ones replay it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=catalogue.FILE)
    file = parser.parse_args().output
    kernel.recorded = recorded = {}
    calls = [
        (call.name, call.run, lambda call=call: call.tensors("cuda")) for call in usual_calls()
    ]
    for name, run, tensors in [*calls, *usual_tasks()]:
        before = len(recorded)
        on_device = tensors()
        for _ in range(_REPEATS):
            run(*on_device)
        print(f"{name}: {len(recorded) - before} new", flush=True)
        catalogue.write(_with_other_levels(recorded), file)
    print(f"{len(_with_other_levels(recorded))} variants in {file}")


def _with_other_levels(recorded: dict[Variant, None]) -> list[Variant]:
    others = (other for variant in recorded for other in _other_levels(variant))
    return list(dict.fromkeys([*recorded, *others]))


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
