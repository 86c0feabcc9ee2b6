"""Solve many channels through few combinations (supplement, "Multiple Output Channels").

All channels share the matrix, so if the right-hand sides are B = C R with few columns in C, then
A^-1 B = (A^-1 C) R. Class probabilities nearly have that form, because most classes are absent.

The paper factors B by a pivoted QR. This module uses the covariance of the channels instead:

- A constant is its own solution, so each channel's mean is subtracted first and costs nothing.
- Rows are scaled so that a vertex counts by its confidence, as its pixels together would, rather
  than by its square.
- The eigenvectors of the covariance leave the least error for a given rank. The columns of a QR do
  not, and a QR of B takes longer than solving all channels: the covariance is small, B is not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.numerics.system import System, values

Array = NDArray[Any]


class Reduced(NamedTuple):
    """A system with fewer channels, and how to restore the others."""

    system: System
    mean: Array
    """Per channel."""
    basis: Array
    """Orthonormal rows, one per channel of the reduced system."""
    unit: Array | None
    """Unit of each channel of the full system, relative to the largest; None: all the same."""

    def project(self, y: Array) -> Array:
        """Convert channels of the full system to channels of the reduced one."""
        common = y if self.unit is None else y * self.unit
        return cpu.project(np.ones(len(y), y.dtype), common, self.mean, self.basis)

    def expand(self, y: Array) -> Array:
        """Convert a solution of the reduced system to all channels, in the target's own unit."""
        return values(self.system, cpu.expand(y, self.mean, self.basis))


def reduce(system: System, tolerance: float) -> Reduced | None:
    """Drop directions that hold less than `tolerance` of the target's variance.

    The variance is summed over the channels and, weighted by confidence, over the pixels, so all
    channels should have the same unit. Returns None if dropping does not pay.
    """
    weight, weighted, scale, unit = system.weight, system.weighted, system.scale, None
    largest = None if system.unit is None else system.unit.max(keepdims=True)
    if system.unit is not None:
        unit = system.unit / largest
        weighted, scale = weighted * unit, scale * unit
    mean, covariance = cpu.covariance(weight, weighted)
    basis = leading_directions(covariance, tolerance)
    if basis is None:
        return None
    basis = basis.astype(weight.dtype)
    mean = mean.astype(weight.dtype)
    projected = cpu.project(weight, weighted, mean, basis)
    # Errors are relative to the widest channel that contributes to a reduced one.
    reduced = System(
        weight, projected, system.smoothness, np.full(len(basis), scale.max()), unit=largest
    )
    return Reduced(reduced, mean, basis, unit)


def leading_directions(covariance: Array, tolerance: float) -> Array | None:
    """Return the fewest directions, as rows, that leave out at most this fraction of variance.

    None if so many directions are needed that reducing does not pay.
    """
    variances, vectors = np.linalg.eigh(covariance)
    # Variance left out by dropping the first direction, the first two, ... (eigh sorts upwards).
    left_out = np.cumsum(np.maximum(variances, 0.0))
    dropped = int(np.searchsorted(left_out, tolerance * left_out[-1], side="right"))
    rank = max(variances.size - dropped, 1)
    if not reduction_pays(variances.size, rank):
        return None
    return np.ascontiguousarray(vectors[:, : -rank - 1 : -1].T)


def reduction_pays(channels: int, rank: int) -> bool:
    """Whether solving fewer channels saves more than finding and expanding them costs.

    Both together cost about as much as solving one channel (docs/notes/supplement.md).
    """
    return rank + 1 < channels
