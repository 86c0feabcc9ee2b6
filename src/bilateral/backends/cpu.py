"""Call the C++ core: every operation on the CPU.

Arrays are C-contiguous float32 or float64 unless a function says otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Loss = _core.Loss
Samples = _core.Samples32 | _core.Samples64
PixelGraph = _core.PixelGraph32 | _core.PixelGraph64


LARGEST_BLUR = 2048.0
"""Largest radius that `defocus` accepts, in pixels."""


class PixelError(ValueError):
    """The grid cannot hold the values of some pixels."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of the core, with the numbers of it that Python needs."""

    core: _core.Grid
    n_vertices: int
    _mass: NDArray[np.float32]

    def mass(self) -> NDArray[np.float32]:
        """Return the number of pixels of each vertex."""
        return self._mass

    def coordinates(self) -> list[int]:
        """Return the cells of all vertices, one vertex after another."""
        return self.core.coordinates()


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
) -> Grid:
    """Build the simplified bilateral grid of (H, W, C) or (T, H, W, C) pixels.

    The grid has vertices, edges, the pyramid down to one vertex, and the vector n for which
    D_n B-bar D_n has the row sums m (supplement, Algorithm 1).

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
    lowest_eigenvalue : float
        See `bilateral.numerics.policy.LOWEST_EIGENVALUE`.
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


def median(image: Array, size: int) -> Array:
    """Filter an (H, W, K) uint8, uint16 or float image by the median over size x size pixels."""
    out = np.empty_like(image)
    _core.median(image, out, size, get_num_threads())
    return out


def label_depth(labels: NDArray[np.int32], radius: int) -> NDArray[np.float32]:
    """Compute the distance of each pixel to the nearest outline, relative to the largest nearby.

    "Nearby" means in the same region, up to `radius` pixels along the row, then along the column.
    `labels` are (H, W); labels below 0 are unknown. The result is 1 where there is no outline.
    """
    out = np.empty(labels.shape, np.float32)
    _core.label_depth(labels, radius, out, get_num_threads())
    return out


def majority(labels: NDArray[np.int32], classes: int, radius: int) -> NDArray[np.int32]:
    """Replace each label by the label that fills more than half of its window, if there is one.

    `labels` are (H, W), from 0 to `classes` - 1. The sides of the window are 2 `radius` + 1 pixels.
    """
    out = np.empty_like(labels)
    _core.majority(labels, classes, radius, out, get_num_threads())
    return out


class Matches(NamedTuple):
    """Result of block matching: an interval around the best disparity; the best of each view."""

    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]


def match_blocks(
    left: Array, right: Array, max_disparity: int, window: int, margin: float
) -> Matches:
    """Match (H, W) float32 views over disparities from 0 to `max_disparity`, which is below W.

    Costs are summed over window x window pixels. The interval holds the disparities with a cost of
    up to 1 + `margin` times the best.
    """
    matches = Matches(*(np.empty(left.shape, np.float32) for _ in range(4)))
    threads = get_num_threads()
    _core.match_blocks(left, right, max_disparity + 1, window // 2, margin, matches, threads)
    return matches


def defocus(
    image: Array, layers: Array, radii: Sequence[float], blades: int, rotation: float
) -> Array:
    """Blur an (H, W, 1 or 3) float32 image by layers, each over the layers behind it.

    `layers` (H, W) are float32 numbers from -n, the farthest, to n, the nearest; 0 stays sharp.
    The layers k and -k blur by ``radii[k]``. 0 blades make a disc.
    """
    out = np.empty_like(image)
    _core.defocus(image, layers, radii, blades, rotation, out, get_num_threads())
    return out


class Observation(NamedTuple):
    """S c and S (c t), with statistics of the target and its confidence."""

    weight: Array
    weighted: Array
    known: int
    """Number of pixels with data."""
    confidence: float
    """Sum of their confidences."""
    low: Array
    """Lowest value of each channel among them."""
    high: Array
    invalid: int | None
    """The first pixel whose confidence is negative or not finite."""


def splat_target(grid: Grid, target: Array, confidence: Array | None) -> Observation:
    """Splat a (..., K) target with its confidence. Pixels with non-finite values have no data."""
    weight = np.empty(grid.n_vertices, target.dtype)
    weighted = np.empty((grid.n_vertices, target.shape[-1]), target.dtype)
    known, total, low, high, invalid = grid.core.splat_target(
        target, confidence, weight, weighted, get_num_threads()
    )
    return Observation(weight, weighted, known, total, np.array(low), np.array(high), invalid)


def samples(grid: Grid, target: Array) -> Samples:
    """Collect the known pixels of a (..., K) target in the order that `splat_robust` needs."""
    kind = _core.Samples32 if target.dtype == np.float32 else _core.Samples64
    return kind(grid.core, target, get_num_threads())


def splat_robust(samples: Samples, loss: Loss, y: Array, weight: Array, weighted: Array) -> float:
    """Splat a target with the weights of a loss at its distance from y as confidence.

    Writes the sums to `weight` and `weighted`. Returns the sum of the confidences.
    """
    return samples.splat(loss, y, weight, weighted, get_num_threads())


def covariance(weight: Array, weighted: Array) -> tuple[Array, Array]:
    """Compute the weighted mean of the channels and the lower triangle of their covariance."""
    channels = weighted.shape[1]
    mean, products = np.empty(channels), np.empty((channels, channels))
    _core.covariance(weight, weighted, mean, products, get_num_threads())
    return mean, products


def project(weight: Array, weighted: Array, mean: Array, basis: Array) -> Array:
    """Compute ``(weighted - weight * mean) @ basis.T``: the channels in terms of a basis."""
    reduced = np.empty((len(weight), len(basis)), weight.dtype)
    _core.project(weight, weighted, mean, basis, reduced, get_num_threads())
    return reduced


def expand(reduced: Array, mean: Array, basis: Array) -> Array:
    """Compute ``reduced @ basis + mean``: all channels from their projection."""
    full = np.empty((len(reduced), len(mean)), reduced.dtype)
    _core.expand(reduced, mean, basis, full, get_num_threads())
    return full


def start(grid: Grid, weight: Array, weighted: Array, initial: str, smoothness: float) -> Array:
    """Compute the paper's start, "pyramid" or "flat", or the start of multigrid, "nested".

    The nested start is 0 where there is no data.
    """
    x, threads = np.empty_like(weighted), get_num_threads()
    if initial == "nested":
        grid.core.nested_start(weight, weighted, smoothness, x, threads)
    elif initial == "pyramid":
        grid.core.pyramid_start(weight, weighted, x, threads)
    else:
        grid.core.flat_start(weight, weighted, x, threads)
    return x


def push_pull(grid: Grid, vertices: Array) -> Array:
    """Compute H vertices: each value plus its weighted means over the levels of the pyramid.

    H is symmetric, and the paper's start is H S (c t) / H S c.
    """
    out = np.empty_like(vertices)
    grid.core.push_pull(vertices, out, get_num_threads())
    return out


def draw_probes(grid: Grid, weight: Array, smoothness: float, seed: int, probes: int) -> Array:
    """Draw at most 64 right-hand sides (n_vertices, probes) with covariance A; a 64-bit seed."""
    b = np.empty((grid.n_vertices, probes), weight.dtype)
    grid.core.draw_probes(weight, smoothness, seed, b, get_num_threads())
    return b


def with_data(grid: Grid, weight: Array) -> NDArray[np.bool_]:
    """Return whether each vertex is connected to a vertex with a weight above 0."""
    out = np.empty(grid.n_vertices, np.bool_)
    grid.core.with_data(weight, out)
    return out


@dataclass(slots=True)
class Solver:
    """Memory and matrices for solves on one grid in one dtype; not for two threads at once."""

    grid: Grid
    preconditioner: str
    core: _core.Solver | None = None
    """The first solve creates it."""


def was_with_data(solver: Solver, n_vertices: int) -> NDArray[np.bool_]:
    """Return `with_data` of the last system of a solver that has solved one."""
    if solver.core is None:
        raise ValueError("solver: expected one that has solved a system, got a new one.")
    out = np.empty(n_vertices, np.bool_)
    solver.core.with_data(out)
    return out


class Outcome(NamedTuple):
    """Result of PCG."""

    residuals: list[float]
    """The error estimate after each step."""
    converged: bool
    """Whether all channels converged."""
    moved: float
    """Upper bound of the distance that x moved, RMS over the pixels and relative to the scale."""


def pcg(
    solver: Solver,
    weight: Array,
    weighted: Array,
    x: Array,
    scale: Array,
    *,
    fill: bool,
    smoothness: float,
    min_iterations: int,
    max_iterations: int,
    tolerance: float,
    movement_fraction: float,
    step_noise: float,
    error_window: int,
    callback: Callable[[int, float], Any] | None,
) -> Outcome:
    """Improve x in place by preconditioned conjugate gradients.

    Parameters
    ----------
    solver : Solver
    weight, weighted : arrays
        S c and S (c t).
    x : (n_vertices, K) array
        The start, then the solution.
    scale : (K,) array
        Size of the solution, to which error estimates are relative.
    fill : bool
        Give components without data the pyramid start; else they keep x.
    smoothness : float
    min_iterations, max_iterations : int
    tolerance : float
        Stop at this error; negative: after `max_iterations`.
    movement_fraction : float
        Also stop when the error falls below this fraction of the distance moved.
    step_noise : float
        See `bilateral.numerics.policy.STEP_NOISE`.
    error_window : int
        See `bilateral.numerics.policy.ERROR_WINDOW`.
    callback : function of (step, residual), optional
    """
    solver.core, residuals, converged, moved = _core.solve(
        solver.core,
        solver.grid.core,
        solver.preconditioner,
        weight,
        weighted,
        x,
        scale.tolist(),
        fill,
        smoothness,
        min_iterations,
        max_iterations,
        tolerance,
        movement_fraction,
        step_noise,
        error_window,
        callback,
        get_num_threads(),
    )
    return Outcome(residuals, converged, moved)


def pixel_graph(
    reference: Array, dtype: np.dtype[Any], smoothness: float, sigma: float
) -> PixelGraph:
    """Join each pixel of an (H, W, C) reference to its eight neighbours."""
    kind = _core.PixelGraph32 if dtype == np.float32 else _core.PixelGraph64
    graph: PixelGraph = kind.of(reference, smoothness, sigma, get_num_threads())
    return graph


def polish(
    graph: PixelGraph,
    z: Array,
    *,
    anchor: float,
    target: Array | None,
    weight: Array | None,
    low: Array | None,
    low_weight: Array | None,
    scale: float,
    rounds: int,
    steps: int,
) -> Array:
    """Smooth an (H, W) map in place on a graph, near to a target and to block means."""
    if low is not None and low_weight is not None:
        low, low_weight = (part.astype(z.dtype, copy=False) for part in (low, low_weight))
    threads = get_num_threads()
    graph.polish(z, anchor, target, weight, low, low_weight, scale, rounds, steps, threads)
    return z


def block_means(pixels: Array, shape: tuple[int, ...]) -> Array:
    """Compute the means of an (H, W) map over blocks. `shape` is the number of blocks per axis."""
    means = np.empty(shape, pixels.dtype)
    _core.block_means(pixels, means, get_num_threads())
    return means


def spread_blocks(values: Array, shape: tuple[int, ...]) -> Array:
    """Apply the adjoint of `block_means`: spread the value of each block over its pixels."""
    pixels = np.empty(shape, values.dtype)
    _core.spread_blocks(values, pixels, get_num_threads())
    return pixels


class Filtered(NamedTuple):
    """Result of the domain transform, and whether the image was suitable."""

    pixels: Array
    known: bool
    """Whether a pixel has data; if not, there is no result."""
    large: bool
    """Whether a value is too large for differences; if so, there is no result."""


def domain_transform(
    image: Array,
    mass: Array | None,
    reference: Array,
    scale: tuple[float, float],
    iterations: int,
    precise: bool,
) -> Filtered:
    """Filter an (H, W, K) image along an (H, W, C) reference, in float32 unless `precise`.

    Neighbours p, q have the weight exp(-(step + level * sum_c |I_c(p) - I_c(q)|)) in the first
    pass, with `scale` = (step, level), and the square of the weight before in each further pass.
    """
    kind = _core.DomainTransform64 if precise else _core.DomainTransform32
    threads = get_num_threads()
    out = np.empty_like(image)
    core = kind.of(reference, *scale, threads)
    return Filtered(out, *core.filter(image, mass, iterations, out, threads))


def visible(
    claim: Array, surface: Array, trusted: NDArray[np.bool_], tolerance: float
) -> NDArray[np.bool_]:
    """Return whether the right view sees the pixels of the left view at the disparities `claim`.

    The right view sees a pixel that lies inside it, unless a trusted pixel of the map `surface` on
    the same column there has a disparity larger by more than the tolerance. Maps are float32.
    """
    out = np.empty(claim.shape, np.bool_)
    _core.visible(claim, surface, trusted, tolerance, out, get_num_threads())
    return out


def find_regions(
    values: Array, mask: NDArray[np.bool_], tolerance: float
) -> tuple[NDArray[np.int32], int]:
    """Label the connected regions of a mask with about the same float32 value, from 1.

    Returns the labels, which are 0 outside the mask, and the number of regions.
    """
    labels = np.empty(values.shape, np.int32)
    return labels, _core.find_regions(values, mask, tolerance, labels)
