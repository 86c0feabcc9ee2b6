"""Peers of `complete_depth`: interpolation, the ordinary solver, and OpenCV's filters."""

import os
from collections.abc import Callable, Iterator

import numpy as np
from scipy.interpolate import NearestNDInterpolator
from scipy.signal import fftconvolve
from scipy.spatial import cKDTree

import bilateral
from benchmarks.common import Array, opencv
from benchmarks.quality.completion_inputs import Input
from benchmarks.quality.sparse import interpolated

Error = Callable[[Array], float]
SOLVERS = tuple(
    (sigmas, smoothness) for sigmas in ((8, 8, 8), (4, 16, 12)) for smoothness in (0.01, 0.03, 0.1)
)
OPENCV_SMOOTHNESSES = (0.1, 1.0, 16.0)
FGS_LAMBDAS = (10.0, 100.0, 1000.0)
IP_BASIC_FARTHEST = 80.0  # metres; the program takes depths up to 100


def nearest(values: Array) -> Array:
    known = np.argwhere(np.isfinite(values))
    found = NearestNDInterpolator(known, values[tuple(known.T)])
    return np.asarray(found(*np.indices(values.shape)))


def natural_neighbour(values: Array) -> Array:
    """Interpolate by Sibson's weights on pixels (Park et al. 2006).

    Each pixel spreads the value of its nearest point over the disc that just reaches this point.
    """
    known = np.argwhere(np.isfinite(values))
    at = np.indices(values.shape).reshape(2, -1).T
    distance, index = cKDTree(known).query(at)
    own = values[tuple(known.T)][index].reshape(values.shape)
    radius = np.rint(distance).astype(int).reshape(values.shape)
    total, weight = np.zeros(values.shape), np.zeros(values.shape)
    for r in np.unique(radius):
        y, x = np.ogrid[-r : r + 1, -r : r + 1]
        disc = (y**2 + x**2 <= r**2).astype(float)
        of_radius = radius == r
        total += fftconvolve(np.where(of_radius, own, 0), disc, mode="same")
        weight += fftconvolve(of_radius.astype(float), disc, mode="same")
    return np.asarray(np.where(radius == 0, own, total / np.maximum(weight, 1e-9)))


def ordinary(case: Input) -> Iterator[Array]:
    """Yield the ordinary solver's maps by its sigmas and smoothnesses."""
    for sigmas in dict(SOLVERS):
        grid = bilateral.BilateralGrid(case.photo, *sigmas)
        for own, smoothness in SOLVERS:
            if own == sigmas:
                yield bilateral.BilateralSolver(grid, smoothness).solve(case.values)


def of_opencv(case: Input, python: str) -> Iterator[tuple[str, Array]]:
    """Yield OpenCV's maps by the names of its filters, several per filter."""
    known = np.isfinite(case.values)
    size = float(np.nanmax(np.abs(case.values)))
    z = (np.where(known, case.values, 0) / size).astype(np.float32)
    filled = (nearest(case.values) / size).astype(np.float32)  # a start for its few steps
    depth = (IP_BASIC_FARTHEST * z).astype(np.float32)
    guide = np.ascontiguousarray(case.photo[..., ::-1] if case.photo.ndim == 3 else case.photo)
    arrays = {
        "guide": guide,
        "z": z,
        "known": known.astype(np.float32),
        "depth": depth,
        "filled": filled,
    }
    with opencv.Worker(python, arrays) as peer:
        for smoothness in OPENCV_SMOOTHNESSES:
            settings = (8, 8, 8, smoothness, 25)
            peer.run("fast bilateral solver", "guide filled known", *settings, save=True)
            yield "OpenCV solver", size * peer.result()
        for smoothness in FGS_LAMBDAS:
            peer.run("WLS with confidence", "guide z known", smoothness, 8.0, save=True)
            yield "OpenCV smoother", size * peer.result()
        if "IP_BASIC" in os.environ:
            peer.run("IP-Basic", "depth", save=True)
            yield "IP-Basic", size / IP_BASIC_FARTHEST * peer.result()


def maps(case: Input, python: str | None) -> Iterator[tuple[str, Array]]:
    """Yield each method's maps; of several by one method, the best counts."""
    yield "nearest", nearest(case.values)
    yield "linear", interpolated(case.values)
    yield "natural neighbour", natural_neighbour(case.values)
    for x in ordinary(case):
        yield "ordinary solver", x
    yield "preset sparse", bilateral.tasks.refine_depth(case.values, case.photo, preset="sparse")
    if python is not None:
        yield from of_opencv(case, python)
    yield "complete_depth", bilateral.tasks.complete_depth(case.values, case.photo)
