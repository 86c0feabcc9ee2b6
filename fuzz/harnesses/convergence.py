"""`info.converged` promises an error near the tolerance: problems whose solution is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bilateral import BilateralGrid, BilateralSolver
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.harnesses.oracle import oracle
from fuzz.harnesses.solver import LOSSES
from oracles import planar as planes  # type: ignore[import-not-found]

MOST = 20.0
"""No error may exceed this many tolerances; 99.5 % are below 3."""


class Problem(NamedTuple):
    """A problem with few pixels."""

    kind: str
    photo: Array
    target: Array
    confidence: Array | None
    tolerance: float
    smoothness: float
    sigmas: dict[str, Any]
    options: dict[str, Any]


def problem(d: Draw) -> Problem:
    """Draw preconditioner, start, model or loss, and confidences over up to 12 decades."""
    rng = d.numpy
    shape = d.randrange(3, 14), d.randrange(3, 14)
    photo = rng.integers(0, 256, (*shape, 3)).astype(np.uint8)
    if d.chance(0.5):
        photo = photo // 64 * 64
    if d.chance(0.3):
        photo = np.full_like(photo, 90)
        photo[: shape[0] // 2] = 200
    y, x = np.mgrid[: shape[0], : shape[1]]
    target = rng.random(shape) if d.chance(0.7) else x * d.gauss(0, 1) + y + rng.random(shape)
    confidence = None
    weights = d.random()
    if weights < 0.6:
        decades = d.uniform(0, 6)
        confidence = 10 ** rng.uniform(-decades, decades, shape)
        if d.chance(0.3):
            confidence = (10 ** rng.uniform(-decades, decades, 256))[photo[..., 1]]
    elif weights < 0.8:
        confidence = (rng.random(shape) < d.choice((0.03, 0.1, 0.5))).astype(np.float64)
        confidence *= d.decades(-6, 6)
        confidence[d.pixel(shape)] = confidence.max() or 1.0
        confidence[d.pixel(shape)] = confidence.max()
    tolerance = d.choice((1e-2, 1e-3, 1e-3, 1e-3, 1e-4, 1e-6))
    dtype = d.choice(("float32", "float64"))
    target = target.astype(dtype)
    confidence = None if confidence is None else confidence.astype(dtype)
    options: dict[str, Any] = {}
    kind = d.choice(("constant", "constant", "constant", "planar", "robust"))
    if kind == "planar":
        options = {"model": "planar", "clamp": False, "slope_smoothness": d.choice((0.3, 3.0))}
        options["slope_ridge"] = d.choice((1e-3, 0.1, 1.0))
        name = "planar"
    else:
        options["preconditioner"] = d.choice(("multigrid", "pyramid", "jacobi"))
        options |= d.some(initial=(None, "pyramid", "nested", "flat"))
        name = options["preconditioner"] if kind == "constant" else "robust"
    sigmas = {"sigma_xy": d.choice((1.0, 2.0, 4.0)), "sigma_luma": 40.0, "sigma_chroma": 40.0}
    smoothness = d.decades(-2, 2)
    return Problem(name, photo, target, confidence, tolerance, smoothness, sigmas, options)


def exact(p: Problem, confidence: Array | None) -> tuple[Array, Array]:
    """Return the solution of the pixels that are connected to data, and mark these pixels."""
    grid = oracle.image_grid(p.photo, **p.sigmas)
    if p.kind == "planar":
        space = planes.positions(p.target.shape, p.sigmas["sigma_xy"])
        model = planes.model(grid, space)
        options = {name: p.options[name] for name in ("slope_smoothness", "slope_ridge")}
        A, b = planes.system(model, p.target, confidence, p.smoothness, **options)
        c, _ = planes.data(model, p.target, confidence)
        active = oracle.has_data(grid, grid.S @ c)
        unknown = np.repeat(active, model.block)
        z = np.zeros(len(b))
        z[unknown] = scaled_solve(A[unknown][:, unknown].toarray(), b[unknown, 0])
        x = model.F @ z
    else:
        A, b, weight = oracle.system(grid, p.target, confidence, p.smoothness)
        active = oracle.has_data(grid, weight)
        y = np.zeros(len(b))
        y[active] = scaled_solve(A[active][:, active].toarray(), b[active, 0])
        x = grid.S.T @ y
    pixels = np.asarray(grid.S.T @ active.astype(np.float64) > 0)
    return np.asarray(x), pixels


def scaled_solve(A: Array, b: Array) -> Array:
    """Solve. The scaled matrix keeps confidences of many decades apart."""
    scale = 1 / np.sqrt(np.diagonal(A))
    solution: Array = scale * np.linalg.solve(scale[:, None] * A * scale, scale * b)
    return solution


def error(p: Problem, x: Array, loss: Any) -> float:
    """Return the root mean square error in tolerances.

    A robust solve promises that one more round would move the solution by no more: the exact round
    after it tells how far.
    """
    known: Any = True if p.confidence is None else p.confidence > 0
    confidence = p.confidence
    if p.kind == "robust":
        known, confidence = True, loss.weight(x.astype(np.float64) - p.target)
        # Vertices without a weight that counts keep their values, whatever the last digits say.
        confidence = np.where(confidence > 1e-10 * confidence.max(), confidence, 0.0)
    values = p.target[np.broadcast_to(known, p.target.shape)].astype(np.float64)
    solution, pixels = exact(p, confidence)
    difference = (x.astype(np.float64).ravel() - solution)[pixels]
    spread = float(np.ptp(values))
    if spread == 0:
        return 0.0
    return float(np.sqrt(np.mean(difference**2))) / (p.tolerance * spread)


def outcome(d: Draw) -> tuple[Problem, BilateralSolver, dict[str, Any], Any]:
    """Draw a problem; return it with its solver, the options of the call, and a loss."""
    p = problem(d)
    options = {"tolerance": p.tolerance, "max_iterations": 2000, **p.options}
    solver = BilateralSolver(BilateralGrid(p.photo, **p.sigmas), p.smoothness, **options)
    if p.kind == "robust":
        loss = d.choice(LOSSES)
        return p, solver, {"loss": loss, "iterations": d.choice((2, 5, 20, 60))}, loss
    return p, solver, {}, None


def convergence(d: Draw) -> Case:
    """A solve that says it has converged is within 20 tolerances of the solution."""
    p, solver, options, loss = outcome(d)
    function = solver.solve_robust if p.kind == "robust" else solver.solve
    call = Call(function, p.target, p.confidence, return_info=True, **options)
    x, info = yield call
    if info.converged:
        factor = error(p, x, loss)
        require(factor <= MOST, f"{p.kind}: the error in tolerances", factor)


def measure(seed: int, d: Draw) -> tuple[str, bool, float]:
    """Return the kind of a problem, whether it converged, and its error in tolerances."""
    d.restart(seed)
    p, solver, options, loss = outcome(d)
    function = solver.solve_robust if p.kind == "robust" else solver.solve
    x, info = function(p.target, p.confidence, return_info=True, **options)
    factor = error(p, x, loss) if info.converged else float("nan")
    return p.kind, bool(info.converged), factor
