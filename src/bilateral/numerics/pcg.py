"""Solve systems on one grid by preconditioned conjugate gradients (PCG)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of
from bilateral.info import ConvergenceWarning
from bilateral.numerics import policy
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.system import System

Array = NDArray[Any]
Callback = Callable[[int, float], Any]
Outcome = cpu.Outcome


def _faint_fraction(grid: BilateralGrid, system: System) -> float:
    """Compute the fraction of pixels at faint vertices, as `policy` defines them."""
    mass = core_of(grid).mass()
    # float64 holds any of these numbers; NumPy 1 would multiply in float32.
    enough = np.multiply(mass, system.smoothness / policy.EASY_SMOOTHNESS, dtype=np.float64)
    return float(mass[system.weight < enough].sum(dtype=np.float64)) / math.prod(grid.shape)


def _loose_fraction(grid: BilateralGrid, system: System) -> float:
    """Compute the fraction of pixels at loose vertices, as `policy` defines them."""
    least = system.smoothness / policy.LOOSE_SMOOTHNESS
    return cpu.count_loose(core_of(grid), system.weight, least) / math.prod(grid.shape)


def choose_preconditioner(grid: BilateralGrid, system: System, options: SolveOptions) -> str:
    """Choose the preconditioner of a system; call it once per solve."""
    weight = system.weight
    return policy.choose_preconditioner(
        options.preconditioner,
        smoothness=system.smoothness,
        pixels=math.prod(grid.shape),
        confidence=float(weight.sum(dtype=np.float64)),
        every_vertex_has_data=bool(weight.min() > 0),
        tolerance=options.tolerance,
        faint_fraction=partial(_faint_fraction, grid, system),
        loose_fraction=partial(_loose_fraction, grid, system),
    )


def estimate_holds(
    grid: BilateralGrid, system: System, preconditioner: str, tolerance: float
) -> bool:
    """Whether a solve of the system can trust its error estimate, by `policy.estimate_holds`."""
    return policy.estimate_holds(preconditioner, tolerance, partial(_loose_fraction, grid, system))


def start(grid: BilateralGrid, system: System, options: SolveOptions, preconditioner: str) -> Array:
    """Compute the start of PCG without an earlier solution."""
    initial = options.initial or policy.default_initial(preconditioner)
    return cpu.start(core_of(grid), system.weight, system.weighted, initial, system.smoothness)


class SystemSolver:
    """Solves systems on one grid, one after another, in memory that they share."""

    def __init__(self, grid: BilateralGrid, options: SolveOptions) -> None:
        self._grid = grid
        self._options = options
        self._solvers: dict[tuple[np.dtype[Any], str], cpu.Solver] = {}

    def solve(
        self,
        system: System,
        x: Array,
        preconditioner: str,
        callback: Callback | None = None,
        *,
        warm: bool = False,
        fill: bool = True,
        tolerance: float | None = None,
    ) -> Outcome:
        """Improve the start `x` in place until it solves the system.

        Where the error estimate of the preconditioner does not hold, multigrid takes the last
        steps, one at least: its estimate does.

        Parameters
        ----------
        system : System
        x : (n_vertices, K) array
        preconditioner : str
            As `choose_preconditioner` returns it.
        callback : function of (step, residual), optional
        warm : bool
            `x` is an earlier solution, so that one step of multigrid may be enough.
        fill : bool
            Give parts of the grid without data the pyramid start; else they keep `x`.
        tolerance : float, optional
            Replaces the tolerance of the options.
        """
        run = partial(self._run, system=system, x=x, tolerance=tolerance)
        min_steps = 1 if warm and preconditioner == "multigrid" else 2
        outcome = run(preconditioner, callback=callback, fill=fill, min_steps=min_steps)
        stop = self._options.stop_tolerance if tolerance is None else tolerance
        if not (outcome.converged and self._options.checks_error) or estimate_holds(
            self._grid, system, preconditioner, stop
        ):
            return outcome
        steps = len(outcome.residuals)
        if steps >= self._options.max_iterations:
            return outcome._replace(converged=False)
        last = run(
            "multigrid",
            callback=callback and (lambda step, error: callback(steps + step, error)),
            fill=False,
            min_steps=1,
            steps_before=steps,
        )
        residuals = outcome.residuals + last.residuals
        return last._replace(residuals=residuals, moved=outcome.moved + last.moved)

    def follow(self, system: System, x: Array, movement_fraction: float) -> Outcome:
        """Improve the solution `x` of a similar system in place.

        Stop at the tolerance, or when the error falls below `movement_fraction` of the distance
        moved. The preconditioner is the requested one.
        """
        return self._run(
            self._options.preconditioner,
            system,
            x,
            fill=False,
            min_steps=1,
            movement_fraction=movement_fraction,
        )

    def vertices_with_data(self) -> NDArray[np.bool_]:
        """Return whether each vertex was connected to data in the last system."""
        (solver,) = self._solvers.values()
        return cpu.was_with_data(solver, self._grid.n_vertices)

    def _run(
        self,
        preconditioner: str,
        system: System,
        x: Array,
        callback: Callback | None = None,
        *,
        fill: bool,
        min_steps: int,
        movement_fraction: float = 0.0,
        tolerance: float | None = None,
        steps_before: int = 0,
    ) -> Outcome:
        options, key = self._options, (x.dtype, preconditioner)
        if key not in self._solvers:
            self._solvers = {key: cpu.Solver(core_of(self._grid), preconditioner)}
        return cpu.pcg(
            self._solvers[key],
            system.weight,
            system.weighted,
            x,
            system.scale,
            fill=fill,
            smoothness=system.smoothness,
            min_iterations=min_steps,
            max_iterations=min(options.max_iterations - steps_before, np.iinfo(np.int32).max),
            tolerance=options.stop_tolerance if tolerance is None else tolerance,
            movement_fraction=movement_fraction,
            step_noise=policy.STEP_NOISE,
            error_window=policy.ERROR_WINDOW,
            callback=callback,
        )


def warn_if_not_converged(
    outcome: Outcome, options: SolveOptions, smoothness: float, stacklevel: int
) -> None:
    """Warn if a solve diverged, or used up `max_iterations` before it reached its tolerance."""
    steps = len(outcome.residuals)
    if outcome.diverged:
        warnings.warn(
            divergence_message(steps, f"smoothness={smoothness:g}"), ConvergenceWarning, stacklevel
        )
        return
    if outcome.converged or options.fixed_steps or options.tolerance == 0 or steps == 0:
        return
    if steps < options.max_iterations:  # a callback ended the solve
        return
    warnings.warn(
        f"the solve stopped after max_iterations={options.max_iterations} steps with an estimated "
        f"error of {outcome.residuals[-1]:.2g} of the target's range, above "
        f"tolerance={options.tolerance:g}. Raise max_iterations or tolerance; more known pixels or "
        f"a smaller smoothness (now {smoothness:g}) make the problem easier.",
        ConvergenceWarning,
        stacklevel,
    )


def divergence_message(steps: int, smoothness: str) -> str:
    """Say that a solve diverged, and what to do. `smoothness` names the argument."""
    return (
        f"the solve diverged within {steps} steps: rounding errors exceed the data term, because "
        f"{smoothness} is too large for these confidences. The result is the best step, within the "
        f"range of the known values. Use a smaller smoothness or larger confidences."
    )
