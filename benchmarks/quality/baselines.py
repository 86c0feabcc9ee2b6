"""Filters that the paper compares with and OpenCV 4.6 lacks, in plain NumPy and SciPy.

Photographs are uint8, maps (H, W) float32.
"""

from collections.abc import Callable

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import LinearOperator, cg, splu

from benchmarks.common import Array
from benchmarks.common.photos import nearest as nearest
from bilateral.filters import resize

_OFFSETS = [(y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]
# The constants of the authors' program: fraction of the variance, least weight, least variance.
_PART_OF_VARIANCE, _LEAST_WEIGHT, _LEAST_VARIANCE = 0.6, 0.01, 2e-6


def levin(luma: Array, chroma: Array, painted: Array) -> Array:
    """Spread strokes' chroma along luma from 0 to 1: Levin, Lischinski and Weiss, SIGGRAPH 2004.

    Unpainted chroma is the weighted mean of its eight neighbours', with weights that fall with the
    difference of luma, relative to its local deviation. The linear system is solved directly.
    """
    weights, neighbours = _affinities(luma)
    pixel = np.arange(luma.size)
    used = (neighbours >= 0) & ~painted.reshape(-1, 1)
    rows = np.broadcast_to(pixel[:, np.newaxis], used.shape)[used]
    values = np.concatenate([np.ones(luma.size), -weights[used]])
    places = np.concatenate([pixel, rows]), np.concatenate([pixel, neighbours[used]])
    A = csc_matrix((values, places), shape=(luma.size, luma.size))
    b = np.where(painted[..., np.newaxis], chroma, 0).reshape(luma.size, -1)
    # Every row is diagonally dominant and needs no pivoting, which would take minutes.
    options = {"diag_pivot_thresh": 0, "options": {"SymmetricMode": True}}
    return splu(A, permc_spec="MMD_AT_PLUS_A", **options).solve(b).reshape(chroma.shape)


def _affinities(luma: Array) -> tuple[Array, Array]:
    """Weights of the eight neighbours, which sum to 1, and their indices, -1 outside."""
    height, width = luma.shape
    padded = np.pad(luma.astype(np.float64), 1, constant_values=np.nan)
    numbers = np.pad(np.arange(luma.size).reshape(luma.shape), 1, constant_values=-1)
    window = [(slice(y, y + height), slice(x, x + width)) for y, x in _OFFSETS]
    near = np.stack([padded[part].ravel() for part in window], axis=1)
    neighbours = np.stack([numbers[part].ravel() for part in window], axis=1)
    centre = luma.astype(np.float64).reshape(-1, 1)
    variance = np.nanvar(np.hstack([near, centre]), axis=1)
    squares = np.square(near - centre)
    least = np.nanmin(squares, axis=1) / -np.log(_LEAST_WEIGHT)
    scale = np.maximum(np.maximum(_PART_OF_VARIANCE * variance, least), _LEAST_VARIANCE)
    weights = np.nan_to_num(np.exp(-squares / scale[:, np.newaxis]))
    return weights / weights.sum(axis=1, keepdims=True), neighbours


def fast_guided_filter(
    photo: Array, z: Array, radius: int, sigma: float, subsampling: int
) -> Array:
    """He & Sun 2015: a linear function of the colours in each window, fitted on a subsampled grid.

    The radius of the square windows is in pixels; sigma^2 regularizes, in grey levels.
    """
    step = np.s_[::subsampling, ::subsampling]
    guide, subsampled = photo[step].astype(np.float32), z[step]
    side = 2 * max(1, radius // subsampling) + 1

    def mean(values: Array) -> Array:
        return uniform_filter(values, (side, side, *[0] * (values.ndim - 2)), mode="reflect")

    guide_mean, z_mean = mean(guide), mean(subsampled)
    product = guide[..., :, np.newaxis] * guide[..., np.newaxis, :]
    outer = guide_mean[..., :, np.newaxis] * guide_mean[..., np.newaxis, :]
    variance = mean(product) - outer + sigma**2 * np.eye(3, dtype=np.float32)
    covariance = mean(guide * subsampled[..., np.newaxis]) - guide_mean * z_mean[..., np.newaxis]
    slope = np.linalg.solve(variance, covariance[..., np.newaxis])[..., 0]
    offset = z_mean - (slope * guide_mean).sum(axis=2)
    planes = mean(np.dstack([slope, offset]))
    large = resize.bilinear(planes, z.shape)
    return np.asarray((large[..., :3] * photo).sum(axis=2) + large[..., 3])


def joint_bilateral_upsampling(
    low: Array, photo: Array, sigma: float, sigma_rgb: float, radius: int
) -> Array:
    """Kopf et al. 2007, directly: weighted means of near low-resolution pixels of similar colour.

    Sigma and the radius of the window are in low-resolution pixels, sigma_rgb in grey levels.
    """
    shape = photo.shape[:2]
    position = [(np.arange(n) + 0.5) * m / n - 0.5 for n, m in zip(shape, low.shape, strict=True)]
    centre = [np.rint(at).astype(np.intp) for at in position]
    colours = photo.astype(np.float32)
    low_colours = colours[_middle(shape[0], low.shape[0])][:, _middle(shape[1], low.shape[1])]
    total, weights = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            near, at = [], []
            for axis, offset in enumerate((dy, dx)):
                index = centre[axis] + offset
                distance = (position[axis] - index) / sigma
                inside = (index >= 0) & (index < low.shape[axis])
                near.append(np.where(inside, np.exp(-0.5 * distance**2), 0).astype(np.float32))
                at.append(np.clip(index, 0, low.shape[axis] - 1))
            there = np.ix_(*at)
            difference = colours - low_colours[there]
            square = np.einsum("ijk,ijk->ij", difference, difference)
            # a pixel with no similar colour nearby takes the mean of its surroundings
            w = np.exp(square * np.float32(-0.5 / sigma_rgb**2)) + np.float32(1e-6)
            w *= near[0][:, np.newaxis] * near[1]
            total += w * low[there]
            weights += w
    return np.asarray(total / weights)


def _middle(n: int, m: int) -> Array:
    return np.minimum(((np.arange(m) + 0.5) * n / m).astype(np.intp), n - 1)


def weighted_least_squares(
    photo: Array, z: Array, smoothness: float, exponent: float = 2.0, steps: int = 120
) -> Array:
    """Farbman et al. 2008 on the graph of the pixels, by Jacobi-preconditioned CG.

    Minimizes sum (x - z)^2 + smoothness * sum |x_p - x_q|^2 / (|I_p - I_q|^exponent + 1)
    over neighbours p, q, with distances of colours in grey levels.
    """
    colours = photo.astype(np.float32)
    edges = [
        smoothness / (np.sqrt(np.square(np.diff(colours, axis=axis)).sum(axis=2)) ** exponent + 1)
        for axis in (0, 1)
    ]
    diagonal = np.ones_like(z)
    for part, edge in ((np.s_[1:], 0), (np.s_[:-1], 0), (np.s_[:, 1:], 1), (np.s_[:, :-1], 1)):
        diagonal[part] += edges[edge]

    def product(x: Array) -> Array:
        out = diagonal * x
        out[1:] -= edges[0] * x[:-1]
        out[:-1] -= edges[0] * x[1:]
        out[:, 1:] -= edges[1] * x[:, :-1]
        out[:, :-1] -= edges[1] * x[:, 1:]
        return out

    def operator(function: Callable[[Array], Array]) -> LinearOperator:
        call = lambda x: function(x.reshape(z.shape)).ravel()  # noqa: E731
        return LinearOperator((z.size, z.size), call, dtype=z.dtype)

    jacobi, options = operator(lambda r: r / diagonal), {"rtol": 1e-6, "maxiter": steps}
    return cg(operator(product), z.ravel(), z.ravel(), M=jacobi, **options)[0].reshape(z.shape)
