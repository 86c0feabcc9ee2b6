"""The multigrid preconditioner, as core/vcycle.hpp, and a start from coarse to fine.

The grid is smoothed by Gauss-Seidel over two colours, coarser levels by Chebyshev's polynomials or
Jacobi's step, the smallest by Jacobi's.
"""

import math

import torch
from torch import Tensor

from bilateral.backends.cuda.multigrid.diagonals import Diagonals
from bilateral.backends.cuda.multigrid.gauss_seidel import sweep, unsolved
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.levels import Iterate, Level, relax, restrict, spread

_LOWEST = 0.3
"""Of the eigenvalues of A / diag(A), which are below 2, that smoothing is for."""


class Multigrid:
    """About A^-1 for A = smoothness L + diag(weight), with smoothness () in float64.

    `colour` is the parity of each vertex's coordinate sum. `degree` is that of the polynomials on
    coarse levels: 2 takes two products with A more per level than 1, and a quarter fewer steps.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        weight: Tensor,
        smoothness: Tensor,
        colour: Tensor,
        degree: int = 2,
    ) -> None:
        self._hierarchy = hierarchy
        self._colour = colour
        self._omegas = _omegas(degree)
        self._diagonals = diagonals = Diagonals(hierarchy, weight, smoothness)
        self._levels = [
            Level(
                hierarchy.graphs[k],
                diagonals.factors[k:],
                diagonals.weights[k],
                diagonals.inverses[k],
            )
            for k in range(max(1, hierarchy.alone))
        ]
        self._vectors: _Vectors | None = None

    @property
    def with_data(self) -> Tensor:
        """Whether each vertex is connected to one with a weight above 0."""
        return self._diagonals.with_data

    @property
    def faint(self) -> Tensor:
        """Whether a component has so little weight that its mean drowns in rounding, (1,)."""
        return self._diagonals.faint

    def cycle(self, r: Tensor, settled: bool = False, out: Tensor | None = None) -> Tensor:
        """One V-cycle for (room, K): symmetric and positive definite where there are data.

        `settled`: r is taken for 0 at vertices of colour 0. After `start` or `settle`, conjugate
        gradients leave it so but for rounding; then the first half-sweep is left out. In `out` if
        it is given, of which nothing changes after the last vertex.
        """
        grid, of = self._levels[0], self._colour
        z = torch.zeros_like(r) if out is None else out
        if self._hierarchy.depth == 0:
            return torch.mul(grid.inverse[:, None], r, out=z)
        left, parent = self._memory(r).left[0], self._hierarchy.transfers[0].parent
        solved = Iterate(None, 1.0)  # each row for 0 at the others
        if not settled:
            sweep(grid, r, solved, of, 1, z)
        unsolved(grid, r, solved if settled else Iterate(z), of, 0, left)
        self._restrict(0, left)
        first = 0.0 if settled else solved.omega
        sweep(grid, r, Iterate(None, first, self._correct(1), parent), of, 1, z)
        sweep(grid, r, Iterate(z), of, 0, z)
        return z

    def start(self, b: Tensor) -> Tensor:
        """A start for A x = b: a V-cycle on the smallest levels, then a step of Jacobi's on each.

        Solved for one colour of the grid, too. A V-cycle on each level, as core/nested.hpp, comes
        closer, but takes longer than it saves.
        """
        grid, hierarchy = self._levels[0], self._hierarchy
        x = torch.zeros_like(b)
        if hierarchy.depth == 0:
            return torch.mul(grid.inverse[:, None], b, out=x)
        v = self._memory(b)
        self._restrict(0, b)
        for k in range(1, hierarchy.alone):
            self._restrict(k, v.r[k])
        above = self._correct(hierarchy.alone)
        for k in range(hierarchy.alone - 1, 0, -1):
            guess = Iterate(None, 0.0, above, hierarchy.transfers[k].parent)
            above = self._relax(k, guess, self._omegas[0])
        spread(grid, b, above, hierarchy.transfers[0].parent, x)
        self.settle(b, x)
        return x

    def settle(self, b: Tensor, x: Tensor) -> None:
        """Solve A x = b for vertices of colour 0, in place."""
        sweep(self._levels[0], b, Iterate(x), self._colour, 0, x)

    def _correct(self, k: int) -> Tensor:
        """One V-cycle for level k's r, from 0."""
        v = self._vectors
        assert v is not None
        if k == self._hierarchy.alone:
            return self._hierarchy.tail.cycle(
                v.tail,
                self._diagonals.weights[-1],
                self._diagonals.inverses[-1],
                self._diagonals.factors[k:],
            )
        level, parent = self._levels[k], self._hierarchy.transfers[k].parent
        first, *before = self._omegas
        x = Iterate(None, first)
        for omega in before:
            x = Iterate(self._relax(k, x, omega))
        relax(level, v.r[k], x, None, v.left[k])
        self._restrict(k, v.left[k])
        x = Iterate(x.x, x.omega, self._correct(k + 1), parent)
        for omega in reversed(self._omegas):
            x = Iterate(self._relax(k, x, omega))
        assert x.x is not None
        return x.x

    def _relax(self, k: int, x: Iterate, omega: float) -> Tensor:
        v = self._vectors
        assert v is not None
        one, two = v.x[k]
        out = two if x.x is one else one
        relax(self._levels[k], v.r[k], x, omega, out)
        return out

    def _restrict(self, k: int, values: Tensor) -> None:
        """To the r of the next coarser level."""
        v, hierarchy = self._vectors, self._hierarchy
        assert v is not None
        restrict(hierarchy.transfers[k], hierarchy.graphs[k + 1], values, v.r[k + 1])

    def _memory(self, like: Tensor) -> "_Vectors":
        if self._vectors is None or self._vectors.left[0].shape[1] != like.shape[1]:
            self._vectors = _Vectors(self._hierarchy, like)
        return self._vectors


class _Vectors:
    """Of each level, as far as they are needed: r, residuals, and two x that take turns."""

    def __init__(self, hierarchy: Hierarchy, like: Tensor) -> None:
        def make(room: int) -> Tensor:
            return torch.empty((room, like.shape[1]), dtype=like.dtype, device=like.device)

        graphs = hierarchy.graphs[: hierarchy.alone]
        self.tail = hierarchy.tail.vectors(like)
        self.left = [make(graph.room) for graph in graphs]
        self.r = [make(0), *(make(graph.room) for graph in graphs[1:]), self.tail[0]]
        sizes = [0, *(graph.room for graph in graphs[1:])]
        self.x = [(make(size), make(size)) for size in sizes]


def _omegas(degree: int) -> list[float]:
    """Lengths of Jacobi's steps; together they are Chebyshev's polynomial."""
    middle, half = (2 + _LOWEST) / 2, (2 - _LOWEST) / 2
    if degree == 1:
        return [0.9]
    roots = (math.cos(math.pi * (k + 0.5) / degree) for k in range(degree))
    return [1 / (middle + half * root) for root in roots]
