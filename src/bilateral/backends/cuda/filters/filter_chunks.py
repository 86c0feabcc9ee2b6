"""Filter lines in chunks: columns, and rows that are too long for one program.

Each chunk first finds its segment. The segments of all chunks before it then give the value that it
starts from. The forward pass also finds the segments of the backward pass.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.filters.chunk_segments import (
    find_start,
    locate_chunk,
    scan_chunk,
    store_segment,
)
from bilateral.backends.cuda.filters.recursion import (
    TRANSPOSED,
    WEIGHED,
    Kind,
    image_stride,
    kept_mass,
    load_fractions,
)
from bilateral.backends.cuda.kernel import kernel

_CHUNK, _STRIP = 32, 32
"""Pixels along the lines, in single precision, and lines that one program holds."""
_GROUP = 16
"""Chunks whose segments are read at a time."""

_HIGHEST32: tl.constexpr = tl.constexpr(torch.finfo(torch.float32).max / 4)
_HIGHEST64: tl.constexpr = tl.constexpr(torch.finfo(torch.float64).max / 4)
"""A quarter of the largest number: four times as much is finite."""


def filter_chunks(
    values: list[Tensor],
    masses: list[Tensor | None],
    weights: Tensor,
    squarings: int,
    kind: Kind,
    size: tuple[int, int],
    strides: tuple[int, int],
    finish: bool,
) -> None:
    """Filter values[0] and masses[0] in place; values[1] and masses[1] are scratch memory.

    Parameters
    ----------
    values, masses, weights, squarings, kind
        As in `filter_rows`.
    size : tuple of int
        Length of a line, and number of lines of an image.
    strides : tuple of int
        Distance from one pixel of a line to the next, and from one line to the next.
    finish : bool
        Multiply the result by 4.
    """
    images, channels = values[0].shape[:2]
    planes = images * channels
    chunk = _CHUNK * 4 // values[0].element_size()  # as many as a thread has registers for
    chunks, strips = triton.cdiv(size[0], chunk), triton.cdiv(size[1], _STRIP)
    forward, backward = values[0].new_empty((2, planes, chunks, 3, size[1]))
    grid = (planes * chunks * strips,)
    geometry = (
        channels,
        *size,
        *strides,
        image_stride(weights, size[0] * size[1]),
        squarings,
        chunks,
        strips,
    )
    kinds: dict[str, Any] = {
        "KIND": int(kind),
        "CHUNK": chunk,
        "STRIP": _STRIP,
        "num_warps": 1,
    }
    x, y = values
    m, n = masses
    _find_segments[grid](x, m, weights, forward, *geometry, **kinds)
    kinds["GROUP"] = _GROUP
    _filter_forward[grid](x, y, m, n, weights, forward, backward, *geometry, **kinds)
    _filter_backward[grid](y, x, n, m, weights, backward, *geometry, FINISH=finish, **kinds)


# If the compiler knew `along`, `length` and `lines` to be multiples of 16, it would give each
# thread four adjacent columns and every fourth pixel along them. Without, each thread gets one
# column, which it scans without the other threads.
@kernel()
def _find_segments(
    values,
    mass,
    weights,
    segments,
    channels,
    length,
    lines,
    along,
    beside,
    weights_stride,
    squarings,
    chunks,
    strips,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Store the segment of each chunk for the forward pass."""
    plane, chunk, j, i, place, inside = locate_chunk(
        length, lines, along, beside, chunks, strips, False, CHUNK, STRIP
    )
    image = plane // channels
    of_weights = weights + image.to(tl.int64) * weights_stride + place
    before = load_fractions(of_weights, inside, inside, squarings)
    at = values + plane.to(tl.int64) * length * lines + place
    x = tl.load(at, mask=inside, other=0)
    kept = x
    if KIND == WEIGHED:
        of_mass = image.to(tl.int64) * length * lines + place
        kept = kept_mass(before, tl.load(mass + of_mass, mask=inside, other=0))
    elif KIND != TRANSPOSED:
        x = before * (tl.load(at - along, mask=inside & (i > 0), other=0) - x)
    store_segment(segments, plane, chunk, chunks, lines, j, before, kept, x, False, KIND, CHUNK)


@kernel()
def _filter_forward(
    values,
    out,
    mass,
    mass_out,
    weights,
    segments,
    segments_out,
    channels,
    length,
    lines,
    along,
    beside,
    weights_stride,
    squarings,
    chunks,
    strips,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Filter forward, and store the segment of each chunk for the backward pass."""
    plane, chunk, j, i, place, inside = locate_chunk(
        length, lines, along, beside, chunks, strips, False, CHUNK, STRIP
    )
    B1, c1 = find_start(segments, plane, chunk, chunks, lines, j, False, KIND, GROUP)
    image = plane // channels
    has_next = inside & (i + 1 < length)
    of_weights = weights + image.to(tl.int64) * weights_stride + place
    before = load_fractions(of_weights, inside, inside, squarings)
    after = load_fractions(of_weights + along, inside, has_next, squarings)
    at = plane.to(tl.int64) * length * lines + place
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == WEIGHED:
        of_mass = image.to(tl.int64) * length * lines + place
        m = tl.load(mass + of_mass, mask=inside, other=0)
        m, x = scan_chunk(B1, c1, before, kept_mass(before, m), x, KIND, CHUNK)
        first = place * 0 + plane % channels == 0
        tl.store(mass_out + of_mass, m, mask=inside & first)
        kept, e = tl.where(inside, kept_mass(after, m), 0), x
    elif KIND == TRANSPOSED:
        kept, z = scan_chunk(B1, c1, before, x, x, KIND, CHUNK)
        x = (1 - after) * z
        e = x
    else:
        previous = tl.load(values + at - along, mask=inside & (i > 0), other=0)
        following = tl.load(values + at + along, mask=has_next, other=0)
        kept, d = scan_chunk(B1, c1, before, x, before * (previous - x), KIND, CHUNK)
        x += d
        e = after * ((1 - after) * (following - x))
    tl.store(out + at, x, mask=inside)
    store_segment(segments_out, plane, chunk, chunks, lines, j, after, kept, e, True, KIND, CHUNK)


@kernel()
def _filter_backward(
    values,
    out,
    mass,
    mass_out,
    weights,
    segments,
    channels,
    length,
    lines,
    along,
    beside,
    weights_stride,
    squarings,
    chunks,
    strips,
    FINISH: tl.constexpr,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Filter backward; if FINISH, multiply by 4 without overflow."""
    plane, chunk, j, i, place, inside = locate_chunk(
        length, lines, along, beside, chunks, strips, True, CHUNK, STRIP
    )
    B1, c1 = find_start(segments, plane, chunk, chunks, lines, j, True, KIND, GROUP)
    image = plane // channels
    has_next = inside & (i + 1 < length)
    of_weights = weights + image.to(tl.int64) * weights_stride + place
    after = load_fractions(of_weights + along, inside, has_next, squarings)
    at = plane.to(tl.int64) * length * lines + place
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == WEIGHED:
        of_mass = image.to(tl.int64) * length * lines + place
        m = tl.load(mass + of_mass, mask=inside, other=0)
        m, x = scan_chunk(B1, c1, after, kept_mass(after, m), x, KIND, CHUNK)
        first = place * 0 + plane % channels == 0
        tl.store(mass_out + of_mass, m, mask=inside & first)
    elif KIND == TRANSPOSED:
        _B, z = scan_chunk(B1, c1, after, x, x, KIND, CHUNK)
        x = (1 - load_fractions(of_weights, inside, inside, squarings)) * z
    else:
        following = tl.load(values + at + along, mask=has_next, other=0)
        _B, d = scan_chunk(B1, c1, after, x, after * (following - x), KIND, CHUNK)
        x += d
    if FINISH:
        most = _HIGHEST64 if x.dtype == tl.float64 else _HIGHEST32
        x = tl.minimum(tl.maximum(x, -most), most) * 4
    tl.store(out + at, x, mask=inside)
