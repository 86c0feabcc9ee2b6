"""The domain transform's recursive filter, and its transpose, for batches of images.

Along a line y_i = x_i + s_i (y_{i-1} - x_i) is a chain of maps, and stretches of it are put
together in any grouping: a scan. A stretch is (A, B, c): from what comes before it, its last pixel
takes A of the mass, B is the mass that it has itself, and c the mean value of that. So values are
only ever mixed, and constants stay exactly what they are, as in core/recursion.hpp.

A row is filtered forth and back by one program. Columns, and rows that are too long, are cut into
chunks: each finds its stretch, then all those before it give what it starts from.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.constants import constant

_LONGEST = 4096
"""Of a line that one program holds as a whole."""
_CHUNK, _STRIP = 64, 32
"""Pixels along the lines, and lines, that a program holds of longer ones and of columns."""
_BLOCK = 1024

_MOST32: tl.constexpr = tl.constexpr(3.4028234663852886e38)
_MOST64: tl.constexpr = tl.constexpr(1.7976931348623157e308)
_SMALLEST32: tl.constexpr = tl.constexpr(1.1754943508222875e-38)
_SMALLEST64: tl.constexpr = tl.constexpr(2.2250738585072014e-308)
_LEAST32: tl.constexpr = tl.constexpr(1.1754943508222875e-36)
_LEAST64: tl.constexpr = tl.constexpr(2.2250738585072014e-306)
"""As `least_mass` in core/recursion.hpp."""
_FAR: tl.constexpr = tl.constexpr(1e4)
"""exp(-_FAR) is 0."""
_FLAGS: tl.constexpr = tl.constexpr(3)
"""For each image: masses differ; a pixel is known; a weight is wrong. Then: no finite reference."""


class Filtered(NamedTuple):
    """A filtered batch, and what was found in it, of which only the device knows."""

    pixels: Tensor
    flags: Tensor


class Findings(NamedTuple):
    """What the flags say, for each image."""

    masses: list[bool]
    """Whether pixels count differently."""
    known: list[bool]
    """Whether any pixel is known."""
    wrong: list[bool]
    """Whether a weight is negative or not finite."""
    reference: bool
    """Whether all references are finite."""


def domain_transform(
    image: Tensor,
    weights: Tensor | None,
    reference: Tensor,
    scale: tuple[float, float],
    passes: int,
) -> Filtered:
    """Filter (B, K, H, W) images along (B or 1, C, H, W) references.

    `weights` are (B or 1, 1, H, W), of any size. `scale` and `passes` are as in `ops.cpu`.
    """
    images, channels, height, width = image.shape
    pixels = height * width
    flags = torch.zeros(images * _FLAGS.value + 1, dtype=torch.int32, device=image.device)
    lines = _Lines(reference, scale, image, flags)
    values = torch.empty(image.shape, dtype=image.dtype, device=image.device)
    masses = [values.new_empty((images, 1, height, width)) for _ in range(2)]
    blocks = triton.cdiv(pixels, _BLOCK)
    _prepare[(images * blocks,)](
        image.contiguous(),
        None if weights is None else weights.contiguous(),
        None if weights is None else weights.flatten(1).amax(1),
        values,
        masses[0],
        flags,
        channels,
        pixels,
        blocks,
        _step(weights, 1),
        _step(weights, pixels),
        BLOCK=_BLOCK,
    )
    for squarings in range(passes):
        lines.filter_rows(values, masses, squarings)
        lines.filter_columns(values, masses, squarings, finish=squarings == passes - 1)
    return Filtered(values, flags)


def transposed(g: Tensor, reference: Tensor, scale: tuple[float, float], passes: int) -> Tensor:
    """F^T g of (B, K, H, W), where F g is the filtered g without weights."""
    values = g.clone(memory_format=torch.contiguous_format)
    lines = _Lines(reference, scale, values, None)
    for squarings in range(passes - 1, -1, -1):
        lines.filter_columns(values, None, squarings)
        lines.filter_rows(values, None, squarings)
    return values


def findings(flags: Tensor) -> Findings:
    """Wait for the device, and read what it has found."""
    *each, reference = (flag != 0 for flag in flags.tolist())
    n = _FLAGS.value
    return Findings(each[0::n], each[1::n], each[2::n], not reference)


class _Lines:
    """Rows and columns of a batch with what neighbours share in the first pass."""

    def __init__(
        self, reference: Tensor, scale: tuple[float, float], image: Tensor, flags: Tensor | None
    ) -> None:
        self._flags = flags
        self.across, self.down = _neighbours(reference, scale, image.dtype, flags)

    def filter_rows(self, values: Tensor, masses: list[Tensor] | None, squarings: int) -> None:
        """Filter rows in place; transposed if there are no masses, which change places."""
        images, channels, height, width = values.shape
        if width > _LONGEST:
            self._in_chunks(values, masses, self.across, squarings, (width, height), (1, width))
            return
        block = max(32, triton.next_power_of_2(width))
        _whole_rows[(images * channels * height,)](
            values,
            None if masses is None else masses[0],
            None if masses is None else masses[1],
            self.across,
            self._flags,
            channels,
            height,
            width,
            _step(self.across, height * width),
            squarings,
            TRANSPOSED=masses is None,
            BLOCK=block,
            num_warps=min(max(block // 256, 1), 16),
        )
        if masses is not None:
            masses.reverse()

    def filter_columns(
        self, values: Tensor, masses: list[Tensor] | None, squarings: int, finish: bool = False
    ) -> None:
        """The same for columns; `finish` undoes the scaling of the values."""
        height, width = values.shape[2:]
        self._in_chunks(
            values, masses, self.down, squarings, (height, width), (width, 1), finish=finish
        )

    def _in_chunks(
        self,
        values: Tensor,
        masses: list[Tensor] | None,
        weights: Tensor,
        squarings: int,
        size: tuple[int, int],
        strides: tuple[int, int],
        finish: bool = False,
    ) -> None:
        """`size`: length and number of lines; `strides`: along one, and to the next."""
        planes, channels = values.shape[0] * values.shape[1], values.shape[1]
        chunks, strips = triton.cdiv(size[0], _CHUNK), triton.cdiv(size[1], _STRIP)
        ends = values.new_empty((2, planes, chunks, 3, size[1]))
        grid = (planes * chunks * strips,)
        geometry = (
            self._flags,
            channels,
            *size,
            *strides,
            _step(weights, size[0] * size[1]),
            squarings,
            chunks,
            strips,
        )
        kinds: dict[str, Any] = {
            "TRANSPOSED": masses is None,
            "CHUNK": _CHUNK,
            "STRIP": _STRIP,
            "num_warps": 4,
        }
        first, second = (None, None) if masses is None else masses
        _ends_of_chunks[grid](values, first, weights, ends[0], *geometry, **kinds)
        _forth[grid](values, first, second, weights, ends[0], ends[1], *geometry, **kinds)
        _back[grid](values, second, first, weights, ends[1], *geometry, FINISH=finish, **kinds)


def _neighbours(
    reference: Tensor, scale: tuple[float, float], dtype: torch.dtype, flags: Tensor | None
) -> tuple[Tensor, Tensor]:
    """What a pixel takes from its left and from its upper neighbour: (B or 1, H, W), 0 for none."""
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    floating = reference.dtype.is_floating_point
    real = torch.promote_types(dtype, reference.dtype) if floating else dtype
    most = torch.finfo(real).max
    numbers = constant(tuple(min(number, most) for number in scale), real, reference.device)
    images, channels, height, width = reference.shape
    across = torch.empty((images, height, width), dtype=dtype, device=reference.device)
    down = torch.empty_like(across)
    blocks = triton.cdiv(height * width, _BLOCK)
    _share_out[(images * blocks,)](
        reference.contiguous(),
        numbers,
        across,
        down,
        None if flags is None else flags[-1:],
        channels,
        height,
        width,
        blocks,
        FLOATING=floating,
        BLOCK=_BLOCK,
    )
    return across, down


def _step(maps: Tensor | None, size: int) -> int:
    """From one image's map to the next one's, or 0 if all share it."""
    return 0 if maps is None or maps.shape[0] == 1 else size


@triton.jit
def _share_out(
    reference,
    numbers,
    across,
    down,
    flag,
    channels,
    height,
    width,
    blocks,
    FLOATING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """exp(-(step + level * difference)), as core/domain_weights.hpp."""
    program = tl.program_id(0)
    image, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    pixels = height * width
    inside = i < pixels
    left, up = inside & (i % width > 0), inside & (i >= width)
    step, level = tl.load(numbers), tl.load(numbers + 1)
    real: tl.constexpr = numbers.dtype.element_ty
    kind: tl.constexpr = real if FLOATING else tl.int32
    dx, dy = tl.zeros((BLOCK,), kind), tl.zeros((BLOCK,), kind)
    wrong = tl.zeros((BLOCK,), tl.int32)
    at = image.to(tl.int64) * channels * pixels + i
    for _ in range(0, channels):
        own = tl.load(reference + at, mask=inside, other=0).to(kind)
        dx += tl.abs(own - tl.load(reference + at - 1, mask=left, other=0).to(kind))
        dy += tl.abs(own - tl.load(reference + at - width, mask=up, other=0).to(kind))
        if FLOATING:
            most = _MOST64 if kind == tl.float64 else _MOST32
            wrong |= tl.where(tl.abs(own) <= most, 0, 1)
        at += pixels
    to = image.to(tl.int64) * pixels + i
    tl.store(across + to, _decay(dx.to(real), step, level, left, across), mask=inside)
    tl.store(down + to, _decay(dy.to(real), step, level, up, down), mask=inside)
    if FLOATING and flag is not None:
        tl.store(flag, 1, mask=tl.max(wrong, 0) > 0)


@triton.jit
def _decay(difference, step, level, there, out):
    most = _MOST64 if difference.dtype == tl.float64 else _MOST32
    exponent = step + level * tl.minimum(difference, most)  # never 0 * infinity
    small = tl.minimum(exponent, _FAR).to(out.dtype.element_ty)
    return tl.where(there, tl.exp(-small), 0.0)


@triton.jit
def _prepare(
    image,
    weights,
    largest,
    values,
    mass,
    flags,
    channels,
    pixels,
    blocks,
    largest_step,
    weights_step,
    BLOCK: tl.constexpr,
):
    """Known values, divided by 4 so that no difference overflows, and masses of at most 1."""
    program = tl.program_id(0)
    b, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    start = b.to(tl.int64) * channels * pixels + i
    highest = _MOST64 if image.dtype.element_ty == tl.float64 else _MOST32
    at, finite = start, inside
    for _ in range(0, channels):
        x = tl.load(image + at, mask=inside, other=0)
        finite = finite & (tl.abs(x) <= highest)
        at += pixels
    m = tl.where(finite, 1.0, 0.0).to(mass.dtype.element_ty)
    if weights is not None:
        w = tl.load(weights + b.to(tl.int64) * weights_step + i, mask=inside, other=0)
        most = i * 0 + tl.load(largest + b * largest_step)
        m = tl.where(finite & (most > 0), w / tl.where(most > 0, most, 1), 0)
        right = (w >= 0) & (w <= highest)
        tl.store(flags + b * _FLAGS + 2, 1, mask=tl.max(tl.where(right, 0, 1), 0) > 0)
    differ = inside & (m != 1)
    tl.store(flags + b * _FLAGS, 1, mask=tl.max(tl.where(differ, 1, 0), 0) > 0)
    tl.store(flags + b * _FLAGS + 1, 1, mask=tl.max(tl.where(m > 0, 1, 0), 0) > 0)
    tl.store(mass + b.to(tl.int64) * pixels + i, m, mask=inside)
    at = start
    for _ in range(0, channels):
        x = tl.load(image + at, mask=inside, other=0)
        tl.store(values + at, tl.where(m > 0, x * 0.25, 0), mask=inside)
        at += pixels


@triton.jit
def _join(A1, B1, c1, A2, B2, c2):
    """Two stretches of a line, one after the other."""
    least = _LEAST64 if B1.dtype == tl.float64 else _LEAST32
    smallest = _SMALLEST64 if B1.dtype == tl.float64 else _SMALLEST32
    taken = tl.maximum(A2 * B1, tl.minimum(B1, least))
    B = taken + B2
    share = taken / tl.maximum(B, smallest)
    return A1 * A2, B, tl.where(B2 > 0, c2 + share * (c1 - c2), c1)


@triton.jit
def _chain(A1, c1, A2, c2):
    """The same for z_i = g_i + a_i z_{i-1}."""
    return A1 * A2, A2 * c1 + c2


@triton.jit
def _scan(a, m, x, REVERSE: tl.constexpr, TRANSPOSED: tl.constexpr):
    """The stretches from the line's beginning, or from its end, to each pixel."""
    if TRANSPOSED:
        A, c = tl.associative_scan((a, x), 0, _chain, reverse=REVERSE)
        B = m
    else:
        least = _LEAST64 if m.dtype == tl.float64 else _LEAST32
        kept = tl.maximum((1 - a) * m, tl.minimum(m, least))
        A, B, c = tl.associative_scan((a, kept, x), 0, _join, reverse=REVERSE)
    return A, B, c


@triton.jit
def _raised(weights, inside, there, squarings):
    """What pixels take, raised to 2^squarings: all outside, nothing where there is no neighbour."""
    a = tl.load(weights, mask=there, other=0)
    for _ in range(0, squarings):
        a *= a
    return tl.where(inside, a, 1.0)


@triton.jit
def _masses(mass, differ, inside):
    """1 where they do not differ, and 0 outside."""
    m = tl.load(mass, mask=inside & differ, other=1)
    return tl.where(inside, m, 0)


@triton.jit
def _whole_rows(
    values,
    mass,
    mass_out,
    weights,
    flags,
    channels,
    height,
    width,
    weights_step,
    squarings,
    TRANSPOSED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One row forth and back."""
    program = tl.program_id(0)
    plane, y = program // height, program % height
    image = plane // channels
    i = tl.arange(0, BLOCK)
    inside = i < width
    pixels, own = height * width, y * width + i
    between = weights + image.to(tl.int64) * weights_step + own
    before = _raised(between, inside, inside, squarings)
    after = _raised(between + 1, inside, i + 1 < width, squarings)
    to = values + plane.to(tl.int64) * pixels + own
    x = tl.load(to, mask=inside, other=0)
    if TRANSPOSED:
        _A, B, x = _scan(before, x, x, False, True)
        _A, B, x = _scan(after, x, (1 - after) * x, True, True)
        x = (1 - before) * x
    else:
        differ = i * 0 + tl.load(flags + image * _FLAGS) != 0
        own_mass = image.to(tl.int64) * pixels + own
        m = _masses(mass + own_mass, differ, inside)
        _A, B, x = _scan(before, m, x, False, False)
        m = tl.where(differ, B, m)
        _A, B, x = _scan(after, tl.where(inside, m, 0), x, True, False)
        first = i * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, B, mask=inside & differ & first)
    tl.store(to, x, mask=inside)


@triton.jit
def _tile(chunks, strips, CHUNK: tl.constexpr, STRIP: tl.constexpr):
    """Which plane, which chunk, which pixels of the lines, which lines."""
    program = tl.program_id(0)
    strip, rest = program % strips, program // strips
    i = (rest % chunks) * CHUNK + tl.arange(0, CHUNK)
    j = strip * STRIP + tl.arange(0, STRIP)
    return rest // chunks, rest % chunks, i, j


@triton.jit
def _store_end(ends, plane, chunk, chunks, lines, j, last, A, B, c, TRANSPOSED: tl.constexpr):
    """Keep a chunk's whole stretch, which is at its last pixel."""
    there = last[:, None] & (j < lines)[None, :]
    at = ends + (plane.to(tl.int64) * chunks + chunk) * 3 * lines + tl.where(there, j[None, :], 0)
    tl.store(at, A, mask=there)
    if not TRANSPOSED:
        tl.store(at + lines, B, mask=there)
    tl.store(at + 2 * lines, c, mask=there)


@triton.jit
def _start(ends, plane, chunk, chunks, lines, j, REVERSE: tl.constexpr, TRANSPOSED: tl.constexpr):
    """What all chunks before this one come to: mass and value, or only a value."""
    count = chunks - 1 - chunk if REVERSE else chunk
    B = (j * 0).to(ends.dtype.element_ty)
    c = B
    for k in range(0, count):
        which = chunks - 1 - k if REVERSE else k
        at = ends + (plane.to(tl.int64) * chunks + which) * 3 * lines + j
        A2 = tl.load(at, mask=j < lines, other=1)
        c2 = tl.load(at + 2 * lines, mask=j < lines, other=0)
        if TRANSPOSED:
            c = A2 * c + c2
        else:
            B2 = tl.load(at + lines, mask=j < lines, other=0)
            _A, B, c = _join(A2, B, c, A2, B2, c2)
    return B, c


@triton.jit
def _continued(B1, c1, A, B, c, TRANSPOSED: tl.constexpr):
    """Masses and values after a start."""
    if TRANSPOSED:
        c = A * c1[None, :] + c
    else:
        A, B, c = _join(A, B1[None, :], c1[None, :], A, B, c)
    return B, c


@triton.jit
def _ends_of_chunks(
    values,
    mass,
    weights,
    ends,
    flags,
    channels,
    length,
    lines,
    along,
    beside,
    weights_step,
    squarings,
    chunks,
    strips,
    TRANSPOSED: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    plane, chunk, i, j = _tile(chunks, strips, CHUNK, STRIP)
    image = plane // channels
    inside = (i < length)[:, None] & (j < lines)[None, :]
    own = i[:, None] * along + j[None, :] * beside
    between = weights + image.to(tl.int64) * weights_step + own
    before = _raised(between, inside, inside, squarings)
    x = tl.load(values + plane.to(tl.int64) * length * lines + own, mask=inside, other=0)
    m = x
    if not TRANSPOSED:
        differ = own * 0 + tl.load(flags + image * _FLAGS) != 0
        m = _masses(mass + image.to(tl.int64) * length * lines + own, differ, inside)
    A, B, c = _scan(before, m, x, False, TRANSPOSED)
    last = tl.arange(0, CHUNK) == CHUNK - 1
    _store_end(ends, plane, chunk, chunks, lines, j, last, A, B, c, TRANSPOSED)


@triton.jit
def _forth(
    values,
    mass,
    mass_out,
    weights,
    ends,
    ends_out,
    flags,
    channels,
    length,
    lines,
    along,
    beside,
    weights_step,
    squarings,
    chunks,
    strips,
    TRANSPOSED: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Filter forward, and find the stretches for the way back."""
    plane, chunk, i, j = _tile(chunks, strips, CHUNK, STRIP)
    image = plane // channels
    inside = (i < length)[:, None] & (j < lines)[None, :]
    own = i[:, None] * along + j[None, :] * beside
    between = weights + image.to(tl.int64) * weights_step + own
    before = _raised(between, inside, inside, squarings)
    after = _raised(between + along, inside, inside & (i + 1 < length)[:, None], squarings)
    to = values + plane.to(tl.int64) * length * lines + own
    x = tl.load(to, mask=inside, other=0)
    m = x
    own_mass = image.to(tl.int64) * length * lines + own
    if not TRANSPOSED:
        differ = own * 0 + tl.load(flags + image * _FLAGS) != 0
        m = _masses(mass + own_mass, differ, inside)
    A, B, c = _scan(before, m, x, False, TRANSPOSED)
    B1, c1 = _start(ends, plane, chunk, chunks, lines, j, False, TRANSPOSED)
    B, x = _continued(B1, c1, A, B, c, TRANSPOSED)
    if TRANSPOSED:
        x = (1 - after) * x
    else:
        first = own * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, B, mask=inside & differ & first)
        m = tl.where(inside & differ, B, m)
    tl.store(to, x, mask=inside)
    A, B, c = _scan(after, m, x, True, TRANSPOSED)
    last = tl.arange(0, CHUNK) == 0
    _store_end(ends_out, plane, chunk, chunks, lines, j, last, A, B, c, TRANSPOSED)


@triton.jit
def _back(
    values,
    mass,
    mass_out,
    weights,
    ends,
    flags,
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
    TRANSPOSED: tl.constexpr,
    CHUNK: tl.constexpr,
    STRIP: tl.constexpr,
):
    """Filter backward."""
    plane, chunk, i, j = _tile(chunks, strips, CHUNK, STRIP)
    image = plane // channels
    inside = (i < length)[:, None] & (j < lines)[None, :]
    own = i[:, None] * along + j[None, :] * beside
    between = weights + image.to(tl.int64) * weights_step + own
    after = _raised(between + along, inside, inside & (i + 1 < length)[:, None], squarings)
    to = values + plane.to(tl.int64) * length * lines + own
    x = tl.load(to, mask=inside, other=0)
    m = x
    own_mass = image.to(tl.int64) * length * lines + own
    if not TRANSPOSED:
        differ = own * 0 + tl.load(flags + image * _FLAGS) != 0
        m = _masses(mass + own_mass, differ, inside)
    A, B, c = _scan(after, m, x, True, TRANSPOSED)
    B1, c1 = _start(ends, plane, chunk, chunks, lines, j, True, TRANSPOSED)
    B, x = _continued(B1, c1, A, B, c, TRANSPOSED)
    if TRANSPOSED:
        x = (1 - _raised(between, inside, inside, squarings)) * x
    else:
        first = own * 0 + plane % channels == 0
        tl.store(mass_out + own_mass, B, mask=inside & differ & first)
    if FINISH:
        most = (_MOST64 if x.dtype == tl.float64 else _MOST32) * 0.25
        x = tl.minimum(tl.maximum(x, -most), most) * 4
    tl.store(to, x, mask=inside)
