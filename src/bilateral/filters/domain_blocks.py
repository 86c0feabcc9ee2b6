"""Domain transform in blocks: passes over blocks of whole rows, then of whole columns.

The recursion needs whole rows or whole columns, nothing else. Blocks that begin at a multiple of
`ALIGNMENT` give the bits of the filter in memory: its vectors then hold the same pixels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]

ALIGNMENT = 64
"""Blocks begin at a multiple of this many rows or columns."""


class DomainStats(NamedTuple):
    """What the filter must know of all pixels before it starts."""

    unknown: bool = False
    """Some value is not finite."""
    large: bool = False
    """Differences of values may overflow."""
    largest_weight: float = 0.0
    known: bool = False
    """Some pixel is finite in all channels and has a weight above 0."""

    def merge(self, other: DomainStats) -> DomainStats:
        """Return the statistics of the pixels of both."""
        return DomainStats(
            self.unknown or other.unknown,
            self.large or other.large,
            max(self.largest_weight, other.largest_weight),
            self.known or other.known,
        )


def _values(image: Array, dtype: DTypeLike | None) -> Array:
    """Return an (h, w, K) block in the dtype of the computation."""
    shape = image.shape[0], image.shape[1]
    return validation.target(image, shape, dtype, name="image").values


def inspect_block(image: Array, weights: Array | None, dtype: DTypeLike | None) -> DomainStats:
    """Return the statistics of one block."""
    values = _values(image, dtype)
    finite = np.isfinite(values)
    limit = np.finfo(values.dtype).max / 4
    large = bool((np.abs(values, where=finite, out=np.zeros_like(values)) > limit).any())
    known, largest = finite.all(axis=-1), 1.0
    if weights is not None:
        mass = validation.pixel_weights("weights", weights, known.shape, np.dtype(np.float64))
        known, largest = known & (mass > 0), float(mass.max())
    return DomainStats(not bool(finite.all()), large, largest, bool(known.any()))


def load_block(
    image: Array, weights: Array | None, stats: DomainStats, dtype: DTypeLike | None
) -> Array:
    """Return the values of a block, (h, w, K + 1): the last channel is the mass of the pixels."""
    if weights is not None and stats.largest_weight == 0:
        raise ValueError("weights: expected a number above 0 somewhere, got 0 everywhere.")
    validation.some_weight(stats.known)
    values = _values(image, dtype)
    finite = np.isfinite(values).all(axis=-1)
    packed = np.empty((*finite.shape, values.shape[-1] + 1), values.dtype)
    packed[..., :-1] = values / 4 if stats.large else values
    packed[..., -1] = 1
    if weights is not None:
        mass = validation.pixel_weights("weights", weights, finite.shape, np.dtype(np.float64))
        packed[..., -1] = mass / stats.largest_weight
    if weights is not None or stats.unknown:
        packed[..., -1][~finite] = 0
        packed[packed[..., -1] == 0] = 0
    return packed


def filter_block(
    packed: Array,
    reference: Array,
    scale: tuple[float, float],
    pass_: int,
    *,
    rows: bool,
    has_mass: bool,
    reference_max: float | None,
) -> Array:
    """Filter the rows or the columns of a block of whole rows or columns in one pass."""
    guide = validation.reference(reference, reference_max, channels=(1, 2, 3))
    values = np.ascontiguousarray(packed[..., :-1])
    mass = np.ascontiguousarray(packed[..., -1])
    try:
        cpu.domain_pass(values, mass if has_mass else None, guide.pixels, scale, pass_, rows)
    except ValueError:
        validation.finite_values("reference", guide.pixels)
        raise
    return np.concatenate([values, mass[..., np.newaxis]], axis=-1)


def finish_block(packed: Array, stats: DomainStats, dtype: np.dtype[Any], n_axes: int) -> Array:
    """Return the result of a block in the dtype and the shape of the image."""
    values = packed[..., :-1]
    if stats.large:
        limit = float(np.finfo(values.dtype).max) / 4
        values = np.clip(values, -limit, limit) * 4
    pixels = values[..., 0] if n_axes == 2 else values
    return validation.as_dtype(np.ascontiguousarray(pixels), dtype)
