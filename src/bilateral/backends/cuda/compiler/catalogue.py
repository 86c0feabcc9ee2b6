"""List the variants that usual calls need, so that helpers can compile them ahead of time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bilateral.backends.cuda.compiler.variant import Variant

FILE = Path(__file__).with_name("catalogue.jsonl")


@cache
def catalogue() -> tuple[Variant, ...]:
    """Return all variants of the list, in the order in which first calls need them.

    `benchmarks/cuda/catalogue.py` writes the list.
    """
    if not FILE.exists():
        return ()
    return tuple(map(Variant.from_json, FILE.read_text().splitlines()))


def write(variants: list[Variant], file: Path = FILE) -> None:
    """Write the list."""
    file.write_text("".join(variant.to_json() + "\n" for variant in variants))
