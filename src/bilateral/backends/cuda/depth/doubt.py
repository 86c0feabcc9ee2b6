"""Find the pixels of a depth map that lie on no surface: `core/depth/doubt.hpp`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.jump import is_even, jump_at
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256
# The constants are those of the core.
_SUPPORT, _SUPPORT_BETWEEN, _LEAST_NEIGHBOURS = (tl.constexpr(v) for v in (0.2, 0.4, 6.0))
_SLANT = tl.constexpr(0.5)
_LINE_SUPPORT, _LINE_STEEP, _LINE_REACH = (tl.constexpr(v) for v in (0.4, 0.5, 5))


def find_doubt(z: Tensor, jump: Polynomial) -> Tensor:
    """Return whether each known pixel of an (H, W) float32 map lies on no surface, as bool.

    NaN is unknown, and never doubtful.
    """
    height, width = z.shape
    out = torch.empty(z.shape, dtype=torch.bool, device=z.device)
    grid = (triton.cdiv(z.numel(), _BLOCK),)
    _find_doubt[grid](z, out.view(torch.uint8), height, width, *jump, BLOCK=_BLOCK)
    return out


@kernel()
def _find_doubt(z, out, height, width, c0, c1, c2, BLOCK: tl.constexpr):
    """Examine the opposite neighbours of some pixels along eight lines."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < height * width
    y, x = i // width, i % width
    centre = tl.load(z + i, mask=mask, other=float("nan"))
    ramp = i < 0  # False
    nearer, farther = ramp, ramp
    same = tl.zeros((BLOCK,), tl.float32)
    near = tl.zeros((BLOCK,), tl.float32)
    unit = jump_at(centre, c0, c1, c2)
    for line in tl.static_range(8):
        steps = 1 + line // 4
        dy = steps if line % 4 > 0 else 0
        dx = 0 if line % 4 == 1 else -steps if line % 4 == 3 else steps
        m2 = _clamped(z, y - 2 * dy, x - 2 * dx, height, width)
        m1 = _clamped(z, y - dy, x - dx, height, width)
        p1 = _clamped(z, y + dy, x + dx, height, width)
        p2 = _clamped(z, y + 2 * dy, x + 2 * dx, height, width)
        d, e = p1 - centre, centre - m1
        slack = 0.5 * _SLANT * tl.abs(d + e)
        slanted = (tl.abs(d - e) < slack) & (tl.abs(p2 - p1 - d) < slack)
        slanted &= tl.abs(m1 - m2 - e) < slack
        known_d, known_e = d == d, e == e
        steep = ((d > unit) & (e > unit)) | ((d < -unit) & (e < -unit))
        ramp |= steep & ~slanted
        ramp |= (~known_d & (tl.abs(e) > unit)) | (~known_e & (tl.abs(d) > unit))
        same += (tl.abs(d) < steps * unit).to(tl.float32)
        same += (tl.abs(e) < steps * unit).to(tl.float32)
        nearer |= (d < -unit) | (e > unit)
        farther |= (d > unit) | (e < -unit)
        near += known_d.to(tl.float32) + known_e.to(tl.float32)
    support = tl.where(nearer & farther, _SUPPORT_BETWEEN, _SUPPORT)
    count = tl.maximum(near, _LEAST_NEIGHBOURS)
    doubt = (centre == centre) & (ramp | (same < support * count))
    if tl.max(doubt.to(tl.int32), 0) > 0:
        least = tl.where(same < _LINE_SUPPORT * count, _LINE_STEEP, 0.0)
        # Triton wants other names here than outside of the branch.
        for axis in tl.static_range(4):
            down = 1 if axis > 0 else 0
            right = 0 if axis == 1 else -1 if axis == 3 else 1
            doubt &= ~_on_even_line(z, y, x, down, right, least, height, width, c0, c1, c2, BLOCK)
    tl.store(out + i, doubt.to(tl.uint8), mask=mask)


@triton.jit
def _clamped(z, y, x, height, width):
    """Load depths; beyond the border those of the border."""
    v = tl.minimum(tl.maximum(y, 0), height - 1)
    u = tl.minimum(tl.maximum(x, 0), width - 1)
    return tl.load(z + v * width + u)


@triton.jit
def _on_even_line(z, y, x, dy, dx, least, height, width, c0, c1, c2, BLOCK: tl.constexpr):
    """Whether pixels lie on a line of seven pixels with even slopes: five even ones in a row."""
    before = _inside(z, y - (_LINE_REACH + 1) * dy, x - (_LINE_REACH + 1) * dx, height, width)
    at = _inside(z, y - _LINE_REACH * dy, x - _LINE_REACH * dx, height, width)
    row = tl.zeros((BLOCK,), tl.int32)
    longest = row
    for k in range(-_LINE_REACH, _LINE_REACH + 1):
        after = _inside(z, y + (k + 1) * dy, x + (k + 1) * dx, height, width)
        row = tl.where(is_even(before, at, after, least, c0, c1, c2), row + 1, 0)
        longest = tl.maximum(longest, row)
        before, at = at, after
    return longest >= _LINE_REACH


@triton.jit
def _inside(z, y, x, height, width):
    """Load depths; NaN beyond the border."""
    mask = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return tl.load(z + y * width + x, mask=mask, other=float("nan"))
