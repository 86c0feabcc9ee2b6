"""Solve the adjoint system of a batch, and compute gradients from it.

`bilateral.numerics.adjoint` defines M, U and H.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.pyramid_transfer import push_pull
from bilateral.backends.cuda.grid.splat import slice_gradients, splat
from bilateral.backends.cuda.solve import pcg
from bilateral.numerics import policy
from bilateral.torch.cuda.system import System


class AdjointSolution(NamedTuple):
    """Solution of the adjoint system for a gradient g of the solution, at the vertices."""

    x: Tensor
    """A^-1 S g, 0 in parts without data."""
    z: Tensor
    """Gradient of S (c t): x, plus what parts without data contribute."""
    extra: Tensor | None
    """Part of the gradient of S c besides z (t - y): (n_vertices,); None: 0."""


class AdjointSystem:
    """The system A x = S g with its start x, to be solved in place."""

    def __init__(self, system: System, g: Tensor) -> None:
        self._system, with_data = system, system.with_data
        self._splatted = splat(system.grid, g)
        largest = g.abs().amax()
        self._unit = torch.where(largest > 0, largest, 1)
        b = (self._splatted / self._unit).to(system.weight.dtype)
        self.b = b if with_data is None else b * with_data[:, None]
        x = system.start(self.b)
        self.x = x if with_data is None else x * with_data[:, None]

    def solution(self) -> AdjointSolution:
        """Return the solution in units of g, with the contribution of parts without data."""
        system, dtype = self._system, self._splatted.dtype
        x = (self.x * self._unit).to(dtype)
        if system.with_data is None:
            return AdjointSolution(x, x, None)
        q = push_pull(system.grid, system.weight[:, None])
        gaps = ~system.with_data[:, None]
        a = torch.where(gaps, self._splatted / q.to(dtype), 0)
        y = system.y.to(dtype)
        both = torch.cat([a, (a * y).sum(1, keepdim=True)], 1)
        spread = system.spread(both, from_gaps=True)
        pulled = spread[:, :-1]
        return AdjointSolution(x, x + pulled, (pulled * y).sum(1) - spread[:, -1])


def adjoint_tolerance(system: System, tolerance: float) -> float:
    """Return the error at which an adjoint solve stops, relative to its result."""
    return policy.ADJOINT_TOLERANCE[system.kind] * tolerance


def solve_adjoint(
    system: System, g: Tensor, tolerance: float
) -> tuple[AdjointSolution, pcg.Outcome]:
    """Solve the adjoint system for pixels g (B H W, K)."""
    adjoint = AdjointSystem(system, g)
    outcome = system.improve(adjoint.b, adjoint.x, None, adjoint_tolerance(system, tolerance))
    return adjoint.solution(), outcome


def gradients(
    system: System,
    adjoint: AdjointSolution,
    target: Tensor,
    weights: Tensor | None,
    needed: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of target (B H W, K), weights (B H W, 1) and smoothness ().

    Gradients that are not needed are empty, or 0 for the smoothness.
    """
    x, z, extra = adjoint
    y = system.y
    of_target, of_weights = slice_gradients(
        system.grid, z, y.to(z.dtype), extra, target, weights, needed[0], needed[1]
    )
    of_smoothness = z.new_zeros((), dtype=torch.float64)
    if needed[2]:
        product = system.matrix.multiply(y) - system.weight[:, None] * y
        of_smoothness = -system.matrix.dot(product, x).sum() / system.smoothness
    return of_target, of_weights, of_smoothness
