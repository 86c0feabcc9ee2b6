"""Bring flying pixels to the surfaces measured beside them: `land` of `core/depth/grow.hpp`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.jump import jump_at
from bilateral.backends.cuda.depth.local_planes import in_unit
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128
_REACH, _WITNESSES = tl.constexpr(3), tl.constexpr(3)
"""`flying_reach` and `flying_witnesses` of the core."""


def land(
    x: Tensor,
    kept: Tensor,
    measured: Tensor,
    surfaces: tuple[Tensor, Tensor, Tensor],
    limits: Tensor,
    jump: Polynomial,
    inverse: bool,
) -> None:
    """Move doubtful pixels whose own surface was not measured around them, in place.

    Parameters
    ----------
    x, kept, measured : Tensor
        As for `grow_surfaces`, after all pixels took their surface.
    surfaces : tuple of Tensor
        Of each pixel, the pixel whose plane it continues or -1, and the value there; all planes.
    limits : Tensor
        Least and largest filling.
    jump, inverse
        As for `grow_surfaces`.
    """
    height, width = x.shape
    mask = kept.to(torch.uint8)
    _land[(triton.cdiv(x.numel(), _BLOCK),)](
        *(x, mask, measured, *surfaces, limits, height, width, int(inverse), *jump), BLOCK=_BLOCK
    )


@kernel()
def _land(
    x,
    kept,
    measured,
    plane,
    base,
    planes,
    limits,
    height,
    width,
    inverse,
    c0,
    c1,
    c2,
    BLOCK: tl.constexpr,
):
    """Only pixels that lie on surfaces are looked at, and they do not change."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = p < height * width
    value = tl.load(x + p, mask=inside, other=1.0)
    own = tl.load(measured + p, mask=inside, other=float("nan"))
    continues = tl.load(plane + p, mask=inside, other=-1) >= 0
    is_kept = tl.load(kept + p, mask=inside, other=1) != 0
    # A doubtful pixel that lies on a surface has its own depth.
    doubtful = inside & continues & (is_kept == 0) & (own == own) & (own != value)
    if tl.max(doubtful.to(tl.int32), 0) > 0:
        low, high = tl.load(limits), tl.load(limits + 1)
        step = jump_at(value, c0, c1, c2)
        y, u = p // width, p % width
        others = p * 0
        is_measured = p < 0
        nearest = tl.full((BLOCK,), float("inf"), tl.float32)
        landed = value
        for dy in range(-_REACH, _REACH + 1):
            for dx in range(-_REACH, _REACH + 1):
                there = doubtful & (y + dy >= 0) & (y + dy < height)
                there = there & (u + dx >= 0) & (u + dx < width)
                q = p + dy * width + dx
                depth = tl.load(x + q, mask=there, other=0.0)
                origin = tl.load(plane + q, mask=there, other=-1)
                agrees = (origin >= 0) & (tl.load(measured + q, mask=there, other=-1.0) == depth)
                lies = there & ((tl.load(kept + q, mask=there, other=0) != 0) | agrees)
                steps = tl.maximum(tl.abs(p * 0 + dy), tl.abs(p * 0 + dx)).to(tl.float32)
                near = tl.abs(depth - value) <= step * (1 + 0.5 * steps)
                is_measured = is_measured | (lies & near)
                others += lies.to(tl.int32)
                distance = (p * 0 + dx * dx + dy * dy).to(tl.float32)
                closer = lies & (origin >= 0) & (distance < nearest)
                nearest = tl.where(closer, distance, nearest)
                start = tl.load(base + q, mask=closer, other=1.0)
                slope_x = tl.load(planes + 3 * origin + 1, mask=closer, other=0.0)
                slope_y = tl.load(planes + 3 * origin + 2, mask=closer, other=0.0)
                # The step leads from the pixel on the surface to this one.
                moved = start - slope_x * dx - slope_y * dy
                moved = tl.where(inverse > 0, tl.maximum(moved, 0.5 * start), moved)
                moved = tl.minimum(tl.maximum(in_unit(moved, inverse), low), high)
                landed = tl.where(closer, moved, landed)
        lands = doubtful & (is_measured == 0) & (others >= _WITNESSES)
        tl.store(x + p, landed, mask=lands)
