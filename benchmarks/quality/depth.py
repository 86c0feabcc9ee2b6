"""Refine disparity maps (Table 2) against OpenCV's filters, and match pairs against SGBM."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.common import middlebury
from benchmarks.common.cells import Cell, Setting
from benchmarks.common.machine import Others
from benchmarks.common.timing import Timing, clock
from benchmarks.quality import baselines, depth_cases, stereo_page
from benchmarks.quality.depth_cases import INPUTS, Case, errors, from_folder, made_here, motorcycle
from bilateral.confidence import edge_aware_variance
from bilateral.tasks import match_blocks, refine_depth, stereo_depth

NAME = "stereo"
TITLE = "Stereo (Table 2)"
DATA = "stereo"
REPEATS = 5
OPENCV = "guided filter"

Array = NDArray[Any]

MARGIN = 40  # columns without a partner: the paper's 80, at half its width

summary, as_text = stereo_page.summary, stereo_page.as_text
draw, details = stereo_page.draw, stereo_page.details


def cells(setting: Setting) -> Iterator[Cell]:
    """Real maps or Motorcycle; for the benchmark alone, also made scenes, pairs and a time."""
    scenes = setting.data.scenes()
    for folder in scenes:
        for source, name in INPUTS.items():
            wanted = source in stereo_page.SOURCES or not setting.paper
            if wanted and middlebury.has_disparity(folder, name):
                names = ("im0.png", "disp0GT.pfm", "mask0nocc.png", f"{name}_u16x256.png")
                work = partial(compare, partial(from_folder, folder, source), setting)
                inputs = tuple(folder / file for file in names)
                yield Cell(f"{folder.name}, {source}", work, inputs)
    if not scenes:
        work = partial(compare, partial(motorcycle, setting.quick), setting)
        yield Cell("Motorcycle, block matching", work)
    if setting.paper:
        return
    made = list(made_here((120, 160) if setting.quick else (480, 720)))
    for case in made:
        work = partial(compare, lambda case=case: case, setting)
        yield Cell(f"{case.scene}, {case.source}", work)
    for folder in scenes:
        if _is_pair(folder):
            yield Cell(f"{folder.name}, pair", partial(from_pair, folder))
    first = from_folder(scenes[0], "MC-CNN raw") if scenes else made[0]
    yield Cell("speed", partial(speed, first, setting.repeats))


def compare(read: Callable[[], Case], setting: Setting) -> dict[str, Any]:
    """Errors and seconds of every method; OpenCV's filters in several settings."""
    case = read()
    bilateral.set_num_threads(setting.threads[-1])
    full = depth_cases.filled(case.disparity)
    guided, smooth = baselines.fast_guided_filter, bilateral.domain_transform
    methods = {
        "fast guided filter, ours": partial(guided, case.photo, full, 8, 2.55, 4),
        "domain transform, ours": partial(smooth, full, case.photo, 32, 64),
        stereo_page.RBS: partial(robust, case, 4, 0.25),
        "RBS, cells of 8, smoothness 4": partial(robust, case, 8, 4.0),
        stereo_page.TASK: partial(refine_depth, case.disparity, case.photo, preset="stereo"),
    }
    if not setting.paper:
        methods[stereo_page.SENSOR] = partial(refine_depth, case.disparity, case.photo, invalid=0)
    rows = {"input": {"seconds": 0.0, **errors(case.disparity, case.truth, case.seen)}}
    for name, method in methods.items():
        seconds, depth = clock(method)
        rows[name] = {"seconds": seconds, **errors(depth, case.truth, case.seen)}
    return {
        "scene": case.scene,
        "source": case.source,
        "ours": rows,
        "peers": [] if setting.python is None else depth_cases.opencv_filters(case, setting.python),
    }


def robust(case: Case, sigma: float, smoothness: float) -> Array:
    """The robust bilateral solver with the supplement's recipe, and a median filter."""
    target = np.where(case.disparity > 0, case.disparity, np.nan)
    first = edge_aware_variance(target, case.photo, 32, 32, 2.0, MARGIN)
    grid = bilateral.BilateralGrid(case.photo, sigma, sigma, sigma)
    x = bilateral.BilateralSolver(grid, smoothness).solve_robust(
        target, first, bilateral.GemanMcClure(1.0), stereo_page.ROUNDS, smooth=(4, 4)
    )
    return bilateral.median(x)


def _is_pair(folder: Path) -> bool:
    calibrated = middlebury.max_disparity(folder) is not None
    right = (folder / "im1.png").exists()
    return right and calibrated and middlebury.has_disparity(folder, INPUTS["SGBM"])


def from_pair(folder: Path) -> dict[str, Any]:
    """Compare our matching with OpenCV's SGBM, both with the same refinement."""
    case = from_folder(folder, "SGBM")
    views = case.photo, middlebury.view(folder, 1)
    disparities = middlebury.max_disparity(folder)
    seconds, solved = clock(stereo_depth, *views, disparities)
    matched = np.nan_to_num(match_blocks(*views, disparities)[0])
    maps = {"SGBM": case.disparity, "stereo_depth": solved, "match_blocks": matched}
    maps = {f"{n}, refined": refine_depth(z, case.photo, preset="stereo") for n, z in maps.items()}
    maps["stereo_depth"] = solved
    numbers = {name: errors(z, case.truth, case.seen) for name, z in maps.items()}
    return {"scene": case.scene, "max_disparity": disparities, "seconds": seconds, "pair": numbers}


def speed(case: Case, repeats: int) -> dict[str, Any]:
    """Wall and CPU seconds of one call."""
    others, wall, cpu = Others(), [], []
    for _ in range(repeats + 1):
        before = time.process_time()
        wall.append(clock(refine_depth, case.disparity, case.photo, preset="stereo")[0])
        cpu.append(time.process_time() - before)
    return {
        "scene": case.scene,
        "megapixels": case.truth.size / 1e6,
        "wall": Timing.of(wall[1:]),
        "cpu": float(np.median(cpu[1:])),
        "other_work": others.cores(),
    }
