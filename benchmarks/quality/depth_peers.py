"""Run OpenCV's filters on a disparity map, each in several settings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.opencv import Worker
from benchmarks.quality.depth_cases import Case, errors
from bilateral.confidence import edge_aware_variance

Array = NDArray[Any]

# Radius or sigma in pixels or smoothness, then sigma in 8-bit grey levels.
SETTINGS: dict[str, list[tuple[float, float]]] = {
    "guided filter": [(r, s) for r in (2, 4, 8) for s in (2, 5, 15)],
    "domain transform": [(r, s) for r in (16, 64, 128) for s in (5, 15, 60)],
    "weighted median": [(r, s) for r in (8, 14) for s in (10, 30)],
    "fast global smoother": [(r, s) for r in (1, 10, 100, 1000) for s in (1.5, 4, 12)],
    "WLS": [(r, s) for r in (1, 10, 100, 1000, 8000) for s in (1, 2, 4)],
    "WLS with confidence": [(r, s) for r in (100, 1000, 8000, 64000) for s in (1.5, 4, 12)],
}


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


def run(case: Case, python: str) -> list[dict[str, Any]]:
    """All filters in all settings on one map."""
    known = case.disparity > 0
    margin = int(min(np.median(case.disparity[known]), case.disparity.shape[1] // 4))
    # the confidence that refine_depth starts with: the best known before any solve
    target = np.where(known, case.disparity, np.nan)
    confidence = edge_aware_variance(target, case.photo, 32, 64, 3.0, margin).astype(np.float32)
    maps = {"photo": case.photo, "filled": filled(case.disparity), "confidence": confidence}
    rows = []
    with Worker(python, maps) as peer:
        for name, settings in SETTINGS.items():
            arrays = "photo filled" + " confidence" * name.endswith("confidence")
            for setting in settings:
                answer = peer.run(name, arrays, *setting, save=True)
                numbers = errors(peer.result().astype(np.float32), case.truth, case.seen)
                rows.append(
                    {"filter": name, "setting": setting, "seconds": answer["seconds"], **numbers}
                )
    return rows
