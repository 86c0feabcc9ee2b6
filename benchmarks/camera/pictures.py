"""Collect the worst crops of refined maps, and draw them to be looked at."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter

from benchmarks.camera.metrics import MOVED
from benchmarks.camera.spoil import AS_IT_IS, FEATURELESS
from benchmarks.common import Array
from benchmarks.common.rgbd import Frame, Video

SIDE, ROWS, OF_ONE_MAP, WIDTH = 128, 8, 2, 16


class Crop(NamedTuple):
    badness: float
    map: str
    pictures: list[tuple[str, Array]]


class Gallery:
    """Keep the worst crop of each call, and draw the worst of them all."""

    def __init__(self) -> None:
        self.crops: dict[str, list[Crop]] = {}
        self.wholes: dict[str, list[tuple[str, Array]]] = {}

    def add_harm(self, frame: Frame, photo: str, refined: Array, inner: Array) -> None:
        """Keep the crop with the most moved pixels inside surfaces."""
        change = np.abs(refined - frame.depth) / np.maximum(frame.depth, 1e-6)
        kind = "harm, no features" if photo == FEATURELESS else "harm"
        self._add(kind, frame, photo, refined, np.where(inner, np.maximum(change - MOVED, 0), 0))

    def add_error(self, frame: Frame, photo: str, refined: Array) -> None:
        """Keep the crop with the largest error."""
        assert frame.truth is not None
        kind = "errors, no features" if photo == FEATURELESS else "errors"
        self._add(kind, frame, photo, refined, np.nan_to_num(np.abs(refined - frame.truth)))

    def add_moving(self, video: Video, method: str, refined: Array, where: Array) -> None:
        """Keep the crop with the largest error of the last frame at the marked pixels."""
        frame = video.frame(-1)._replace(name=video.name)
        assert frame.truth is not None
        off = np.where(where[-1], np.abs(refined[-1] - frame.truth), 0)
        self._add("moving", frame, method, refined[-1], off)

    def add_flicker(self, video: Video, method: str, refined: Array, where: Array) -> None:
        """Keep the crop that changes most in time, at its middle frame."""
        middle = len(refined) // 2
        change = np.square(refined[2:] - 2 * refined[1:-1] + refined[:-2]).mean(axis=0)
        frame = video.frame(middle)._replace(name=video.name)
        self._add("flicker", frame, method, refined[middle], np.where(where, change, 0))

    def _add(self, kind: str, frame: Frame, photo: str, refined: Array, badness: Array) -> None:
        side = min(SIDE, *badness.shape)
        sums = uniform_filter(badness.astype(np.float64), side, mode="constant")
        y, x = np.unravel_index(np.argmax(sums), sums.shape)
        top, left = (
            int(np.clip(at - side // 2, 0, size - side))
            for at, size in zip((y, x), badness.shape, strict=True)
        )
        part = np.s_[top : top + side, left : left + side]
        total = float(badness[part].sum())
        known = np.where(frame.depth > 0, frame.depth, np.nan)
        pictures = {f"{frame.name}, {photo}": frame.photo, "input": known, "refined": refined}
        if frame.truth is not None:
            pictures["truth"] = frame.truth
        if photo == AS_IT_IS:
            self.wholes[frame.name] = list(pictures.items())
        panels = [(name, np.array(picture[part])) for name, picture in pictures.items()]
        self.crops.setdefault(kind, []).append(Crop(total, frame.name, panels))

    def draw(self, folder: Path) -> list[str]:
        """Write the worst crops of each kind and all whole maps; return the files' names."""
        from benchmarks.common import figures  # matplotlib, only for figures

        folder.mkdir(parents=True, exist_ok=True)
        rows = {name: [pictures] for name, pictures in self.wholes.items()}
        for kind, crops in self.crops.items():
            rows[f"worst {kind}"] = [crop.pictures for crop in _worst(crops)]
        for name, pictures in rows.items():
            figures.panels(pictures, folder / f"{_file_name(name)}.png", width=WIDTH)
        return [f"{_file_name(name)}.png" for name in rows]


def _worst(crops: list[Crop]) -> list[Crop]:
    """Return the worst crops, not too many of one map."""
    kept: list[Crop] = []
    for crop in sorted(crops, key=lambda crop: -crop.badness):
        if sum(crop.map == other.map for other in kept) < OF_ONE_MAP:
            kept.append(crop)
    return kept[:ROWS]


def _file_name(name: str) -> str:
    return name.replace(", ", "_").replace(" ", "_")
