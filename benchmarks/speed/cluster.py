"""Refine many depth maps in threads, on a local cluster, and on one whose workers are killed."""

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.common.cells import Setting
from benchmarks.common.machine import Others
from benchmarks.common.tables import OTHERS, at_least, bullets, page, table
from benchmarks.speed.cli import children_seconds, make

TITLE, REPEATS = "Clusters", 1
WORKERS, KILLS = 4, 3
TARGETS = {"rate_percent_of_jobs_at_least": 90.0}
PARTS = ("jobs", "workers", "killed")
WAYS = {
    "jobs": ((), 0),
    "workers": (("--workers", WORKERS), 0),
    "killed": (("--workers", WORKERS), KILLS),
}
"""Options of each way to run, and the number of workers that are killed."""
_PR_SET_CHILD_SUBREAPER = 36
"""Linux: orphans become children of this process, so that their time counts."""


def measure(setting: Setting) -> dict[str, Any]:
    number, shape = (24, (96, 128)) if setting.quick else (500, (480, 640))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, number, shape)
        seconds = 0.0
        for repeat in range(setting.repeats):
            for way in setting.only or WAYS:
                rows.append(run(folder, way, seconds, random.Random(repeat)))
                seconds = rows[-1]["seconds"]
    return {"targets": TARGETS, "pictures": {"number": number, "shape": shape}, "runs": rows}


def run(folder: Path, way: str, expected: float, rng: random.Random) -> dict[str, Any]:
    """Run the command once; kill workers at random moments of the time that it should take."""
    options, kills = WAYS[way]
    out, manifest = folder / "out", folder / f"{way}.jsonl"
    manifest.unlink(missing_ok=True)
    files = folder / "depths", folder / "photos", "-o", out
    more = "--invalid", 0, "--force", "--manifest", manifest, *options
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    others, began, cpu = Others(children_seconds), time.perf_counter(), children_seconds()
    command = [sys.executable, "-m", "bilateral", "depth", *map(str, (*files, *more))]
    process = subprocess.Popen(command)
    killed = 0
    for moment in sorted(rng.uniform(0.1, 0.9) * expected for _ in range(kills)):
        time.sleep(max(0.0, began + moment - time.perf_counter()))
        killed += kill_worker(process, rng)
    code = process.wait()
    seconds = time.perf_counter() - began
    with suppress(ChildProcessError):  # the fork server ends after the command
        while os.wait():
            pass
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    done = [line["file"] for line in lines if line["status"] == "done"]
    return {
        **{"way": way, "kills": killed, "seconds": seconds, "code": code},
        **{"lines": len(lines), "done": len(set(done)), "rate": len(lines) / seconds},
        "cpu_ms": 1e3 * (children_seconds() - cpu) / len(lines),
        "other_work": others.cores(),
    }


def kill_worker(process: subprocess.Popen[bytes], rng: random.Random) -> bool:
    """Kill one worker of a command, a child of its fork server; false if the command has ended."""
    while process.poll() is None:
        for child in psutil.Process(process.pid).children():
            if "forkserver" in " ".join(child.cmdline()) and child.children():
                rng.choice(child.children()).send_signal(signal.SIGKILL)
                return True
        time.sleep(0.02)
    return False


def percent_of_jobs(rows: list[dict[str, Any]], way: str) -> float:
    """Return the mean rate as a percentage of that of ``--jobs``."""
    rates = {w: [row["rate"] for row in rows if row["way"] == w] for w in (way, "jobs")}
    return 100 * sum(rates[way]) / sum(rates["jobs"])


def as_text(results: dict[str, Any]) -> str:
    number, (height, width) = results["pictures"].values()
    limit, rows = TARGETS["rate_percent_of_jobs_at_least"], results["runs"]
    complete = all((row["code"], row["lines"], row["done"]) == (0, number, number) for row in rows)
    return page(
        f"## {number} depth maps of {width} x {height}",
        f"Whole processes, their start included. Clusters have {WORKERS} processes on this "
        f"machine; {KILLS} of them die (SIGKILL) in the runs named killed.",
        table(
            rows,
            "way | {way}; killed | {kills}; seconds | {seconds:.1f}; files /s | {rate:.1f}",
            "CPU ms per file | {cpu_ms:.0f}; exit code | {code}",
            "lines of the manifest | {lines}; files done | {done}",
            OTHERS,
        ),
        bullets(
            "## Targets",
            [
                f"percent of the rate of --jobs, {way}: "
                f"{at_least(percent_of_jobs(rows, way), limit, '.0f')}"
                for way in ("workers", "killed")
                if {way, "jobs"} <= {row["way"] for row in rows}
            ]
            + [f"every file done exactly once: {'yes' if complete else 'NO'}"],
        ),
    )
