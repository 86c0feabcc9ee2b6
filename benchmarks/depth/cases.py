"""The maps to refine, with their truth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import made, middlebury

Array = NDArray[Any]

INPUTS = {
    "MC-CNN raw": "disp0_mccnnfast_raw",
    "SGBM": "disp0_sgbm",
    "MC-CNN filled": "disp0_mccnnfast",
}


class Case(NamedTuple):
    """A disparity map, 0 where there is none, its photograph, and the truth with NaN likewise."""

    scene: str
    source: str
    photo: Array
    disparity: Array
    truth: Array
    seen: Array
    """Where both views of the pair see the same."""


def from_folder(folder: Path) -> Iterator[Case]:
    """Middlebury's scenes, with each map that lies beside them."""
    for scene in middlebury.folders(folder):
        photo, truth = middlebury.photograph(scene), middlebury.truth(scene)
        seen = middlebury.seen_by_both(scene)
        for source, name in INPUTS.items():
            if (scene / f"{name}_u16x256.png").exists():
                disparity = middlebury.disparity(scene, name)
                yield Case(scene.name, source, photo, disparity, truth, seen)


def made_here(shape: tuple[int, int]) -> Iterator[Case]:
    """Thin structures, leaves and boxes, as good maps and as what a matcher makes of them."""
    spoilt = {"made, noisy": made.noisy, "made, matched": made.matched}
    for make in (made.thin, made.small, made.boxes):
        photo, truth = make(0, shape)
        for source, spoil in spoilt.items():
            seen = made.seen_by_both(truth)
            yield Case(make.__name__, source, photo, spoil(truth), truth, seen)


def errors(found: Array, case: Case) -> dict[str, float]:
    """Percentage off by more than 1, mean and RMS error; then where both views see the same."""
    known = np.isfinite(case.truth)
    error = np.abs(found - case.truth)
    every, seen = (error[where].astype(np.float64) for where in (known, known & case.seen))
    return {
        "bad_1": 100 * float(np.mean(every > 1)),
        "mean": float(every.mean()),
        "rms": float(np.sqrt(np.mean(every**2))),
        "seen_bad_1": 100 * float(np.mean(seen > 1)),
        "seen_mean": float(seen.mean()),
        "seen_rms": float(np.sqrt(np.mean(seen**2))),
    }
