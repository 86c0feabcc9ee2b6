"""Measure where a photograph helps to enlarge a map, from the map itself.

The map is halved, enlarged again with the equally reduced photograph, and compared with what was
there. Where bicubic enlargement predicts the map better, the photograph has little in common with
it, and the bicubic map replaces the guided one. In a noisy map, what the guided map leaves of the
data must look like noise. A photograph of nothing but noise never helps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters import resize
from bilateral.tasks.superres import policy
from bilateral.tasks.superres.block_fit import LowResolution, noisiness, reduce_map
from bilateral.tasks.superres.noise import MapNoise

Array = NDArray[Any]
Enlarge = Callable[[LowResolution, Array], Array]


def blend_with_bicubic(x: Array, low: LowResolution, pixels: Array, enlarge: Enlarge) -> Array:
    """Replace the guided map x by the bicubic one where the photograph does not help.

    Parameters
    ----------
    x : (H, W) array
        The map, enlarged with the photograph.
    low : LowResolution
    pixels : (H, W, C) array
        The photograph.
    enlarge : function of (low, pixels)
        Enlarges a map with a photograph.
    """
    if min(low.values.shape) < policy.LEAST_SIZE:
        return x
    trust = _trust(low, reduce_map(pixels, low.values.shape), x.size / low.values.size, enlarge)
    trust = trust * _trust_of_noise(x, low, pixels)
    if trust.min() >= 1:
        return x
    bicubic = _bicubic(low, x.shape)
    share = np.clip(resize.bilinear(trust, x.shape), 0, 1).astype(x.dtype)
    blend: Array = bicubic + share * (x - bicubic)
    return blend


def _bicubic(low: LowResolution, shape: tuple[int, ...]) -> Array:
    """Enlarge without the photograph. Without noise, the block means should match the data."""
    x = resize.bicubic(low.values, shape)
    error = low.values - reduce_map(x, (low.values.shape[0], low.values.shape[1]))
    correction = resize.bicubic(error, shape) * (1 - noisiness(low.noise))
    enlarged: Array = x + correction.astype(x.dtype)
    return enlarged


def _trust(low: LowResolution, pixels: Array, area: float, enlarge: Enlarge) -> Array:
    """Return the trust in the photograph, 0 to 1, for each tile of the map."""
    values, known = low.values, low.weights > 0
    half = (values.shape[0] // 2, values.shape[1] // 2)
    share_known = reduce_map(known.astype(values.dtype), half)
    reduced = reduce_map(np.where(known, values, 0), half) / np.maximum(
        share_known, policy.LEAST_KNOWN
    )
    whole = share_known > policy.MOST_KNOWN
    if not whole.any():
        return np.ones((1, 1), values.dtype)
    reduced = np.where(whole, reduced, reduce_map(values, half)).astype(values.dtype)
    halved = LowResolution(reduced, whole.astype(values.dtype), MapNoise.of(reduced, whole))
    guided = enlarge(halved, pixels)
    bicubic = _bicubic(halved, values.shape)
    # least squares: values = bicubic + share * (guided - bicubic)
    product, square = ((values - bicubic) * (guided - bicubic), (guided - bicubic) ** 2)
    tiles = policy.tiles(values.shape)
    product, square = (reduce_map(np.where(known, term, 0), tiles) for term in (product, square))
    prior = policy.WHOLE_MAP * square.mean()
    noise = policy.TRUST_NOISE * low.noise.level**2
    share_of_map = product.sum() / max(square.sum(), np.finfo(values.dtype).tiny)
    share = (product + prior * share_of_map + noise) / (square + prior + noise)
    middle = policy.trust_middle(area)
    trust: Array = np.clip((share - middle) / policy.TRUST_WIDTH + 0.5, 0, 1).astype(values.dtype)
    return trust


def _trust_of_noise(x: Array, low: LowResolution, pixels: Array) -> Array:
    """Return the trust in the photograph of a noisy map for each tile; 1 without noise.

    Noise of neighbours is independent, so the mean product of their residuals is the power of what
    the map x gets wrong. The trust falls with this power, relative to the variance of the noise,
    which bicubic enlargement keeps.
    """
    values, known = low.values, low.weights > 0
    tiles = policy.tiles(values.shape)
    noisy = policy.residual_weight(noisiness(low.noise))
    if noisy == 0:
        return np.ones(tiles, values.dtype)
    residual = values - reduce_map(x, (values.shape[0], values.shape[1]))
    residual = np.where(known, residual / low.noise.levels(values), 0).astype(values.dtype)
    # Products across the border are those of strangers, with a mean of 0.
    products = [residual * np.roll(residual, -1, axis) for axis in (0, 1)]
    power = sum(reduce_map(product, tiles) for product in products) / 2
    white = np.clip(
        (policy.STRUCTURE_POWER - power) / (policy.STRUCTURE_POWER - policy.WHITE_POWER), 0, 1
    )
    return np.asarray(1 - noisy * (1 - white * _coherence(pixels)), values.dtype)


def _coherence(pixels: Array) -> float:
    """Return 0 for a photograph of noise alone, in which no two neighbours are alike, else 1."""
    p = pixels.astype(np.float32)
    variance = float(p.var(axis=(0, 1), dtype=np.float64).sum())
    steps = [np.square(np.diff(p, axis=axis)).sum(axis=2).mean(dtype=np.float64) for axis in (0, 1)]
    return policy.coherence(variance, float(np.mean(steps)))
