"""Time the bilateral solver in turns with OpenCV's, and against the tests' oracle."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import bilateral
from benchmarks.common import photos
from benchmarks.common.cells import Setting
from benchmarks.common.command import say
from benchmarks.common.machine import Others
from benchmarks.common.timing import Timing, repeated
from benchmarks.speed import report
from benchmarks.speed.cases import NOISE, SIGMAS, SMOOTHNESS, STEPS, Problem, problem, solve
from benchmarks.speed.compare import OpenCV, compare, compare_with_oracle, summary
from benchmarks.speed.convergence import convergence
from benchmarks.speed.memory import peak_memory

TITLE = "Speed"
REPEATS = 7
OPENCV = "fast bilateral solver"

QUICK_SHAPE = (1024, 1024)
ORACLE_SIDE = 256
IMPORTS = 10
IMPORT = """
import time, numpy
began = time.perf_counter()
import bilateral
print(time.perf_counter() - began)
"""

as_text = report.as_text


def measure(setting: Setting) -> dict[str, Any]:
    folder = setting.data.photographs() or setting.data.root
    return {
        "settings": {
            "repeats": setting.repeats,
            "quick": setting.quick,
            "photographs": photos.recipe(folder),
            "smoothness": SMOOTHNESS,
            "steps": STEPS,
            "noise": NOISE,
            "threads": setting.threads,
        },
        "targets": report.TARGETS,
        **measure_photographs(folder, setting),
        "import": import_time(1 if setting.quick else IMPORTS),
    }


def measure_photographs(folder: Path | None, setting: Setting) -> dict[str, Any]:
    rows: dict[str, list[dict[str, Any]]]
    rows = {"cases": [], "oracle": [], "convergence": [], "memory": []}
    growing: dict[str, Any] = {}
    threads, repeats = setting.threads[-1], setting.repeats
    for photo in photos.photographs(folder):
        name = {"photo": photo.name}
        task = problem(photo)
        if setting.quick:
            task = task.centre(*QUICK_SHAPE)
        with open_peer(setting, task) as peer:
            for sigma in SIGMAS:
                say(f"{photo.name}, sigma {sigma}")
                rows["cases"].append(name | compare(task, sigma, peer, setting.threads, repeats))
        crop = task.centre(ORACLE_SIDE, ORACLE_SIDE)
        for sigma in SIGMAS:
            rows["oracle"].append(name | compare_with_oracle(crop, sigma, threads, repeats))
        say(f"{photo.name}, convergence")
        small = task.centre(*QUICK_SHAPE)
        rows["convergence"] += [name | r for r in convergence(small, SIGMAS[0], threads, repeats)]
        rows["memory"].append(name | peak_memory(task, SIGMAS[0]))
        if not growing:  # one photograph is enough, and the tilings are large
            say(f"{photo.name}, growth")
            growing = name | growth(task, SIGMAS[0], threads, repeats, setting.quick)
        if setting.quick:
            break
    return rows | {"summary": summary(rows["cases"]), "growth": growing}


def open_peer(setting: Setting, task: Problem) -> OpenCV | nullcontext[None]:
    """OpenCV's solver with our largest number of threads, if there is an OpenCV."""
    if setting.python is None:
        return nullcontext()
    return OpenCV(setting.python, task, setting.threads[-1])


def import_time(repeats: int) -> Timing:
    """Time the import in fresh processes, after one process that warms the file cache."""
    command = [sys.executable, "-c", IMPORT]
    runs = [
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for _ in range(1 + repeats)
    ]
    return Timing.of([float(run.stdout) for run in runs[1:]])


def growth(
    problem: Problem, sigma: float, threads: int, repeats: int, quick: bool
) -> dict[str, Any]:
    """Time the middle quarter, the photograph, and its tilings of 2 x 2 and 4 x 4 mirror images.

    The sizes follow one after the other: in turns, a virtual machine would have to fetch the
    memory for the largest from its host each time, and the clock would include it. The tilings
    have the photograph's texture; the quarter may differ, which the number of vertices shows.
    """
    bilateral.set_num_threads(threads)
    height, width = problem.shape
    sizes = {
        0.25: problem.centre(height // 2, width // 2),
        1.0: problem,
        **{float(times**2): problem.mirrored(times) for times in ((2,) if quick else (2, 4))},
    }
    others = Others()
    timings = {factor: repeated(solve, repeats, task, sigma) for factor, task in sizes.items()}
    other_work = others.cores()
    rows = [
        {
            "factor": factor,
            "megapixels": task.n_pixels / 1e6,
            "vertices": bilateral.BilateralGrid(task.reference, sigma, sigma, sigma).n_vertices,
            "seconds": timings[factor],
        }
        for factor, task in sizes.items()
    ]
    largest = max(sizes)
    ratio = timings[largest].median / (largest * timings[1.0].median)
    return {"sigma": sigma, "sizes": rows, "ratio": ratio, "other_work": other_work}
