"""Choose the slope penalties of each image by the noise of its data, on the device.

The rule, its steps and its constants are those of `bilateral.numerics.slope_rule`.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.splat import splat
from bilateral.backends.cuda.planes.splat import splat_planes
from bilateral.numerics import slope_rule
from bilateral.torch.cuda.planar.plane_grid import PlaneGrid


def factors(
    grid: PlaneGrid, values: Tensor, weights: Tensor | None, unit: Tensor, smoothness: float
) -> list[float]:
    """Return the number from 1 to 10 that multiplies both penalties, for each image.

    Parameters
    ----------
    grid : PlaneGrid
    values : Tensor
        (B H W, K), finite.
    weights : Tensor, optional
        (B H W, 1); None: 1 everywhere.
    unit : Tensor
        (B, K): size of the values, which keeps their squares moderate.
    smoothness : float
    """
    images = grid.grid.shape[0]
    unit = unit.amax(1, keepdim=True)
    c = torch.ones_like(values[:, :1], dtype=torch.float64) if weights is None else weights.double()
    per_image = c.view(images, -1, 1)
    t = values.double().view(images, -1, values.shape[1]) / unit[:, None]
    size = t.abs().mul(per_image > 0).amax((1, 2))
    total = per_image.sum(1)
    mean = (per_image * t).sum(1) / total
    t = t - mean[:, None]
    squares = (per_image * t.square()).sum(2)
    energy = squares.sum(1)
    known = (c > 0).view(images, -1).sum(1)
    moments, weighted = splat_planes(
        grid.grid,
        grid.positions,
        t.reshape(values.shape),
        c,
        torch.zeros_like(mean),
        torch.ones_like(mean),
    )
    pixels = splat(grid.grid, torch.stack([(c > 0).view(-1).double(), squares.view(-1)], 1))
    cells = _cells(grid, moments, weighted, pixels)
    starts = grid.grid.first_vertex.tolist()
    out = []
    numbers = torch.stack([size, total[:, 0], energy, known.double()], 1).tolist()
    for image, (low, high) in enumerate(pairwise(starts)):
        noise, count = _noise(cells[low:high], _levels(grid, low, high))
        level = slope_rule.noise_level_of(noise, count, *numbers[image])
        out.append(slope_rule.factor_of(level, smoothness))
    return out


def _cells(grid: PlaneGrid, moments: Tensor, weighted: Tensor, pixels: Tensor) -> Tensor:
    """Return one row per vertex: n, c, c p (2), c p p (3), c t^2, c t (K), c p t (2 K).

    Positions p are relative to one common point.
    """
    x, y = grid.positions.centre.unbind(1)
    c, cx, cxx, cy, cxy, cyy = moments.unbind(1)
    ct, ctx, cty = weighted.unbind(2)
    columns = [
        *(pixels[:, 0], c, cx + c * x, cy + c * y),
        *(cxx + 2 * x * cx + c * x * x, cxy + x * cy + y * cx + c * x * y),
        *(cyy + 2 * y * cy + c * y * y, pixels[:, 1]),
    ]
    return torch.cat([torch.stack(columns, 1), ct, ctx + x[:, None] * ct, cty + y[:, None] * ct], 1)


def _levels(grid: PlaneGrid, low: int, high: int) -> list[Tensor]:
    """Return the cell of each vertex of an image, at each level of the pyramid."""
    pyramid = grid.grid.pyramid
    parent = pyramid.parent[low:high]
    return [parent, *(level.index_select(0, parent) for level in pyramid.ancestors)]


def _noise(vertices: Tensor, levels: list[Tensor]) -> tuple[float, int]:
    """Estimate the variance of a value of confidence 1, and count the cells of the estimate."""
    estimates: list[tuple[float, int]] = []
    cells = vertices
    for level in [None, *levels]:
        if level is not None:
            _, sizes = torch.unique_consecutive(level, return_counts=True)
            # Vertices below a cell are consecutive. Sums of segments have a fixed order.
            cells = torch.segment_reduce(vertices, "sum", lengths=sizes, axis=0)
        residual, freedom = _residuals(cells)
        if len(freedom) >= slope_rule.FEWEST_CELLS:
            estimates.append((_low_quantile(residual, freedom), len(freedom)))
        if len(estimates) == 2 or len(freedom) >= slope_rule.ENOUGH_CELLS or len(cells) == 1:
            break
    return min(estimates, default=(0.0, 0))


def _residuals(cells: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the squared residuals of a plane per cell, and their degrees of freedom."""
    cells = cells[cells[:, 0] > 2]
    channels = (cells.shape[1] - 8) // 3
    n, c, cx, cy, cxx, cxy, cyy, ctt = cells[:, :8].unbind(1)
    ct, ctx, cty = cells[:, 8:].view(-1, 3, channels).unbind(1)
    x, y, t = cx / c, cy / c, ct / c[:, None]
    xx, xy, yy = cxx - c * x * x, cxy - c * x * y, cyy - c * y * y
    slant_x, slant_y = ctx - c[:, None] * x[:, None] * t, cty - c[:, None] * y[:, None] * t
    middle, half = (xx + yy) / 2, torch.hypot((xx - yy) / 2, xy)
    angle = 0.5 * torch.atan2(2 * xy, xx - yy)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    explained, rank = torch.zeros_like(n), torch.zeros_like(n)
    for spread, along in (
        (middle + half, cos * slant_x + sin * slant_y),
        (middle - half, cos * slant_y - sin * slant_x),
    ):
        kept = spread > 1e-6 * (middle + half)
        explained += torch.where(kept, along.square().sum(1) / torch.where(kept, spread, 1), 0)
        rank += kept
    residual = (ctt - c * t.square().sum(1) - explained).clamp(min=0)
    freedom = n - 1 - rank
    return residual[freedom > 0], freedom[freedom > 0]


def _low_quantile(residual: Tensor, freedom: Tensor) -> float:
    """Return the quantile of the variances, corrected for their spread, weighted by freedom."""
    k = 2 / (9 * freedom)
    variance = residual / freedom / (1 - k + slope_rule.NORMAL_QUANTILE * k.sqrt()) ** 3
    order = torch.argsort(variance, stable=True)
    reached = torch.cumsum(freedom[order], 0)
    at = torch.searchsorted(reached, slope_rule.QUANTILE * reached[-1:])
    return float(variance[order][at])
