"""Time construction and optimization (Table 1) in turns with OpenCV's, and much else of a solve."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import photos, published
from benchmarks.common.cells import Cell, Results, Setting, Values, per_photograph
from benchmarks.common.machine import Others
from benchmarks.common.photos import Photo
from benchmarks.common.tables import behind, page, plural, table, text_table
from benchmarks.common.timing import Timing, geometric_mean, in_turns, repeated, stopwatch
from benchmarks.speed import cases, report
from benchmarks.speed.cases import SIGMAS, STEPS, OpenCV, Problem, options, problem, solve
from benchmarks.speed.convergence import convergence

NAME, TITLE, DATA = "speed", "Speed (Table 1)", "hires"
REPEATS, OPENCV = 7, "fast bilateral solver"

PARTS = {
    "construction": ("grid", "pyramid", "bistochastize", "splat"),
    "optimization": ("start", "PCG", "slice"),
    "total": ("whole",),
}
BUSY, WARM_UPS = 0.3, 3
ENOUGH = 0.9  # fraction of the speed-up that threads could give
MIDDLE, ORACLE_SIDE = (1024, 1024), 256
IMPORT = "import time, numpy; t = time.perf_counter(); import bilateral; "
IMPORT += "print(time.perf_counter() - t)"

details = report.details


def cells(setting: Setting) -> Iterator[Cell]:
    """The paper's photographs; for the benchmark alone, also growth and the time of an import."""
    root = setting.data.root
    if root and not setting.paper and not setting.data.photographs():
        raise SystemExit(photos.NONE.format(root))
    yield from per_photograph(measure_photograph, setting)
    if not setting.paper:
        for cell in per_photograph(growth, setting, at_most=1):
            yield replace(cell, name="growth")
        yield Cell("import", partial(import_time, 1 if setting.quick else 10))


def measure_photograph(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Ours by sigma and threads, in turns with OpenCV's solver; then the other questions."""
    task, repeats, threads = problem(photo), setting.repeats, setting.threads[-1]
    value: dict[str, Any] = {"megapixels": task.n_pixels / 1e6}
    python = setting.python
    with nullcontext() if python is None else OpenCV(python, task, threads) as peer:
        rows = [cases.compare(task, sigma, peer, setting.threads, repeats) for sigma in SIGMAS]
    value["sigmas"] = {str(row["sigma"]): {"photo": photo.name, **row} for row in rows}
    # by default as many steps as convergence takes
    converged = repeated(bilateral.solve, repeats, *task.maps, **options(SIGMAS[0]))
    value["converged_ms"] = 1e3 * converged.median
    value["device"] = on_device(task, repeats)
    value["opencv"] = {} if python is None else _opencv(setting, task)
    if not setting.paper:
        crop, oracle = task.centre(ORACLE_SIDE, ORACLE_SIDE), cases.compare_with_oracle
        more = {
            "oracle": [oracle(crop, sigma, threads, repeats) for sigma in SIGMAS],
            "convergence": convergence(task.centre(*MIDDLE), SIGMAS[0], threads, repeats),
            "memory": [cases.peak_memory(task, SIGMAS[0])],
        }
        for name, rows in more.items():
            value[name] = [{"photo": photo.name, **row} for row in rows]
    return value


def on_device(task: Problem, repeats: int, kind: str = "cuda") -> dict[str, Any] | None:
    """Time whole calls on tensors that are on a GPU, if PyTorch has one."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    import bilateral.torch

    if kind == "cuda" and not torch.cuda.is_available():
        return None
    reference = torch.from_numpy(task.reference).permute(2, 0, 1).to(kind)
    maps = [torch.from_numpy(m)[None].to(kind) for m in (task.target, task.confidence)]
    steps: dict[str, Any] = {"preconditioner": "pyramid", "tolerance": 0.0, "max_iterations": STEPS}

    def call() -> None:
        bilateral.torch.solve(reference, *maps, **options(SIGMAS[0]), **steps)
        if kind == "cuda":
            torch.cuda.synchronize()

    # the first warm-ups compile, the next record
    timing = in_turns({"": stopwatch(call)}, repeats, WARM_UPS)[""]
    name = torch.cuda.get_device_name() if kind == "cuda" else kind
    return {"name": name, "ms": 1e3 * timing.median}


def _opencv(setting: Setting, task: Problem) -> dict[str, dict[str, float]]:
    rows = {}
    for threads in setting.threads:
        with OpenCV(str(setting.python), task, threads) as peer:
            runs = [peer.solve(SIGMAS[0]) for _ in range(min(setting.repeats, 3) + 1)][1:]
        names = "construction", "seconds"
        construction, total = (1e3 * float(np.median([run[key] for run in runs])) for key in names)
        parts = construction, total - construction, total
        rows[str(threads)] = dict(zip(PARTS, parts, strict=True))
    return rows


def import_time(repeats: int) -> dict[str, Timing]:
    command = [sys.executable, "-c", IMPORT]
    times = [float(subprocess.check_output(command, text=True)) for _ in range(1 + repeats)]
    return {"seconds": Timing.of(times[1:])}


def growth(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Time the middle quarter, the photograph, and its tilings of 2 x 2 and 4 x 4 mirror images.

    One size after the other: in turns, a virtual machine would fetch the largest's memory anew.
    """
    bilateral.set_num_threads(setting.threads[-1])
    task, sigma = problem(photo), SIGMAS[0]
    height, width = task.shape
    sizes = {0.25: task.centre(height // 2, width // 2), 1.0: task}
    sizes |= {float(n**2): task.mirrored(n) for n in ((2,) if setting.quick else (2, 4))}
    others = Others()
    timings = {factor: repeated(solve, setting.repeats, t, sigma) for factor, t in sizes.items()}
    other_work = others.cores()
    rows = [
        {
            **{"factor": factor, "megapixels": task.n_pixels / 1e6},
            "vertices": bilateral.BilateralGrid(task.reference, sigma, sigma, sigma).n_vertices,
            "seconds": timings[factor],
        }
        for factor, task in sizes.items()
    ]
    ratio = timings[max(sizes)].median / (max(sizes) * timings[1.0].median)
    names = {"photo": photo.name, "sigma": sigma, "sizes": rows}
    return names | {"ratio": ratio, "other_work": other_work}


def summary(values: Values, setting: Setting) -> Results:
    photographs = {name: value for name, value in values.items() if "sigmas" in value}
    measured, sigma = list(photographs.values()), str(SIGMAS[0])
    rows: dict[str, dict[str, list[float]]] = {}
    for count in setting.threads:
        threads = plural(count, "thread")
        ours = [_parts(value["sigmas"][sigma]["ours"][count]) for value in measured]
        rows[f"bilateral, {threads}"] = _spread(ours)
        if setting.python is not None:
            theirs = [value["opencv"][str(count)] for value in measured]
            rows[f"OpenCV, {threads}"] = _spread(theirs)
    names = ("sigma", "vertices", "ratio", "error", "opencv_error", "other_work")
    table_rows = [
        {"photograph": name, **{key: row[key] for key in names}}
        | {"ms": 1e3 * row["ours"][setting.threads[-1]]["whole"].median}
        | {"opencv_ms": 1e3 * row["opencv"].median if row["opencv"] else None}
        for name, value in photographs.items()
        for row in value["sigmas"].values()
    ]
    ratios = [row["ratio"] for row in table_rows if row["ratio"] is not None]
    device = [value["device"] for value in measured if value["device"] is not None]
    times = [row["ms"] for row in device]
    ratio = {"geometric_mean": geometric_mean(ratios), "minimum": min(ratios)} if ratios else None
    return {
        "megapixels": float(np.mean([value["megapixels"] for value in measured])),
        **{"threads": list(setting.threads), "steps": STEPS, "sigma": SIGMAS[0], "parts": rows},
        "converged": float(np.mean([value["converged_ms"] for value in measured])),
        "photographs": table_rows,
        "device": {"name": device[0]["name"], "total": _mean_std(times)} if device else None,
        **{"ratio": ratio, "published": published.SPEED},
    }


def _parts(timings: dict[str, Timing]) -> dict[str, float]:
    return {k: 1e3 * sum(timings[stage].median for stage in v) for k, v in PARTS.items()}


def _mean_std(values: list[float]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values))]


def _spread(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {part: _mean_std([row[part] for row in rows]) for part in PARTS}


def as_text(results: Results) -> str:
    quoted = {f"{name} (quoted)": row for name, row in results["published"].items()}
    rows = [
        [name, *(f"{row[part][0]:.0f} ± {row[part][1]:.0f}" for part in PARTS)]
        for name, row in (quoted | results["parts"]).items()
    ]
    device, ratio = results["device"], results["ratio"]
    if device:
        mean, deviation = device["total"]
        rows.append([f"bilateral, {device['name']}", "", "", f"{mean:.1f} ± {deviation:.1f}"])
    count = plural(len({row["photograph"] for row in results["photographs"]}), "photograph")
    return page(
        f"Milliseconds, mean and standard deviation over {count} of {results['megapixels']:.1f} "
        "megapixels; the paper's over 20, on a workstation of 2012 and one thread. Sigma "
        f"{results['sigma']}, {results['steps']} steps. Construction: grid, pyramid, "
        "bistochastization, splat; optimization: start, steps, slice. The total is timed as a "
        "whole call. No domain transform.",
        text_table(("", *PARTS), rows),
        f"As many steps as convergence takes (the default): {results['converged']:.0f} ms. The "
        "loss of Barron et al. 2015 on our grid: [intervals](interval.md).",
        f"### Photograph by photograph, {results['threads'][-1]} threads, whole calls in ms",
        table(
            results["photographs"],
            "photograph | {photograph}; sigma | {sigma}; vertices | {vertices:,}",
            "ours | {ms:short}; OpenCV | {opencv_ms:short}; ratio | {ratio:.1f}",
            "our error | {error:.4f}; OpenCV's | {opencv_error:.4f}",
        ),
        ratio
        and f"OpenCV's time over ours: geometric mean {ratio['geometric_mean']:.1f}, least "
        f"{ratio['minimum']:.1f}. Errors are RMS from the photograph without noise.",
        behind(_losses(results), "No row is behind."),
    )


def _losses(results: Results) -> list[str]:
    lines = [] if results["device"] else ["no GPU row: PyTorch found none on this machine"]
    one, two = (results["parts"].get(f"bilateral, {n}") for n in ("1 thread", "2 threads"))
    theirs, cases = results["published"]["the paper"], results["photographs"]
    vertices = [row["vertices"] for row in cases if row["sigma"] == results["sigma"]]
    lines += [
        f"{part}: {one[part][0]:.0f} ms on one thread, the paper's {theirs[part][0]} for an "
        f"unknown number of vertices; ours are {min(vertices):,} to {max(vertices):,}"
        for part in PARTS
        if one and one[part][0] > theirs[part][0]
    ]
    if results["ratio"] and results["ratio"]["minimum"] < 1:
        lines.append("OpenCV's solver is faster on a photograph")
    gain = one["total"][0] / two["total"][0] if one and two else np.inf
    if gain < len(results["threads"]) * ENOUGH:
        lines.append(f"two threads are only {gain:.1f} times as fast as one")
    busy = max((row["other_work"] or 0 for row in cases), default=0)
    if busy > BUSY:
        lines.append(f"other processes kept up to {busy:.1f} cores busy: distrust the times")
    return lines
