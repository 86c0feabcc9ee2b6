"""Build the grid; splat, slice and blur; move values over its pyramid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]


class PixelError(ValueError):
    """The grid cannot hold the values of some pixels."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of the core, with the numbers of it that Python needs. It never changes."""

    core: _core.Grid
    n_vertices: int
    _mass: NDArray[np.float32]

    def mass(self) -> NDArray[np.float32]:
        """Return the number of pixels of each vertex."""
        return self._mass

    def coordinates(self) -> list[int]:
        """Return the cells of all vertices, one vertex after another."""
        return self.core.coordinates()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Grid":
        return self


def build_grid(
    pixels: Array,
    matrix: NDArray[np.float64],
    offset: NDArray[np.float64],
    sigmas: Sequence[float],
    highest: float | None,
    sigma_space: Sequence[float],
    *,
    blur: tuple[float, float, float],
    edge_guard: float,
    lowest_eigenvalue: float,
    level_stiffness: float,
    faint_epsilons: float,
) -> Grid:
    """Build the simplified bilateral grid of (H, W, C) or (T, H, W, C) pixels.

    The grid has vertices, edges, and the vector n for which D_n B-bar D_n has the row sums m
    (supplement, Algorithm 1). The first call that needs the pyramid builds it.

    Parameters
    ----------
    pixels : array
        uint8, uint16, float32 or float64.
    matrix, offset : arrays
        The features of a pixel are ``matrix @ pixel + offset``. The matrix may mix channels only
        if there are three.
    sigmas : sequence of float
        Size of a cell in each feature.
    highest : float, optional
        Pixels are usually between 0 and this value. None: they have any size.
    sigma_space : sequence of float
        Size of a cell in pixels, in the order of the axes of the pixels.
    blur : (centre, space, range)
        Weights of B-bar.
    edge_guard : float
        See `bilateral.numerics.policy.EDGE_GUARD`.
    lowest_eigenvalue, level_stiffness, faint_epsilons : float
        See the constants of these names in `bilateral.numerics.policy`.
    """
    threads = get_num_threads()
    try:
        return Grid(
            *_core.build_grid(
                pixels,
                matrix.tolist(),
                offset.tolist(),
                list(sigmas),
                highest,
                list(sigma_space),
                edge_guard,
                blur,
                lowest_eigenvalue,
                level_stiffness,
                faint_epsilons,
                threads,
            )
        )
    except ValueError as error:
        raise PixelError(str(error)) from None


def splat(grid: Grid, pixels: Array, shape: tuple[int, ...]) -> Array:
    """Compute S pixels: (*shape[, K]) to (n_vertices[, K])."""
    out = np.empty((grid.n_vertices, *pixels.shape[len(shape) :]), pixels.dtype)
    grid.core.splat(pixels, out, get_num_threads())
    return out


def slice_(grid: Grid, vertices: Array, shape: tuple[int, ...], out: Array | None = None) -> Array:
    """Compute S^T vertices: (n_vertices[, K]) to (*shape[, K]). `out` receives it, if given."""
    if out is None:
        out = np.empty((*shape, *vertices.shape[1:]), vertices.dtype)
    grid.core.slice(vertices, out, get_num_threads())
    return out


def blur(grid: Grid, vertices: Array) -> Array:
    """Compute B-bar vertices."""
    out = np.empty_like(vertices)
    grid.core.blur(vertices, out, get_num_threads())
    return out


def slice_gradients(
    grid: Grid,
    z: Array,
    y: Array,
    extra: Array | None,
    target: Array,
    confidence: Array | None,
    of_target: Array | None,
    of_confidence: Array | None,
) -> None:
    """Write c z to `of_target` and sum_k z_k (t_k - y_k) + extra to `of_confidence`.

    Both results belong to pixels; either may be None. z, y and extra belong to vertices.
    """
    grid.core.slice_gradients(
        z, y, extra, target, confidence, of_target, of_confidence, get_num_threads()
    )


def smoothness_product(grid: Grid, x: Array, y: Array) -> float:
    """Compute x^T (D_m - D_n B-bar D_n) y, summed over the channels of (n_vertices, K)."""
    return grid.core.smoothness_product(x, y, get_num_threads())


def rms(grid: Grid, vertices: Array) -> NDArray[np.float64]:
    """Compute the root mean square over the pixels of each channel of (n_vertices, K)."""
    out = np.empty(vertices.shape[1])
    grid.core.rms(vertices, out)
    return out


def frame_change(before: Array, after: Array, scale: Sequence[float]) -> Array:
    """Compute a float32 weight per pixel: 1 for equal values, 0 from a change of 3 / scale on."""
    weight = np.empty(after.shape[:-1], np.float32)
    _core.frame_change(before, after, scale, weight, get_num_threads())
    return weight


def push_pull(grid: Grid, vertices: Array) -> Array:
    """Compute H vertices: each value plus its weighted means over the levels of the pyramid.

    H is symmetric, and the paper's start is H S (c t) / H S c.
    """
    out = np.empty_like(vertices)
    grid.core.push_pull(vertices, out, get_num_threads())
    return out


def count_loose(grid: Grid, weight: Array, least: float) -> float:
    """Count the pixels of vertices that lack weight, as all their neighbours do.

    A vertex lacks weight if it has less than `least` per pixel. Vertices without neighbours do not
    count.
    """
    return grid.core.count_loose(weight, least, get_num_threads())


def with_data(grid: Grid, weight: Array) -> NDArray[np.bool_]:
    """Return whether each vertex is connected to a vertex with a weight above 0."""
    out = np.empty(grid.n_vertices, np.bool_)
    grid.core.with_data(weight, out)
    return out
