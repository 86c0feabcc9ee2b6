"""Find the strokes of colour on a gray picture, and the texture of that picture."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel

MASK, ALPHA, DIFFERENCE = 0, 1, 2
"""How strokes are marked."""
_BLOCK = 512
_FLAGS: tl.constexpr = tl.constexpr(5)


class Numbers(NamedTuple):
    """Numbers that the kernel needs, and the rules of `tasks.colorize`."""

    white: float
    """Of the gray picture."""
    stroke_white: float
    lowest: float
    highest: float
    """Limits of valid values of the gray picture, in its own unit."""
    stroke_lowest: float
    stroke_highest: float
    """Limits of valid values of the strokes."""
    difference: float
    gray_chroma: float
    weights: tuple[float, ...]
    """The nine numbers that convert RGB to YUV."""


class Facts(NamedTuple):
    """Counts of pixels, for the host."""

    strokes: int
    invalid: int
    """Values of the gray picture that are not finite or out of range."""
    coloured_strokes: int
    coloured: int
    """Pixels of the gray picture that are not gray."""
    invalid_strokes: int
    """Finite values of strokes that are out of range."""


class Strokes(NamedTuple):
    """What colorization needs of a picture and its strokes, pixel by pixel."""

    luma: Tensor
    """(H, W)"""
    features: Tensor
    """(N, H, W): the luma in 8-bit grey levels; more features follow."""
    chroma: Tensor
    """(H, W, 2) float32"""
    weights: Tensor
    """(H, W) float32"""
    counts: Tensor
    """int32: the numbers of `Facts`."""


def find_strokes(
    gray: Tensor,
    scribbles: Tensor,
    mask: Tensor | None,
    mode: int,
    features: int,
    numbers: Numbers,
) -> Strokes:
    """Find strokes.

    Parameters
    ----------
    gray : Tensor
        (1 or 3, H, W), float32 or float64.
    scribbles : Tensor
        (3 or 4, H, W) float32.
    mask : Tensor or None
        (H, W) uint8, for the mode `MASK`.
    mode : int
    features : int
        Number of features to allocate.
    numbers : Numbers
    """
    colours, height, width = gray.shape
    device = gray.device
    out = Strokes(
        gray.new_empty((height, width)),
        gray.new_empty((features, height, width)),
        torch.empty((height, width, 2), dtype=torch.float32, device=device),
        torch.empty((height, width), dtype=torch.float32, device=device),
        torch.zeros(_FLAGS.value, dtype=torch.int32, device=device),
    )
    table = constant((*numbers[:-1], *numbers.weights), torch.float64, device)
    pixels = height * width
    marks = scribbles if mask is None else mask
    _find_strokes[(triton.cdiv(pixels, _BLOCK),)](
        gray, scribbles, marks, table, *out, pixels, colours, mode, BLOCK=_BLOCK
    )
    return out


def add_texture(features: Tensor, mean: Tensor, window: int) -> None:
    """Write the texture of features[0] to features[1], both (H, W).

    That is the smallest standard deviation over all windows that contain the pixel.

    Parameters
    ----------
    features : Tensor
        (2, H, W)
    mean : Tensor
        () float64: a number near all levels, such as their mean.
    window : int
        Side of the window in pixels, odd.
    """
    _, height, width = features.shape
    deviation = torch.empty_like(features[0])
    grid = (height, triton.cdiv(width, _BLOCK))
    sizes = height, width, window // 2
    _deviation[grid](features, mean, deviation, *sizes, BLOCK=_BLOCK)
    _least_around[grid](deviation, features, *sizes, BLOCK=_BLOCK)


@kernel()
def _find_strokes(
    gray,
    scribbles,
    marks,
    table,
    luma,
    features,
    chroma,
    weights,
    counts,
    pixels,
    colours,
    mode,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    kind = luma.dtype.element_ty
    white, stroke_white = tl.load(table), tl.load(table + 1)
    lowest, highest = tl.load(table + 2), tl.load(table + 3)
    stroke_lowest, stroke_highest = tl.load(table + 4), tl.load(table + 5)
    most_gray = tl.load(table + 7).to(tl.float32)
    u_scale, v_scale = (255 / white).to(kind), (255 / stroke_white).to(tl.float32)
    y_sum = tl.zeros((BLOCK,), kind)
    u_gray, v_gray = tl.zeros((BLOCK,), kind), tl.zeros((BLOCK,), kind)
    u, v = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    difference = tl.zeros((BLOCK,), tl.float32)
    finite, valid, valid_stroke = inside, inside, inside
    for c in tl.static_range(3):
        before = tl.load(gray + (c % colours) * pixels + i, mask=inside, other=0)
        after = tl.load(scribbles + c * pixels + i, mask=inside, other=0)
        of_y = tl.load(table + 8 + c).to(kind)
        of_u, of_v = tl.load(table + 11 + c), tl.load(table + 14 + c)
        y_sum += of_y * before
        u_gray += of_u.to(kind) * before
        v_gray += of_v.to(kind) * before
        valid = valid & (before >= lowest) & (before <= highest)
        known = (after - after) == 0
        finite = finite & known
        after = tl.where(known, after, 0)
        valid_stroke = valid_stroke & (after >= stroke_lowest) & (after <= stroke_highest)
        u += of_u.to(tl.float32) * after
        v += of_v.to(tl.float32) * after
        scaled = before.to(tl.float32) * (1 / white).to(tl.float32)
        difference += tl.abs(after * (1 / stroke_white).to(tl.float32) - scaled)
    if colours == 1:
        y_sum = tl.load(gray + i, mask=inside, other=0)
    weight = tl.where(difference > tl.load(table + 6).to(tl.float32), 1.0, 0.0)
    if mode == 0:
        weight = tl.where(tl.load(marks + i, mask=inside, other=0) != 0, 1.0, 0.0)
    if mode == 1:
        alpha = tl.load(scribbles + 3 * pixels + i, mask=inside, other=0)
        alpha = tl.where(alpha == alpha, alpha * (1 / stroke_white).to(tl.float32), 0)
        weight = tl.minimum(tl.maximum(alpha, 0.0), 1.0)
    weight = tl.where(finite, weight, 0)
    u, v = tl.where(finite, u * v_scale, 0), tl.where(finite, v * v_scale, 0)
    tl.store(luma + i, y_sum, mask=inside)
    tl.store(features + i, y_sum * u_scale, mask=inside)
    tl.store(chroma + 2 * i, u, mask=inside)
    tl.store(chroma + 2 * i + 1, v, mask=inside)
    tl.store(weights + i, weight, mask=inside)
    stroke = inside & (weight > 0)
    colour = stroke & (tl.maximum(tl.abs(u), tl.abs(v)) > most_gray)
    own = tl.maximum(tl.abs(u_gray), tl.abs(v_gray)) * u_scale
    tl.atomic_add(counts, tl.sum(stroke.to(tl.int32), 0))
    tl.atomic_add(counts + 1, tl.sum((inside & (valid == 0)).to(tl.int32), 0))
    tl.atomic_add(counts + 2, tl.sum(colour.to(tl.int32), 0))
    coloured = inside & (own > most_gray) & (colours > 1)
    tl.atomic_add(counts + 3, tl.sum(coloured.to(tl.int32), 0))
    tl.atomic_add(counts + 4, tl.sum((inside & (valid_stroke == 0)).to(tl.int32), 0))


@kernel()
def _deviation(levels, mean, out, height, width, radius, BLOCK: tl.constexpr):
    """Store the standard deviation over the window around each pixel; the border is replicated."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    middle = tl.load(mean).to(levels.dtype.element_ty)
    total = tl.zeros((BLOCK,), levels.dtype.element_ty)
    squares = total
    for dy in range(-radius, radius + 1):
        row = levels + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
        for dx in range(-radius, radius + 1):
            value = tl.load(row + tl.minimum(tl.maximum(x + dx, 0), width - 1)) - middle
            total += value
            squares += value * value
    count = ((2 * radius + 1) * (2 * radius + 1)).to(total.dtype)
    average = total / count
    variance = tl.maximum(squares / count - average * average, 0)
    tl.store(out + y * width + x, tl.sqrt(variance), mask=x < width)


@kernel()
def _least_around(values, features, height, width, radius, BLOCK: tl.constexpr):
    """Store the least value of the window around each pixel as the second feature."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    least = tl.load(values + y * width + tl.minimum(x, width - 1))
    for dy in range(-radius, radius + 1):
        row = values + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
        for dx in range(-radius, radius + 1):
            value = tl.load(row + tl.minimum(tl.maximum(x + dx, 0), width - 1))
            least = tl.minimum(least, value)
    out = features + height * width + y * width + x
    tl.store(out, least, mask=x < width)
