"""The domain transform: fast edge-aware smoothing in pixel space."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]

_NATIVE = (np.dtype(np.uint8), np.dtype(np.uint16))
"""Integers that the core reads and writes itself."""
MOST_PASSES = 64
"""Weights squared this often are 0 or 1: further passes change nothing."""


def domain_transform(
    image: ArrayLike,
    reference: ArrayLike,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int = 3,
    *,
    weights: ArrayLike | None = None,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Smooth an image without crossing the edges of a reference.

    The recursive filter of Gastal & Oliveira, "Domain Transform for Edge-Aware Image and Video
    Processing" (2011). Neighbours p, q lie ``d = 1 + sigma_xy / sigma_rgb * sum_c |I_c(p) -
    I_c(q)|`` apart. Pass i of N filters the rows, then the columns, each forward, then backward,
    by ``F_p += a^d (F_q - F_p)`` with ``a = exp(-sqrt(2) / sigma_i)`` and ``sigma_i = sigma_xy
    sqrt(3) 2^(N - i) / sqrt(4^N - 1)``. Constants stay exactly what they are.

    Parameters
    ----------
    image : (H, W) or (H, W, K) array
        What to smooth. A pixel with a value that is not finite counts as unknown.
    reference : (H, W) or (H, W, C) array
        Whose edges to keep, of at most 3 channels: uint8, uint16 or floating point, with white at
        255, 65535 or 1.
    sigma_xy : float
        Standard deviation of the filter in pixels, where the reference is flat.
    sigma_rgb : float
        In 8-bit grey levels, summed over the channels; a larger difference is an edge.
    iterations : int
        Number of passes. Fewer leave streaks, more than three change little.
    weights : (H, W) array, optional
        How much each pixel counts, 0 for unknown; 1 everywhere if left out. The result is then the
        filtered weighted image divided by the filtered weights.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.
    dtype : dtype, optional
        The result's, if not the image's. Integer results are rounded.

    Returns
    -------
    array
        Of the image's shape, finite everywhere. A pixel so far from any known one that its weight
        vanishes in floating point takes over what the filter last passed.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.repeat(np.uint8([[20, 20, 20, 200, 200, 200]]), 4, axis=0)
    >>> noisy = photo + np.tile([[4.0, -4.0], [-4.0, 4.0]], (2, 3))
    >>> bilateral.domain_transform(noisy, photo, sigma_xy=2, sigma_rgb=8)[0].round(1).tolist()
    [21.0, 20.6, 20.8, 199.0, 199.4, 199.2]
    """
    guide = validation.reference(reference, reference_max, channels=(1, 2, 3))
    height, width, _ = guide.pixels.shape
    wanted = validation.target(image, (height, width), dtype, name="image", native=_NATIVE)
    sigma_xy = validation.positive("sigma_xy", sigma_xy)
    sigma_rgb = validation.positive("sigma_rgb", sigma_rgb)
    iterations = validation.count("iterations", iterations, 1)
    precise = wanted.values.dtype == np.float64
    real = np.float64 if precise else np.float32
    mass = validation.normalized_weights(weights, (height, width), np.dtype(real))
    scale = first_scale(sigma_xy, sigma_rgb * (guide.highest / 255), iterations)
    passes = min(iterations, MOST_PASSES)
    try:
        found = cpu.domain_transform(wanted.values, mass, guide.pixels, scale, passes, precise)
        if found.large:
            small = wanted.values / 4
            found = cpu.domain_transform(small, mass, guide.pixels, scale, passes, precise)
            most = float(np.finfo(real).max) / 4
            found = found._replace(pixels=np.clip(found.pixels, -most, most) * 4)
    except ValueError:
        validation.finite_values("reference", guide.pixels)
        raise
    validation.some_weight(found.known)
    return validation.as_dtype(found.pixels.reshape(wanted.shape), wanted.dtype)


def first_scale(sigma_xy: float, sigma_levels: float, iterations: int) -> tuple[float, float]:
    """-log of the first pass's weight, per pixel and per level of difference."""
    # sigma_1 / sigma_xy, written so that no number of iterations overflows
    first = math.sqrt(3) / 2 / math.sqrt(1 - 4.0**-iterations)
    across = math.sqrt(2) / first
    return across / sigma_xy, across / max(sigma_levels, 1e-300)
