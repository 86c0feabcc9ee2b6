"""Noise of a depth map: estimate its size, which grows with the square of the depth."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_BINS = 12
"""Bins of depth with equal counts; the model has two parameters."""
_LEAST_COUNT = 50
"""A bin with fewer second differences is left out."""
_QUANTILES = {0.3: 0.3853, 0.6: 0.8416}
"""Edges are among the large differences, so low quantiles measure the noise. The values are those
of |N(0, 1)|."""
_ROUNDED = 0.1
"""Maps of integers have more differences of 0 than this, so that the lower quantile is too low."""
_MOST_EQUAL = 0.5
"""With still more, both are too low."""
_FLOAT_NOISE = 1e-6
"""Differences below this part of the depth are errors of float32."""
_LEAST_NOISE = 1e-4
"""Least noise relative to the median depth: maps of integers and clean maps."""
_SAMPLES = 8_000
"""Rows are skipped beyond about so many second differences of each kind."""
_ROUNDS = 5
"""Reweighted fits: bins full of edges count less in each."""


class Noise(NamedTuple):
    """Standard deviation of a map's noise, a + b z^2 at the depth z."""

    a: float
    b: float

    def __call__(self, z: Array) -> Array:
        """Return the noise at depths."""
        return self.a + self.b * np.square(z)

    def units(self, z: Array) -> Array:
        """Return the integral of dz / noise: differences in units of the noise; in float32."""
        ratio = np.sqrt(self.b / self.a)
        w = z / self.a if ratio == 0 else np.arctan(z * np.float32(ratio)) / (self.a * ratio)
        return np.asarray(w, np.float32)


class Samples(NamedTuple):
    """The part of a map that its noise is estimated from, as arrays or tensors."""

    depths: Any
    """(N,)"""
    columns: Any
    """(H, n): some columns of the map."""
    rows: Any
    """(W, m): some rows of the map, as columns."""

    @classmethod
    def of(cls, z: Any) -> Samples:
        """Choose the samples of an (H, W) array or tensor."""
        height, width = z.shape
        step = max(1, height * width // _SAMPLES)
        return cls(z.reshape(-1)[::step], z[:, ::step], z.T[:, ::step])

    def suffice(self) -> bool:
        """Whether enough of the depths are known."""
        return int(np.count_nonzero(np.isfinite(self.depths))) >= _LEAST_COUNT


def estimate_noise(z: Array) -> Noise:
    """Estimate the noise of a map from its second differences in bins of depth.

    Along a thin structure they show the noise, across it they show edges, so the smaller ones count
    of those along rows and along columns.

    Parameters
    ----------
    z : (H, W) float32 array
        NaN where the depth is unknown; some pixel is known.
    """
    samples = Samples.of(z)
    return noise_of(samples if samples.suffice() else samples._replace(depths=z))


def noise_of(samples: Samples) -> Noise:
    """Estimate the noise of a map from samples; some depth is known."""
    every = samples.depths[np.isfinite(samples.depths)]
    least = _LEAST_NOISE * abs(float(np.median(every)))
    edges = np.quantile(every, np.linspace(0, 1, _BINS + 1))
    deviations = np.fmin(*(_deviations(*_second_differences(q), edges) for q in samples[1:]))
    measured = deviations > 0
    if np.count_nonzero(measured) < 2:
        return Noise(least, 0.0)
    centres = (edges[1:] + edges[:-1]) / 2
    a, b = _fit(centres[measured], deviations[measured])
    return Noise(max(a, least), b)


def _second_differences(z: Array) -> tuple[Array, Array]:
    """Depths, and second differences along columns there, in units of the noise of one pixel."""
    z = np.ascontiguousarray(z)
    depths, sizes = [], []
    for stride in (1, 2):
        d = np.abs(z[2 * stride :] - 2 * z[stride:-stride] + z[: -2 * stride]) / np.sqrt(6)
        middle = z[stride : z.shape[0] - stride]
        known = np.isfinite(d)
        depths.append(middle[known])
        sizes.append(np.where(d > _FLOAT_NOISE * np.abs(middle), d, 0)[known])
    return np.concatenate(depths), np.concatenate(sizes)


def _deviations(depths: Array, sizes: Array, edges: Array) -> Array:
    """Return the standard deviation in each bin, NaN if it has few differences."""
    order = np.argsort(depths)
    at = np.searchsorted(depths[order], edges)
    at[-1] = depths.size
    parts = [sizes[order[low:high]] for low, high in itertools.pairwise(at)]
    return np.array([_deviation(part) for part in parts])


def _deviation(sizes: Array) -> float:
    """Standard deviation of differences, NaN if few of them are known or different from 0."""
    if sizes.size < _LEAST_COUNT:
        return np.nan
    low, high = np.quantile(sizes, list(_QUANTILES)) / np.array(list(_QUANTILES.values()))
    equal = np.mean(sizes == 0)
    if equal > _MOST_EQUAL:
        return np.nan
    return float(high if equal > _ROUNDED else min(low, high))


def _fit(z: Array, s: Array) -> tuple[float, float]:
    """Fit s = a + b z^2 with a, b >= 0 to relative errors; too large s count less and less."""
    weight = 1 / s
    a = b = 0.0
    for _ in range(_ROUNDS):
        a, b = _least_squares(weight, weight * z * z, weight * s)
        model = a + b * z * z
        weight = 1 / s / (1 + 4 * np.square(np.maximum(s / model - 1, 0)))
    return a, b


def _least_squares(p: Array, q: Array, y: Array) -> tuple[float, float]:
    """Minimize |a p + b q - y| over a, b >= 0, for positive p, q and y."""
    pp, pq, qq, py, qy = (float(u @ v) for u, v in ((p, p), (p, q), (q, q), (p, y), (q, y)))
    det = pp * qq - pq * pq
    if det > 1e-12 * pp * qq:
        a, b = (py * qq - qy * pq) / det, (qy * pp - py * pq) / det
        if a >= 0 and b >= 0:
            return a, b
    only_a, only_b = py / pp, qy / qq
    if np.sum((only_a * p - y) ** 2) <= np.sum((only_b * q - y) ** 2):
        return only_a, 0.0
    return 0.0, only_b
