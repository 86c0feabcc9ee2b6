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


LEAST_WEIGHT = 1e-9
"""Pixels with less confidence than this part of the highest are unknown."""


class CheckedDepth(NamedTuple):
    """A depth map whose shape and options are right."""

    values: Array
    """(H, W) floating point; anything where unknown."""
    known: NDArray[np.bool_]
    weights: NDArray[np.float32] | None
    """Confidences up to 1; None if none were given."""
    shape: tuple[int, ...]
    """Of the result."""
    dtype: np.dtype[Any]
    """Of the result."""

    def trust(self) -> NDArray[np.float32]:
        """Return the weight of each pixel: at most 1, and 0 where it is unknown."""
        if self.weights is None:
            return self.known.astype(np.float32)
        return np.where(self.known, self.weights, np.float32(0))


def check_depth(
    depth: ArrayLike,
    shape: tuple[int, ...],
    confidence: ArrayLike | None,
    mask: ArrayLike | None,
    invalid: tuple[float, ...],
    dtype: DTypeLike | None,
    name: str = "depth",
) -> CheckedDepth:
    """Check a map of the photograph's `shape`; `invalid` values are unknown."""
    checked = validation.depth_target(depth, shape, dtype, name)
    values = checked.values[..., 0]
    known = np.isfinite(values)
    for value in invalid:
        known &= values != value
    if mask is not None:
        known &= validation.mask("mask", mask, shape)
    weights = None
    if confidence is not None:
        given = validation.pixel_weights("confidence", confidence, shape, np.dtype(np.float64))
        weights = (given / (float(given.max()) or 1.0)).astype(np.float32)
        known &= weights > LEAST_WEIGHT
    return CheckedDepth(values, known, weights, checked.shape, checked.dtype)


class DepthInput(NamedTuple):
    """A checked depth map in the form of the recipe for depth cameras."""

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
    """Check a map of the photograph's `shape`; values too large for float32 are unknown."""
    checked = check_depth(depth, shape, confidence, mask, invalid, dtype, name)
    with np.errstate(over="ignore"):
        z = np.where(checked.known, checked.values, np.nan).astype(np.float32)
    z[np.isinf(z)] = np.nan
    return DepthInput(z, checked.weights, checked.shape, checked.dtype)
