"""Measure the noise of a low-resolution map: `tasks.superres.noise` for tensors.

The device measures, and the host, which reads the numbers of several maps at once, applies the
rules.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.tasks.superres import policy

_SCALARS = 9
NUMBERS = _SCALARS + 2 * policy.BINS
"""Number of numbers of `measure`."""


class MapNoise(NamedTuple):
    """Noise and steepness of a map, as for arrays."""

    level: float
    slope: float
    roughness: float
    centres: tuple[float, ...]
    """Rising values; the last one is repeated if there are few residuals."""
    levels: tuple[float, ...]
    """The standard deviation of the noise at each of them."""

    @classmethod
    def of(cls, numbers: list[float]) -> MapNoise:
        """Apply the rules to the numbers of `measure`."""
        near, far, step, square, count, low, high, low_value, high_value = numbers[:_SCALARS]
        centres = numbers[_SCALARS : _SCALARS + policy.BINS]
        magnitudes = numbers[_SCALARS + policy.BINS :]
        gain = math.sqrt(policy.noise_share(near, far))
        level = policy.MEDIAN_LEVEL * near * gain
        least = policy.least_level(low, high)
        least_there = policy.least_level(low_value, high_value)
        levels = [max(policy.MEDIAN_LEVEL * gain * size, least_there) for size in magnitudes]
        if count == 0:
            levels = [max(level, least)] * policy.BINS
        return cls(
            max(level, least),
            policy.slope(step, level or least),
            math.sqrt(square / 2),
            tuple(centres),
            tuple(levels),
        )

    @property
    def noisiness(self) -> float:
        """1 for a noisy map, and less for one whose differences are mostly surface."""
        return policy.noisiness(self.level, self.roughness)

    @property
    def table(self) -> list[float]:
        """Centres and levels, one after another, as `levels_at` takes them."""
        return [*self.centres, *self.levels]


def levels_at(table: Tensor, values: Tensor) -> Tensor:
    """Return the standard deviation of the noise at pixels with these values.

    `table` (2 BINS,) is that of `MapNoise`, in float64.
    """
    centres, levels = table.view(2, policy.BINS)
    at = values.double()
    i = (torch.searchsorted(centres, at, right=True) - 1).clamp(0, policy.BINS - 2)
    low, high = centres[i], centres[i + 1]
    width = high - low
    share = ((at - low) / torch.where(width > 0, width, 1)).clamp(0, 1)
    below, above = levels[i], levels[i + 1]
    found: Tensor = below + share * (above - below)
    return found.to(values.dtype)


def measure(low: Tensor, known: Tensor) -> Tensor:
    """Return the (NUMBERS,) float64 numbers of a map (h, w) that `MapNoise` needs."""
    v = torch.where(known, low, torch.nan).double()
    residuals, values = _mixed_differences(v, 1)
    magnitudes = residuals.abs()
    near, count = _median(magnitudes)
    far, _ = _median(_mixed_differences(v, 2)[0].abs())
    steps = torch.cat([v.diff(dim=axis).abs().flatten() for axis in (0, 1)])
    step, steps_count = _median(steps)
    square = steps.square().nansum() / steps_count.clamp(min=1)
    ordered, order = values.sort(stable=True)
    numbers = [
        near,
        far,
        step,
        square,
        count.double(),
        *_percentiles(v.flatten().sort().values, known.sum()),
        *_percentiles(ordered, count),
    ]
    return torch.cat([torch.stack(numbers), *_bins(ordered, magnitudes[order], count)])


def _mixed_differences(v: Tensor, distance: int) -> tuple[Tensor, Tensor]:
    """Return mixed differences, divided by 2, and the means of their four pixels, NaN if unknown.

    Both are flat.
    """
    near, far = slice(None, -distance), slice(distance, None)
    a, b, c, d = v[near, near], v[near, far], v[far, near], v[far, far]
    mixed, means = (a - b - c + d) / 2, (a + b + c + d) / 4
    return mixed.flatten(), torch.where(mixed.isfinite(), means, torch.nan).flatten()


def _median(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the median of the finite values, 0 if there are none, and their number."""
    count = values.isfinite().sum()
    if values.numel() == 0:
        return values.new_zeros(()), count
    ordered, _ = torch.where(values.isfinite(), values, torch.nan).sort()
    middle = torch.stack([(count - 1).clamp(min=0) // 2, (count // 2).clamp(max=len(values) - 1)])
    return torch.where(count > 0, ordered[middle].mean(), 0), count


def _percentiles(ordered: Tensor, count: Tensor) -> list[Tensor]:
    """Return percentiles of the first `count` values, which rise; 0 if there are none."""
    if ordered.numel() == 0:
        return [ordered.new_zeros(())] * len(policy.PERCENTILES)
    percents = constant(policy.PERCENTILES, torch.float64, ordered.device)
    place = (count - 1).clamp(min=0) * (percents / 100)
    below = place.floor().long()
    above = (below + 1).clamp(max=len(ordered) - 1)
    low, share = ordered[below], place - below
    value = torch.where(share > 0, low + share * (ordered[above] - low), low)
    return list(torch.where(count > 0, value, 0))


def _bins(ordered: Tensor, magnitudes: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the median value of each bin of values, and its median magnitude: (BINS,) each.

    `count` values are finite. They rise, and each has a magnitude; the last bin is repeated.
    """
    most = policy.BINS
    if len(ordered) == 0:
        return ordered.new_zeros(most), ordered.new_zeros(most)
    k = constant(tuple(range(most)), torch.int64, ordered.device)
    bins = policy.bins_of(count)
    bin_ = torch.minimum(k, bins - 1)
    size, more = count // bins, count % bins
    start, sizes = bin_ * size + torch.minimum(bin_, more), size + (bin_ < more).long()
    rank = torch.arange(len(ordered), device=ordered.device)
    # Sorted by bins, and by magnitudes in each; what is not finite comes last.
    of_rank = torch.searchsorted(start, rank, right=True)
    of_rank = torch.where(rank < count, of_rank, most + 1)
    by_size, places = torch.where(rank < count, magnitudes, torch.inf).sort()
    by_bin = by_size[of_rank[places].sort(stable=True).indices]
    middle = torch.stack([start + (sizes - 1) // 2, start + sizes // 2]).clamp(0, len(ordered) - 1)
    there = count > 0
    return (
        torch.where(there, ordered[middle].mean(0), 0),
        torch.where(there, by_bin[middle].mean(0), 0),
    )
