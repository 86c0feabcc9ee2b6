"""The operations on the CPU, by the C++ core. Arrays are C-contiguous float32 or float64."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Grid = _core.Grid
Loss = _core.Loss
Samples = _core.Samples32 | _core.Samples64
Solver = _core.Solver32 | _core.Solver64


LARGEST_BLUR = 2048.0
"""The largest radius that `defocus` takes, in pixels."""


class PixelError(ValueError):
    """Pixels have values that no grid can hold."""


def build_grid(
    pixels: Array,
    matrix: NDArray[np.float64],
    offset: NDArray[np.float64],
    sigmas: Sequence[float],
    highest: float | None,
    sigma_space: Sequence[float],
) -> Grid:
    """Vertices and edges of the simplified bilateral grid of (H, W, C) or (T, H, W, C) pixels.

    Their features are ``matrix @ pixel + offset``, of which only three may be mixed. Pixels are
    from 0 to `highest` as a rule, and of any size if that is None. `sigma_space` is in the order
    of the pixels' axes.
    """
    features, threads = (matrix.tolist(), offset.tolist(), list(sigmas)), get_num_threads()
    try:
        return _core.build_grid(pixels, *features, highest, list(sigma_space), threads)
    except ValueError as error:
        raise PixelError(str(error)) from None


def coarsen(grid: Grid) -> None:
    """Build the pyramid, down to one vertex."""
    grid.coarsen(get_num_threads())


def bistochastize(grid: Grid, blur: tuple[float, float, float]) -> None:
    """Find n such that D_n B-bar D_n has the row sums m (supplement, Algorithm 1)."""
    grid.bistochastize(*blur, get_num_threads())


def splat(grid: Grid, pixels: Array, shape: tuple[int, ...]) -> Array:
    """S pixels: (*shape[, K]) to (n_vertices[, K])."""
    out = np.empty((grid.n_vertices, *pixels.shape[len(shape) :]), pixels.dtype)
    grid.splat(pixels, out, get_num_threads())
    return out


def slice_(grid: Grid, vertices: Array, shape: tuple[int, ...], out: Array | None = None) -> Array:
    """S^T vertices: (n_vertices[, K]) to (*shape[, K]), in `out` if given."""
    if out is None:
        out = np.empty((*shape, *vertices.shape[1:]), vertices.dtype)
    grid.slice(vertices, out, get_num_threads())
    return out


def blur(grid: Grid, vertices: Array) -> Array:
    """B-bar vertices."""
    out = np.empty_like(vertices)
    grid.blur(vertices, out, get_num_threads())
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
    """The products c z and sum_k z_k (t_k - y_k) + extra at each pixel, into those wanted.

    z, y and extra are given at the vertices.
    """
    grid.slice_gradients(
        z, y, extra, target, confidence, of_target, of_confidence, get_num_threads()
    )


def smoothness_product(grid: Grid, x: Array, y: Array) -> float:
    """x^T (D_m - D_n B-bar D_n) y, the sum over the channels of (n_vertices, K)."""
    return grid.smoothness_product(x, y, get_num_threads())


def rms(grid: Grid, vertices: Array) -> NDArray[np.float64]:
    """Root of the mean square over the pixels, per channel of (n_vertices, K)."""
    out = np.empty(vertices.shape[1])
    grid.rms(vertices, out)
    return out


def unchanged(before: Array, after: Array, scale: Sequence[float]) -> Array:
    """A weight per pixel, float32: 1 for the same values, 0 from a change of 3 / scale on."""
    weight = np.empty(after.shape[:-1], np.float32)
    _core.unchanged(before, after, scale, weight, get_num_threads())
    return weight


def median(image: Array, size: int) -> Array:
    """Median over size x size pixels of an (H, W, K) image, uint8, uint16, float32 or float64."""
    out = np.empty_like(image)
    _core.median(image, out, size, get_num_threads())
    return out


def relative_depth(labels: NDArray[np.int32], radius: int) -> NDArray[np.float32]:
    """Distance to the nearest outline of (H, W) labels, relative to the largest one nearby.

    "Nearby" is in the same region, up to `radius` pixels along its row and then its column.
    Labels below 0 are unknown, and 1 is the result where there is no outline.
    """
    out = np.empty(labels.shape, np.float32)
    _core.relative_depth(labels, radius, out, get_num_threads())
    return out


def majority(labels: NDArray[np.int32], classes: int, radius: int) -> NDArray[np.int32]:
    """The (H, W) label that fills more than half of the window around each pixel, or its own.

    Labels are from 0 to `classes` - 1, the window's sides 2 `radius` + 1 pixels.
    """
    out = np.empty_like(labels)
    _core.majority(labels, classes, radius, out, get_num_threads())
    return out


class Matches(NamedTuple):
    """What block matching found: an interval around the best disparity; the best of the right."""

    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]


def match_blocks(left: Array, right: Array, most: int, window: int, margin: float) -> Matches:
    """Match (H, W) float32 views over disparities from 0 to `most`, which is below W.

    Costs are compared over window x window pixels; the interval holds those up to 1 + `margin`
    times the best.
    """
    found = Matches(*(np.empty(left.shape, np.float32) for _ in range(4)))
    _core.match_blocks(left, right, most + 1, window // 2, margin, found, get_num_threads())
    return found


def defocus(
    image: Array, layers: Array, radii: Sequence[float], blades: int, rotation: float
) -> Array:
    """Blur an (H, W, 1 or 3) float32 image by layers, each over what lies behind it.

    `layers` (H, W) are float32 numbers from -n, the farthest, over 0, which stays sharp, to n;
    layers k and -k blur by ``radii[k]``. 0 blades make a disc.
    """
    out = np.empty_like(image)
    _core.defocus(image, layers, radii, blades, rotation, out, get_num_threads())
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
    """Splat a (..., K) target with its confidence; non-finite values count as 0."""
    weight = np.empty(grid.n_vertices, target.dtype)
    weighted = np.empty((grid.n_vertices, target.shape[-1]), target.dtype)
    seen = grid.splat_target(target, confidence, weight, weighted, get_num_threads())
    known, total, low, high, invalid = seen
    return Observation(weight, weighted, known, total, np.array(low), np.array(high), invalid)


def samples(grid: Grid, target: Array) -> Samples:
    """The known pixels of a (..., K) target in an order that suits `splat_robust`."""
    kind = _core.Samples32 if target.dtype == np.float32 else _core.Samples64
    return kind(grid, target, get_num_threads())


def splat_robust(samples: Samples, loss: Loss, y: Array, weight: Array, weighted: Array) -> float:
    """Splat a target with the confidence that a loss gives it by its distance from y.

    The sums go to `weight` and `weighted`; returns the sum of the confidences.
    """
    return samples.splat(loss, y, weight, weighted, get_num_threads())


def covariance(weight: Array, weighted: Array) -> tuple[Array, Array]:
    """Mean of the channels over the vertices by weight, and their covariance's lower triangle."""
    channels = weighted.shape[1]
    mean, products = np.empty(channels), np.empty((channels, channels))
    _core.covariance(weight, weighted, mean, products, get_num_threads())
    return mean, products


def project(weight: Array, weighted: Array, mean: Array, basis: Array) -> Array:
    """``(weighted - weight * mean) @ basis.T``: the channels in terms of a basis."""
    few = np.empty((len(weight), len(basis)), weight.dtype)
    _core.project(weight, weighted, mean, basis, few, get_num_threads())
    return few


def expand(few: Array, mean: Array, basis: Array) -> Array:
    """``few @ basis + mean``: all channels again."""
    many = np.empty((len(few), len(mean)), few.dtype)
    _core.expand(few, mean, basis, many, get_num_threads())
    return many


def start(grid: Grid, weight: Array, weighted: Array, initial: str, smoothness: float) -> Array:
    """The paper's start, "pyramid" or "flat", or the multigrid hierarchy's, "nested".

    The nested start is 0 where there is no data.
    """
    x = np.empty_like(weighted)
    if initial == "nested":
        grid.nested_start(weight, weighted, smoothness, x, get_num_threads())
    else:
        grid.start(weight, weighted, initial == "pyramid", x, get_num_threads())
    return x


def push_pull(grid: Grid, vertices: Array) -> Array:
    """H vertices: each one's own value and its means over ever larger surroundings.

    H is symmetric, and the paper's start is H S (c t) / H S c.
    """
    out = np.empty_like(vertices)
    grid.push_pull(vertices, out, get_num_threads())
    return out


def draw_probes(grid: Grid, weight: Array, smoothness: float, seed: int, probes: int) -> Array:
    """Right-hand sides (n_vertices, probes) with covariance A, at most 64; the seed has 64 bits."""
    b = np.empty((grid.n_vertices, probes), weight.dtype)
    grid.draw_probes(weight, smoothness, seed, b, get_num_threads())
    return b


def with_data(grid: Grid, weight: Array) -> NDArray[np.bool_]:
    """Whether each vertex is connected to one with a weight above 0."""
    out = np.empty(grid.n_vertices, np.bool_)
    grid.with_data(weight, out)
    return out


def solver(grid: Grid, dtype: np.dtype[Any], preconditioner: str) -> Solver:
    """Memory and whatever else solves on one grid share; not for two threads at once."""
    kind = _core.Solver32 if dtype == np.float32 else _core.Solver64
    return kind(grid, preconditioner, get_num_threads())


def was_with_data(solver: Solver, n_vertices: int) -> NDArray[np.bool_]:
    """`with_data` of the solver's last problem, which it has found."""
    out = np.empty(n_vertices, np.bool_)
    solver.with_data(out)
    return out


class Outcome(NamedTuple):
    """How PCG went."""

    residuals: list[float]
    """The error estimate after each step."""
    converged: bool
    """Whether all channels were finished in the end."""
    moved: float
    """At most how far x went, RMS over the pixels, relative to the scale."""


def pcg(
    solver: Solver,
    weight: Array,
    weighted: Array,
    x: Array,
    scale: Array,
    *,
    fill: bool,
    smoothness: float,
    least_steps: int,
    most_steps: int,
    tolerance: float,
    of_movement: float,
    callback: Callable[[int, float], Any] | None,
) -> Outcome:
    """Improve x in place, until its error is `tolerance` or that part of the way from the start.

    Parts of the grid without data get the pyramid start if `fill`, else they keep x.
    """
    return Outcome(
        *solver.solve(
            weight,
            weighted,
            x,
            scale.tolist(),
            fill,
            smoothness,
            least_steps,
            most_steps,
            tolerance,
            of_movement,
            callback,
        )
    )


PixelGraph = _core.PixelGraph32 | _core.PixelGraph64


def pixel_graph(
    reference: Array, dtype: np.dtype[Any], smoothness: float, sigma: float
) -> PixelGraph:
    """The graph of an (H, W, C) reference's pixels, each joined to its eight neighbours."""
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
    """Smooth an (H, W) map in place on the graph, near to a target and to block means."""
    if low is not None and low_weight is not None:
        low, low_weight = (part.astype(z.dtype, copy=False) for part in (low, low_weight))
    threads = get_num_threads()
    graph.polish(z, anchor, target, weight, low, low_weight, scale, rounds, steps, threads)
    return z


def block_means(pixels: Array, shape: tuple[int, ...]) -> Array:
    """Means of an (H, W) map over blocks, as many as `shape` says along each axis."""
    means = np.empty(shape, pixels.dtype)
    _core.block_means(pixels, means, get_num_threads())
    return means


def spread_blocks(values: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of `block_means`: to each pixel its part of its block's value."""
    pixels = np.empty(shape, values.dtype)
    _core.spread_blocks(values, pixels, get_num_threads())
    return pixels


class Filtered(NamedTuple):
    """A filtered image, and what was found in it."""

    pixels: Array
    known: bool
    """Whether any pixel has data; if not, there is no result."""
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

    Neighbours p, q share exp(-(step + level * sum_c |I_c(p) - I_c(q)|)) in the first pass, with
    `scale` = (step, level), and the square of that in each following one.
    """
    kind = _core.DomainTransform64 if precise else _core.DomainTransform32
    threads = get_num_threads()
    out = np.empty_like(image)
    core = kind.of(reference, *scale, threads)
    return Filtered(out, *core.filter(image, mass, iterations, out, threads))


def visible(
    claim: Array, surface: Array, trusted: NDArray[np.bool_], tolerance: float
) -> NDArray[np.bool_]:
    """Whether the right view sees a left view's pixels at the disparities `claim`, float32.

    They must lie inside it, and no trusted pixel of the map `surface` on the same column there may
    have a disparity larger by more than the tolerance.
    """
    out = np.empty(claim.shape, np.bool_)
    _core.visible(claim, surface, trusted, tolerance, out, get_num_threads())
    return out


def find_regions(
    values: Array, mask: NDArray[np.bool_], tolerance: float
) -> tuple[NDArray[np.int32], int]:
    """Label the pixels of a mask, from 1, by connected region of about the same float32 value.

    Returns the labels, 0 outside the mask, and the number of regions.
    """
    labels = np.empty(values.shape, np.int32)
    return labels, _core.find_regions(values, mask, tolerance, labels)
