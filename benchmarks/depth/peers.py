"""OpenCV's filters, each in several settings."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.depth.cases import Case, errors
from benchmarks.worker import Worker
from bilateral.confidence import edge_aware_variance

Array = NDArray[Any]

OPENCV = Path(__file__).parent / "opencv_worker.py"

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
    """Holes take the farther of the next values at their left and right, as is usual."""
    known = disparity > 0
    columns = np.broadcast_to(np.arange(disparity.shape[1]), disparity.shape)
    left = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    right = np.minimum.accumulate(np.where(known, columns, disparity.shape[1])[:, ::-1], axis=1)[
        :, ::-1
    ]
    padded = np.pad(disparity, ((0, 0), (0, 2)), constant_values=np.inf)
    beside = [np.take_along_axis(padded, at, axis=1) for at in (left, right)]  # -1: the last
    nearest = np.minimum(*beside)
    return np.where(np.isfinite(nearest), nearest, 0).astype(np.float32)


def run(case: Case, python: str) -> list[dict[str, Any]]:
    """All filters in all settings on one map."""
    known = case.disparity > 0
    margin = int(min(np.median(case.disparity[known]), case.disparity.shape[1] // 4))
    # as refine_depth starts: the best that is known of the map before any solve
    confidence = edge_aware_variance(
        np.where(known, case.disparity, np.nan), case.photo, 32, 64, 3.0, margin
    )
    maps = {
        "photo": case.photo,
        "filled": filled(case.disparity),
        "confidence": confidence.astype(np.float32),
    }
    rows = []
    with Worker(python, OPENCV, maps) as peer:
        for name, settings in SETTINGS.items():
            for setting in settings:
                answer = peer.ask(filter=name, settings=setting)
                found = np.load(peer.folder / "result.npy")
                rows.append(
                    {
                        "filter": name,
                        "setting": setting,
                        "seconds": answer["seconds"],
                        **errors(found, case),
                    }
                )
    return rows
