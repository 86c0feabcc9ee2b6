"""Refine disparity maps (Table 2) against OpenCV's filters, and match pairs against SGBM."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bilateral
from benchmarks.common import Array, made, middlebury
from benchmarks.common.cells import Cell, Setting
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.timing import Timing, clock
from benchmarks.quality import baselines, stereo_page
from bilateral.confidence import edge_aware_variance
from bilateral.tasks import match_blocks, refine_depth, stereo_depth

NAME = DATA = "stereo"
TITLE, REPEATS, OPENCV = "Stereo (Table 2)", 5, "guided filter"

MARGIN = 40  # columns without a partner: the paper's 80, at half its width
summary, as_text = stereo_page.summary, stereo_page.as_text
draw, details = stereo_page.draw, stereo_page.details

INPUTS = {"MC-CNN raw": "disp0_mccnnfast_raw", "SGBM": "disp0_sgbm"}
INPUTS |= {"MC-CNN filled": "disp0_mccnnfast"}
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
    seen: Array  # mask of the pixels that both views of the pair see


def from_folder(folder: Path, source: str) -> Case:
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
    part = np.s_[150:310] if quick else np.s_[:]
    left, right, truth = (map_[part] for map_ in middlebury.motorcycle())
    matched = np.nan_to_num(match_blocks(left, right, 70)[0]).astype(np.float32)
    seen = made.seen_by_both(np.nan_to_num(truth))
    return Case("Motorcycle", "block matching", left, matched, truth.astype(np.float32), seen)


def errors(disparity: Array, truth: Array, seen: Array | None = None) -> dict[str, float]:
    """Percentage off by more than 1, mean and RMS error, where known; and of the `seen` pixels."""
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
                row = {"filter": name, "setting": setting, "seconds": answer["seconds"]}
                rows.append(row | numbers)
    return rows


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
        yield Cell(f"{case.scene}, {case.source}", partial(compare, partial(Case, *case), setting))
    for folder in scenes:
        right, known = folder / "im1.png", middlebury.max_disparity(folder)
        if right.exists() and known and middlebury.has_disparity(folder, INPUTS["SGBM"]):
            yield Cell(f"{folder.name}, pair", partial(from_pair, folder))
    first = from_folder(scenes[0], "MC-CNN raw") if scenes else made[0]
    yield Cell("speed", partial(speed, first, setting.repeats))


def compare(read: Callable[[], Case], setting: Setting) -> dict[str, Any]:
    case = read()
    bilateral.set_num_threads(setting.threads[-1])
    full = filled(case.disparity)
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
        **{"scene": case.scene, "source": case.source, "ours": rows},
        "peers": [] if setting.python is None else opencv_filters(case, setting.python),
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
    others, wall, cpu = Others(), [], []
    for _ in range(repeats + 1):
        before = time.process_time()
        wall.append(clock(refine_depth, case.disparity, case.photo, preset="stereo")[0])
        cpu.append(time.process_time() - before)
    return {
        **{"scene": case.scene, "megapixels": case.truth.size / 1e6},
        **{"wall": Timing.of(wall[1:]), "cpu": float(np.median(cpu[1:]))},
        "other_work": others.cores(),
    }
