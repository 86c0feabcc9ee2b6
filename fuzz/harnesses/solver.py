"""Solves: plain, on one grid, robust, planar, and the variance of a solution."""

from __future__ import annotations

from typing import Any

import numpy as np

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.harnesses.oracle import exact, oracle_options
from fuzz.properties import close, finite, known_pixels, like, same_bits, with_threads, within

PRECONDITIONERS = ("multigrid", "multigrid", "pyramid", "jacobi")
LOSSES = (
    bilateral.GemanMcClure(1.0),
    bilateral.GemanMcClure(0.01),
    bilateral.Cauchy(0.5),
    bilateral.Welsch(1.0),
    bilateral.Huber(0.1),
    bilateral.Charbonnier(0.2),
    bilateral.Barron(1.5, 0.3),
    bilateral.Barron(-3.0, 2.0),
)
RESULTS = ("float32", "float64", "float16", "uint8", "int16", "bool", ">f4")


def solver_options(d: Draw, planar: bool = False) -> dict[str, Any]:
    """Options of a solver."""
    options: dict[str, Any] = {}
    if d.chance(0.6):
        options["smoothness"] = d.decades(-2, 3)
    elif d.chance(0.2):
        options["smoothness"] = d.decades(-8, 8)
    elif d.chance(0.2):
        options["smoothness"] = "auto"
    options |= d.some(tolerance=(1e-2, 1e-3, 1e-6, 0, 0.5), max_iterations=(0, 1, 3, 30, None))
    if planar:
        options["model"] = "planar"
        options |= d.some(
            slope_smoothness=(0.1, 3.0, 30.0),
            slope_ridge=(None, 0.0, 1e-3, 1.0, 1e6),
            clamp=(True, False),
            initial=(None, "nested"),
        )
        return options
    if d.chance(0.1):
        options["method"] = "paper"
    else:
        options |= d.some(
            preconditioner=PRECONDITIONERS, initial=(None, "pyramid", "nested", "flat")
        )
    return options


WRONG_SOLVER = {
    "smoothness": (*wrongs.POSITIVE[:5], "car", None),
    "tolerance": wrongs.NOT_NEGATIVE,
    "max_iterations": wrongs.COUNT,
    "preconditioner": (*wrongs.CHOICE, None),
    "initial": wrongs.CHOICE,
    "method": wrongs.CHOICE,
    "model": wrongs.CHOICE,
    "slope_smoothness": wrongs.POSITIVE,
    "slope_ridge": wrongs.NOT_NEGATIVE,
    "clamp": wrongs.FLAG,
}
WRONG_GRID = {
    "sigma_xy": wrongs.POSITIVE,
    "sigma_luma": wrongs.POSITIVE,
    "sigma_chroma": wrongs.POSITIVE,
    "blur": ("papr", (1, 2), (0, 1, 1), (1, -1, 1), (1, 1, float("nan")), 3, None),
    "reference_max": (*wrongs.POSITIVE[:6],),
}
WRONG_CALL = {
    "dtype": ("complex64", "S3", "nonsense", object),
    "smooth": ((1,), (1, 2, 3), (0, 1), (1, float("nan")), 4, "x"),
    "warm_start": ("last", "first", np.zeros((1, 2, 3, 4))),
    "callback": (3, "print"),
    "return_info": wrongs.FLAG,
    "rank_tolerance": (-0.1, 1.0, 2, float("nan"), "x"),
}


def wrong_arrays(d: Draw, photo: Array, target: Array) -> tuple[Array, Any, Any, str]:
    """Reference, target and confidence, one of them wrong, and its name."""
    shape, kind = target.shape[:2], d.randrange(7)
    more = (shape[0] + 1, shape[1])
    if kind == 0:
        return photo, np.full(shape, np.nan), None, "target"
    if kind == 1:
        return photo, np.zeros(more), None, "target"
    if kind == 2:
        return photo, target, np.ones(more), "confidence"
    if kind == 3:
        confidence = np.ones(shape)
        confidence[d.pixel(shape)] = d.choice((-1e-3, np.nan, np.inf, -np.inf))
        return photo, np.nan_to_num(target, posinf=0, neginf=0), confidence, "confidence"
    if kind == 4:
        return np.zeros((*shape, d.choice((2, 4, 5)))), target, None, "reference"
    if kind == 5:
        broken = np.full(shape, 0.5)
        broken[d.pixel(shape)] = d.choice((np.nan, np.inf, -np.inf))
        return broken, target, None, "reference"
    return photo.astype(d.choice(("int32", "complex64", "bool"))), target, None, "reference"


def solve(d: Draw) -> Case:
    """`bilateral.solve`: range, dtype, threads, warm starts, the oracle."""
    shape = d.shape()
    photo, target = d.photo(shape), d.map(shape)
    confidence = d.confidence(target, decades=6)
    options = d.grid_options() | solver_options(d)
    kind = d.random()
    if kind < 0.15:
        if kind < 0.05:
            photo, target, confidence, wrong = wrong_arrays(d, photo, target)
        else:
            table = WRONG_SOLVER if kind < 0.09 else WRONG_GRID if kind < 0.12 else WRONG_CALL
            for name in ("method", "model", "preconditioner", "initial"):
                options.pop(name, None)
            wrong = d.spoil(options, table)
        yield Call(bilateral.solve, photo, target, confidence, wrong=wrong, **options)
        return
    options |= d.some(dtype=(None, None, *RESULTS))
    if d.chance(0.1):
        options["smooth"] = d.decades(-1, 2), d.decades(-1, 3)
    if d.chance(0.1) and target.ndim == 3:
        options["rank_tolerance"] = d.choice((0.0, 0.01, 0.5))
    if d.chance(0.1):
        options["return_info"] = True
    result = yield Call(bilateral.solve, photo, target, confidence, **options)
    x, info = result if "return_info" in options else (result, None)
    if info is not None:
        require(info.iterations >= 0 and np.isfinite(info.seconds), "info", info)
        options.pop("return_info")
    like(x, target, options.get("dtype"))
    finite(x)
    known = known_pixels(target, confidence)
    # Without a step, the result is the start, which may be 0 in parts with hardly any confidence.
    steps = options.get("max_iterations", 100) != 0
    if steps and options.get("dtype") is None and "rank_tolerance" not in options:
        within(x, target, known)
    if d.chance(0.1):
        again = yield Call(
            with_threads, d.choice((1, 3, 7)), bilateral.solve, photo, target, confidence, **options
        )
        same_bits(again, x, "another number of threads")
    if d.chance(0.1):
        where = d.layout(np.ascontiguousarray(target)), d.layout(np.ascontiguousarray(photo))
        again = yield Call(bilateral.solve, where[1], where[0], confidence, **options)
        if again.dtype == x.dtype:
            same_bits(again, x, "another layout")
    if d.chance(0.1) and not options.get("dtype") and target.dtype.kind == "f":
        start = np.nan_to_num(np.asarray(target), nan=0.25, posinf=0, neginf=0)
        warm = {**options, "warm_start": start}
        again = yield Call(bilateral.solve, photo, target, confidence, **warm)
        finite(again)
        if "rank_tolerance" not in options and steps:
            within(again, target, known)
    if d.chance(0.02) and x.size <= 300 and oracle_options(options, photo, target, confidence):
        exactly = {**options, "tolerance": 1e-9, "max_iterations": 2000}
        x = yield Call(bilateral.solve, photo, target.astype(np.float64), confidence, **exactly)
        unit = float(np.abs(target[known].astype(np.float64)).max()) or 1.0
        close(x, exact(photo, target, confidence, options), 1e-5 * unit, "the oracle differs")


def solver(d: Draw) -> Case:
    """`BilateralSolver`: several targets on one grid, updates and warm starts from the last."""
    shape = d.shape()
    photo = d.photo(shape)
    grid = yield Call(BilateralGrid, photo, **d.grid_options())
    made = yield Call(BilateralSolver, grid, **solver_options(d))
    channels = d.choice((0, 0, 1, 2, 5))
    for step in range(d.randrange(2, 6)):
        target = d.map(shape, channels=(channels,))
        confidence = d.confidence(target)
        options: dict[str, Any] = {}
        if d.chance(0.12):
            if d.chance(0.5):
                confidence = np.full(shape, -1.0)
                yield Call(made.solve, target, confidence, wrong="confidence")
            else:
                wrong = d.spoil(options, {k: v for k, v in WRONG_CALL.items() if k != "warm_start"})
                yield Call(made.solve, target, confidence, wrong=wrong, **options)
            continue
        if step == 0 and d.chance(0.1):
            yield Call(made.solve, target, confidence, warm_start="last", wrong="warm_start")
        if made._last is not None and d.chance(0.6):
            options["warm_start"] = "last"
        x = yield Call(made.solve, target, confidence, **options)
        finite(like(x, target))
        if made.max_iterations > 0:
            within(x, target, known_pixels(target, confidence))
        if d.chance(0.4):
            other = d.photo(shape, channels=(3 if photo.shape[2:] == (3,) else 0,))
            yield Call(made.update, other)
        elif d.chance(0.1):
            yield Call(made.update, np.zeros((*shape, 4)), wrong="reference")


def planar(d: Draw) -> Case:
    """The planar model: range, and affine targets that it reproduces without a ridge."""
    shape = d.shape(24)
    photo = d.photo(shape)
    options = d.grid_options() | solver_options(d, planar=True)
    if d.chance(0.15):
        y, x = np.mgrid[: shape[0], : shape[1]]
        target = d.gauss(0, 1) * x + d.gauss(0, 1) * y + d.gauss(0, 10)
        options |= {"slope_ridge": 0.0, "tolerance": 1e-9, "max_iterations": 400, "clamp": False}
        options["smoothness"] = d.decades(-1, 2)
        result = yield Call(bilateral.solve, photo, target, return_info=True, **options)
        if result[1].converged:
            close(result[0], target, 1e-5 * (np.ptp(target) + 1e-9), "planes are not kept")
        return
    target = d.map(shape, channels=(0, 0, 1, 2))
    confidence = d.confidence(target, decades=4)
    if d.chance(0.1):
        wrong = d.spoil(options, {k: WRONG_SOLVER[k] for k in ("slope_smoothness", "slope_ridge")})
        yield Call(bilateral.solve, photo, target, confidence, wrong=wrong, **options)
        return
    x = yield Call(bilateral.solve, photo, target, confidence, **options)
    finite(like(x, target))
    if options.get("clamp", True):
        within(x, target, known_pixels(target, confidence), 0.05 + 1e-6)
    if d.chance(0.15):
        again = yield Call(
            with_threads, d.choice((1, 3)), bilateral.solve, photo, target, confidence, **options
        )
        same_bits(again, x, "another number of threads")


def robust(d: Draw) -> Case:
    """`solve_robust`: range, and no influence of confidences after a constant target."""
    shape = d.shape(24)
    photo, target = d.photo(shape), d.map(shape, channels=(0, 0, 1, 2))
    grid = yield Call(BilateralGrid, photo, **d.grid_options())
    made = yield Call(BilateralSolver, grid, **solver_options(d, planar=d.chance(0.2)))
    confidence = d.confidence(target)
    options = d.some(
        loss=LOSSES, iterations=(1, 2, 3, 5, 8), weights=("joint", "channel"), min_change=(0, 0.01)
    )
    if d.chance(0.12):
        wrong = d.spoil(
            options,
            {
                "loss": ("huber", 1.0, None, object()),
                "iterations": (0, *wrongs.COUNT),
                "weights": wrongs.CHOICE,
                "min_change": wrongs.NOT_NEGATIVE,
            },
        )
        yield Call(made.solve_robust, target, confidence, wrong=wrong, **options)
        return
    x = yield Call(made.solve_robust, target, confidence, **options)
    finite(like(x, target))
    if made.model == "constant" and made.max_iterations > 0:
        within(x, target, known_pixels(target, None))  # later rounds weigh all known pixels
    if d.chance(0.1):
        again = yield Call(with_threads, 3, made.solve_robust, target, confidence, **options)
        same_bits(again, x, "another number of threads")


def variance(d: Draw) -> Case:
    """`BilateralSolver.variance`: above 0, infinite only where nothing is known."""
    shape = d.shape(12)
    photo = d.photo(shape)
    planes = d.chance(0.2)
    options = {"model": "planar"} if planes else {}
    if d.chance(0.7):
        options["smoothness"] = d.decades(-2, 3)
    made = BilateralSolver(BilateralGrid(photo, **d.grid_options()), **options)
    confidence = d.confidence(np.zeros(shape))
    if d.chance(0.15):
        given: dict[str, Any] = {}
        wrong = d.spoil(given, {"probes": (0, *wrongs.COUNT), "seed": wrongs.COUNT})
        yield Call(made.variance, confidence, wrong=wrong, **given)
        return
    given = d.some(probes=(1, 2, 3, 9), seed=(0, 1, 2**31))
    v = yield Call(made.variance, confidence, **given)
    require(v.shape == shape and v.dtype == np.float64, "shape or dtype", v)
    require((v > 0).all(), "not above 0", v.min())
    if confidence is None:
        finite(v)
    if d.chance(0.2):
        again = yield Call(with_threads, d.choice((1, 3)), made.variance, confidence, **given)
        same_bits(again, v, "another number of threads")
