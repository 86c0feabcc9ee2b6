"""Filter pixels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
PixelGraph = _core.PixelGraph32 | _core.PixelGraph64

LARGEST_BLUR = 2048.0
"""Largest radius that `defocus` accepts, in pixels."""


def median(image: Array, size: int) -> Array:
    """Filter an (H, W, K) uint8, uint16 or float image by the median over size x size pixels."""
    out = np.empty_like(image)
    _core.median(image, out, size, get_num_threads())
    return out


def color_cells(
    image: NDArray[np.uint8],
    weights: NDArray[np.float64],
    shift: NDArray[np.float64],
    margin: NDArray[np.float64],
    gray: NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Compute ``trunc(image @ weights.T + shift)`` of (H, W, 3) colours, from 0 to 255.

    Also returns which pixels are within `margin` of another cell. Gray pixels are not: their cells
    come from `gray` (256, 3).
    """
    cells, near = np.empty_like(image), np.empty(image.shape[:2], np.bool_)
    _core.color_cells(image, weights.tolist(), shift.tolist(), margin.tolist(), gray, cells, near)
    return cells, near


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


def domain_pass(
    values: Array,
    mass: Array | None,
    reference: Array,
    scale: tuple[float, float],
    pass_: int,
    rows: bool,
) -> None:
    """Filter the rows or the columns of (H, W, K) values and their mass in place, in one pass."""
    kind = _core.DomainTransform64 if values.dtype == np.float64 else _core.DomainTransform32
    threads = get_num_threads()
    kind.of(reference, *scale, threads).filter_pass(rows, pass_, values, mass, threads)


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
