"""Measure construction and optimization at 4 megapixels: the paper's Table 1, beside OpenCV's."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import published
from benchmarks.common.cells import Cell, Results, Setting, Values, per_photograph
from benchmarks.common.photos import Photo
from benchmarks.common.tables import behind, plural, table, text_table
from benchmarks.common.timing import geometric_mean, in_turns, repeated, stopwatch
from benchmarks.speed.bench import open_peer
from benchmarks.speed.cases import SIGMAS, SMOOTHNESS, STEPS, Problem, problem
from benchmarks.speed.compare import OpenCV, compare

NAME = "speed"
TITLE = "Speed (Table 1)"
DATA = "hires"

CONSTRUCTION = ("grid", "pyramid", "bistochastize", "splat")
OPTIMIZATION = ("start", "PCG", "slice")
PARTS = ("construction", "optimization", "total")
OPTIONS: dict[str, Any] = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), SIGMAS[0])
OPTIONS["smoothness"] = SMOOTHNESS
BUSY = 0.3
WARM_UPS = 3
ENOUGH = 0.9
"""Fraction of the speed-up that threads could give."""


def cells(setting: Setting) -> Iterator[Cell]:
    return per_photograph(measure_photograph, setting)


def measure_photograph(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Ours by sigma and threads, in turns with OpenCV's solver; medians of the repeats."""
    task = problem(photo)
    value: dict[str, Any] = {"megapixels": task.n_pixels / 1e6, "sigmas": {}}
    with open_peer(setting, task) as peer:
        for sigma in SIGMAS:
            row = compare(task, sigma, peer, setting.threads, setting.repeats)
            names = ("vertices", "ratio", "error", "other_work")
            value["sigmas"][str(sigma)] = {name: row[name] for name in names} | {
                "opencv_error": row.get("opencv_error"),
                "whole_ms": 1e3 * row["ours"][setting.threads[-1]]["whole"].median,
                "opencv_ms": None if row["opencv"] is None else 1e3 * row["opencv"].median,
                "ours": {str(threads): _parts(timings) for threads, timings in row["ours"].items()},
            }
    # by default as many steps as convergence takes
    maps = task.reference, task.target, task.confidence
    value["converged_ms"] = (
        1e3 * repeated(bilateral.solve, setting.repeats, *maps, **OPTIONS).median
    )
    value["device"] = on_device(task, setting.repeats)
    value["opencv"] = {} if setting.python is None else _opencv(setting, task)
    return value


def _parts(timings: dict[str, Any]) -> dict[str, float]:
    stages = {"construction": CONSTRUCTION, "optimization": OPTIMIZATION, "total": ("whole",)}
    return {k: 1e3 * sum(timings[stage].median for stage in v) for k, v in stages.items()}


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
    options = OPTIONS | {"preconditioner": "pyramid", "tolerance": 0.0, "max_iterations": STEPS}

    def call() -> None:
        bilateral.torch.solve(reference, *maps, **options)
        if kind == "cuda":
            torch.cuda.synchronize()

    # the first warm-ups compile, the next record
    timing = in_turns({"": stopwatch(call)}, repeats, WARM_UPS)[""]
    name = torch.cuda.get_device_name() if kind == "cuda" else kind
    return {"name": name, "ms": 1e3 * timing.median}


def _opencv(setting: Setting, task: Problem) -> dict[str, dict[str, float]]:
    """OpenCV's parts, by number of threads."""
    rows = {}
    for threads in setting.threads:
        with OpenCV(str(setting.python), task, threads) as peer:
            runs = [peer.solve(SIGMAS[0]) for _ in range(min(setting.repeats, 3) + 1)][1:]
        construction, total = (
            1e3 * float(np.median([run[key] for run in runs]))
            for key in ("construction", "seconds")
        )
        parts = construction, total - construction, total
        rows[str(threads)] = dict(zip(PARTS, parts, strict=True))
    return rows


def summary(values: Values, setting: Setting) -> Results:
    cases, sigma = list(values.values()), str(SIGMAS[0])
    rows: dict[str, dict[str, list[float]]] = {}
    for count in setting.threads:
        threads = plural(count, "thread")
        ours = [value["sigmas"][sigma]["ours"][str(count)] for value in cases]
        rows[f"bilateral, {threads}"] = _spread(ours)
        if setting.python is not None:
            rows[f"OpenCV, {threads}"] = _spread([value["opencv"][str(count)] for value in cases])
    names = ("vertices", "opencv_ms", "ratio", "error", "opencv_error", "other_work")
    photos = [
        {"photograph": name, "sigma": int(sigma), "ms": row["whole_ms"]}
        | {key: row[key] for key in names}
        for name, value in values.items()
        for sigma, row in value["sigmas"].items()
    ]
    ratios = [row["ratio"] for row in photos if row["ratio"] is not None]
    device = [value["device"] for value in cases if value["device"] is not None]
    times = [row["ms"] for row in device]
    on_gpu = {"name": device[0]["name"], "total": _mean_std(times)} if device else None
    ratio = {"geometric_mean": geometric_mean(ratios), "minimum": min(ratios)} if ratios else None
    return {
        "megapixels": float(np.mean([value["megapixels"] for value in cases])),
        "threads": list(setting.threads),
        "steps": STEPS,
        "sigma": SIGMAS[0],
        "parts": rows,
        "converged": float(np.mean([value["converged_ms"] for value in cases])),
        "photographs": photos,
        "device": on_gpu,
        "ratio": ratio,
        "published": published.SPEED,
    }


def _mean_std(values: list[float]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values))]


def _spread(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Mean and standard deviation over the photographs."""
    return {part: _mean_std([row[part] for row in rows]) for part in PARTS}


def as_text(results: Results) -> str:
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
    photos = plural(len({row["photograph"] for row in results["photographs"]}), "photograph")
    parts = [
        f"Milliseconds, mean and standard deviation over {photos} of "
        f"{results['megapixels']:.1f} megapixels; the paper's over 20, on a workstation of 2012 "
        f"and one thread. Sigma {results['sigma']}, {results['steps']} steps. Construction: grid, "
        "pyramid, bistochastization, splat; optimization: start, steps, slice. The total is timed "
        "by itself, as a whole call. No domain transform.",
        text_table(("", *PARTS), [*quoted, *rows]),
        f"As many steps as convergence takes (the default): {results['converged']:.0f} ms. The "
        "loss of Barron et al. 2015 on our grid: [intervals](interval.md).",
        f"### Photograph by photograph, {results['threads'][-1]} threads, whole calls in ms",
        table(
            results["photographs"],
            "photograph | {photograph}; sigma | {sigma}; vertices | {vertices:,}",
            "ours | {ms:short}; OpenCV | {opencv_ms:short}; ratio | {ratio:.1f}",
            "our error | {error:.4f}; OpenCV's | {opencv_error:.4f}",
        ),
    ]
    if results["ratio"]:
        ratio = results["ratio"]
        parts.append(
            f"OpenCV's time over ours: geometric mean {ratio['geometric_mean']:.1f}, least "
            f"{ratio['minimum']:.1f}. Errors are RMS from the photograph without noise."
        )
    return "\n\n".join([*parts, behind(_losses(results), "No row is behind.")])


def _losses(results: Results) -> list[str]:
    lines = [] if results["device"] else ["no GPU row: PyTorch found none on this machine"]
    one, two = (results["parts"].get(f"bilateral, {n}") for n in ("1 thread", "2 threads"))
    theirs, photos = results["published"]["the paper"], results["photographs"]
    vertices = [row["vertices"] for row in photos if row["sigma"] == results["sigma"]]
    lines += [
        f"{part}: {one[part][0]:.0f} ms on one thread, the paper's {theirs[part][0]}; the numbers "
        "of vertices of its pictures and sigmas are unknown, ours are "
        f"{min(vertices):,} to {max(vertices):,}"
        for part in PARTS
        if one and one[part][0] > theirs[part][0]
    ]
    if results["ratio"] and results["ratio"]["minimum"] < 1:
        lines.append("OpenCV's solver is faster on a photograph")
    gain = one["total"][0] / two["total"][0] if one and two else np.inf
    if gain < len(results["threads"]) * ENOUGH:
        lines.append(f"two threads are only {gain:.1f} times as fast as one")
    busy = [row["other_work"] for row in photos if row["other_work"] is not None]
    if busy and max(busy) > BUSY:
        lines.append(
            f"other processes kept up to {max(busy):.1f} cores busy meanwhile: two threads wait "
            "for each other, so that their times and ratios say little"
        )
    return lines
