"""Measure the noise of a low-resolution map: `tasks.superres.noise` for tensors.

The host reads the noise once, with the numbers that decide what else to compute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.tasks.superres import policy


class MapNoise(NamedTuple):
    """Noise and steepness of a map, as for arrays."""

    level: float
    slope: float
    roughness: float
    centres: Tensor
    """(N,) float64: rising values, of which the noise is known; empty if it is nowhere."""
    levels_at: Tensor
    """(N,) float64: the standard deviation of the noise at each of them."""

    @classmethod
    def of(cls, low: Tensor, known: Tensor) -> MapNoise:
        """Measure a map (h, w)."""
        v = torch.where(known, low, torch.nan).double()
        residuals, values = _mixed_differences(v, 1)
        near, count = _median_level(residuals)
        far, _ = _median_level(_mixed_differences(v, 2)[0])
        steps = torch.cat([v.diff(dim=axis).abs().flatten() for axis in (0, 1)])
        step, steps_count = _median(steps)
        square = steps.square().nansum() / steps_count.clamp(min=1)
        of_values, _ = values.sort()
        numbers = torch.stack(
            [
                near,
                far,
                step,
                square,
                count.double(),
                *_percentiles(v.flatten().sort().values, known.sum()),
                *_percentiles(of_values, count),
            ]
        ).tolist()
        near_, far_, step_, square_, count_, low_, high, low_value, high_value = numbers
        gain = math.sqrt(policy.noise_share(near_, far_))
        level = policy.MEDIAN_LEVEL * near_ * gain
        least = policy.least_level(low_, high)
        centres, levels = _levels(
            residuals, values, int(count_), gain, policy.least_level(low_value, high_value)
        )
        return cls(
            max(level, least),
            policy.slope(step_, level or least),
            math.sqrt(square_ / 2),
            centres,
            levels,
        )

    @property
    def noisiness(self) -> float:
        """1 for a noisy map, and less for one whose differences are mostly surface."""
        return policy.noisiness(self.level, self.roughness)

    def levels(self, values: Tensor) -> Tensor:
        """Return the standard deviation of the noise at pixels with these values."""
        if len(self.centres) == 0:
            return torch.full_like(values, self.level)
        at = values.double()
        if len(self.centres) == 1:
            return self.levels_at[0].expand_as(at).to(values.dtype)
        last = len(self.centres) - 2
        i = (torch.searchsorted(self.centres, at, right=True) - 1).clamp(0, last)
        low, high = self.centres[i], self.centres[i + 1]
        width = high - low
        share = ((at - low) / torch.where(width > 0, width, 1)).clamp(0, 1)
        below, above = self.levels_at[i], self.levels_at[i + 1]
        return (below + share * (above - below)).to(values.dtype)


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


def _median_level(residuals: Tensor) -> tuple[Tensor, Tensor]:
    """Return the median magnitude of residuals, and the number of those that are finite."""
    return _median(residuals.abs())


def _percentiles(ordered: Tensor, count: Tensor) -> list[Tensor]:
    """Return percentiles of the first `count` values, which rise; 0 if there are none."""
    if ordered.numel() == 0:
        return [ordered.new_zeros(())] * len(policy.PERCENTILES)
    out = []
    for percent in policy.PERCENTILES:
        place = (count - 1).clamp(min=0) * (percent / 100)
        below = place.floor().long()
        above = (below + 1).clamp(max=len(ordered) - 1)
        low, share = ordered[below], place - below
        value = torch.where(share > 0, low + share * (ordered[above] - low), low)
        out.append(torch.where(count > 0, value, 0))
    return out


def _levels(
    residuals: Tensor, values: Tensor, count: int, gain: float, least: float
) -> tuple[Tensor, Tensor]:
    """Return the middle of each range of values, and the level of the noise there.

    `count` residuals are finite; they are multiplied by `gain`.
    """
    if count == 0:
        return values.new_empty(0), values.new_empty(0)
    ordered, order = values.sort(stable=True)
    bins = policy.bins(count)
    sizes = [count // bins + (k < count % bins) for k in range(bins)]
    starts = [sum(sizes[:k]) for k in range(bins)]
    most = max(sizes)
    size = torch.tensor(sizes, device=values.device)[:, None]
    start = torch.tensor(starts, device=values.device)[:, None]
    column = torch.arange(most, device=values.device)[None]
    place = (start + column).clamp(max=count - 1)
    magnitudes = residuals.abs()[order[place]]
    magnitudes, _ = torch.where(column < size, magnitudes, torch.inf).sort(dim=1)
    middle = torch.cat([(size - 1) // 2, size // 2], 1)
    centres = ordered[start + middle].mean(1)
    levels = policy.MEDIAN_LEVEL * gain * magnitudes.gather(1, middle).mean(1)
    return centres, levels.clamp(min=least)
