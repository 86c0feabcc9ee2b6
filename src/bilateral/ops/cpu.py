"""The operations on the CPU, by the C++ core. Arrays are C-contiguous float32 or float64."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Grid = _core.Grid


def build_grid(
    pixels: Array,
    matrix: NDArray[np.float64],
    offset: NDArray[np.float64],
    highest: float,
    sigma_xy: float,
    sigmas: tuple[float, float, float],
) -> Grid:
    """Vertices and edges of the simplified bilateral grid of an (H, W, C) reference."""
    return _core.build_grid(
        pixels, matrix.tolist(), offset.tolist(), highest, sigma_xy, list(sigmas), get_num_threads()
    )


def coarsen(grid: Grid) -> None:
    """Build the pyramid, down to one vertex."""
    grid.coarsen(get_num_threads())


def bistochastize(grid: Grid, blur: tuple[float, float, float]) -> None:
    """Find n such that D_n B-bar D_n has the row sums m (supplement, Algorithm 1)."""
    grid.bistochastize(*blur, get_num_threads())


def splat(grid: Grid, pixels: Array) -> Array:
    """S pixels: (H, W[, K]) to (n_vertices[, K])."""
    out = np.empty((grid.n_vertices, *pixels.shape[2:]), pixels.dtype)
    grid.splat(pixels, out, get_num_threads())
    return out


def slice_(grid: Grid, vertices: Array, shape: tuple[int, int]) -> Array:
    """S^T vertices: (n_vertices[, K]) to (H, W[, K])."""
    out = np.empty((*shape, *vertices.shape[1:]), vertices.dtype)
    grid.slice(vertices, out, get_num_threads())
    return out


def blur(grid: Grid, vertices: Array) -> Array:
    """B-bar vertices."""
    out = np.empty_like(vertices)
    grid.blur(vertices, out, get_num_threads())
    return out


class Observation(NamedTuple):
    """S c and S (c t), and what was seen on the way."""

    weight: Array
    weighted: Array
    known: int
    confidence: float
    low: Array
    high: Array
    invalid: int | None


def splat_target(grid: Grid, target: Array, confidence: Array | None) -> Observation:
    """Splat an (H, W, K) target with its (H, W) confidence; non-finite values count as 0."""
    weight = np.empty(grid.n_vertices, target.dtype)
    weighted = np.empty((grid.n_vertices, target.shape[2]), target.dtype)
    known, total, low, high, invalid = grid.splat_target(
        target, confidence, weight, weighted, get_num_threads()
    )
    return Observation(weight, weighted, known, total, np.array(low), np.array(high), invalid)


def start(grid: Grid, weight: Array, weighted: Array, initial: str) -> Array:
    """The paper's start, "pyramid" or "flat"."""
    x = np.empty_like(weighted)
    grid.start(weight, weighted, initial == "pyramid", x, get_num_threads())
    return x


def pcg(
    grid: Grid,
    weight: Array,
    weighted: Array,
    x: Array,
    scale: Array,
    smoothness: float,
    preconditioner: str,
    most_steps: int,
    tolerance: float,
    callback: Callable[[int, float], Any] | None,
) -> tuple[list[float], bool]:
    """Improve x in place; return the error estimate after each step and whether all converged."""
    return grid.solve(
        weight,
        weighted,
        x,
        scale.tolist(),
        smoothness,
        preconditioner == "pyramid",
        most_steps,
        tolerance,
        callback,
        get_num_threads(),
    )
