"""Refine many depth maps by the command, and by a plain loop over the library."""

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import made
from benchmarks.common.cells import Setting
from benchmarks.common.machine import Others
from benchmarks.common.tables import OTHERS, met, table
from benchmarks.common.timing import Timing, clock, geometric_mean, repeated
from bilateral import io

TITLE = "Command line"
REPEATS = 3

KINDS = ("command", "files", "memory")
STARTS = ("--help", "depth --help")
TARGETS = {"rate_percent_of_loop_at_least": 85.0, "start_seconds_at_most": 0.3}


def measure(setting: Setting) -> dict[str, Any]:
    number, shape = (8, (96, 128)) if setting.quick else (200, (480, 640))
    jobs = sorted({1, bilateral.get_num_threads()})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, number, shape)
        rows = [compare(folder, number, count, setting.repeats) for count in jobs]
    starts = max(3 * setting.repeats, 3)
    return {
        "targets": TARGETS,
        "pictures": {"number": number, "shape": shape},
        "batches": rows,
        "start": {text: repeated(python, starts, "bilateral", *text.split()) for text in STARTS},
    }


def make(folder: Path, number: int, shape: tuple[int, int]) -> None:
    """Write photographs and 16-bit depth maps: ten scenes, copied under many names."""
    for kind in ("photos", "depths"):
        (folder / kind).mkdir()
    for i in range(min(number, 10)):
        scene = made.boxes(i, shape)
        depth = np.rint(256 * made.noisy(scene.truth, i)).astype(np.uint16)
        io.write(folder / "photos" / f"{i:03}.png", scene.photo)
        io.write(folder / "depths" / f"{i:03}.png", depth)
    for i in range(10, number):
        for kind in ("photos", "depths"):
            shutil.copy(folder / kind / f"{i % 10:03}.png", folder / kind / f"{i:03}.png")


def compare(folder: Path, number: int, jobs: int, repeats: int) -> dict[str, Any]:
    """Rates in pictures per second, measured in turns."""
    others = Others(children_seconds)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    cpu = dict.fromkeys(seconds, 0.0)
    for _ in range(repeats):
        for kind in seconds:
            before = children_seconds()
            wall, printed = clock(run, folder, jobs, kind)
            seconds[kind].append(wall if kind != "memory" else float(printed))
            cpu[kind] += 1e3 * (children_seconds() - before) / (repeats * number)
    ratios = {
        kind: [b / a for a, b in zip(seconds["command"], seconds[kind], strict=True)]
        for kind in ("files", "memory")
    }
    return {
        "jobs": jobs,
        "rates": {kind: number / Timing.of(values).median for kind, values in seconds.items()},
        "percent_of_loop": 100 * geometric_mean(ratios["files"]),
        "percent_of_memory": 100 * geometric_mean(ratios["memory"]),
        "cpu_ms": cpu,
        "other_work": others.cores(),
    }


def run(folder: Path, jobs: int, kind: str) -> str:
    """Run one batch in a process of its own; return its standard output."""
    if kind != "command":
        return python("benchmarks.speed.cli_loop", folder, jobs, kind)
    options = "-o", folder / "out", "--invalid", 0, "--jobs", jobs, "--force"
    return python("bilateral", "depth", folder / "depths", folder / "photos", *options)


def python(module: str, *arguments: Any) -> str:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def as_text(results: dict[str, Any]) -> str:
    number, (height, width) = results["pictures"].values()
    limit = results["targets"]["rate_percent_of_loop_at_least"]

    for row in results["batches"]:
        row["verdict"] = met(row["percent_of_loop"] >= limit)
    parts = [
        f"## {number} depth maps of {width} x {height}",
        "Whole processes, their start included; in memory: the library's calls alone.",
        table(
            results["batches"],
            "jobs | {jobs}; command /s | {rates[command]:.1f}; loop /s | {rates[files]:.1f}",
            "in memory /s | {rates[memory]:.1f}; of loop | {percent_of_loop:.0f} %",
            "of memory | {percent_of_memory:.0f} %",
            "CPU ms, command / loop | {cpu_ms[command]:.0f} / {cpu_ms[files]:.0f}",
            f"at least {limit:.0f} % of loop | {{verdict}}",
            OTHERS,
        ),
        "\n".join(
            f"bilateral {text}: {1e3 * timing.median:.0f} ms "
            f"({1e3 * timing.low:.0f} .. {1e3 * timing.high:.0f})"
            for text, timing in results["start"].items()
        ),
    ]
    return "\n\n".join(parts)
