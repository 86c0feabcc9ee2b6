"""The paper's Table 1: construction and optimization at 4 megapixels, and OpenCV's solver."""

import importlib.util
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks.paper import published
from benchmarks.paper.cells import Cell, Results, Setting, Values
from benchmarks.paper.pictures import per_photograph
from benchmarks.photos import Photo
from benchmarks.speed import peers
from benchmarks.speed.cases import SIGMAS, SMOOTHNESS, STEPS, Problem, problem
from benchmarks.speed.compare import compare
from benchmarks.tables import ms, table
from benchmarks.timing import clock, geometric_mean

NAME = "speed"
TITLE = "Speed (Table 1)"
DATA = "hires"

CONSTRUCTION = ("grid", "pyramid", "bistochastize", "splat")
OPTIMIZATION = ("start", "PCG", "slice")
PARTS = ("construction", "optimization", "total")
BUSY = 0.3
WARM_UPS = 3
ENOUGH = 0.9
"""Of the speed-up that threads could give."""


def cells(setting: Setting) -> Iterator[Cell]:
    return per_photograph(measure, setting)


def measure(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Ours by sigma and threads, in turns with OpenCV's solver; medians of the repeats."""
    task = problem(photo)
    value: dict[str, Any] = {"megapixels": task.n_pixels / 1e6, "sigmas": {}}
    most = setting.threads[-1]
    opened = nullcontext() if setting.python is None else peers.OpenCV(setting.python, task, most)
    with opened as peer:
        for sigma in SIGMAS:
            row = compare(task, sigma, peer, setting.threads, setting.repeats)
            value["sigmas"][str(sigma)] = {
                "vertices": row["vertices"],
                "ratio": row["ratio"],
                "error": row["error"],
                "opencv_error": row.get("opencv_error"),
                "whole_ms": 1e3 * row["ours"][most]["whole"].median,
                "opencv_ms": None if row["opencv"] is None else 1e3 * row["opencv"].median,
                "ours": {str(threads): _parts(timings) for threads, timings in row["ours"].items()},
                "other_work": row["other_work"],
            }
    value["converged_ms"] = 1e3 * _converged(task, setting.repeats)
    value["device"] = on_device(task, setting.repeats)
    value["opencv"] = {} if setting.python is None else _opencv(setting, task)
    return value


def _parts(timings: dict[str, Any]) -> dict[str, float]:
    parts = {
        "construction": sum(timings[stage].median for stage in CONSTRUCTION),
        "optimization": sum(timings[stage].median for stage in OPTIMIZATION),
        "total": timings["whole"].median,
    }
    return {name: 1e3 * seconds for name, seconds in parts.items()}


def _converged(task: Problem, repeats: int) -> float:
    """The default: as many steps as it takes."""
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), SIGMAS[0])
    maps = task.reference, task.target, task.confidence
    options: dict[str, Any] = {**sigmas, "smoothness": SMOOTHNESS}
    runs = [clock(bilateral.solve, *maps, **options)[0] for _ in range(repeats + 1)]
    return float(np.median(runs[1:]))


def on_device(task: Problem, repeats: int, kind: str = "cuda") -> dict[str, Any] | None:
    """Whole calls on tensors that are on a GPU, if PyTorch has one."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    import bilateral.torch

    if kind == "cuda" and not torch.cuda.is_available():
        return None
    reference = torch.from_numpy(task.reference).permute(2, 0, 1).to(kind)
    maps = (torch.from_numpy(m)[None].to(kind) for m in (task.target, task.confidence))
    target, confidence = maps
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), SIGMAS[0])
    options: dict[str, Any] = {**sigmas, "smoothness": SMOOTHNESS, "preconditioner": "pyramid"}

    def call() -> None:
        bilateral.torch.solve(
            reference, target, confidence, tolerance=0.0, max_iterations=STEPS, **options
        )
        if kind == "cuda":
            torch.cuda.synchronize()

    for _ in range(WARM_UPS):  # the first compile, the next record
        call()
    seconds = float(np.median([clock(call)[0] for _ in range(repeats)]))
    name = torch.cuda.get_device_name() if kind == "cuda" else kind
    return {"name": name, "ms": 1e3 * seconds}


def _opencv(setting: Setting, task: Problem) -> dict[str, dict[str, float]]:
    """OpenCV's parts, by number of threads."""
    assert setting.python is not None
    rows = {}
    for threads in setting.threads:
        with peers.OpenCV(setting.python, task, threads) as peer:
            runs = [peer.solve(SIGMAS[0]) for _ in range(min(setting.repeats, 3) + 1)][1:]
        construction = float(np.median([run.construction for run in runs]))
        total = float(np.median([run.seconds for run in runs]))
        parts = construction, total - construction, total
        rows[str(threads)] = {name: 1e3 * part for name, part in zip(PARTS, parts, strict=True)}
    return rows


def summary(values: Values, setting: Setting) -> Results:
    sigma = str(SIGMAS[0])
    rows: dict[str, dict[str, list[float]]] = {}
    for threads in map(str, setting.threads):
        ours = [value["sigmas"][sigma]["ours"][threads] for value in values.values()]
        rows[f"bilateral, {_threads(threads)}"] = _spread(ours)
        if setting.python is not None:
            theirs = [value["opencv"][threads] for value in values.values()]
            rows[f"OpenCV, {_threads(threads)}"] = _spread(theirs)
    photos = [
        {
            "photograph": name,
            "sigma": int(at),
            "vertices": row["vertices"],
            "ms": row["whole_ms"],
            "opencv_ms": row["opencv_ms"],
            "ratio": row["ratio"],
            "error": row["error"],
            "opencv_error": row["opencv_error"],
            "other_work": row["other_work"],
        }
        for name, value in values.items()
        for at, row in value["sigmas"].items()
    ]
    ratios = [row["ratio"] for row in photos if row["ratio"] is not None]
    device = [value["device"] for value in values.values() if value["device"] is not None]
    on_it = [row["ms"] for row in device]
    return {
        "megapixels": float(np.mean([value["megapixels"] for value in values.values()])),
        "threads": list(setting.threads),
        "steps": STEPS,
        "sigma": SIGMAS[0],
        "parts": rows,
        "converged": float(np.mean([value["converged_ms"] for value in values.values()])),
        "photographs": photos,
        "device": {
            "name": device[0]["name"],
            "total": [float(np.mean(on_it)), float(np.std(on_it))],
        }
        if device
        else None,
        "ratio": {"geometric_mean": geometric_mean(ratios), "minimum": min(ratios)}
        if ratios
        else None,
        "published": published.SPEED,
    }


def _threads(count: str) -> str:
    return f"{count} thread{'' if count == '1' else 's'}"


def _spread(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Mean and deviation over the photographs."""
    return {
        part: [
            float(np.mean([row[part] for row in rows])),
            float(np.std([row[part] for row in rows])),
        ]
        for part in PARTS
    }


def as_text(results: Results) -> str:
    count = len({row["photograph"] for row in results["photographs"]})
    most = results["threads"][-1]
    quoted = [
        [f"{name} (quoted)", *(f"{mean} ± {deviation}" for mean, deviation in row.values())]
        for name, row in results["published"].items()
    ]
    rows = [
        [name, *(f"{row[part][0]:.0f} ± {row[part][1]:.0f}" for part in PARTS)]
        for name, row in results["parts"].items()
    ]
    device = results["device"]
    if device:
        mean, deviation = device["total"]
        rows.append([f"bilateral, {device['name']}", "", "", f"{mean:.1f} ± {deviation:.1f}"])
    per_photo = [
        [
            row["photograph"],
            str(row["sigma"]),
            f"{row['vertices']:,}",
            ms(row["ms"] / 1e3),
            "-" if row["opencv_ms"] is None else ms(row["opencv_ms"] / 1e3),
            "-" if row["ratio"] is None else f"{row['ratio']:.1f}",
            f"{row['error']:.4f}",
            "-" if row["opencv_error"] is None else f"{row['opencv_error']:.4f}",
        ]
        for row in results["photographs"]
    ]
    header = ("photograph", "sigma", "vertices", "ours", "OpenCV", "ratio", "our error", "OpenCV's")
    parts = [
        f"Milliseconds, mean and deviation over {count} photograph{'s' if count > 1 else ''} of "
        f"{results['megapixels']:.1f} megapixels; the paper's over 20, on a workstation of 2012 "
        f"and one thread. Sigma {results['sigma']}, {results['steps']} steps. Construction: grid, "
        "pyramid, bistochastization, splat; optimization: start, steps, slice. The total is timed "
        "by itself, as a whole call. No domain transform.",
        table(("", *PARTS), [*quoted, *rows]),
        f"As many steps as convergence takes (the default): {results['converged']:.0f} ms. The "
        "loss of Barron et al. 2015 on our grid: [intervals](interval.md).",
        f"### Photograph by photograph, {most} threads, whole calls in ms\n\n"
        + table(header, per_photo),
    ]
    if results["ratio"]:
        ratio = results["ratio"]
        parts.append(
            f"OpenCV's time over ours: geometric mean {ratio['geometric_mean']:.1f}, least "
            f"{ratio['minimum']:.1f}. Errors are RMS from the photograph without noise."
        )
    return "\n\n".join([*parts, _behind(results)])


def _behind(results: Results) -> str:
    lines = [] if results["device"] else ["- no GPU row: PyTorch found none on this machine"]
    one = results["parts"].get("bilateral, 1 thread")
    two = results["parts"].get("bilateral, 2 threads")
    theirs = results["published"]["the paper"]
    vertices = [
        row["vertices"] for row in results["photographs"] if row["sigma"] == results["sigma"]
    ]
    if one:
        lines += [
            f"- {part}: {one[part][0]:.0f} ms on one thread, the paper's {theirs[part][0]}; how "
            "many vertices its pictures and sigmas gave is not known, ours are "
            f"{min(vertices):,} to {max(vertices):,}"
            for part in PARTS
            if one[part][0] > theirs[part][0]
        ]
    if results["ratio"] and results["ratio"]["minimum"] < 1:
        lines.append("- OpenCV's solver is faster on a photograph")
    if one and two:
        gain = one["total"][0] / two["total"][0]
        if gain < len(results["threads"]) * ENOUGH:
            lines.append(f"- two threads are only {gain:.1f} times as fast as one")
    busy = [row["other_work"] for row in results["photographs"] if row["other_work"] is not None]
    if busy and max(busy) > BUSY:
        lines.append(
            f"- other processes kept up to {max(busy):.1f} cores busy while this was measured: two "
            "threads wait for each other, so their times and ratios say little"
        )
    return "**Behind**:\n\n" + "\n".join(lines) if lines else "No row is behind."


def draw(_: Values, results: Results, folder: Path) -> None:
    """No figure."""
