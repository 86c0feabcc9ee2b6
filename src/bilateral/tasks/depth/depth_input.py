"""Check a depth map and bring it to the form that the recipes use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.tasks.depth.noise import Noise, estimate_noise

Array = NDArray[Any]

_LEAST_NOISE = 1e-6
"""Noise of a map whose median is 0."""


class DepthInput(NamedTuple):
    """A checked depth map."""

    z: NDArray[np.float32]
    """Depths; NaN where unknown."""
    trust: NDArray[np.float32] | None
    """Weights up to 1; None where no confidence was given."""
    shape: tuple[int, ...]
    """Of the result."""
    dtype: np.dtype[Any]
    """Of the result."""

    @property
    def has_data(self) -> bool:
        """Whether any pixel is known."""
        return bool(np.isfinite(self.z).any())

    def noise(self) -> Noise:
        """Estimate the noise; above 0 even for a map of zeros."""
        noise = estimate_noise(self.z)
        return noise if noise.a > 0 else Noise(_LEAST_NOISE, 0.0)


def depth_input(
    depth: ArrayLike,
    shape: tuple[int, ...],
    confidence: ArrayLike | None,
    mask: ArrayLike | None,
    invalid: tuple[float, ...],
    dtype: DTypeLike | None,
    name: str = "depth",
) -> DepthInput:
    """Check a map of the photograph's `shape`; `invalid` values are unknown."""
    checked = validation.depth_target(depth, shape, dtype, name)
    values = checked.values[..., 0]
    known = np.isfinite(values)
    for value in invalid:
        known &= values != value
    if mask is not None:
        known &= validation.mask("mask", mask, shape)
    trust = None
    if confidence is not None:
        weights = validation.pixel_weights("confidence", confidence, shape, np.dtype(np.float64))
        trust = (weights / (float(weights.max()) or 1.0)).astype(np.float32)
        known &= trust > 0
    with np.errstate(over="ignore"):
        z = np.where(known, values, np.nan).astype(np.float32)
    z[np.isinf(z)] = np.nan  # too large for float32
    return DepthInput(z, trust, checked.shape, checked.dtype)
