"""The one command: ``python -m benchmarks.cli``, from the repository's root."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks import command, made
from benchmarks.tables import cores, met, table
from benchmarks.timing import Timing, clock, geometric_mean
from bilateral import io

KINDS = ("command", "files", "memory")
STARTS = ("--help", "depth --help")
TARGETS = {"rate_percent_of_loop_at_least": 85.0, "start_seconds_at_most": 0.3}


def main() -> None:
    options = command.options(
        "cli",
        "Refine many depth maps by the command, and by a plain loop over the library.",
        data="not used: the pictures are made",
        quick="one repeat of 8 small pictures",
        repeats=3,
    )
    command.write("cli", measure(options), as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
    number, shape = (8, (96, 128)) if options.quick else (200, (480, 640))
    jobs = sorted({1, bilateral.get_num_threads()})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, number, shape)
        rows = [compare(folder, number, count, options.repeats) for count in jobs]
    return {
        **circumstances,
        "targets": TARGETS,
        "pictures": {"number": number, "shape": shape},
        "batches": rows,
        "start": {
            text: start(text.split(), options.repeats) for text in ("--help", "depth --help")
        },
    }


def make(folder: Path, number: int, shape: tuple[int, int]) -> None:
    """Photographs and 16-bit depth maps, a few scenes again and again under many names."""
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
    """Rates in pictures per second, taken in turns."""
    others = command.machine.Others(children_seconds)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    cpu = dict.fromkeys(seconds, 0.0)
    for _ in range(repeats):
        for kind in seconds:
            before = children_seconds()
            took, done = clock(run, folder, jobs, kind)
            seconds[kind].append(took if kind != "memory" else float(done))
            cpu[kind] += (children_seconds() - before) / (repeats * number)
    ratios = {
        kind: [b / a for a, b in zip(seconds["command"], seconds[kind], strict=True)]
        for kind in ("files", "memory")
    }
    return {
        "jobs": jobs,
        "rates": {kind: number / Timing.of(values).median for kind, values in seconds.items()},
        "percent_of_loop": 100 * geometric_mean(ratios["files"]),
        "percent_of_memory": 100 * geometric_mean(ratios["memory"]),
        "cpu_seconds_per_picture": cpu,
        "other_work": others.cores(),
    }


def run(folder: Path, jobs: int, kind: str) -> str:
    """One batch, its process's start included; what the process printed."""
    if kind == "command":
        arguments = ["-m", "bilateral", "depth", folder / "depths", folder / "photos"]
        arguments += ["-o", folder / "out", "--invalid", "0", "--jobs", jobs, "--force"]
    else:
        arguments = ["-m", "benchmarks.cli.loop", folder, jobs, kind]
    command_line = [sys.executable, *map(str, arguments)]
    return subprocess.run(command_line, check=True, capture_output=True, text=True).stdout


def start(arguments: list[str], repeats: int) -> Timing:
    """Seconds from the shell's point of view."""
    command_line = [sys.executable, "-m", "bilateral", *arguments]

    def once() -> None:
        subprocess.run(command_line, check=True, capture_output=True)

    once()
    return Timing.of([clock(once)[0] for _ in range(max(3 * repeats, 3))])


def children_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def as_text(results: dict[str, Any]) -> str:
    pictures = results["pictures"]
    rows = [
        (
            str(row["jobs"]),
            *(f"{row['rates'][kind]:.1f}" for kind in KINDS),
            f"{row['percent_of_loop']:.0f} %",
            f"{row['percent_of_memory']:.0f} %",
            " / ".join(f"{1e3 * row['cpu_seconds_per_picture'][k]:.0f}" for k in KINDS[:2]),
            met(row["percent_of_loop"] >= results["targets"]["rate_percent_of_loop_at_least"]),
            cores(row["other_work"]),
        )
        for row in results["batches"]
    ]
    header = (
        "jobs", "command /s", "loop /s", "in memory /s", "of loop", "of memory",
        "CPU ms, command / loop", "", "others",
    )  # fmt: skip
    height, width = pictures["shape"]
    lines = [
        f"# {pictures['number']} depth maps of {width} x {height}",
        "",
        "Whole processes, their start included; in memory: the library's calls alone.",
        "",
        table(header, rows),
        "",
        *(
            f"bilateral {text}: {1e3 * timing.median:.0f} ms "
            f"({1e3 * timing.low:.0f} .. {1e3 * timing.high:.0f})"
            for text, timing in results["start"].items()
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
