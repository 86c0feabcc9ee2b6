"""Measure depth maps of cameras: harm, error against truth, flying pixels, change in time."""

from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt, maximum_filter, minimum_filter, uniform_filter

from benchmarks.camera.spoil import REACH, edges, jump
from benchmarks.common import Array

WINDOW, SAME, MOVED = 9, 0.03, 0.05
STEADY, SURROUNDINGS = 0.01, 31


def nearest_filled(depth: Array) -> Array:
    """Give each unknown pixel the value of the nearest known one."""
    at = distance_transform_edt(depth <= 0, return_distances=False, return_indices=True)
    return np.asarray(depth[tuple(at)])


def inside(depth: Array) -> Array:
    """Mark known pixels inside surfaces: all around them is known and nearly the same."""
    known = depth > 0
    low = minimum_filter(depth, WINDOW)  # 0 where anything is unknown
    high = maximum_filter(depth, WINDOW)
    return np.asarray(known & (low > 0) & (high - low <= SAME * low))


def harm(depth: Array, refined: Array) -> float:
    """Return the percentage of pixels inside surfaces that moved by more than 5 %."""
    inner = inside(depth)
    if not inner.any():
        return 0.0
    before, after = depth[inner].astype(np.float64), refined[inner]
    return 100 * float(np.mean(~(np.abs(after - before) <= MOVED * before)))


class Error(NamedTuple):
    mean: float
    rms: float

    def over(self, other: "Error") -> "Error":
        return Error(self.mean / other.mean, self.rms / other.rms)


def error(depth: Array, truth: Array) -> Error:
    """Return mean absolute and RMS error where the truth is known."""
    known = np.isfinite(truth)
    e = np.abs(depth[known].astype(np.float64) - truth[known])
    return Error(float(e.mean()), float(np.sqrt(np.mean(e**2))))


def flying(depth: Array, truth: Array) -> float:
    """Return the percentage of pixels between a foreground and a background, far from both.

    A pixel within a jump of its true depth is right, and not flying, even on a steep slope.
    """
    low, high = minimum_filter(truth, REACH), maximum_filter(truth, REACH)

    def between(z: Array) -> Array:
        return np.asarray((z > low + jump(low)) & (z < high - jump(high)))

    wrong = np.abs(depth - truth) > jump(truth)
    return 100 * float(np.mean(between(depth) & ~between(truth) & wrong))


def off(depth: Array, truth: Array) -> Array:
    """Mark pixels that are off by more than 5 % of a known truth."""
    return np.asarray(np.isfinite(truth) & ~(np.abs(depth - truth) <= MOVED * truth))


def broken(depth: Array, refined: Array, truth: Array) -> float:
    """Return the percentage of known, right pixels that are wrong after refinement."""
    right = (depth > 0) & np.isfinite(truth) & ~off(depth, truth)
    return 100 * float(np.mean(off(refined, truth)[right])) if right.any() else 0.0


def wrong_at_edges(refined: Array, truth: Array) -> float:
    """Return the percentage of wrong pixels within 3 px of true jumps."""
    near = edges(nearest_filled(np.nan_to_num(truth))) & np.isfinite(truth)
    return 100 * float(np.mean(off(refined, truth)[near])) if near.any() else 0.0


class Flicker(NamedTuple):
    rms: float
    mean: float

    def over(self, other: "Flicker") -> "Flicker":
        return Flicker(self.rms / other.rms, self.mean / other.mean)


def steady(depths: Array) -> Array:
    """Mark pixels known in all frames that deviate by less than 1 % in time."""
    known = (depths > 0).all(axis=0)
    return np.asarray(known & (depths.std(axis=0) < STEADY * depths.mean(axis=0)))


def flicker(depths: Array, where: Array) -> Flicker:
    """Return RMS and mean of the second difference in time at the marked pixels."""
    z = depths[:, where].astype(np.float64)
    difference = z[2:] - 2 * z[1:-1] + z[:-2]
    return Flicker(float(np.sqrt(np.mean(difference**2))), float(np.abs(difference).mean()))


def lag(refined: Array, depths: Array, where: Array) -> float:
    """Return the RMS deviation of local means from the input's, in percent of the depth.

    Noise vanishes in the mean of 31 x 31 marked pixels; what is left follows the scene too late.
    Pixels that moved by more than 5 % are repairs and do not count.
    """
    squares = []
    for x, z in zip(refined[1:].astype(np.float64), depths[1:], strict=True):
        same = where & (np.abs(x - z) <= MOVED * z)
        share = np.maximum(uniform_filter(same.astype(np.float64), SURROUNDINGS), 1e-9)
        change = np.where(same, (x - z) / z.clip(1e-9), 0)
        squares.append(np.square(uniform_filter(change, SURROUNDINGS) / share)[same])
    return 100 * float(np.sqrt(np.mean(np.concatenate(squares))))


def wrong(depths: Array, truth: Array, where: Array) -> float:
    """Return the percentage of the marked pixels that are off by more than 5 %."""
    return 100 * float(np.mean(off(depths, truth)[where]))
