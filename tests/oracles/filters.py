"""Oracle of the domain transform: plain NumPy in float64, slow and simple."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Image = npt.NDArray[Any]

WHITE = {"uint8": 255, "uint16": 65535, "float32": 1, "float64": 1}


def domain_transform(
    image: Image,
    reference: Image,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int = 3,
    weights: Image | None = None,
) -> tuple[Array, Array]:
    """Gastal & Oliveira 2011, section 5: DT(w v) / DT(w), (H, W, K), and DT(w), (H, W).

    Pixels that are not finite in some channel have w = 0.
    """
    height, width = image.shape[:2]
    v = image.astype(np.float64).reshape(height, width, -1)
    known = np.isfinite(v).all(axis=2)
    w = np.where(known, 1.0 if weights is None else weights, 0.0)
    v = np.where(known[..., np.newaxis], v, 0)
    levels = reference.astype(np.float64).reshape(height, width, -1)
    levels = levels * 255 / WHITE[reference.dtype.name]
    F = np.dstack([w[..., np.newaxis] * v, w])
    for i in range(1, iterations + 1):
        sigma = sigma_xy * np.sqrt(3) * 2.0 ** (iterations - i) / np.sqrt(4.0**iterations - 1)
        a = np.exp(-np.sqrt(2) / sigma)
        for axis in (1, 0):
            step = np.abs(np.diff(levels, axis=axis)).sum(axis=2)
            F = _both_ways(F, a ** (1 + sigma_xy / sigma_rgb * step), axis)
    with np.errstate(divide="ignore", invalid="ignore"):  # pixels that no weight reaches
        return F[..., :-1] / F[..., -1:], F[..., -1]


def _both_ways(F: Array, w: Array, axis: int) -> Array:
    """F[i] += w[i] (F[i - 1] - F[i]), then the same backward; w[i - 1] lies between the two."""
    F = np.moveaxis(F, axis, 0).copy()
    w = np.moveaxis(w, axis, 0)[..., np.newaxis]
    for i in range(1, len(F)):
        F[i] += w[i - 1] * (F[i - 1] - F[i])
    for i in range(len(F) - 2, -1, -1):
        F[i] += w[i] * (F[i + 1] - F[i])
    return np.moveaxis(F, 0, axis)
