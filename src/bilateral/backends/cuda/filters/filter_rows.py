"""Filter rows forward and backward, each row by one program."""

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.filters.recursion import (
    TRANSPOSED,
    WEIGHED,
    Kind,
    compose,
    compose_masses,
    image_stride,
    kept_mass,
    load_fractions,
)
from bilateral.backends.cuda.kernel import kernel


def filter_rows(
    values: list[Tensor], masses: list[Tensor | None], weights: Tensor, squarings: int, kind: Kind
) -> None:
    """Filter values[0] and masses[0] into values[1] and masses[1].

    Parameters
    ----------
    values : list of Tensor
        (B, K, H, W) each.
    masses : list of Tensor or None
        (B, 1, H, W) each.
    weights : Tensor
        Fraction that each pixel takes from its left neighbour in the first pass, (B or 1, H, W).
    squarings : int
        The fractions are raised to 2^squarings.
    kind : Kind
    """
    images, channels, height, width = values[0].shape
    block = max(32, triton.next_power_of_2(width))
    _filter_rows[(images * channels * height,)](
        *values,
        *masses,
        weights,
        channels,
        height,
        width,
        image_stride(weights, height * width),
        squarings,
        KIND=int(kind),
        BLOCK=block,
        num_warps=min(max(block // 256, 1), 16),
    )


@kernel()
def _filter_rows(
    values,
    out,
    mass,
    mass_out,
    weights,
    channels,
    height,
    width,
    weights_stride,
    squarings,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Filter one row forward and backward; the first channel of an image stores the masses."""
    program = tl.program_id(0)
    plane, y = program // height, program % height
    image = plane // channels
    i = tl.arange(0, BLOCK)
    inside, has_next = i < width, i + 1 < width
    place = y * width + i
    of_weights = weights + image.to(tl.int64) * weights_stride + place
    before = load_fractions(of_weights, inside, inside, squarings)
    after = load_fractions(of_weights + 1, inside, has_next, squarings)
    at = plane.to(tl.int64) * height * width + place
    x = tl.load(values + at, mask=inside, other=0)
    if KIND == WEIGHED:
        of_mass = image.to(tl.int64) * height * width + place
        m = tl.load(mass + of_mass, mask=inside, other=0)
        _A, m, x = tl.associative_scan((before, kept_mass(before, m), x), 0, compose_masses)
        kept = tl.where(inside, kept_mass(after, m), 0)
        _A, m, x = tl.associative_scan((after, kept, x), 0, compose_masses, reverse=True)
        first = i * 0 + plane % channels == 0
        tl.store(mass_out + of_mass, m, mask=inside & first)
    elif KIND == TRANSPOSED:
        _A, z = tl.associative_scan((before, x), 0, compose)
        _A, z = tl.associative_scan((after, (1 - after) * z), 0, compose, reverse=True)
        x = (1 - before) * z
    else:
        previous = tl.load(values + at - 1, mask=inside & (i > 0), other=0)
        following = tl.load(values + at + 1, mask=has_next, other=0)
        _A, d = tl.associative_scan((before, before * (previous - x)), 0, compose)
        x += d
        e = after * ((1 - after) * (following - x))
        _A, d = tl.associative_scan((after, e), 0, compose, reverse=True)
        x += d
    tl.store(out + at, x, mask=inside)
