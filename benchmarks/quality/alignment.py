"""Align relative depth with metric points, against the best global scale and shift.

The relative maps are a network's, where the data have one, and truths of other scenes that were
spoiled: by affine changes of depth or inverse depth, by a scale and a shift that drift over the
image, by monotone curves, and by soft edges.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

from benchmarks.common import Array, middlebury
from benchmarks.common.cells import Results, Setting
from benchmarks.common.rgbd import NETWORK, Scenes
from benchmarks.common.tables import page, table
from bilateral.tasks import align_depth

TITLE, REPEATS = "Relative depth and few metric points", 3
SCENES = ("matterport_fireplace", "nyu_bikeroom", "tum_fr1_desk", "tartanair_hospital")
STEREO = ("Piano", "Teddy")


class Points(NamedTuple):
    """Kind of metric values: their number, relative noise, and fraction of outliers."""

    count: int
    noise: float = 0.0
    outliers: float = 0.0

    @property
    def name(self) -> str:
        if self.noise == 0:
            return f"{self.count}"
        return f"{self.count}, noise {self.noise:.0%}, outliers {self.outliers:.0%}"


POINTS = (
    Points(10),
    Points(10, 0.02, 0.2),
    Points(50),
    Points(50, 0.02, 0.3),
    Points(500, 0.02, 0.3),
    Points(2000),
    Points(2000, 0.05, 0.3),
)


def truths(setting: Setting) -> Iterator[tuple[str, Array]]:
    """Yield depths at half size, 0 where unknown."""
    scenes = Scenes(setting.data.folder("rgbd"))
    for name in SCENES:
        frame = scenes.frame(name)
        if frame is not None:
            depth = frame.depth if frame.truth is None else np.nan_to_num(frame.truth)
            step = 1 if min(depth.shape) < 300 else 2
            yield name, depth.astype(np.float64)[::step, ::step]
    folder = setting.data.folder("stereo")
    for scene in middlebury.folders(folder) if folder else []:
        if scene.name.startswith(STEREO):
            yield scene.name, from_disparity(middlebury.truth(scene)[::2, ::2])
    if folder is None:
        step = 4 if setting.quick else 2
        yield "Motorcycle", from_disparity(middlebury.motorcycle()[2][::step, ::step])


def from_disparity(disparity: Array) -> Array:
    known = np.isfinite(disparity) & (disparity > 0)
    return np.where(known, 100 / np.where(known, disparity, 1), 0.0)


def relatives(truth: Array) -> Iterator[tuple[str, Array]]:
    """Yield what networks of several kinds might make of a scene."""
    nearest = distance_transform_edt(truth <= 0, return_distances=False, return_indices=True)
    z = truth[tuple(nearest)]
    u, rng = 1 / z, np.random.default_rng(0)
    middle = float(np.median(u))

    def drift(size: float, amount: float) -> Array:
        field = gaussian_filter(rng.normal(size=z.shape), size * len(z), mode="reflect")
        return np.asarray(amount * field / field.std())

    def soft(values: Array) -> Array:
        return np.asarray(gaussian_filter(values, 1.5))

    yield "exact, inverse depth", 3 * u + 0.7
    yield "exact, depth", 0.2 * z + 0.1
    yield "below 0, drift", -2 * soft(u) * (1 + drift(0.25, 0.08))
    yield (
        "inverse depth, drift",
        7 * (soft(u) * (1 + drift(0.25, 0.1)) + middle * drift(0.3, 0.07)) + 2,
    )
    yield "depth, drift", 0.3 * soft(z) * (1 + drift(0.25, 0.1)) + 0.2
    yield "inverse depth ^ 0.7", soft(u / middle) ** 0.7 * (1 + drift(0.2, 0.05))
    yield "depth ^ 1.4", soft(z * middle) ** 1.4 * (1 + drift(0.2, 0.05))
    region = np.digitize(u, np.quantile(u, np.arange(1, 8) / 8))
    yield "regions", soft(u) * (1 + 0.12 * rng.normal(size=8)[region]) + 0.3 * middle
    yield "1 / inverse depth", 1 / (soft(u) * (1 + drift(0.25, 0.08)) / 2 - 0.45 * u.min())


def sampled(truth: Array, points: Points, seed: int) -> Array:
    """Return metric values at random pixels, 0 elsewhere."""
    rng = np.random.default_rng(seed)
    pixels = np.argwhere(truth > 0)
    at = tuple(pixels[rng.choice(len(pixels), min(points.count, len(pixels)), replace=False)].T)
    values = truth[at] * (1 + points.noise * rng.normal(size=len(at[0])))
    wrong = rng.random(len(values)) < points.outliers
    low, high = np.percentile(truth[truth > 0], [1, 99])
    values[wrong] = rng.uniform(0.5 * low, 1.5 * high, wrong.sum())
    metric = np.zeros(truth.shape)
    metric[at] = values
    return metric


def best_global(relative: Array, truth: Array) -> float:
    """Return the least RMSE of a scale and a shift fitted to the whole truth, in any form."""
    known = truth > 0
    errors = []
    maps = [relative, 1 / relative] if relative.min() > 0 else [relative]
    for x, inverse in itertools.product(maps, (False, True)):
        wanted = 1 / truth[known] if inverse else truth[known]
        y = np.polyval(np.polyfit(x[known], wanted, 1), x)
        depth = 1 / np.maximum(y, 1 / (3 * truth.max())) if inverse else y
        errors.append(rmse(depth, truth))
    return min(errors)


def rmse(x: Array, truth: Array) -> float:
    known = truth > 0
    return float(np.sqrt(np.mean((x - truth)[known] ** 2)))


def ratio(relative: Array, truth: Array, points: Points, seed: int) -> float:
    """Return the RMSE relative to the best global fit, or to the mean depth if that is exact."""
    best, mean = best_global(relative, truth), float(truth[truth > 0].mean())
    x = align_depth(relative, sampled(truth, points, seed))
    return rmse(x, truth) / (best if best > 1e-6 * mean else mean)


def measure(setting: Setting) -> Results:
    """Measure the network's map over many seeds, and the spoiled maps over all scenes."""
    scenes = Scenes(setting.data.folder("rgbd"))
    kinds = POINTS[2:4] if setting.quick else POINTS
    network, frame = [], scenes.frame(NETWORK)
    sensor = scenes.frame("mono_scannet_hotel")
    if frame is not None and sensor is not None:
        truth = sensor.depth.astype(np.float64)
        for points in kinds:
            each = [ratio(frame.depth, truth, points, seed) for seed in range(3 * setting.repeats)]
            network.append({"points": points.name, "mean": np.mean(each), "max": max(each)})
    found: dict[tuple[str, str], list[float]] = {}
    names = []
    for name, truth in truths(setting):
        names.append(name)
        for (kind, relative), points in itertools.product(relatives(truth), kinds):
            each = [ratio(relative, truth, points, seed) for seed in range(setting.repeats)]
            found.setdefault((kind, points.name), []).extend(each)
    spoiled = [
        {"kind": kind, "points": points, "mean": geometric_mean(each), "max": max(each)}
        for (kind, points), each in found.items()
    ]
    return {"scenes": names, "network": network, "spoiled": spoiled}


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))


def as_text(results: Results) -> str:
    spoiled = (
        f"## Spoiled truths\n\nGeometric mean and largest ratio over {', '.join(results['scenes'])}"
        " and several seeds. The exact maps have no error to compare with: their numbers are parts "
        "of the mean depth."
    )
    network = "## A network's map\n\nMean and largest ratio over several seeds."
    return page(
        "RMSE of `align_depth`, relative to the best global scale and shift: least squares over "
        "the whole truth, in depth or inverse depth, of the relative map or its inverse.",
        network if results["network"] else None,
        table(results["network"], "points | {points}; mean | {mean:.3f}; worst | {max:.3f}")
        if results["network"]
        else None,
        spoiled,
        table(
            results["spoiled"],
            "relative map | {kind}; points | {points}; mean | {mean:.3f}; worst | {max:.3f}",
        ),
    )
