"""Solve as the other implementations do: a fixed number of steps with Jacobi's preconditioner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import validation
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.solve import Solve

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
) -> Array:
    """Solve in the target's precision, from the mean of each vertex or from the pixels `start`."""
    call = Solve(grid, options.smoothness, options.solve, target, confidence, warm_start=start)
    return np.asarray(call.plain(None, stacklevel=3).x)
