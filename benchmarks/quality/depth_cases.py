"""Read or make disparity maps with their truth, run OpenCV's filters on them, and score maps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import made, middlebury
from benchmarks.common.opencv import Worker
from bilateral.confidence import edge_aware_variance
from bilateral.tasks import match_blocks

Array = NDArray[Any]

INPUTS = {
    "MC-CNN raw": "disp0_mccnnfast_raw",
    "SGBM": "disp0_sgbm",
    "MC-CNN filled": "disp0_mccnnfast",
}
# Radius or sigma in pixels or smoothness, then sigma in 8-bit grey levels.
FILTERS: dict[str, list[tuple[float, float]]] = {
    "guided filter": [(r, s) for r in (2, 4, 8) for s in (2, 5, 15)],
    "domain transform": [(r, s) for r in (16, 64, 128) for s in (5, 15, 60)],
    "weighted median": [(r, s) for r in (8, 14) for s in (10, 30)],
    "fast global smoother": [(r, s) for r in (1, 10, 100, 1000) for s in (1.5, 4, 12)],
    "WLS": [(r, s) for r in (1, 10, 100, 1000, 8000) for s in (1, 2, 4)],
    "WLS with confidence": [(r, s) for r in (100, 1000, 8000, 64000) for s in (1.5, 4, 12)],
}


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
    photo, truth = middlebury.view(folder), middlebury.truth(folder)
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
    part = np.s_[150:310] if quick else np.s_[:]
    left, right, truth = (map_[part] for map_ in middlebury.motorcycle())
    matched = np.nan_to_num(match_blocks(left, right, 70)[0]).astype(np.float32)
    seen = made.seen_by_both(np.nan_to_num(truth))
    return Case("Motorcycle", "block matching", left, matched, truth.astype(np.float32), seen)


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


def filled(disparity: Array) -> Array:
    """Fill holes with the farther of the next values to the left and right, as is usual."""
    known = disparity > 0
    columns = np.broadcast_to(np.arange(disparity.shape[1]), disparity.shape)
    left = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    right = np.where(known, columns, disparity.shape[1])[:, ::-1]
    right = np.minimum.accumulate(right, axis=1)[:, ::-1]
    padded = np.pad(disparity, ((0, 0), (0, 2)), constant_values=np.inf)
    beside = [np.take_along_axis(padded, at, axis=1) for at in (left, right)]  # -1: the last
    nearest = np.minimum(*beside)
    return np.where(np.isfinite(nearest), nearest, 0).astype(np.float32)


def opencv_filters(case: Case, python: str) -> list[dict[str, Any]]:
    """All filters in all settings on one map."""
    known = case.disparity > 0
    margin = int(min(np.median(case.disparity[known]), case.disparity.shape[1] // 4))
    # the confidence that refine_depth starts with: the best known before any solve
    target = np.where(known, case.disparity, np.nan)
    confidence = edge_aware_variance(target, case.photo, 32, 64, 3.0, margin).astype(np.float32)
    maps = {"photo": case.photo, "filled": filled(case.disparity), "confidence": confidence}
    rows = []
    with Worker(python, maps) as peer:
        for name, settings in FILTERS.items():
            arrays = "photo filled" + " confidence" * name.endswith("confidence")
            for setting in settings:
                answer = peer.run(name, arrays, *setting, save=True)
                numbers = errors(peer.result().astype(np.float32), case.truth, case.seen)
                rows.append(
                    {"filter": name, "setting": setting, "seconds": answer["seconds"], **numbers}
                )
    return rows
