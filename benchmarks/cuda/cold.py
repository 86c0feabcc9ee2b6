"""Time the first calls of a new process, with no compiled kernels on disk, then with them."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.common.cells import Setting
from benchmarks.common.command import say
from benchmarks.common.tables import met, page, text_table

TITLE = "First calls on CUDA"
TARGETS = {"default": 6.0, "default, few known": 3.0, "change": 0.5, "warm": 1.0}
CALLS, REPEATS = 3, 1


def skipped() -> str | None:
    import torch

    if torch.cuda.is_available():
        return None
    return "First calls on CUDA skipped: PyTorch finds no device here. All else works without one."


def measure(setting: Setting) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for name in ("cold", "warm"):
            command = [sys.executable, "-m", "benchmarks.cuda.cold"]
            environment = {**os.environ, "TRITON_CACHE_DIR": folder}
            if setting.quick:
                environment["QUICK"] = "1"
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            runs[name] = json.loads(done.stdout.splitlines()[-1])
            say(f"{name}: {runs[name]}")
    return {"runs": runs, "targets": TARGETS}


def as_text(results: dict[str, Any]) -> str:
    cold, warm = results["runs"]["cold"], results["runs"]["warm"]
    rows = []
    for name, seconds in cold["calls"].items():
        target = TARGETS.get(name, TARGETS["change"])
        rows.append(
            (name, *(f"{s:.3f}" for s in seconds), f"{target:g}", met(seconds[0] <= target))
        )
    first = warm["import"] + warm["context"] + next(iter(warm["calls"].values()))[0]
    return page(
        "Seconds of the first, second and third call, one kind after another, in a new process "
        "that finds no compiled kernels on disk. Photographs of 1280 x 800.",
        f"`import bilateral.torch` after `import torch`: {cold['import']:.2f} s; CUDA's start: "
        f"{cold['context']:.2f} s.",
        text_table(("call", "first", "second", "third", "wanted", ""), rows),
        f"A process that finds them: {first:.2f} s from `import torch` to the first result "
        f"(wanted {TARGETS['warm']:g}: {met(first <= TARGETS['warm'])}).",
    )


def _run() -> None:
    """Time the calls in this process, and print the seconds."""
    import torch

    begin = time.perf_counter()
    import bilateral.torch  # noqa: F401

    imported = time.perf_counter()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    context = time.perf_counter()
    from benchmarks.cuda.usual_calls import usual_calls

    calls = {}
    for call in usual_calls():
        tensors = call.tensors("cuda")
        times = []
        for _ in range(CALLS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call.run(*tensors)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        calls[call.name] = times
        if "QUICK" in os.environ and len(calls) >= 2:
            break
    print(json.dumps({"import": imported - begin, "context": context - imported, "calls": calls}))


if __name__ == "__main__":
    _run()
