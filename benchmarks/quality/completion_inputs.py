"""Few points with their truth: stereo scenes, and frames of depth cameras."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.common import Array, rgbd
from benchmarks.common.cells import Setting
from benchmarks.quality.sparse import scenes

FRACTIONS = (0.001, 0.005, 0.01)
LINES = 16
POINTS = 500
CAMERAS = ("nyu_bikeroom", "nyu_basement_00000", "nyu_basement_00050")


class Input(NamedTuple):
    scene: str
    group: str  # "stereo" or "depth"
    points: str  # how they were chosen
    photo: Array
    values: Array  # NaN where unknown
    truth: Array


def chosen(truth: Array, count: int) -> Array:
    """Keep some known pixels, chosen at random."""
    known = np.flatnonzero(np.isfinite(truth))
    kept = np.random.default_rng(0).choice(known, min(count, known.size), replace=False)
    values = np.full(truth.size, np.nan)
    values[kept] = truth.ravel()[kept]
    return values.reshape(truth.shape)


def stereo(setting: Setting) -> Iterator[Input]:
    for scene in scenes(setting):
        truth = scene.truth.astype(np.float64)
        for fraction in FRACTIONS[-1:] if setting.quick else FRACTIONS:
            known = np.random.default_rng(0).random(truth.shape) < fraction
            values = np.where(known, truth, np.nan)
            yield Input(scene.name, "stereo", f"{100 * fraction:g} %", scene.photo, values, truth)
        lines = np.full(truth.shape, np.nan)
        lines[::LINES] = truth[::LINES]
        name = f"every {LINES}th line"
        yield Input(scene.name, "stereo", name, scene.photo, lines, truth)


def cameras(setting: Setting) -> Iterator[Input]:
    root = setting.data.folder("rgbd")
    if root is None:
        return
    frames = rgbd.Scenes(root)
    kitti = sorted(root.glob("kitti*"))
    for folder in kitti:
        lidar, truth = (rgbd.png_depth(folder / f"{f}.png", 256) for f in ("sparse_lidar", "gt"))
        photo = rgbd.photograph(folder / "rgb.png")
        values, truth = (np.where(z > 0, z, np.nan).astype(np.float64) for z in (lidar, truth))
        yield Input(folder.name, "depth", "LiDAR", photo, values, truth)
    for name in CAMERAS:
        frame = frames.frame(name)
        if frame is not None:
            truth = np.where(frame.depth > 0, frame.depth, np.nan).astype(np.float64)
            yield Input(
                name, "depth", f"{POINTS} points", frame.photo, chosen(truth, POINTS), truth
            )
    prior = root / "nyu_bikeroom" / "prior_depth.png"
    if prior.exists():
        frame = frames.frame("nyu_bikeroom")
        if frame is not None:
            points = rgbd.png_depth(prior, 1000)
            truth = np.where(frame.depth > 0, frame.depth, np.nan).astype(np.float64)
            values = np.where(points > 0, points, np.nan).astype(np.float64)
            yield Input("nyu_bikeroom", "depth", "405 points on lines", frame.photo, values, truth)
    video = frames.video("tartanair_hospital")
    for index in () if video is None else (0, len(video.photos) - 1):
        truth = video.truth[index].astype(np.float64)
        name = f"tartanair_hospital {index}"
        values = chosen(truth, POINTS)
        yield Input(name, "depth", f"{POINTS} points", video.photos[index], values, truth)
