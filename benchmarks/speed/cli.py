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
from benchmarks.common.tables import OTHERS, at_least, at_most, bullets, page, spread, table
from benchmarks.common.timing import Timing, clock, geometric_mean, repeated
from bilateral import io

TITLE, REPEATS = "Command line", 3
KINDS, STARTS = ("command", "files", "memory"), ("--help", "depth --help")
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
        **{"targets": TARGETS, "pictures": {"number": number, "shape": shape}, "batches": rows},
        "start": {text: repeated(python, starts, "bilateral", *text.split()) for text in STARTS},
    }


def make(folder: Path, number: int, shape: tuple[int, int]) -> None:
    """Write photographs and 16-bit depth maps: ten scenes, copied under many names."""
    for i in range(min(number, 10)):
        scene = made.boxes(i, shape)
        depth = np.rint(256 * made.noisy(scene.truth, i)).astype(np.uint16)
        for kind, picture in (("photos", scene.photo), ("depths", depth)):
            (folder / kind).mkdir(exist_ok=True)
            io.write(folder / kind / f"{i:03}.png", picture)
            for copy in range(i + 10, number, 10):
                shutil.copy(folder / kind / f"{i:03}.png", folder / kind / f"{copy:03}.png")


def compare(folder: Path, number: int, jobs: int, repeats: int) -> dict[str, Any]:
    others = Others(children_seconds)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    cpu = dict.fromkeys(seconds, 0.0)
    for _ in range(repeats):
        for kind in seconds:
            before = children_seconds()
            wall, printed = clock(run, folder, jobs, kind)
            seconds[kind].append(wall if kind != "memory" else float(printed))
            cpu[kind] += 1e3 * (children_seconds() - before) / (repeats * number)

    def percent_of(kind: str) -> float:
        pairs = zip(seconds["command"], seconds[kind], strict=True)
        return 100 * geometric_mean([other / command for command, other in pairs])

    return {
        "jobs": jobs,
        "rates": {kind: number / Timing.of(values).median for kind, values in seconds.items()},
        **{"percent_of_loop": percent_of("files"), "percent_of_memory": percent_of("memory")},
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
    limit = TARGETS["rate_percent_of_loop_at_least"]
    slowest = max(timing.median for timing in results["start"].values())
    targets = [
        f"percent of the loop's rate with {row['jobs']} jobs: "
        f"{at_least(row['percent_of_loop'], limit, '.0f')}"
        for row in results["batches"]
    ]
    targets.append(f"seconds of a start: {at_most(slowest, TARGETS['start_seconds_at_most'])}")
    return page(
        f"## {number} depth maps of {width} x {height}",
        "Whole processes, their start included; in memory: the library's calls alone.",
        table(
            results["batches"],
            "jobs | {jobs}; command /s | {rates[command]:.1f}; loop /s | {rates[files]:.1f}",
            "in memory /s | {rates[memory]:.1f}; of loop | {percent_of_loop:.0f} %",
            "of memory | {percent_of_memory:.0f} %",
            "CPU ms, command / loop | {cpu_ms[command]:.0f} / {cpu_ms[files]:.0f}",
            OTHERS,
        ),
        spread(results["start"]),
        bullets("## Targets", targets),
    )
