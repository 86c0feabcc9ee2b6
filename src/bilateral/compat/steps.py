"""Solve as the other implementations do: a fixed number of steps with Jacobi's preconditioner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import validation
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import check_inputs, set_up
from bilateral.numerics.solve import solve_vertices
from bilateral.numerics.system import slice_vertices
from bilateral.numerics.warm_start import to_start

Array = NDArray[Any]


class Options(NamedTuple):
    """The smoothness and the number of steps."""

    smoothness: float
    solve: SolveOptions

    @classmethod
    def checked(cls, smoothness: float, steps: int) -> Self:
        """Check the smoothness and the number of steps."""
        named = {"max_iterations": steps, "preconditioner": "jacobi", "initial": "flat"}
        options = replace(SolveOptions.checked(named), fixed_steps=True, checks_error=False)
        return cls(validation.positive("smoothness", smoothness), options)


def solve(
    grid: bilateral.BilateralGrid,
    options: Options,
    target: Array,
    confidence: Array | None = None,
    start: Array | None = None,
) -> NDArray[np.float64]:
    """Solve in the target's precision, from the mean of each vertex or the vertices `start`."""
    checked, weights = check_inputs(grid, target, confidence, options.solve)
    problem = set_up(grid, checked.values, weights, options.smoothness, options.solve)
    earlier = None if start is None else to_start(problem.system, start)
    vertices, _ = solve_vertices(
        grid, problem, earlier, options.smoothness, options.solve, None, None, stacklevel=3
    )
    # There are fewer vertices than pixels to convert.
    pixels = slice_vertices(grid, vertices.astype(np.float64))
    return pixels.reshape(checked.shape)
