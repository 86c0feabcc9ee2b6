"""Many channels through few (supplement, section "Multiple Output Channels").

All channels share the matrix, so if the right-hand sides are B = C R with few columns in C, then
A^-1 B = (A^-1 C) R. Class probabilities are nearly of such a form: most classes are absent.

The paper factors B by a pivoted QR. Here the factors come from the channels' covariance:

- A constant is its own solution, so each channel's mean is taken out first and costs nothing.
- Rows are scaled such that a vertex counts by its confidence, as its pixels would together, and
  not by the square of it.
- The covariance's eigenvectors leave the least error for a given rank. A QR's columns do not, and
  it takes longer than all the channels' solves: the matrix of channels is small, B is not.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.numerics.system import System, values

Array = NDArray[Any]


class Reduced(NamedTuple):
    """A system with fewer channels, and how to get the others back."""

    system: System
    mean: Array
    """Per channel."""
    basis: Array
    """Orthonormal rows, one per channel of the reduced system."""
    unit: Array | None
    """What 1 means in the full system, per channel, relative to the largest; None: the same."""

    def project(self, y: Array) -> Array:
        """The reduced system's channels of the full one's."""
        common = y if self.unit is None else y * self.unit
        return cpu.project(np.ones(len(y), y.dtype), common, self.mean, self.basis)

    def expand(self, y: Array) -> Array:
        """All channels of a solution of the reduced system, in the target's own unit."""
        return values(self.system, cpu.expand(y, self.mean, self.basis))


def reduce(system: System, tolerance: float) -> Reduced | None:
    """Leave out what makes less than `tolerance` of the target's variance; None if nothing does.

    The variance is summed over the channels and, by confidence, over the pixels, so the channels
    should be in one unit.
    """
    weight, weighted, scale, unit = system.weight, system.weighted, system.scale, None
    largest = None if system.unit is None else system.unit.max(keepdims=True)
    if system.unit is not None:
        unit = system.unit / largest
        weighted, scale = weighted * unit, scale * unit
    mean, covariance = cpu.covariance(weight, weighted)
    basis = leading(covariance, tolerance)
    if basis is None:
        return None
    basis = basis.astype(weight.dtype)
    mean = mean.astype(weight.dtype)
    few = cpu.project(weight, weighted, mean, basis)
    # Errors count relative to the widest of the channels that a reduced one takes part in.
    reduced = System(weight, few, system.smoothness, np.full(len(basis), scale.max()), largest)
    return Reduced(reduced, mean, basis, unit)


def leading(covariance: Array, tolerance: float) -> Array | None:
    """The fewest directions, as rows, that leave out no more than this part of the variance.

    None if these are too many to be worth it.
    """
    mass, vectors = np.linalg.eigh(covariance)
    # What is left out by keeping all but the first, the first two, ... (eigh sorts upwards).
    left_out = np.cumsum(np.maximum(mass, 0.0))
    dropped = int(np.searchsorted(left_out, tolerance * left_out[-1], side="right"))
    rank = max(mass.size - dropped, 1)
    if not pays(mass.size, rank):
        return None
    return np.ascontiguousarray(vectors[:, : -rank - 1 : -1].T)


def pays(channels: int, rank: int) -> bool:
    """Whether solving fewer channels makes up for finding and expanding them.

    Both cost about as much as solving one channel (docs/performance.md).
    """
    return rank + 1 < channels
