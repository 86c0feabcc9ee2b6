"""Splat targets and confidences to planes, and slice planes to pixels.

Both use the offset e = (1, x, y) of each pixel from the centre of its vertex.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.splat import splat
from bilateral.backends.cuda.grid.tiles import tile_pixels, tile_programs
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.planes.blocks import evaluate, read_plane, read_point
from bilateral.backends.cuda.planes.positions import Positions, coordinates, pixel_positions


def splat_planes(
    grid: Grid,
    positions: Positions,
    values: Tensor,
    weights: Tensor | None,
    origin: Tensor,
    unit: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the sums of c e e^T, (room, 6), and of c e (t - origin) / unit, (room, K, 3).

    Values t are (B H W, K), weights c (B H W, 1) or None for 1 everywhere, origin and unit (B, K)
    in float64. Vertices whose weight is too small for an inverse have zeros.
    """
    moments = values.new_empty((grid.room, 6))
    weighted = values.new_empty((grid.room, values.shape[1], 3))
    least = float(torch.finfo(values.dtype).tiny)
    if grid.tile_keys.ranks is None:
        e, image = _offsets(grid, positions, values.dtype)
        centred = ((values.double() - origin[image]) / unit[image]).to(values.dtype)
        weighed = e if weights is None else e * weights
        for n, (i, j) in enumerate(((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))):
            product = weighed[:, i : i + 1] * e[:, j : j + 1]
            moments[:, n] = splat(grid, product)[:, 0]
        counts = moments[:, :1] >= least
        for n in range(3):
            weighted[:, :, n] = splat(grid, weighed[:, n : n + 1] * centred) * counts
        moments *= counts
        return moments, weighted
    images, height, width = grid.shape
    _splat_planes[_programs(grid)](
        *(values.contiguous(), weights, origin.contiguous(), unit.contiguous()),
        *(positions.centre, positions.cell, moments, weighted),
        *(grid.tile_keys.ranks, grid.tile_keys.first_of_tile, grid.order.vertex_of_key),
        *(grid.tiles.top, grid.tiles.left, grid.tiles.rows, grid.tiles.columns),
        *(images * grid.tiles.count, height, width, values.shape[1]),
        LEAST=least,
        **_constants(grid),
    )
    return moments, weighted


def pixel_sums(grid: Grid, positions: Positions, values: Tensor) -> Tensor:
    """Return the sums of e t, (room, K, 3): the transpose of `slice_planes`."""
    weighted = values.new_empty((grid.room, values.shape[1], 3))
    if grid.tile_keys.ranks is None:
        e, _ = _offsets(grid, positions, values.dtype)
        for n in range(3):
            weighted[:, :, n] = splat(grid, e[:, n : n + 1] * values)
        return weighted
    images, height, width = grid.shape
    _splat_planes[_programs(grid)](
        *(values.contiguous(), None, None, None),
        *(positions.centre, positions.cell, None, weighted),
        *(grid.tile_keys.ranks, grid.tile_keys.first_of_tile, grid.order.vertex_of_key),
        *(grid.tiles.top, grid.tiles.left, grid.tiles.rows, grid.tiles.columns),
        *(images * grid.tiles.count, height, width, values.shape[1]),
        LEAST=0.0,
        **_constants(grid),
    )
    return weighted


def slice_planes(
    grid: Grid,
    positions: Positions,
    planes: Tensor,
    origin: Tensor | None = None,
    unit: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Return origin + unit * plane at each pixel, (B H W, K), for planes (room, K, 3).

    Origin and unit are (B, K) in float64; None: 0 and 1.
    """
    pixels, channels = grid.parent.shape[0], planes.shape[1]
    out = planes.new_empty((pixels, channels), dtype=dtype or planes.dtype)
    padded = triton.next_power_of_2(channels)
    block = max(16, 512 // padded)
    _, height, width = grid.shape
    _slice_planes[(triton.cdiv(pixels, block),)](
        *(planes.contiguous(), grid.parent, positions.centre, positions.cell, out),
        *(None if v is None else v.contiguous() for v in (origin, unit)),
        *(pixels, height, width, channels),
        KP=padded,
        BLOCK=block,
    )
    return out


def _programs(grid: Grid) -> tuple[int]:
    return tile_programs(grid.shape[0] * grid.tiles.count)


def _constants(grid: Grid) -> dict[str, Any]:
    return {"BLOCK": max(32, triton.next_power_of_2(grid.tiles.max_pixels)), "num_warps": 1}


def _offsets(grid: Grid, positions: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return e = (1, x, y) of each pixel, (B H W, 3), and the image of each pixel."""
    images, height, width = grid.shape
    at = pixel_positions(grid, positions.cell)
    at = (at - positions.centre.index_select(0, grid.parent)).to(dtype)
    image = torch.arange(images, device=at.device).repeat_interleave(height * width)
    return torch.cat([torch.ones_like(at[:, :1]), at], 1), image


@kernel()
def _splat_planes(
    values,
    weights,
    origin,
    unit,
    centre,
    cell,
    moments,
    weighted,
    ranks,
    first_of_tile,
    vertex_of_key,
    top,
    left,
    rows,
    columns,
    tiles,
    height,
    width,
    channels,
    LEAST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum c e e^T and c e t over the pixels of each vertex, tile by tile.

    Without `moments`, only the latter.
    """
    T: tl.constexpr = weighted.dtype.element_ty
    p = tl.arange(0, BLOCK)
    size = tl.load(cell)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
        rank = tl.load(ranks + begin + p, mask=inside, other=-1).to(tl.int32)
        low, high = tl.load(first_of_tile + tile), tl.load(first_of_tile + tile + 1)
        column, row, _ = coordinates(pixel, height, width)
        x, y = column.to(tl.float64) * size, row.to(tl.float64) * size
        image = tile // (rows * columns)
        c = tl.zeros((BLOCK,), T) + 1
        if weights is not None:
            c = tl.load(weights + pixel, mask=inside, other=0)
        if moments is not None:
            for key in range(low, high):
                v = tl.load(vertex_of_key + key).to(tl.int64)
                dx = (x - tl.load(centre + v * 2)).to(T)
                dy = (y - tl.load(centre + v * 2 + 1)).to(T)
                weight = tl.where(rank == key - low, c, 0.0)
                total = tl.sum(weight, 0)
                counts = total >= LEAST
                to = moments + v * 6
                weight_x, weight_y = weight * dx, weight * dy
                tl.store(to, tl.where(counts, total, 0.0))
                tl.store(to + 1, tl.where(counts, tl.sum(weight_x, 0), 0.0))
                tl.store(to + 2, tl.where(counts, tl.sum(weight_x * dx, 0), 0.0))
                tl.store(to + 3, tl.where(counts, tl.sum(weight_y, 0), 0.0))
                tl.store(to + 4, tl.where(counts, tl.sum(weight_x * dy, 0), 0.0))
                tl.store(to + 5, tl.where(counts, tl.sum(weight_y * dy, 0), 0.0))
        for k in range(0, channels):
            value = tl.load(values + pixel * channels + k, mask=inside, other=0)
            if origin is not None:
                at = image * channels + k
                wide = (value.to(tl.float64) - tl.load(origin + at)) / tl.load(unit + at)
                value = wide.to(T)
            value = c * tl.where(inside, value, 0.0)
            for key in range(low, high):
                v = tl.load(vertex_of_key + key).to(tl.int64)
                dx = (x - tl.load(centre + v * 2)).to(T)
                dy = (y - tl.load(centre + v * 2 + 1)).to(T)
                equal = rank == key - low
                counts = low <= key
                if moments is not None:
                    counts = tl.sum(tl.where(equal, c, 0.0), 0) >= LEAST
                own = tl.where(equal, value, 0.0)
                to = weighted + (v * channels + k) * 3
                tl.store(to, tl.where(counts, tl.sum(own, 0), 0.0))
                tl.store(to + 1, tl.where(counts, tl.sum(own * dx, 0), 0.0))
                tl.store(to + 2, tl.where(counts, tl.sum(own * dy, 0), 0.0))


@kernel(ones=("channels",))
def _slice_planes(
    planes,
    parent,
    centre,
    cell,
    out,
    origin,
    unit,
    pixels,
    height,
    width,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Evaluate the plane of each pixel's vertex at the pixel."""
    p = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, KP)
    mask = p < pixels
    v = tl.load(parent + p, mask=mask, other=0)
    size = tl.load(cell)
    column, row, image = coordinates(p, height, width)
    x, y = read_point(centre, v, mask)
    offset = column.to(tl.float64) * size - x, row.to(tl.float64) * size - y
    value, along_x, along_y = read_plane(planes, v, mask, channels, k)
    plane = value.to(tl.float64), along_x.to(tl.float64), along_y.to(tl.float64)
    result = evaluate(plane, offset)
    to, both = row_channels(p, mask, channels, k)
    if origin is not None:
        at, _ = row_channels(image, mask, channels, k)
        result *= tl.load(unit + at, mask=both, other=1)
        result += tl.load(origin + at, mask=both, other=0)
    tl.store(out + to, result.to(out.dtype.element_ty), mask=both)
