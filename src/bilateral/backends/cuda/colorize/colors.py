"""Combine luma and chroma into RGB, as `color.colored` does."""

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 512
_ROUND32: tl.constexpr = tl.constexpr(1.5 * 2.0**23)
_ROUND64: tl.constexpr = tl.constexpr(1.5 * 2.0**52)


def colored(
    luma: Tensor,
    chroma: Tensor,
    highest: float,
    least: float,
    to_rgb: tuple[float, ...],
    of_luma: tuple[float, ...],
    integer: bool,
) -> Tensor:
    """Return RGB (3, H, W) of the luma's dtype; whole numbers if `integer`.

    Parameters
    ----------
    luma : Tensor
        (H, W)
    chroma : Tensor
        (2, H, W)
    highest : float
        Luma of white.
    least : float
        Smaller differences between channels are rounding errors.
    to_rgb : tuple of float
        U and V of red, green and blue, in the unit of the luma.
    of_luma : tuple of float
        Weights of red, green and blue in the luma.
    integer : bool
    """
    out = luma.new_empty((3, *luma.shape))
    numbers = constant((*to_rgb, *of_luma, highest, least), luma.dtype, luma.device)
    pixels = luma.numel()
    _colored[(triton.cdiv(pixels, _BLOCK),)](
        luma, chroma, numbers, out, pixels, int(integer), BLOCK=_BLOCK
    )
    return out


@triton.jit
def _round(x):
    """Round to the nearest whole number, halves to the even one."""
    far = _ROUND64 if x.dtype == tl.float64 else _ROUND32
    return (x + far) - far


@kernel()
def _colored(luma, chroma, numbers, out, pixels, integer, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    y = tl.load(luma + i, mask=inside, other=0)
    u = tl.load(chroma + i, mask=inside, other=0).to(y.dtype)
    v = tl.load(chroma + pixels + i, mask=inside, other=0).to(y.dtype)
    red = tl.load(numbers) * u + tl.load(numbers + 1) * v
    green = tl.load(numbers + 2) * u + tl.load(numbers + 3) * v
    blue = tl.load(numbers + 4) * u + tl.load(numbers + 5) * v
    of_red, of_green = tl.load(numbers + 6), tl.load(numbers + 7)
    of_blue, highest, least = tl.load(numbers + 8), tl.load(numbers + 9), tl.load(numbers + 10)
    up = tl.maximum(tl.maximum(red, green), blue)
    down = -tl.minimum(tl.minimum(red, green), blue)
    room = tl.minimum((highest - y) / tl.maximum(up, least), y / tl.maximum(down, least))
    saturation = tl.minimum(tl.maximum(room, 0), 1)
    low, high = tl.minimum(y, 0), tl.maximum(y, highest)
    red = tl.minimum(tl.maximum(y + saturation * red, low), high)
    green = tl.minimum(tl.maximum(y + saturation * green, low), high)
    blue = tl.minimum(tl.maximum(y + saturation * blue, low), high)
    if integer != 0:
        red, blue = _round(red), _round(blue)
        green = _round((y - of_red * red - of_blue * blue) / of_green)
        green = tl.minimum(tl.maximum(green, low), high)
    tl.store(out + i, red, mask=inside)
    tl.store(out + pixels + i, green, mask=inside)
    tl.store(out + 2 * pixels + i, blue, mask=inside)
