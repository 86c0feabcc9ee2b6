"""Domain transform: fast edge-aware smoothing of pixels (Gastal & Oliveira 2011)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]

_NATIVE = (np.dtype(np.uint8), np.dtype(np.uint16))
"""Integer dtypes that the core reads and writes without a conversion."""
MAX_PASSES = 64
"""Each pass squares the weights. After this many passes they are 0 or 1, and nothing changes."""


@validation.keywords(photo="reference", target="image", depth="image")
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
    sqrt(3) 2^(N - i) / sqrt(4^N - 1)``. The filter preserves constants exactly.

    Parameters
    ----------
    image : (H, W) or (H, W, K) array
        The image to smooth. A pixel with a value that is not finite is unknown.
    reference : (H, W) or (H, W, C) array
        Guide image of at most 3 channels, whose edges the result keeps: uint8, uint16 or floating
        point, with white at 255, 65535 or 1.
    sigma_xy : float
        Standard deviation of the filter in pixels, where the reference is flat.
    sigma_rgb : float
        Contrast of an edge in 8-bit grey levels, summed over the channels: the filter does not
        cross larger differences of the reference.
    iterations : int
        Number of passes. Fewer than three leave streaks, more change little.
    weights : (H, W) array, optional
        Weight of each pixel, 0 for unknown. Default: 1 everywhere. The result is the filtered
        weighted image divided by the filtered weights.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the image. Integer results are rounded.

    Returns
    -------
    array
        Of the image's shape, finite everywhere. A pixel so far from any known pixel that its
        weight vanishes in floating point gets the last value that the filter passed.

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
    checked = validation.target(image, (height, width), dtype, name="image", native=_NATIVE)
    sigma_xy = validation.positive("sigma_xy", sigma_xy)
    sigma_rgb = validation.positive("sigma_rgb", sigma_rgb)
    iterations = validation.count("iterations", iterations, 1)
    precise = checked.values.dtype == np.float64
    real = np.float64 if precise else np.float32
    mass = validation.normalized_weights(weights, (height, width), np.dtype(real))
    scale = first_scale(sigma_xy, sigma_rgb * (guide.highest / 255), iterations)
    passes = min(iterations, MAX_PASSES)
    try:
        filtered = cpu.domain_transform(checked.values, mass, guide.pixels, scale, passes, precise)
        if filtered.large:  # differences of values overflow: divide the values by 4
            quarter = checked.values / 4
            filtered = cpu.domain_transform(quarter, mass, guide.pixels, scale, passes, precise)
            limit = float(np.finfo(real).max) / 4
            filtered = filtered._replace(pixels=np.clip(filtered.pixels, -limit, limit) * 4)
    except ValueError:
        validation.finite_values("reference", guide.pixels)
        raise
    validation.some_weight(filtered.known)
    return validation.as_dtype(filtered.pixels.reshape(checked.shape), checked.dtype)


def first_scale(sigma_xy: float, sigma_levels: float, iterations: int) -> tuple[float, float]:
    """-log of the first pass's weight, per pixel and per unit of the reference's difference."""
    # sigma_1 / sigma_xy, in a form that overflows for no number of iterations
    first = math.sqrt(3) / 2 / math.sqrt(1 - 4.0**-iterations)
    across = math.sqrt(2) / first
    return across / sigma_xy, across / max(sigma_levels, 1e-300)
