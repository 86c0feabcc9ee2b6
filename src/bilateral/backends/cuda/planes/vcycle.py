"""Run the multigrid V-cycle of planes, which preconditions a solve, and the starts of a solve.

As for values: Gauss-Seidel over two colours smooths the grid, Chebyshev polynomials of Jacobi steps
smooth the coarser levels. Without coarser levels, half-sweeps over the grid are enough.
"""

import torch
from torch import Tensor

from bilateral.backends.cuda.multigrid.vcycle import jacobi_omegas
from bilateral.backends.cuda.planes.diagonals import Diagonals
from bilateral.backends.cuda.planes.geometry import Geometry
from bilateral.backends.cuda.planes.levels import (
    Level,
    add_from_parents,
    find_colour_residual,
    find_residual,
    jacobi_step,
    raise_rows,
    restrict,
    solve_blocks,
    solve_colour,
    sweep_colour,
)
from bilateral.backends.cuda.planes.small_levels import SmallLevels

_DEGREE = 2
_LEAST_FACTOR, _SWEEPS = 0.03, 8
"""As in core/planes/sweep_start.hpp."""


class VCycle:
    """Approximate A^-1 of the planar matrix by one V-cycle.

    Parameters
    ----------
    geometry : Geometry
    diagonals : Diagonals
    colours : Tensor
        Colour of each vertex, 0 or 1: the parity of its coordinate sum.
    first_small : int
        From this level on, one program per image runs all levels. The nested start makes a V-cycle
        there, and Jacobi steps on the finer levels.
    """

    def __init__(
        self, geometry: Geometry, diagonals: Diagonals, colours: Tensor, first_small: int
    ) -> None:
        self._geometry = geometry
        self._colours = colours
        self._first_small = min(max(1, first_small), geometry.depth)
        self._omegas = jacobi_omegas(_DEGREE)
        self._levels = [
            Level(
                geometry.levels[k],
                diagonals.smoothness[k:],
                diagonals.turns[k],
                diagonals.data[k],
                diagonals.inverses[k],
                geometry.lifts[k] if k < geometry.depth else None,
            )
            for k in range(max(1, self._first_small))
        ]
        self._small_levels = None
        if geometry.depth > 0:
            self._small_levels = SmallLevels(geometry, diagonals, self._first_small)
        self._vectors: _Vectors | None = None

    @property
    def grid(self) -> Level:
        """The finest level."""
        return self._levels[0]

    def solve_colour0(self, b: Tensor, x: Tensor) -> None:
        """Solve A x = b at vertices of colour 0, in place."""
        solve_colour(self.grid, b, self._colours, 0, x)

    def apply(self, r: Tensor, z: Tensor) -> None:
        """Write the result for r (room, K, 3), which is taken for 0 at colour 0, to z."""
        grid, colours = self.grid, self._colours
        solve_blocks(grid, r, 1.0, z)  # only colour 1 is read
        if self._geometry.depth == 0:
            solve_colour(grid, None, colours, 0, z)
        else:
            vectors, transfer = self._memory(r), self._geometry.transfers[0]
            find_colour_residual(grid, colours, 0, z, vectors.residual[0])
            self._restrict(0, vectors.residual[0], vectors.r[1])
            above = self._correction(1)
            add_from_parents(grid, above, transfer, None, None, vectors.residual[0])
            solve_colour(grid, r, colours, 1, vectors.residual[0], z)
            solve_colour(grid, r, colours, 0, z)
            return
        solve_colour(grid, r, colours, 1, z)
        solve_colour(grid, r, colours, 0, z)

    def start(self, b: Tensor) -> Tensor:
        """Return a start for A x = b: from coarse to fine, or by sweeps over the grid alone."""
        x = torch.zeros_like(b)
        if self._geometry.depth == 0:
            self._sweep(b, x)
            return x
        vectors, geometry = self._memory(b), self._geometry
        raise_rows(self.grid, b, vectors.residual[0])
        self._restrict(0, vectors.residual[0], vectors.r[1])
        for k in range(1, self._first_small):
            raise_rows(self._levels[k], vectors.r[k], vectors.residual[k])
            self._restrict(k, vectors.residual[k], vectors.r[k + 1])
        above = self._correction(self._first_small)
        for k in range(self._first_small - 1, 0, -1):
            one, two = vectors.x[k]
            add_from_parents(self._levels[k], above, geometry.transfers[k], None, None, one)
            jacobi_step(self._levels[k], vectors.r[k], one, self._omegas[0], two)
            above = two
        add_from_parents(self.grid, above, geometry.transfers[0], None, b, x)
        # Conjugate gradients begin with colour 0, so one half-sweep over colour 1 smooths the rest.
        solve_colour(self.grid, b, self._colours, 1, x)
        return x

    def _sweep(self, b: Tensor, x: Tensor) -> None:
        """Write a start by sweeps with Chebyshev acceleration, as core/planes/sweep_start.hpp."""
        grid, colours = self.grid, self._colours
        weight = grid.data[:, :1]
        x[:, :, 0] = torch.where(weight > 0, b[:, :, 0] / torch.where(weight > 0, weight, 1), 0)
        move = torch.empty_like(x)
        centre, radius = (1 + _LEAST_FACTOR) / 2, (1 - _LEAST_FACTOR) / 2
        rho = radius / centre
        for i in range(_SWEEPS):
            following = rho if i == 0 else 1 / (2 * centre / radius - rho)
            step = 1 / centre if i == 0 else 2 * following / radius
            keep = 0.0 if i == 0 else following * rho
            rho = following
            solve_colour(grid, b, colours, 0, x)
            sweep_colour(grid, b, colours, 1, x, move, step, keep)

    def _correction(self, k: int) -> Tensor:
        """Run one V-cycle from 0 for r of level k."""
        vectors = self._vectors
        assert vectors is not None
        if k == self._first_small:
            assert self._small_levels is not None
            return self._small_levels.vcycle(vectors.small_levels)
        level = self._levels[k]
        r, (x, other) = vectors.r[k], vectors.x[k]
        first, *others = self._omegas
        solve_blocks(level, r, first, x)
        for omega in others:
            jacobi_step(level, r, x, omega, other)
            x, other = other, x
        find_residual(level, r, x, vectors.residual[k], as_parent=True)
        self._restrict(k, vectors.residual[k], vectors.r[k + 1])
        above = self._correction(k + 1)
        add_from_parents(level, above, self._geometry.transfers[k], x, None, other)
        x, other = other, x
        for omega in reversed(self._omegas):
            jacobi_step(level, r, x, omega, other)
            x, other = other, x
        return x

    def _restrict(self, k: int, values: Tensor, out: Tensor) -> None:
        geometry = self._geometry
        restrict(geometry.transfers[k], geometry.levels[k + 1].graph, values, out)

    def _memory(self, like: Tensor) -> "_Vectors":
        if self._vectors is None or self._vectors.residual[0].shape[1] != like.shape[1]:
            assert self._small_levels is not None
            self._vectors = _Vectors(self._geometry, self._small_levels, self._first_small, like)
        return self._vectors


class _Vectors:
    """Memory of each level: r, the residual, and two x that alternate."""

    def __init__(
        self, geometry: Geometry, small_levels: SmallLevels, first_small: int, like: Tensor
    ) -> None:
        def allocate(room: int) -> Tensor:
            return like.new_empty((room, *like.shape[1:]))

        rooms = [level.graph.room for level in geometry.levels[:first_small]]
        self.small_levels = small_levels.vectors(like)
        self.residual = [allocate(room) for room in rooms]
        first_r = self.small_levels[0][: small_levels.first_room]
        self.r = [allocate(0), *(allocate(room) for room in rooms[1:]), first_r]
        self.x = [(allocate(room), allocate(room)) for room in (0, *rooms[1:])]
