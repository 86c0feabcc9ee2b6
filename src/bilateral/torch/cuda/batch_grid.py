"""Build the grids of a batch of references, with bistochastization and multigrid's hierarchy."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import color, validation
from bilateral.backends.cuda.grid.bistochastize import bistochastize
from bilateral.backends.cuda.grid.grid import Grid, build_grid
from bilateral.backends.cuda.grid.tiles import TileLayout
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.numerics import policy
from bilateral.torch.options import FEATURE_CHANNELS, LayerOptions


class HierarchyCapacity(NamedTuple):
    """Capacity of a recorded hierarchy; None: as the host reads it from the device."""

    levels: list[tuple[int, int]] | None = None
    """Room for the rows and links of each level."""
    first_small: int | None = None
    """Number of the first small level."""


class BatchGrid:
    """Grids of a batch, and all that depends on the references alone.

    Bistochastization and hierarchy are computed once per dtype, when they are needed.
    """

    def __init__(
        self, grid: Grid, blur: tuple[float, float, float], capacity: HierarchyCapacity | None
    ) -> None:
        self.grid = grid
        self.blur = blur
        self._capacity = capacity or HierarchyCapacity()
        self._n: dict[torch.dtype, Tensor] = {}
        self._hierarchies: dict[torch.dtype, Hierarchy] = {}

    def without_results(self) -> BatchGrid:
        """Return the same grids with nothing computed from them."""
        return BatchGrid(self.grid, self.blur, self._capacity)

    def bistochastized(self, dtype: torch.dtype) -> Tensor:
        """Return the diagonal n of the bistochastization."""
        if dtype not in self._n:
            self._n[dtype] = bistochastize(self.grid, self.blur, dtype, policy.LOWEST_EIGENVALUE)
        return self._n[dtype]

    def hierarchy(self, dtype: torch.dtype) -> Hierarchy:
        """Return multigrid's hierarchy."""
        if dtype not in self._hierarchies:
            grid, n = self.grid, self.bistochastized(dtype)
            self._hierarchies[dtype] = Hierarchy(
                grid.edges, n, self.blur, grid.first_vertex, *self._capacity
            )
        return self._hierarchies[dtype]


def build_batch_grid(
    reference: Tensor,
    options: LayerOptions,
    rooms: Sequence[int] | None = None,
    hierarchy: HierarchyCapacity | None = None,
    tiles: TileLayout | None = None,
    image_pixels: Tensor | None = None,
) -> BatchGrid:
    """Build the grids of references (B, C, H, W).

    Two channels are two features in their own units, with cells of `sigma_luma` and `sigma_chroma`.

    Parameters
    ----------
    reference : tensor
    options : LayerOptions
    rooms : sequence of int, optional
        Capacity of the grid, as `Grid.rooms`. Without it, the host waits for the sizes and checks
        the reference.
    hierarchy : HierarchyCapacity, optional
    tiles, image_pixels : optional
        As for `build_grid`.
    """
    highest = options.grid.reference_max
    if highest is None:
        integer = not reference.dtype.is_floating_point
        highest = float(torch.iinfo(reference.dtype).max) if integer else 1.0
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    channels = reference.shape[1]
    if channels == FEATURE_CHANNELS:
        matrix, offset = [[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]
    else:
        matrix, offset = (numbers.tolist() for numbers in color.feature_map(channels, highest))
    luma, chroma = options.grid.sigma_luma, options.grid.sigma_chroma
    grid = build_grid(
        reference,
        matrix,
        offset,
        (luma, chroma, chroma)[:channels],
        highest,
        options.grid.sigma_xy,
        rooms,
        edge_guard=policy.EDGE_GUARD,
        largest=_largest(reference, options),
        tiles=tiles,
        image_pixels=image_pixels,
    )
    may_be_invalid = rooms is None and reference.dtype.is_floating_point
    if may_be_invalid and bool(grid.tile_keys.out_of_range):
        _check_range(reference, options)
    unit = max(options.grid.blur)
    centre, space, range_ = (weight / unit for weight in options.grid.blur)
    return BatchGrid(grid, (centre, space, range_), hierarchy)


def _has_default_white(reference: Tensor, options: LayerOptions) -> bool:
    return reference.dtype.is_floating_point and options.grid.reference_max is None


def _largest(reference: Tensor, options: LayerOptions) -> float:
    """Return the largest value of a valid reference."""
    default = _has_default_white(reference, options)
    return validation.HIGHEST if default else sys.float_info.max


def _check_range(reference: Tensor, options: LayerOptions) -> None:
    """Raise if a reference has values that are not finite, or that contradict its white."""
    low, high = (float(value) for value in torch.aminmax(reference))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("reference: expected finite values, got NaN or infinity.")
    if _has_default_white(reference, options):
        validation.photo_range("reference", low, high)
