"""Run the multigrid V-cycle, which preconditions a solve, and the nested start.

Gauss-Seidel over two colours smooths the grid, Chebyshev polynomials of Jacobi steps or one Jacobi
step the coarser levels, and one Jacobi step the small levels.
"""

import math

import torch
from torch import Tensor

from bilateral.backends.cuda.multigrid.diagonals import Diagonals
from bilateral.backends.cuda.multigrid.gauss_seidel import find_colour_residual, solve_colour
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.levels import (
    Iterate,
    Level,
    find_residual,
    jacobi_step,
    prolong,
    restrict_to,
)

_MIN_EIGENVALUE, _MAX_EIGENVALUE = 0.3, 2.0
"""Chebyshev smoothing reduces errors in this interval of the eigenvalues of A / diag(A), all of
which are below 2."""
_OMEGA = 0.9
"""Damping of a single Jacobi step."""


class VCycle:
    """Approximate A^-1 for A = smoothness L + diag(weight) by one V-cycle.

    Parameters
    ----------
    hierarchy : Hierarchy
    weight : Tensor
        Confidence of each vertex.
    smoothness : Tensor
        (), in float64.
    colours : Tensor
        Colour of each vertex, 0 or 1: the parity of its coordinate sum.
    degree : int
        Degree of the polynomials on coarse levels: 2 takes two products with A more per level than
        1, and needs a quarter fewer steps.
    level_stiffness, faint_epsilons : float
        See `Diagonals`.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        weight: Tensor,
        smoothness: Tensor,
        colours: Tensor,
        degree: int = 2,
        *,
        level_stiffness: float,
        faint_epsilons: float,
    ) -> None:
        self._hierarchy = hierarchy
        self._colours = colours
        self._omegas = jacobi_omegas(degree)
        self._diagonals = diagonals = Diagonals(
            hierarchy, weight, smoothness, level_stiffness, faint_epsilons
        )
        self._levels = [
            Level(
                hierarchy.graphs[k],
                diagonals.smoothness[k:],
                diagonals.weights[k],
                diagonals.inverses[k],
            )
            for k in range(max(1, hierarchy.first_small))
        ]
        self._vectors: _Vectors | None = None

    @property
    def with_data(self) -> Tensor:
        """Whether each vertex is connected to a vertex with a confidence above 0."""
        return self._diagonals.with_data

    @property
    def has_faint_component(self) -> Tensor:
        """(1,): not 0 if rounding errors hide the mean of some component that has data."""
        return self._diagonals.has_faint_component

    def apply(self, r: Tensor, colour0_solved: bool = False, out: Tensor | None = None) -> Tensor:
        """Apply the V-cycle, symmetric and positive definite where there are data, to (room, K).

        Parameters
        ----------
        r : Tensor
        colour0_solved : bool
            Take r for 0 at vertices of colour 0, and skip the first half-sweep. Conjugate gradients
            keep this r at 0, but for rounding, after `nested_start` or `solve_colour0`.
        out : Tensor, optional
            Memory for the result. Rows after the last vertex do not change.
        """
        grid, colours = self._levels[0], self._colours
        z = torch.zeros_like(r) if out is None else out
        if self._hierarchy.depth == 0:
            return torch.mul(grid.inverse[:, None], r, out=z)
        residual, parent = self._memory(r).residual[0], self._hierarchy.transfers[0].parent
        solved_for_0 = Iterate(None, 1.0)  # each row is solved for 0 at its neighbours
        if not colour0_solved:
            solve_colour(grid, r, solved_for_0, colours, 1, z)
        before = solved_for_0 if colour0_solved else Iterate(z)
        find_colour_residual(grid, r, before, colours, 0, residual)
        self._restrict_from(0, residual)
        omega = 0.0 if colour0_solved else solved_for_0.omega
        corrected = Iterate(None, omega, self._correction(1), parent)
        solve_colour(grid, r, corrected, colours, 1, z)
        solve_colour(grid, r, Iterate(z), colours, 0, z)
        return z

    def nested_start(self, b: Tensor) -> Tensor:
        """Return a start for A x = b, from coarse to fine, which solves vertices of colour 0.

        It takes one V-cycle on the small levels, then one Jacobi step on each finer level. A
        V-cycle on each level, as in core/multigrid/nested_start.hpp, gets closer to the solution,
        but takes longer than it saves.
        """
        grid, hierarchy = self._levels[0], self._hierarchy
        x = torch.zeros_like(b)
        if hierarchy.depth == 0:
            return torch.mul(grid.inverse[:, None], b, out=x)
        vectors = self._memory(b)
        self._restrict_from(0, b)
        for k in range(1, hierarchy.first_small):
            self._restrict_from(k, vectors.r[k])
        above = self._correction(hierarchy.first_small)
        for k in range(hierarchy.first_small - 1, 0, -1):
            start = Iterate(None, 0.0, above, hierarchy.transfers[k].parent)
            above = self._jacobi_step(k, start, self._omegas[0])
        prolong(grid, b, above, hierarchy.transfers[0].parent, x)
        self.solve_colour0(b, x)
        return x

    def solve_colour0(self, b: Tensor, x: Tensor) -> None:
        """Solve A x = b at vertices of colour 0, in place."""
        solve_colour(self._levels[0], b, Iterate(x), self._colours, 0, x)

    def _correction(self, k: int) -> Tensor:
        """Run one V-cycle from 0 for r of level k."""
        vectors = self._vectors
        assert vectors is not None
        if k == self._hierarchy.first_small:
            diagonals = self._diagonals
            return self._hierarchy.small_levels.vcycle(
                vectors.small_levels,
                diagonals.weights[-1],
                diagonals.inverses[-1],
                diagonals.smoothness[k:],
            )
        first, *others = self._omegas
        x = Iterate(None, first)
        for omega in others:
            x = Iterate(self._jacobi_step(k, x, omega))
        find_residual(self._levels[k], vectors.r[k], x, vectors.residual[k])
        self._restrict_from(k, vectors.residual[k])
        x = Iterate(x.x, x.omega, self._correction(k + 1), self._hierarchy.transfers[k].parent)
        for omega in reversed(self._omegas):
            x = Iterate(self._jacobi_step(k, x, omega))
        assert x.x is not None
        return x.x

    def _jacobi_step(self, k: int, x: Iterate, omega: float) -> Tensor:
        vectors = self._vectors
        assert vectors is not None
        one, two = vectors.x[k]
        out = two if x.x is one else one
        jacobi_step(self._levels[k], vectors.r[k], x, omega, out)
        return out

    def _restrict_from(self, k: int, values: Tensor) -> None:
        """Restrict values of level k to r of level k + 1."""
        vectors, hierarchy = self._vectors, self._hierarchy
        assert vectors is not None
        restrict_to(hierarchy.transfers[k], hierarchy.graphs[k + 1], values, vectors.r[k + 1])

    def _memory(self, like: Tensor) -> "_Vectors":
        if self._vectors is None or self._vectors.residual[0].shape[1] != like.shape[1]:
            self._vectors = _Vectors(self._hierarchy, like)
        return self._vectors


class _Vectors:
    """Memory of each level, where needed: r, the residual, and two x that alternate."""

    def __init__(self, hierarchy: Hierarchy, like: Tensor) -> None:
        def allocate(room: int) -> Tensor:
            return torch.empty((room, like.shape[1]), dtype=like.dtype, device=like.device)

        rooms = [graph.room for graph in hierarchy.graphs[: hierarchy.first_small]]
        coarse_rooms = rooms[1:]
        self.small_levels = hierarchy.small_levels.vectors(like)
        self.residual = [allocate(room) for room in rooms]
        self.r = [allocate(0), *(allocate(room) for room in coarse_rooms), self.small_levels[0]]
        self.x = [(allocate(room), allocate(room)) for room in (0, *coarse_rooms)]


def jacobi_omegas(degree: int) -> list[float]:
    """Return the lengths of Jacobi steps that together make a Chebyshev polynomial."""
    if degree == 1:
        return [_OMEGA]
    middle = (_MAX_EIGENVALUE + _MIN_EIGENVALUE) / 2
    half = (_MAX_EIGENVALUE - _MIN_EIGENVALUE) / 2
    roots = (math.cos(math.pi * (k + 0.5) / degree) for k in range(degree))
    return [1 / (middle + half * root) for root in roots]
