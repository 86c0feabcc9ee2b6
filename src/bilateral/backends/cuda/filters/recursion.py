"""The domain transform's recursion along lines, y_i = x_i + a_i (y_{i-1} - x_i), forth and back.

Stretches of a line are put together in any grouping: a scan. Without weights it runs over pairs
(A, c) of d_i = a_i d_{i-1} + e_i, with d = y - x and e_i = a_i (x_{i-1} - x_i), so that constants
stay exactly what they are. On the way back y_{i+1} - y_i = (1 - a_{i+1}) (x_{i+1} - y_i).

The transpose of both ways is z_i = g_i + a_i z_{i-1}, times 1 - a_{i+1}, and the same back, times
1 - a_i: pairs again.

With masses, a stretch is (A, B, c): from what comes before it, its last pixel takes A of the mass,
B is the mass that it has itself, and c the mean value of that, as in core/recursion.hpp.

A row is filtered forth and back by one program. Columns, and rows that are too long, are cut into
chunks: each finds its stretch, then all those before it give what it starts from.
"""

from enum import IntEnum
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

_LONGEST = 4096
"""Of a row that one program holds as a whole."""
_CHUNK, _STRIP = 32, 32
"""Pixels along the lines, in single precision, and lines that a program holds of others."""
_GROUP = 16
"""Chunks whose ends are read at a time."""

_SMALLEST32: tl.constexpr = tl.constexpr(1.1754943508222875e-38)
_SMALLEST64: tl.constexpr = tl.constexpr(2.2250738585072014e-308)
_HIGHEST32: tl.constexpr = tl.constexpr(3.4028234663852886e38 / 4)
_HIGHEST64: tl.constexpr = tl.constexpr(1.7976931348623157e308 / 4)
_LEAST32: tl.constexpr = tl.constexpr(1.1754943508222875e-36)
_LEAST64: tl.constexpr = tl.constexpr(2.2250738585072014e-306)
"""As `least_mass` in core/recursion.hpp."""


class Kind(IntEnum):
    """What is done along the lines."""

    PLAIN = 0
    WEIGHED = 1
    TRANSPOSED = 2


_WEIGHED: tl.constexpr = tl.constexpr(1)
_TRANSPOSED: tl.constexpr = tl.constexpr(2)


class Maps:
    """Values (B, K, H, W), and masses (B, 1, H, W) if there are any, with room for the next."""

    def __init__(self, values: Tensor, mass: Tensor | None, kind: Kind) -> None:
        self._values = [values, values.new_empty(values.shape)]
        self._masses = [mass, None if mass is None else mass.new_empty(mass.shape)]
        self._kind = kind

    @property
    def values(self) -> Tensor:
        """What the last filter left."""
        return self._values[0]

    def filter_rows(self, across: Tensor, squarings: int) -> None:
        """Filter with the weights of the first pass, (B or 1, H, W), raised to 2^squarings."""
        images, channels, height, width = self.values.shape
        if width > _LONGEST:
            self._filter_in_chunks(across, squarings, (width, height), (1, width))
            return
        block = max(32, triton.next_power_of_2(width))
        _whole_rows[(images * channels * height,)](
            *self._values,
            *self._masses,
            across,
            channels,
            height,
            width,
            step(across, height * width),
            squarings,
            KIND=int(self._kind),
            BLOCK=block,
            num_warps=min(max(block // 256, 1), 16),
        )
        self._values.reverse()
        self._masses.reverse()

    def filter_columns(self, down: Tensor, squarings: int, finish: bool = False) -> None:
        """The same for columns. The last filter of values / 4 may `finish` by taking 4 times."""
        height, width = self.values.shape[2:]
        self._filter_in_chunks(down, squarings, (height, width), (width, 1), finish)

    def _filter_in_chunks(
        self,
        weights: Tensor,
        squarings: int,
        size: tuple[int, int],
        strides: tuple[int, int],
        finish: bool = False,
    ) -> None:
        """`size`: length and number of lines; `strides`: along one, and to the next."""
        planes, channels = self.values.shape[0] * self.values.shape[1], self.values.shape[1]
        chunk = _CHUNK * 4 // self.values.element_size()  # as many as a thread has registers for
        chunks, strips = triton.cdiv(size[0], chunk), triton.cdiv(size[1], _STRIP)
        ends = self.values.new_empty((2, planes, chunks, 3, size[1]))
        grid = (planes * chunks * strips,)
        geometry = (
            channels,
            *size,
            *strides,
            step(weights, size[0] * size[1]),
            squarings,
            chunks,
            strips,
        )
        kinds: dict[str, Any] = {
            "KIND": int(self._kind),
            "CHUNK": chunk,
            "STRIP": _STRIP,
            "num_warps": 1,
        }
        x, y = self._values
        m, n = self._masses
        _ends_of_chunks[grid](x, m, weights, ends[0], *geometry, **kinds)
        kinds["GROUP"] = _GROUP
        _forth[grid](x, y, m, n, weights, ends[0], ends[1], *geometry, **kinds)
        _back[grid](y, x, n, m, weights, ends[1], *geometry, FINISH=finish, **kinds)


def step(maps: Tensor | None, size: int) -> int:
    """From one image's map to the next one's, or 0 if all share it."""
    return 0 if maps is None or maps.shape[0] == 1 else size


@triton.jit
def _chain(A1, c1, A2, c2):
    """Two stretches of pairs, one after the other."""
    return A1 * A2, A2 * c1 + c2


@triton.jit
def _join(A1, B1, c1, A2, B2, c2):
    """The same with masses."""
    least = _LEAST64 if B1.dtype == tl.float64 else _LEAST32
    smallest = _SMALLEST64 if B1.dtype == tl.float64 else _SMALLEST32
    taken = tl.maximum(A2 * B1, tl.minimum(B1, least))
    B = taken + B2
    share = taken / tl.maximum(B, smallest)
    return A1 * A2, B, tl.where(B2 > 0, c2 + share * (c1 - c2), c1)


# With the second one first. A scan in reverse would send all numbers through all threads.
@triton.jit
def _chain_before(A1, c1, A2, c2):
    return _chain(A2, c2, A1, c1)


@triton.jit
def _join_before(A1, B1, c1, A2, B2, c2):
    return _join(A2, B2, c2, A1, B1, c1)


@triton.jit
def _kept(a, m):
    """What is left of a pixel's own mass."""
    least = _LEAST64 if m.dtype == tl.float64 else _LEAST32
    return tl.maximum((1 - a) * m, tl.minimum(m, least))


@triton.jit
def _shares(weights, inside, there, squarings):
    """What pixels take, raised to 2^squarings: all outside, nothing where there is no neighbour."""
    a = tl.load(weights, mask=there, other=0)
    for _ in range(0, squarings):
        a *= a
    return tl.where(inside, a, 1.0)


@triton.jit
def _whole_rows(
    values,
    out,
    mass,
    mass_out,
    weights,
    channels,
    height,
    width,
    weights_step,
    squarings,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row forth and back."""
    program = tl.program_id(0)
    plane, y = program // height, program % height
    image = plane // channels
    i = tl.arange(0, BLOCK)
    inside, behind = i < width, i + 1 < width
    own = y * width + i
    between = weights + image.to(tl.int64) * weights_step + own
    before = _shares(between, inside, inside, squarings)
    after = _shares(between + 1, inside, behind, squarings)
    at = plane.to(tl.int64) * height * width + own
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == _WEIGHED:
        own_mass = image.to(tl.int64) * height * width + own
        m = tl.load(mass + own_mass, mask=inside, other=0)
        _A, m, x = tl.associative_scan((before, _kept(before, m), x), 0, _join)
        kept = tl.where(inside, _kept(after, m), 0)
        _A, m, x = tl.associative_scan((after, kept, x), 0, _join, reverse=True)
        first = i * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, m, mask=inside & first)
    elif KIND == _TRANSPOSED:
        _A, z = tl.associative_scan((before, x), 0, _chain)
        _A, z = tl.associative_scan((after, (1 - after) * z), 0, _chain, reverse=True)
        x = (1 - before) * z
    else:
        last = tl.load(values + at - 1, mask=inside & (i > 0), other=0)
        following = tl.load(values + at + 1, mask=behind, other=0)
        _A, d = tl.associative_scan((before, before * (last - x)), 0, _chain)
        x += d
        e = after * ((1 - after) * (following - x))
        _A, d = tl.associative_scan((after, e), 0, _chain, reverse=True)
        x += d
    tl.store(out + at, x, mask=inside)


@triton.jit
def _tile(
    length,
    lines,
    along,
    beside,
    chunks,
    strips,
    REVERSE: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Which plane, chunk, lines; which pixels of these, in their order; where; which are there."""
    program = tl.program_id(0)
    strip, rest = program % strips, program // strips
    order = CHUNK - 1 - tl.arange(0, CHUNK) if REVERSE else tl.arange(0, CHUNK)
    i = ((rest % chunks) * CHUNK + order)[:, None]
    j = strip * STRIP + tl.arange(0, STRIP)
    own = i * along + j[None, :] * beside
    return rest // chunks, rest % chunks, j, i, own, (i < length) & (j < lines)[None, :]


@triton.jit
def _store_end(
    ends,
    plane,
    chunk,
    chunks,
    lines,
    j,
    a,
    kept,
    e,
    REVERSE: tl.constexpr,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Keep a chunk's whole stretch."""
    last = (tl.arange(0, CHUNK) == CHUNK - 1)[:, None]
    there = last & (j < lines)[None, :]
    own = last.to(tl.int32) * lines * 0 + j[None, :]
    at = ends + (plane.to(tl.int64) * chunks + chunk) * 3 * lines + own
    if KIND == _WEIGHED:
        if REVERSE:
            A, B, c = tl.associative_scan((a, kept, e), 0, _join_before)
        else:
            A, B, c = tl.associative_scan((a, kept, e), 0, _join)
        tl.store(at + lines, B, mask=there)
    else:
        if REVERSE:
            A, c = tl.associative_scan((a, e), 0, _chain_before)
        else:
            A, c = tl.associative_scan((a, e), 0, _chain)
    tl.store(at, A, mask=there)
    tl.store(at + 2 * lines, c, mask=there)


@triton.jit
def _start(
    ends,
    plane,
    chunk,
    chunks,
    lines,
    j,
    REVERSE: tl.constexpr,
    KIND: tl.constexpr,
    GROUP: tl.constexpr,
):
    """What all chunks before this one come to."""
    count = chunks - 1 - chunk if REVERSE else chunk
    last = (tl.arange(0, GROUP) == GROUP - 1)[:, None]
    B = (j * 0).to(ends.dtype.element_ty)
    c = B
    for k in range(0, count, GROUP):
        order = k + tl.arange(0, GROUP)
        there = (order < count)[:, None] & (j < lines)[None, :]
        which = chunks - 1 - order if REVERSE else order
        own = which[:, None] * 3 * lines + j[None, :]
        at = ends + plane.to(tl.int64) * chunks * 3 * lines + own
        A2 = tl.load(at, mask=there, other=1)
        c2 = tl.load(at + 2 * lines, mask=there, other=0)
        if KIND == _WEIGHED:
            B2 = tl.load(at + lines, mask=there, other=0)
            A2, B2, c2 = tl.associative_scan((A2, B2, c2), 0, _join)
            A2 = tl.sum(tl.where(last, A2, 0), 0)
            B2 = tl.sum(tl.where(last, B2, 0), 0)
            c2 = tl.sum(tl.where(last, c2, 0), 0)
            _A, B, c = _join(A2, B, c, A2, B2, c2)
        else:
            A2, c2 = tl.associative_scan((A2, c2), 0, _chain)
            c = tl.sum(tl.where(last, A2, 0), 0) * c + tl.sum(tl.where(last, c2, 0), 0)
    return B[None, :], c[None, :]


@triton.jit
def _scan_from(B1, c1, a, kept, e, KIND: tl.constexpr, CHUNK: tl.constexpr):
    """All stretches of a chunk after a start, which its first pixel takes in."""
    first = (tl.arange(0, CHUNK) == 0)[:, None]
    if KIND == _WEIGHED:
        _A, B, c = _join(a, B1, c1, a, kept, e)
        _A, B, c = tl.associative_scan(
            (a, tl.where(first, B, kept), tl.where(first, c, e)), 0, _join
        )
    else:
        _A, c = tl.associative_scan((a, tl.where(first, a * c1 + e, e)), 0, _chain)
        B = kept
    return B, c


# A compiler that knew more about addresses would give each thread four neighbouring columns and
# every fourth pixel along them. So each gets one column, and scans it without the others.
_in_columns = triton.jit(do_not_specialize=["along", "length", "lines"])


@_in_columns
def _ends_of_chunks(
    values,
    mass,
    weights,
    ends,
    channels,
    length,
    lines,
    along,
    beside,
    weights_step,
    squarings,
    chunks,
    strips,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    plane, chunk, j, i, own, inside = _tile(
        length, lines, along, beside, chunks, strips, False, CHUNK, STRIP
    )
    image = plane // channels
    between = weights + image.to(tl.int64) * weights_step + own
    before = _shares(between, inside, inside, squarings)
    at = values + plane.to(tl.int64) * length * lines + own
    x = tl.load(at, mask=inside, other=0)
    kept = x
    if KIND == _WEIGHED:
        own_mass = image.to(tl.int64) * length * lines + own
        kept = _kept(before, tl.load(mass + own_mass, mask=inside, other=0))
    elif KIND != _TRANSPOSED:
        x = before * (tl.load(at - along, mask=inside & (i > 0), other=0) - x)
    _store_end(ends, plane, chunk, chunks, lines, j, before, kept, x, False, KIND, CHUNK)


@_in_columns
def _forth(
    values,
    out,
    mass,
    mass_out,
    weights,
    ends,
    ends_out,
    channels,
    length,
    lines,
    along,
    beside,
    weights_step,
    squarings,
    chunks,
    strips,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Filter forward, and find the stretches for the way back."""
    plane, chunk, j, i, own, inside = _tile(
        length, lines, along, beside, chunks, strips, False, CHUNK, STRIP
    )
    B1, c1 = _start(ends, plane, chunk, chunks, lines, j, False, KIND, GROUP)
    image = plane // channels
    behind = inside & (i + 1 < length)
    between = weights + image.to(tl.int64) * weights_step + own
    before = _shares(between, inside, inside, squarings)
    after = _shares(between + along, inside, behind, squarings)
    at = plane.to(tl.int64) * length * lines + own
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == _WEIGHED:
        own_mass = image.to(tl.int64) * length * lines + own
        m = tl.load(mass + own_mass, mask=inside, other=0)
        m, x = _scan_from(B1, c1, before, _kept(before, m), x, KIND, CHUNK)
        first = own * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, m, mask=inside & first)
        kept, e = tl.where(inside, _kept(after, m), 0), x
    elif KIND == _TRANSPOSED:
        kept, z = _scan_from(B1, c1, before, x, x, KIND, CHUNK)
        x = (1 - after) * z
        e = x
    else:
        last = tl.load(values + at - along, mask=inside & (i > 0), other=0)
        following = tl.load(values + at + along, mask=behind, other=0)
        kept, d = _scan_from(B1, c1, before, x, before * (last - x), KIND, CHUNK)
        x += d
        e = after * ((1 - after) * (following - x))
    tl.store(out + at, x, mask=inside)
    _store_end(ends_out, plane, chunk, chunks, lines, j, after, kept, e, True, KIND, CHUNK)


@_in_columns
def _back(
    values,
    out,
    mass,
    mass_out,
    weights,
    ends,
    channels,
    length,
    lines,
    along,
    beside,
    weights_step,
    squarings,
    chunks,
    strips,
    FINISH: tl.constexpr,
    KIND: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Filter backward."""
    plane, chunk, j, i, own, inside = _tile(
        length, lines, along, beside, chunks, strips, True, CHUNK, STRIP
    )
    B1, c1 = _start(ends, plane, chunk, chunks, lines, j, True, KIND, GROUP)
    image = plane // channels
    behind = inside & (i + 1 < length)
    between = weights + image.to(tl.int64) * weights_step + own
    after = _shares(between + along, inside, behind, squarings)
    at = plane.to(tl.int64) * length * lines + own
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == _WEIGHED:
        own_mass = image.to(tl.int64) * length * lines + own
        m = tl.load(mass + own_mass, mask=inside, other=0)
        m, x = _scan_from(B1, c1, after, _kept(after, m), x, KIND, CHUNK)
        first = own * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, m, mask=inside & first)
    elif KIND == _TRANSPOSED:
        _B, z = _scan_from(B1, c1, after, x, x, KIND, CHUNK)
        x = (1 - _shares(between, inside, inside, squarings)) * z
    else:
        following = tl.load(values + at + along, mask=behind, other=0)
        _B, d = _scan_from(B1, c1, after, x, after * (following - x), KIND, CHUNK)
        x += d
    if FINISH:
        most = _HIGHEST64 if x.dtype == tl.float64 else _HIGHEST32
        x = tl.minimum(tl.maximum(x, -most), most) * 4
    tl.store(out + at, x, mask=inside)
