"""Fit planes to the surfaces around pixels of a depth map: `core/depth/local_plane.hpp`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.jump import jump_at
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 8
_SAMPLES = tl.constexpr(128)
"""81 samples of a window of 9 x 9, and others to fill the block."""
_NEAR_RIDGE, _WIDE_RIDGE, _LEAST_COUNT = (tl.constexpr(v) for v in (30.0, 2.5, 9.0))


def fit_planes(z: Tensor, kept: Tensor, at: Tensor, jump: Polynomial, inverse: bool) -> Tensor:
    """Return the value, the slope along x and the slope along y at pixels, (H W, 3) float32.

    Rows of other pixels are undefined.

    Parameters
    ----------
    z : Tensor
        (H, W) float32.
    kept : Tensor
        (H, W) bool: pixels whose depths count.
    at : Tensor
        (N,) int32: the pixels, all kept.
    jump : (float, float, float)
    inverse : bool
        Whether planes are affine in 1 / z.
    """
    height, width = z.shape
    out = torch.empty((z.numel(), 3), dtype=torch.float32, device=z.device)
    count = at.numel()
    if count > 0:
        grid = (triton.cdiv(count, _BLOCK),)
        known = torch.where(kept, z, torch.nan)
        _fit_planes[grid](known, at, out, count, height, width, int(inverse), *jump, BLOCK=_BLOCK)
    return out


@kernel()
def _fit_planes(z, at, out, count, height, width, inverse, c0, c1, c2, BLOCK: tl.constexpr):
    """Fit a plane to the pixels near each one, then to all of a larger window that lie on it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    pixel = tl.load(at + i, mask=mask, other=0)
    y, x = (pixel // width)[:, None], (pixel % width)[:, None]
    k = tl.arange(0, _SAMPLES)[None, :]
    sample = k < 81
    dy, dx = k // 9 - 4, k % 9 - 4
    centre = tl.load(z + pixel, mask=mask, other=1.0)
    step = jump_at(centre, c0, c1, c2)
    origin = in_unit(centre, inverse)
    depth = _window(z, y + dy, x + dx, sample, height, width)
    # Half-way, another surface would differ by too much already.
    half_y, half_x = _halved(dy), _halved(dx)
    halfway = _window(z, y + half_y, x + half_x, sample, height, width)
    far = tl.maximum(tl.maximum(tl.abs(dy), tl.abs(dx)), 1).to(tl.float32)
    per_step = (1 / step)[:, None]
    same = tl.abs(depth - centre[:, None]) * per_step <= far
    same &= tl.abs(halfway - centre[:, None]) * per_step <= tl.maximum(0.5 * far, 1.0)
    found = in_unit(depth, inverse) - origin[:, None]
    value, slope_x, slope_y, _ = _fit(found, same, dx, dy, _NEAR_RIDGE)
    tolerance = tl.where(inverse > 0, step * origin * origin, step)
    depth = _window(z, y + 2 * dy, x + 2 * dx, sample, height, width)
    found = in_unit(depth, inverse) - origin[:, None]
    expected = value[:, None] + 2 * (slope_x[:, None] * dx + slope_y[:, None] * dy)
    same = tl.abs(found - expected) <= tolerance[:, None]
    wide, wide_x, wide_y, number = _fit(found, same, dx, dy, _WIDE_RIDGE)
    enough = number >= _LEAST_COUNT
    tl.store(out + 3 * pixel, tl.where(enough, wide, value) + origin, mask=mask)
    tl.store(out + 3 * pixel + 1, tl.where(enough, 0.5 * wide_x, slope_x), mask=mask)
    tl.store(out + 3 * pixel + 2, tl.where(enough, 0.5 * wide_y, slope_y), mask=mask)


@triton.jit
def _window(z, y, x, sample, height, width):
    """Load kept depths; NaN where there are none."""
    there = sample & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    return tl.load(z + y * width + x, mask=there, other=float("nan"))


@triton.jit
def _halved(step):
    """Half of a step, rounded towards the middle."""
    return tl.where(step < 0, -(-step // 2), step // 2)


@triton.jit
def in_unit(z, inverse):
    """Return depths in the planes' unit."""
    return tl.where(inverse > 0, 1 / tl.where(inverse > 0, z, 1.0), z)


@triton.jit
def _fit(value, same, dx, dy, ridge):
    """Fit planes to the samples on the surface; also return their numbers."""
    w = same.to(tl.float32)
    v = tl.where(same, value, 0.0)
    n, x, y = tl.maximum(tl.sum(w, 1), 1.0), tl.sum(w * dx, 1), tl.sum(w * dy, 1)
    xx, xy, yy = tl.sum(w * dx * dx, 1), tl.sum(w * dx * dy, 1), tl.sum(w * dy * dy, 1)
    s, xs, ys = tl.sum(v, 1), tl.sum(v * dx, 1), tl.sum(v * dy, 1)
    a, b, d = xx - x * x / n + ridge, xy - x * y / n, yy - y * y / n + ridge
    det, p, q = a * d - b * b, xs - x * s / n, ys - y * s / n
    slope_x, slope_y = (p * d - q * b) / det, (q * a - p * b) / det
    return (s - slope_x * x - slope_y * y) / n, slope_x, slope_y, n
