"""Read or make disparity maps to refine, with their truth, and score refined maps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.data import stereo_motorcycle

from benchmarks.common import made, middlebury
from bilateral.tasks import match_blocks

Array = NDArray[Any]

INPUTS = {
    "MC-CNN raw": "disp0_mccnnfast_raw",
    "SGBM": "disp0_sgbm",
    "MC-CNN filled": "disp0_mccnnfast",
}
MATCHED = "block matching"


class Case(NamedTuple):
    """A disparity map, 0 where there is none, its photograph, and the truth with NaN likewise."""

    scene: str
    source: str
    photo: Array
    disparity: Array
    truth: Array
    seen: Array
    """Mask of the pixels that both views of the pair see."""


def from_folder(folder: Path, source: str) -> Case:
    """A Middlebury scene with one of the maps that lie beside it."""
    photo, truth = middlebury.left_view(folder), middlebury.truth(folder)
    disparity = middlebury.disparity(folder, INPUTS[source])
    return Case(folder.name, source, photo, disparity, truth, middlebury.seen_by_both(folder))


def made_here(shape: tuple[int, int]) -> Iterator[Case]:
    """Thin structures, leaves and boxes, as good maps and like those of block matching."""
    degraded = {"made, noisy": made.noisy, "made, matched": made.matched}
    for make in (made.thin, made.small, made.boxes):
        photo, truth = make(0, shape)
        seen = made.seen_by_both(truth)
        for source, degrade in degraded.items():
            yield Case(make.__name__, source, photo, degrade(truth), truth, seen)


def motorcycle(quick: bool = False) -> Case:
    """scikit-image's pair with our block matching."""
    left, right, disparity = stereo_motorcycle()
    part = np.s_[150:310] if quick else np.s_[:]
    truth = np.where(np.isfinite(disparity), disparity, np.nan)[part].astype(np.float32)
    matched = np.nan_to_num(match_blocks(left[part], right[part], 70)[0]).astype(np.float32)
    seen = made.seen_by_both(np.nan_to_num(truth))
    return Case("Motorcycle", MATCHED, left[part], matched, truth, seen)


def errors(disparity: Array, truth: Array, seen: Array | None = None) -> dict[str, float]:
    """Percentage off by more than 1, mean and RMS error, where the truth is known.

    With a mask of the pixels that both views see, the same for these pixels too.
    """
    known = np.isfinite(truth)
    error = np.abs(disparity - truth)
    masks = {"": known} if seen is None else {"": known, "seen_": known & seen}
    numbers = {}
    for name, mask in masks.items():
        e = error[mask].astype(np.float64)
        numbers[f"{name}bad_1"] = 100 * float(np.mean(e > 1))
        numbers[f"{name}mean"] = float(e.mean())
        numbers[f"{name}rms"] = float(np.sqrt(np.mean(e**2)))
    return numbers
