"""The calls of other bilateral solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bilateral import compat as other
from fuzz.call import Call, Case, require
from fuzz.draw import POSITIVE, Draw
from fuzz.properties import finite


def compat(d: Draw) -> Case:
    """One of the three drop-ins."""
    yield from (opencv, notebook, mask)[d.randrange(3)](d)


def opencv(d: Draw) -> Case:
    """`fastBilateralSolverFilter`: finite, of the source's dtype."""
    shape = d.shape(28)
    guide = d.photo(shape, channels=(0, 3), dtypes=("uint8",))
    dtypes = ("uint8", "int16", "uint16", "float32")
    scale = {"uint8": 255, "int16": 30_000, "uint16": 65535, "float32": 1}
    dtype = d.choice(dtypes)
    source = d.levels((*shape, *d.choice(((), (), (1,), (3,), (4,)))))
    source = d.layout((source * scale[dtype]).astype(dtype))
    confidence = d.numpy.random(shape)
    confidence = d.layout((confidence * 255).astype(np.uint8)) if d.chance(0.5) else confidence
    confidence = confidence if confidence.dtype == np.uint8 else confidence.astype(np.float32)
    given: dict[str, Any] = d.some(
        sigma_spatial=(2, 8, 16.0), sigma_luma=(4, 8), lambda_=(1.0, 128.0), num_iter=(1, 5, 25)
    )
    if d.chance(0.2):
        kind = d.randrange(3)
        if kind == 0:
            wrong = d.spoil(given, {"lambda_": POSITIVE[:4], "sigma_luma": POSITIVE[:5]})
        elif kind == 1:
            source, wrong = source.astype(np.float64), "src"
        else:
            confidence, wrong = np.ones((shape[0] + 1, shape[1]), np.float32), "confidence"
        yield Call(other.fastBilateralSolverFilter, guide, source, confidence, wrong=wrong, **given)
        return
    x = yield Call(other.fastBilateralSolverFilter, guide, source, confidence, **given)
    require(x.shape == source.shape, "another shape", x.shape, source.shape)
    require(x.dtype == source.dtype, "another dtype", x.dtype, source.dtype)
    finite(x)


def notebook(d: Draw) -> Case:
    """The authors' notebook: splat, blur and slice agree in size, solves are finite."""
    shape = d.shape(20)
    image = d.photo(shape, channels=(3,), dtypes=("uint8",))
    grid = yield Call(
        other.BilateralGrid, image, d.choice((2, 8, 32)), d.choice((4, 8)), d.choice((4, 8))
    )
    x = d.numpy.random((shape[0] * shape[1], d.choice((1, 2))))
    y = yield Call(grid.splat, x)
    back = yield Call(grid.slice, y)
    require(len(back) == len(x), "another number of pixels", back, x)
    params = {
        "lam": d.decades(-1, 3),
        "A_diag_min": 1e-5,
        "cg_tol": 1e-5,
        "cg_maxiter": d.choice((1, 25)),
    }
    if d.chance(0.15):
        del params[d.choice(("lam", "cg_maxiter"))]
        yield Call(other.BilateralSolver, grid, params, wrong="params")
        return
    solver = yield Call(other.BilateralSolver, grid, params)
    solved = yield Call(solver.solve, x, d.numpy.random((len(x), 1)) + 0.01)
    finite(np.asarray(solved))


def mask(d: Draw) -> Case:
    """TokenCut's function: a soft map and a mask."""
    shape = d.shape(24)
    image = d.photo(shape, channels=(3,), dtypes=("uint8",))
    rough = (d.levels(shape) > 0.5).astype(np.float64)
    if d.chance(0.2):
        bad = np.zeros((shape[0], shape[1] + 1))
        yield Call(other.bilateral_solver_output, image, bad, wrong="target")
        return
    given = d.some(sigma_spatial=(4, 24), get_all_cc=(False, True))
    soft, found = yield Call(other.bilateral_solver_output, image, rough, **given)
    require(soft.shape == found.shape == shape, "another shape", soft, found)
    finite(soft)
