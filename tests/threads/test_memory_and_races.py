"""Calls that run out of memory, and arrays that another thread changes during a call."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support.scripts import run

smoke = pytest.mark.smoke

INPUTS = """
    import os, resource, threading, time
    import numpy as np
    import bilateral
    from bilateral import tasks
    from bilateral.backends import cpu

    bilateral.set_num_threads(8)
    rng = np.random.default_rng(0)
    shape = 400, 500
    blocks = rng.integers(0, 240, (40, 50, 3), np.uint8).repeat(10, 0).repeat(10, 1)
    photo = blocks + rng.integers(0, 16, blocks.shape, np.uint8)
    full = rng.random(shape, np.float32)
    sparse = np.where(rng.random(shape) < 0.02, full, np.float32(np.nan))
    labels = rng.random((100, 125, 4), np.float32)
    solver = bilateral.BilateralSolver(bilateral.BilateralGrid(photo, 4))
"""

CALLS = {
    "grid": "bilateral.BilateralGrid(photo, 4)",
    "solve": "bilateral.BilateralSolver(solver.grid).solve(sparse)",
    "robust": "bilateral.BilateralSolver(solver.grid).solve_robust(full, iterations=3)",
    "domain transform": "bilateral.domain_transform(full, photo, 8, 16)",
    "median": "bilateral.median(full)",
    "stereo": "tasks.stereo_depth(photo, np.roll(photo, -5, 1), max_disparity=20)",
    "defocus": "tasks.defocus(photo, 1 + full, 1.5, 10)",
    "segmentation": "tasks.refine_segmentation(labels / labels.sum(2, keepdims=True), photo)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and RLIMIT_AS")
@pytest.mark.stress
@pytest.mark.parametrize(
    "call", [pytest.param(name, marks=[smoke] * (name == "grid")) for name in CALLS]
)
def test_a_call_without_memory_succeeds_or_raises_memory_error(call: str, tmp_path: Path) -> None:
    code = (
        INPUTS
        + f"""
    def call():
        try:
            {CALLS[call]}
        except MemoryError:
            pass
        results.append("ended")

    results, ends = [], []
    call()  # grows the stack: growing it needs address space, too, and cannot raise an error
    results.clear()
    for i in range(40):
        child = os.fork()
        if child == 0:
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            limit = used + int(2 ** (16 + 12 * i / 40))
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            call()
            os._exit(0 if results else 1)
        ends.append(os.waitpid(child, 0)[1])
    print(ends.count(0), "of", len(ends), *[end for end in ends if end])
    """
    )
    assert run(code, tmp_path) == "40 of 40\n"


class Race(NamedTuple):
    """A call with an array, and two arrays whose values it alternates between."""

    call: str
    first: str
    second: str
    threads: int = 8
    pause: float = 0.001
    calls: int = 60


# Of a target, 0.2 % are known, and cells are large: most of a solve collects known pixels, and
# writes past the end of their memory go far past it. One thread takes longer: there is more time to
# change the array between two passes.
RACES = {
    "target": Race("coarse.solve_robust(array, iterations=2)", "full", "few", threads=1),
    "large target": Race(
        "large.solve_robust(array, iterations=2)", "tile(full)", "tile(few)", pause=0.004, calls=30
    ),
    "reference": Race(
        "bilateral.BilateralGrid(array, 4)", "photo / np.float32(255)", "-1e9 * full3"
    ),
    "labels": Race("cpu.majority(array, 3, 2)", "small", "small + 2**30"),
}


@pytest.mark.stress
@pytest.mark.parametrize(
    "race", [pytest.param(name, marks=[smoke] * (name == "labels")) for name in RACES]
)
def test_another_thread_may_change_an_array_during_a_call(race: str, tmp_path: Path) -> None:
    call, first, second, threads, pause, calls = RACES[race]
    code = (
        INPUTS
        + f"""
    full3, small = np.dstack([full] * 3), rng.integers(0, 3, shape).astype(np.int32)
    few = np.where(rng.random(shape) < 0.002, full, np.float32(np.nan))
    tile = lambda a: np.tile(a, (4, 4) + (1,) * (a.ndim - 2))
    coarse, large = (
        bilateral.BilateralSolver(bilateral.BilateralGrid(a, 32)) for a in (photo, tile(photo))
    )
    first, second = {first}, {second}
    bilateral.set_num_threads({threads})
    array, ended = first.copy(), threading.Event()

    def change():
        while not ended.is_set():
            for values in (second, first):
                np.copyto(array, values, casting="unsafe")
                time.sleep({pause})

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range({calls}):
        try:
            {call}
        except ValueError:  # the array was invalid at the moment of its check
            pass
    ended.set()
    thread.join()
    print("alive")
    """
    )
    assert run(code, tmp_path) == "alive\n"
