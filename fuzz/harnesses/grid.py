"""Grids: splat, slice and blur of images and of features, and pickles of both and of solvers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from bilateral import BilateralGrid, BilateralSolver
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.harnesses.solver import WRONG_GRID, solver_options
from fuzz.properties import same_bits, with_threads


def close(a: Any, b: Any, bound: float, what: str) -> None:
    """Require two numbers that differ by at most `bound`."""
    require(abs(float(a) - float(b)) <= bound, what, a, b)


def operators(d: Draw, grid: BilateralGrid) -> Case:
    """Splat keeps sums and is the transpose of slice; blur is symmetric."""
    shape, n = grid.shape, grid.n_vertices
    channels = d.choice(((), (), (1,), (3,), (8,), (9,)))
    dtype = d.choice(("float32", "float64", "float64"))
    p = d.layout((d.numpy.random((*shape, *channels)) - 0.5).astype(dtype))
    v, w = (d.layout((d.numpy.random((n, *channels)) - 0.5).astype(dtype)) for _ in range(2))
    kind = d.random()
    if kind < 0.08:
        yield Call(grid.splat, p[..., np.newaxis, np.newaxis, np.newaxis], wrong="pixels")
    elif kind < 0.16:
        function = d.choice((grid.slice, grid.blur))
        bad = np.zeros(n + 1) if d.chance(0.5) else np.zeros((n, 1, 1))
        yield Call(function, bad, wrong="vertices")
    splat = yield Call(grid.splat, p)
    sliced = yield Call(grid.slice, v)
    digits = (1e-4 if dtype == "float32" else 1e-11) * max(p.size, 1)
    require(splat.shape == v.shape and splat.dtype == p.dtype.newbyteorder("="), "splat", splat)
    close(splat.sum(), p.sum(), digits, "splat does not keep the sum")
    close((splat * v).sum(), (p * sliced).sum(), digits, "slice is not the transpose of splat")
    a, b = (yield Call(grid.blur, v)), (yield Call(grid.blur, w))
    largest = float(np.abs(a).max(initial=1))
    close((a * w).sum(), (v * b).sum(), digits * largest, "blur is not symmetric")
    if d.chance(0.1):
        again = yield Call(with_threads, 3, grid.splat, p)
        same_bits(again, splat, "another number of threads")


def grid(d: Draw) -> Case:
    """The grid of an image or a video."""
    shape: tuple[int, ...] = d.shape()
    options = d.grid_options()
    photo = d.photo(d_shape := (shape[0], shape[1]))
    if d.chance(0.12):
        wrong = d.spoil(options, WRONG_GRID)
        yield Call(BilateralGrid, photo, wrong=wrong, **options)
        return
    if d.chance(0.2):
        frames = d.randrange(1, 5)
        photo = np.stack([np.asarray(photo)] * frames)
        options["sigma_t"] = d.sigma()
        shape = (frames, *d_shape)
    made = yield Call(BilateralGrid, photo, **options)
    require(made.shape == shape and 1 <= made.n_vertices <= np.prod(shape), "size", made)
    yield from operators(d, made)
    if d.chance(0.2):
        cells = yield Call(made.coordinates)
        require(len(np.unique(cells, axis=0)) == made.n_vertices, "cells are not distinct", cells)


def features(d: Draw) -> Case:
    """`BilateralGrid.from_features`, with two or three axes and 0 to 8 features."""
    shape: tuple[int, ...] = d.shape(24)
    axes = 2
    if d.chance(0.4):
        shape, axes = (d.randrange(1, 5), *shape), 3
    count = d.randrange(0, 9)
    scale = d.decades(-2, 3)
    values = (d.numpy.random((*shape, count)) - d.random()) * scale
    dtype = d.choice(("float32", "float64", "int16", "uint8", "float16"))
    if dtype[0] in "iu":
        values = np.abs(values) % 200
    values = d.layout(values.astype(dtype))
    sigmas: Any = scale * d.decades(-1, 1) + 1e-3
    if count and d.chance(0.4):
        sigmas = [scale * d.decades(-1, 1) + 1e-3 for _ in range(count)]
    space: Any = d.sigma() if d.chance(0.5) else [d.sigma() for _ in range(axes)]
    given = {"sigmas": sigmas, "sigma_space": space}
    if d.chance(0.15):
        wrong = d.spoil(
            given,
            {
                "sigmas": (0, -1, float("nan"), "x", [1.0] * 9),
                "sigma_space": (0, -1, float("nan"), "x", [1.0], [1.0] * 4),
                "blur": WRONG_GRID["blur"],
            },
        )
        if not (count == 0 and wrong == "sigmas"):
            yield Call(BilateralGrid.from_features, values, wrong=wrong, **given)
        return
    made = yield Call(BilateralGrid.from_features, values, **given)
    require(made.shape == shape and 1 <= made.n_vertices <= np.prod(shape), "size", made)
    yield from operators(d, made)


def pickled(d: Draw) -> Case:
    """Grids and solvers after a pickle or a copy solve with the same bits; damaged ones raise."""
    shape = d.shape(24)
    photo, target = d.photo(shape), d.map(shape, channels=(0, 0, 2))
    made = BilateralSolver(BilateralGrid(photo, **d.grid_options()), **solver_options(d))
    x = yield Call(made.solve, target)
    kind = d.random()
    if kind < 0.2:
        again = yield Call(copy.deepcopy, made)
    elif kind < 0.7:
        again = yield Call(lambda: pickle.loads(pickle.dumps(made)))
    else:
        yield Call(damaged, made, d, errors=(ValueError, TypeError))
        return
    y = yield Call(again.solve, target)
    same_bits(x, y, "a pickle")
    if d.chance(0.5):
        a = yield Call(made.solve, target, warm_start="last")
        b = yield Call(again.solve, target, warm_start="last")
        same_bits(a, b, "a pickle and a warm start")


def damaged(solver: BilateralSolver, d: Draw) -> Any:
    """Set a state with one wrong entry; if it is accepted, solve with it."""
    state = copy.copy(solver.grid.__getstate__())
    where = state if d.chance(0.3) else state["core"]
    name = d.choice(tuple(where))
    value = where[name]
    where[name] = broken(value, d)
    grid = BilateralGrid.__new__(BilateralGrid)
    grid.__setstate__(state)
    return BilateralSolver(grid).solve(np.eye(*grid.shape))


def broken(value: Any, d: Draw) -> Any:
    """Another value of about the same kind."""
    if d.chance(0.2):
        return d.choice((None, -1, "x", np.zeros(3), float("nan"), [], 2**40))
    if isinstance(value, np.ndarray) and value.size:
        changed: Array = value.copy()
        kind = d.random()
        if kind < 0.3:
            return changed.ravel()[: d.randrange(changed.size)]
        if kind < 0.4:
            return np.concatenate([changed.ravel()] * 2)
        at = d.randrange(changed.size)
        if changed.dtype.kind in "iu":
            info = np.iinfo(changed.dtype)
            extremes = (info.min, info.max, 0, 1)
            changed.ravel()[at] = d.choice((*extremes, d.randint(info.min, info.max)))
        elif changed.dtype.kind == "f":
            changed.ravel()[at] = d.choice((np.nan, np.inf, -1.0, 0.0, 1e30))
        return changed
    if isinstance(value, list) and value:
        changed_list = list(value)
        changed_list[d.randrange(len(value))] = d.choice((0, -1, 2**40, float("nan"), 1))
        return changed_list
    if isinstance(value, int | float):
        return d.choice((-1, 0, 1, 2, 64, 2**31, float("nan"), value + 1))
    return None
