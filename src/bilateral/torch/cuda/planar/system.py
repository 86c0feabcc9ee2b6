"""Hold a planar system of a batch on CUDA, and solve it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from bilateral.backends.cuda.planes import iteration
from bilateral.backends.cuda.planes.diagonals import Diagonals
from bilateral.backends.cuda.planes.fill import Fill
from bilateral.backends.cuda.planes.vcycle import VCycle
from bilateral.backends.cuda.solve import components, pcg
from bilateral.numerics import policy
from bilateral.torch.cuda.device_memory import can_record
from bilateral.torch.cuda.graphs import record_briefly
from bilateral.torch.cuda.planar import loose
from bilateral.torch.cuda.planar.plane_grid import PlaneGrid
from bilateral.torch.cuda.system import pcg_options

_LEAST_RIDGE = 1e-11
"""Parts whose data determine no slope need a ridge. In all others it changes nothing visible."""


class PlaneSystem:
    """The matrix of a batch, with what its solves need.

    Parameters
    ----------
    grid : PlaneGrid
    moments : Tensor
        (room, 6), as from `splat_planes`. Its dtype is that of the solve.
    smoothness : float
    slopes : sequence of (float, float)
        Slope smoothness and ridge of each image.
    max_iterations : int
    all_levels : bool
        Use multigrid; else half-sweeps over the grid, as `policy.sweeps_are_enough` allows.
    """

    def __init__(
        self,
        grid: PlaneGrid,
        moments: Tensor,
        smoothness: float,
        slopes: Sequence[tuple[float, float]],
        max_iterations: int,
        *,
        all_levels: bool,
    ) -> None:
        self.plane_grid, self.moments = grid, moments
        self._max_iterations = max_iterations
        self._without_ridge = min(ridge for _, ridge in slopes) < _LEAST_RIDGE
        dtype = moments.dtype
        geometry = grid.geometry(dtype, all_levels=all_levels)
        diagonals = Diagonals(
            geometry,
            moments,
            smoothness,
            [mu for mu, _ in slopes],
            [max(ridge, _LEAST_RIDGE) for _, ridge in slopes],
            policy.PLANE_LEVEL_STIFFNESS,
        )
        first_small = grid.first_small(dtype) if all_levels else 0
        self._vcycle = VCycle(geometry, diagonals, grid.grid.order.parity, first_small)

    @cached_property
    def with_data(self) -> Tensor | None:
        """Which vertices are connected to data, (room,) bool; None: all."""
        weight = self.moments[:, 0].contiguous()
        if bool((weight > 0).all()):
            return None
        active = components.with_data(self.plane_grid.grid, weight, self.plane_grid.root)
        return None if bool(active.all()) else active

    @cached_property
    def fill(self) -> Fill | None:
        """The fill of parts without data; None if there are none."""
        if self.with_data is None:
            return None
        return Fill(self.plane_grid.grid, self.plane_grid.positions, self.with_data)

    def solve(
        self,
        b: Tensor,
        scale: Tensor,
        tolerance: float,
        start: Tensor | None = None,
        steps: int | None = None,
    ) -> tuple[Tensor, pcg.Outcome]:
        """Solve A x = b from a start, or from multigrid's or the sweeps' own start.

        Parameters
        ----------
        b : Tensor
            (room, K, 3).
        scale : Tensor
            (B, K): size of the solution, which errors are relative to.
        tolerance : float
            Largest estimated error.
        start : Tensor, optional
        steps : int, optional
            Largest number of steps, instead of that of the options.
        """
        x = self._vcycle.start(b) if start is None else start.clone()
        outcome = self.improve(b, x, scale, tolerance, self.with_data, steps)
        if self._without_ridge and start is None:
            loose_parts = loose.find(self.plane_grid, self.moments)
            if loose_parts is not None:
                outcome = loose.solve(self, loose_parts, b, x, scale, tolerance, outcome)
        if self.fill is not None:
            self.fill.fill(x)
        return x, outcome

    def improve(
        self,
        b: Tensor,
        x: Tensor,
        scale: Tensor,
        tolerance: float,
        active: Tensor | None,
        steps: int | None = None,
    ) -> pcg.Outcome:
        """Improve x in place where it is active: directly in small parts, by PCG elsewhere."""
        grid = self.plane_grid
        everywhere = torch.ones(len(x), dtype=torch.bool, device=x.device)
        active = everywhere if active is None else active
        left = grid.small_parts.solve(self._vcycle.grid, b, x, active)
        return iteration.solve(
            grid.grid,
            self._vcycle,
            grid.pixel_moments(x.dtype),
            b,
            x,
            scale,
            left,
            pcg_options(self._max_iterations if steps is None else steps, tolerance),
            record=record_briefly if can_record(x) else None,
        )
