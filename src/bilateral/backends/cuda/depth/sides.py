"""Compare the colours of both surfaces beside jumps with the photograph: `tasks/depth/snap.py`."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.jump import jump_at
from bilateral.backends.cuda.depth.local_planes import in_unit
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128


class SideOptions(NamedTuple):
    """When the colours of two surfaces are clear."""

    reach: int
    """Colours come from so many pixels around, along x and y."""
    stride: int
    """And of these pixels, one in so many along x and y."""
    least_pixels: int
    """Fewest pixels of each surface."""
    most_others: float
    """Largest part of pixels of third surfaces."""
    least_contrast: float
    """Least difference of the mean colours, in the photograph's unit."""
    least_ratio: float
    """And in deviations of both."""


class Sides(NamedTuple):
    """Pixels near jumps, and both surfaces there."""

    pixel: Tensor
    """(N,) int32"""
    clear: Tensor
    """(N,) bool: whether the surfaces have different colours."""
    is_far: Tensor
    """(N,) bool: whether the map has the farther surface."""
    normal: Tensor
    """(2, N): unit vectors (x, y) from the nearer surface to the farther one."""
    colour: Tensor
    """(3, N): mean colour of the nearer surface; 0 for channels that do not exist."""
    way: Tensor
    """(3, N): difference of the farther surface's colour from it."""

    def clear_ones(self) -> "Sides":
        """Return the pixels with clear surfaces; waits for the device."""
        at = self.clear.nonzero().view(-1)
        return Sides(*(part.index_select(-1, at) for part in self))


def find_sides(
    x: Tensor,
    low: Tensor,
    high: Tensor,
    inner: Tensor,
    pixel: Tensor,
    image: Tensor,
    jump: Polynomial,
    inverse: bool,
    options: SideOptions,
) -> Sides:
    """Compute the colours of both surfaces beside each pixel.

    Parameters
    ----------
    x, low, high : Tensor
        (H, W) float32: depths, and the nearest and the farthest one around each pixel.
    inner : Tensor
        (H, W) bool: pixels whose colours count.
    pixel : Tensor
        (N,) int32
    image : Tensor
        (1 or 3, H, W) float32
    jump : (float, float, float)
    inverse : bool
        Whether the middle of two depths is that of their inverses.
    options : SideOptions
    """
    count, (height, width) = pixel.numel(), x.shape
    table = torch.zeros((8, count), dtype=torch.float32, device=x.device)
    flags = torch.zeros((2, count), dtype=torch.bool, device=x.device)
    if count > 0:
        _find_sides[(triton.cdiv(count, _BLOCK),)](
            *(x, low, high, inner.view(torch.uint8), pixel, image.contiguous(), table),
            *(flags.view(torch.uint8), count, height, width, len(image), int(inverse)),
            *jump,
            *options,
            BLOCK=_BLOCK,
        )
    return Sides(pixel, flags[0], flags[1], table[:2], table[2:5], table[5:])


def count_contradictions(
    sides: Sides, image: Tensor, shift: int, margin: float, most_off: float
) -> tuple[Tensor, Tensor]:
    """Compare the photograph, shifted by up to `shift` pixels, with the surfaces' colours.

    Returns
    -------
    joins : Tensor
        (shifts, N) int8: 1 where the photograph has the colour of the farther surface, 0 for that
        of the nearer one, -1 for neither.
    counts : Tensor
        (2, shifts) int32: pixels with the colour of a surface, and those of them whose depth is
        that of the other one.
    """
    count, side = sides.pixel.numel(), 2 * shift + 1
    height, width = image.shape[1:]
    joins = torch.empty((side * side, count), dtype=torch.int8, device=image.device)
    counts = torch.zeros((2, side * side), dtype=torch.int32, device=image.device)
    if count > 0:
        table = torch.cat([sides.colour, sides.way])
        _count_contradictions[(triton.cdiv(count, _BLOCK), side * side)](
            *(sides.pixel, sides.is_far.view(torch.uint8), table, image.contiguous(), joins),
            *(counts, count, height, width, len(image), shift, margin, most_off**2),
            BLOCK=_BLOCK,
        )
    return joins, counts


@kernel()
def _find_sides(
    x, low, high, inner, pixel, image, table, flags,
    count, height, width, channels, inverse, c0, c1, c2,
    reach, stride, least_pixels, most_others, least_contrast, least_ratio,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum over the pixels of both surfaces around each pixel, far from jumps."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    at = tl.load(pixel + i, mask=mask, other=0)
    y, u = at // width, at % width
    near, far = tl.load(low + at), tl.load(high + at)
    jump_near, jump_far = jump_at(near, c0, c1, c2), jump_at(far, c0, c1, c2)
    size, zero = height * width, tl.zeros((BLOCK,), tl.float32)
    n0, n1, s0, s1, x0, x1, y0, y1 = zero, zero, zero, zero, zero, zero, zero, zero
    a0, b0, d0, a1, b1, d1, others = zero, zero, zero, zero, zero, zero, zero
    coloured = i * 0 + channels > 1
    side = 2 * reach // stride + 1
    for k in range(side * side):
        dy, dx = k // side * stride - reach, k % side * stride - reach
        v, w = y + dy, u + dx
        there = mask & (v >= 0) & (v < height) & (w >= 0) & (w < width)
        q = v * width + w
        known = tl.load(inner + q, mask=there, other=0) > 0
        z = tl.load(x + q, mask=known, other=0.0)
        a = tl.load(image + q, mask=known, other=0.0)
        b = tl.load(image + size + q, mask=known & coloured, other=0.0)
        d = tl.load(image + 2 * size + q, mask=known & coloured, other=0.0)
        square = a * a + b * b + d * d
        steps = 1 + 0.5 * tl.maximum(tl.abs(dy), tl.abs(dx))
        is_near = known & (tl.abs(z - near) <= steps * jump_near)
        is_other = known & ~is_near
        is_farther = is_other & (tl.abs(z - far) <= steps * jump_far)
        p, q1 = is_near.to(tl.float32), is_farther.to(tl.float32)
        n0, n1, s0, s1 = n0 + p, n1 + q1, s0 + p * square, s1 + q1 * square
        x0, x1, y0, y1 = x0 + p * dx, x1 + q1 * dx, y0 + p * dy, y1 + q1 * dy
        a0, b0, d0 = a0 + p * a, b0 + p * b, d0 + p * d
        a1, b1, d1 = a1 + q1 * a, b1 + q1 * b, d1 + q1 * d
        others += (is_other & ~is_farther).to(tl.float32)
    m0, m1 = tl.maximum(n0, 1.0), tl.maximum(n1, 1.0)
    a0, b0, d0, a1, b1, d1 = a0 / m0, b0 / m0, d0 / m0, a1 / m1, b1 / m1, d1 / m1
    v0 = tl.maximum(s0 / m0 - (a0 * a0 + b0 * b0 + d0 * d0), 0.0) / channels
    v1 = tl.maximum(s1 / m1 - (a1 * a1 + b1 * b1 + d1 * d1), 0.0) / channels
    a, b, d = a1 - a0, b1 - b0, d1 - d0
    difference = tl.sqrt((a * a + b * b + d * d) / channels)
    clear = mask & (tl.minimum(n0, n1) >= least_pixels)
    clear &= others <= most_others * (n0 + n1 + others)
    clear &= difference > least_contrast
    clear &= difference > least_ratio * (tl.sqrt(v0) + tl.sqrt(v1))
    along_x, along_y = x1 / m1 - x0 / m0, y1 / m1 - y0 / m0
    length = tl.maximum(tl.sqrt(along_x * along_x + along_y * along_y), 1e-6)
    middle = (in_unit(near, inverse) + in_unit(far, inverse)) / 2
    own = in_unit(tl.load(x + at), inverse)
    is_far = (own > middle) != (inverse > 0)
    tl.store(flags + i, clear.to(tl.uint8), mask=mask)
    tl.store(flags + count + i, is_far.to(tl.uint8), mask=mask)
    tl.store(table + i, along_x / length, mask=mask)
    tl.store(table + count + i, along_y / length, mask=mask)
    tl.store(table + 2 * count + i, a0, mask=mask)
    tl.store(table + 3 * count + i, b0, mask=mask)
    tl.store(table + 4 * count + i, d0, mask=mask)
    tl.store(table + 5 * count + i, a, mask=mask)
    tl.store(table + 6 * count + i, b, mask=mask)
    tl.store(table + 7 * count + i, d, mask=mask)


@kernel()
def _count_contradictions(
    pixel, is_far, table, image, joins, counts,
    count, height, width, channels, shift, margin, most_off,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Find the surface by the colour of some pixels, for one shift of the photograph."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, number = i < count, tl.program_id(1)
    side, size = 2 * shift + 1, height * width
    at = tl.load(pixel + i, mask=mask, other=0)
    y = tl.minimum(tl.maximum(at // width + number // side - shift, 0), height - 1)
    u = tl.minimum(tl.maximum(at % width + number % side - shift, 0), width - 1)
    q, more = y * width + u, mask & (i * 0 + channels > 1)
    a = tl.load(image + q, mask=mask, other=0.0) - tl.load(table + i, mask=mask, other=0.0)
    b = tl.load(image + size + q, mask=more, other=0.0)
    b -= tl.load(table + count + i, mask=mask, other=0.0)
    d = tl.load(image + 2 * size + q, mask=more, other=0.0)
    d -= tl.load(table + 2 * count + i, mask=mask, other=0.0)
    way_a = tl.load(table + 3 * count + i, mask=mask, other=1.0)
    way_b = tl.load(table + 4 * count + i, mask=mask, other=0.0)
    way_d = tl.load(table + 5 * count + i, mask=mask, other=0.0)
    length = way_a * way_a + way_b * way_b + way_d * way_d
    part = (a * way_a + b * way_b + d * way_d) / length
    a, b, d = a - part * way_a, b - part * way_b, d - part * way_d
    close = (a * a + b * b + d * d) < most_off * length
    far, near = close & (part > 1 - margin), close & (part < margin)
    tl.store(joins + number * count + i, far.to(tl.int8) - (~far & ~near).to(tl.int8), mask=mask)
    certain = mask & (far | near)
    wrong = certain & (far != (tl.load(is_far + i, mask=mask, other=0) > 0))
    shifts = side * side
    tl.atomic_add(counts + number, tl.sum(certain.to(tl.int32), 0))
    tl.atomic_add(counts + shifts + number, tl.sum(wrong.to(tl.int32), 0))
