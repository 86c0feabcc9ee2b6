"""Call the library while allocations fail, in a process that has the failing allocator."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import _core

Array = NDArray[Any]


def calls() -> dict[str, Callable[[], Array]]:
    """Return the calls by name; each returns an array that must not depend on earlier failures."""
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (60, 70, 3)).astype(np.uint8) // 32 * 32
    target = rng.random((60, 70), np.float32)
    sparse = np.where(rng.random((60, 70)) < 0.1, target, np.float32(np.nan))
    depth = np.where(np.arange(70) < 35, 1.0, 2.0) + 0.01 * rng.random((60, 70))
    depth[20:30, 20:30] = np.nan
    grid = bilateral.BilateralGrid(photo, 4)

    def solve(data: Array, **options: Any) -> Callable[[], Array]:
        return lambda: np.asarray(bilateral.BilateralSolver(grid, **options).solve(data))

    def torch() -> Array:
        import torch

        import bilateral.torch

        torch.set_num_threads(1)
        reference = torch.from_numpy(photo).permute(2, 0, 1)
        values = torch.from_numpy(target)[None].requires_grad_()
        result = bilateral.torch.solve(reference, values, sigma_xy=4)
        result.square().sum().backward()
        assert values.grad is not None
        return np.concatenate([result.detach().numpy(), values.grad.numpy()])

    return {
        "grid": lambda: bilateral.BilateralGrid(photo, 4).coordinates(),
        "solve": solve(target),
        "solve sparse": solve(sparse),
        "solve pyramid": solve(sparse, preconditioner="pyramid"),
        "solve jacobi": solve(sparse, preconditioner="jacobi"),
        "solve many channels": solve(np.stack([target] * 9, axis=2)),
        "planar": solve(sparse, model="planar"),
        "robust": lambda: np.asarray(
            bilateral.BilateralSolver(grid).solve_robust(target, iterations=3)
        ),
        "variance": lambda: bilateral.BilateralSolver(grid).variance(probes=2),
        "domain transform": lambda: bilateral.domain_transform(target, photo, 8, 16),
        "median": lambda: bilateral.median(target),
        "refine depth": lambda: np.asarray(bilateral.tasks.refine_depth(depth, photo)),
        "refine depth stereo": lambda: np.asarray(
            bilateral.tasks.refine_depth(depth, photo, preset="stereo")
        ),
        "torch": torch,
    }


def watch(faults: ctypes.CDLL) -> None:
    """Tell the allocator where the core is in memory."""
    name = Path(str(_core.__file__)).name
    lines = Path("/proc/self/maps").read_text().splitlines()
    parts = [line.split()[0] for line in lines if line.endswith(name)]
    ends = [int(end, 16) for part in parts for end in part.split("-")]
    faults.faults_watch(ctypes.c_size_t(min(ends)), ctypes.c_size_t(max(ends)))


def fail_each(faults: ctypes.CDLL, name: str, call: Callable[[], Array], every: int) -> bool:
    """Let one allocation fail in each call, print what happened, and return whether all is well."""
    call()
    expected = call().tobytes()
    faults.faults_begin(ctypes.c_long(-1))
    call()
    allocations = int(faults.faults_end())
    outcomes: dict[str, list[int]] = {kind: [] for kind in OUTCOMES}
    for number in range(0, allocations, every):
        outcomes[fail_one(faults, call, expected, number)].append(number)
    counts = [f"{len(numbers)} {kind}" for kind, numbers in outcomes.items() if numbers]
    print(f"{name}: {allocations} allocations, {', '.join(counts)}", flush=True)
    for kind in OUTCOMES[2:]:
        if outcomes[kind]:
            print(f"  {kind}: {outcomes[kind][:20]}", flush=True)
    return not any(outcomes[kind] for kind in OUTCOMES[2:])


OUTCOMES = (
    "raised MemoryError",
    "were not needed",
    "gave another result",
    "leaked",
    "spoiled the next call",
    "raised another error",
    "ended the process",
)


def fail_one(faults: ctypes.CDLL, call: Callable[[], Array], expected: bytes, number: int) -> str:
    """Let one allocation fail in a child process; return the outcome."""
    child = os.fork()
    if child == 0:
        os.close(2)  # an abort prints there
        os._exit(OUTCOMES.index(outcome(faults, call, expected, number)))
    status = os.waitpid(child, 0)[1]
    return OUTCOMES[os.WEXITSTATUS(status)] if os.WIFEXITED(status) else "ended the process"


def outcome(faults: ctypes.CDLL, call: Callable[[], Array], expected: bytes, number: int) -> str:
    """Let one allocation fail, then call again."""
    gc.collect()
    living = int(faults.faults_living())
    found = OUTCOMES[0]
    faults.faults_begin(ctypes.c_long(number))
    try:
        same = call().tobytes() == expected
        found = OUTCOMES[1] if same else "gave another result"
    except MemoryError:
        pass
    except Exception:
        found = "raised another error"
    faults.faults_end()
    gc.collect()
    if int(faults.faults_living()) > living:
        return "leaked"
    try:
        return found if call().tobytes() == expected else "spoiled the next call"
    except Exception:
        return "spoiled the next call"


def main() -> int:
    """Run the named calls, or all."""
    built, every, *names = sys.argv[1:]
    faults = ctypes.CDLL(built)
    faults.faults_end.restype = faults.faults_living.restype = ctypes.c_long
    warnings.simplefilter("ignore")
    watch(faults)
    every_call = calls()
    well = [fail_each(faults, name, every_call[name], int(every)) for name in names or every_call]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
