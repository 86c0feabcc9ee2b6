"""Mutated files of every format: an array, or the library's error in one line."""

from __future__ import annotations

import numpy as np

from bilateral import io
from bilateral.io.options import Options
from fuzz.call import Call, Case, require
from fuzz.draw import Draw
from fuzz.harnesses.oracle import oracle  # puts the tests' support on the path
from support import files as small  # type: ignore[import-not-found]

__all__ = ["exr", "files", "oracle"]

LIMIT = 1 << 20
MUTANTS = 24
"""Mutated files per sample that is drawn."""


def samples() -> dict[str, bytes]:
    """Small valid files."""
    found: dict[str, bytes] = small.samples()
    for suffix, (dtypes, channels) in small.KEEPS.items():
        for dtype in dtypes:
            array = small.noise(dtype, (3, 4, *channels[0]))
            found[f"tiny-{dtype}{suffix}"] = io.encode(array, f"x{suffix}")
    return found


SAMPLES = samples()
EXR = tuple(name for name in SAMPLES if name.endswith(".exr"))
OTHERS = tuple(name for name in SAMPLES if not name.endswith(".exr"))


def mutated(d: Draw, data: bytes) -> bytes:
    """Cut, overwrite, lengthen or mix a file, or insert numbers that are much too large."""
    changed = bytearray(data)
    for _ in range(d.choice((1, 1, 1, 2, 8))):
        if not changed:
            break
        # Most positions lie in the header, which readers trust.
        at = d.randrange(min(len(changed), d.choice((64, 400, 1 << 30))))
        kind = d.randrange(8)
        if kind == 0:
            changed[at] ^= 1 << d.randrange(8)
        elif kind == 1:
            changed[at] = d.randrange(256)
        elif kind == 2:
            changed[at : at + 4] = d.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)))
        elif kind == 3:
            del changed[max(1, at) :]
        elif kind == 4:
            changed[at:at] = d.randbytes(d.randrange(1, 9))
        elif kind == 5:
            del changed[at : at + d.randrange(1, 9)]
        elif kind == 6:  # a part occurs twice
            changed[at:at] = changed[at : at + d.randrange(1, 64)]
        else:
            other = SAMPLES[d.choice(OTHERS)]
            start = d.randrange(len(other))
            changed[at : at + 16] = other[start : start + 16]
    return bytes(changed)


def read(d: Draw, name: str, mutants: int) -> Case:
    """Decode a file and its mutants."""
    data = SAMPLES[name]
    x = yield Call(io.decode, data, Options(), name)
    require(x.size > 0, "an empty array", x)
    for _ in range(mutants):
        options = Options(
            LIMIT,
            d.choice((None, None, "data", "x")),
            d.choice((None, None, 0, 3)),
            d.chance(0.2),
        )
        claimed = name if d.chance(0.9) else ""
        x = yield Call(io.decode, mutated(d, data), options, claimed, errors=(io.FileError,))
        if isinstance(x, io.FileError):
            require("\n" not in str(x) and len(str(x)) < 600, "a long message", x)
            continue
        require(isinstance(x, np.ndarray) and x.size > 0, "no array", x)
        require(x.dtype.kind in "buif", "no real numbers", x.dtype)
        require(x.nbytes <= 8 * LIMIT, "more than the limit", x.nbytes)


def files(d: Draw) -> Case:
    """All formats but EXR."""
    yield from read(d, d.choice(OTHERS), MUTANTS)


def exr(d: Draw) -> Case:
    """EXR files, which a process of its own decodes."""
    yield from read(d, d.choice(EXR), 4)
