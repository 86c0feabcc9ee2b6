"""The one command: ``python -m benchmarks.depth [--data DIR]``, from the repository's root."""

import argparse
import time
from typing import Any

import numpy as np

from benchmarks import command
from benchmarks.depth import cases, pairs, peers, report
from benchmarks.depth.cases import Case
from benchmarks.machine import Others
from benchmarks.timing import Timing, clock
from benchmarks.worker import probe
from bilateral.tasks import refine_depth

TARGETS = {
    "cut_percent_at_least": {"MC-CNN raw": 55.0, "SGBM": 45.0},
    "harm_percent_at_most": 5.0,
    "seconds_at_most": 0.6,
    "matching_over_sgbm_at_most": 1.15,
}


def main() -> None:
    options = command.options(
        "depth",
        "Refine disparity maps, and compare with OpenCV's filters in their best settings.",
        data="Middlebury scenes (version 3), anywhere below; made scenes alone without it",
        quick="one repeat of small made scenes",
        repeats=5,
        opencv="ximgproc",
    )
    command.write("depth", measure(options), report.as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    python = options.opencv_python
    opencv = probe(python, peers.OPENCV)
    circumstances = command.circumstances()
    data = None if options.quick else options.data
    maps = list(cases.from_folder(data)) if data else []
    maps += cases.made_here((120, 160) if options.quick else (480, 720))
    rows = []
    for case in maps:
        found = refine_depth(case.disparity, case.photo, preset="stereo")
        generic = refine_depth(case.disparity, case.photo, invalid=0)
        rows.append(
            {
                "scene": case.scene,
                "input": case.source,
                "before": cases.errors(case.disparity, case),
                "stereo": cases.errors(found, case),
                "sensor": cases.errors(generic, case),
                "peers": peers.run(case, python) if opencv else [],
            }
        )
    return {
        **circumstances,
        "versions": circumstances["versions"] | (opencv or {}),
        "targets": TARGETS,
        "opencv_skipped": None if opencv else f"OpenCV skipped: {python} has no cv2.ximgproc.",
        "maps": rows,
        "pairs": list(pairs.compare(data)) if data else [],
        "speed": speed(maps[0], options.repeats),
    }


def speed(case: Case, repeats: int) -> dict[str, Any]:
    """Wall and CPU seconds of one call."""
    others, wall, cpu = Others(), [], []
    for repeat in range(repeats + 1):
        before = time.process_time()
        took, _ = clock(refine_depth, case.disparity, case.photo, preset="stereo")
        if repeat > 0:
            wall.append(took)
            cpu.append(time.process_time() - before)
    return {
        "scene": case.scene,
        "megapixels": case.truth.size / 1e6,
        "wall": Timing.of(wall),
        "cpu": float(np.median(cpu)),
        "other_work": others.cores(),
    }


if __name__ == "__main__":
    main()
