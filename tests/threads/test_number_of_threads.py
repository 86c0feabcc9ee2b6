"""Number of threads: set by a call, by the environment or by the usable cores."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.photos import noisy_photo
from support.scripts import run

COUNTS = (1, 2, 3, 7)
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@contextmanager
def watching(observe: Callable[[], Any]) -> Iterator[list[Any]]:
    """Call `observe` every millisecond from another thread and collect its results."""
    results: list[Any] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            results.append(observe())
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield results
    finally:
        stop.set()
        thread.join()


def long_solve() -> Callable[[], Any]:
    """Return a function that takes a fixed, large number of steps on a large grid."""
    target, confidence = np.zeros((600, 600)), np.zeros((600, 600))
    target[0, 0] = confidence[0, 0] = confidence[-1, -1] = 1
    solver = BilateralSolver(
        BilateralGrid(np.zeros((600, 600), np.uint8), 1), tolerance=0, max_iterations=20
    )
    return lambda: solver.solve(target, confidence)


def test_other_python_threads_run_during_a_solve(keep_num_threads: None) -> None:
    bilateral.set_num_threads(1)
    solve = long_solve()
    with watching(time.perf_counter) as ticks:
        began = time.perf_counter()
        solve()
        ended = time.perf_counter()
    assert sum(began < tick < ended for tick in ticks) >= 10


def test_other_python_threads_run_while_a_grid_is_built(keep_num_threads: None) -> None:
    bilateral.set_num_threads(1)
    reference = noisy_photo((1500, 1500), (3,), 30)
    with watching(time.perf_counter) as ticks:
        began = time.perf_counter()
        BilateralGrid(reference, 2, 4, 4)
        ended = time.perf_counter()
    assert sum(began < tick < ended for tick in ticks) >= 10


@linux
@pytest.mark.parametrize("threads", COUNTS)
def test_a_solve_uses_the_number_of_threads_that_is_set(
    threads: int, keep_num_threads: None
) -> None:
    solve = long_solve()
    bilateral.set_num_threads(threads)

    def count() -> int:
        return len(os.listdir("/proc/self/task"))

    def settled() -> int:
        """Count after ended threads have disappeared, which takes time on a busy machine."""
        last = 0
        while last != (last := count()):
            time.sleep(0.2)
        return last

    before = settled()
    with watching(count) as counts:
        solve()
    assert max(counts) == before + 1 + (threads - 1)  # the watching thread and the workers
    assert settled() == before


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "2", None, np.nan, [2]])
def test_a_wrong_number_of_threads(wrong: Any, keep_num_threads: None) -> None:
    before = bilateral.get_num_threads()
    with pytest.raises((ValueError, TypeError)) as caught:
        bilateral.set_num_threads(wrong)
    assert str(caught.value).startswith("n:")
    assert str(wrong) in str(caught.value)
    assert bilateral.get_num_threads() == before


@pytest.mark.parametrize("n", [1, 5, np.int64(3), True])
def test_the_number_of_threads_can_be_read_back(n: Any, keep_num_threads: None) -> None:
    bilateral.set_num_threads(n)
    assert bilateral.get_num_threads() == int(n)


SMALL = """
    import numpy as np
    import bilateral
    reference = np.arange(40 * 50, dtype=np.float32).reshape(40, 50) / 2000
    target = np.random.default_rng(0).normal(size=(40, 50))
"""


@pytest.mark.parametrize(("value", "expected"), [("3", 3), (" 5 ", 5), ("1", 1)])
def test_the_environment_sets_the_number_of_threads(
    value: str, expected: int, tmp_path: Path
) -> None:
    code = (
        SMALL
        + """
    print(bilateral.get_num_threads())
    bilateral.solve(reference, target)
    bilateral.set_num_threads(2)
    print(bilateral.get_num_threads())
    """
    )
    assert run(code, tmp_path, BILATERAL_NUM_THREADS=value).split() == [str(expected), "2"]


@pytest.mark.parametrize("value", [None, ""])
def test_every_usable_core_by_default(value: str | None, tmp_path: Path) -> None:
    code = (
        SMALL
        + """
    import os
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(bilateral.get_num_threads() == usable)
    """
    )
    environment = {} if value is None else {"BILATERAL_NUM_THREADS": value}
    assert run(code, tmp_path, **environment).split() == ["True"]


@pytest.mark.parametrize("value", ["0", "-2", "many", "2.5"])
def test_an_invalid_environment_variable_is_an_error(value: str, tmp_path: Path) -> None:
    code = (
        SMALL
        + """
    try:
        bilateral.solve(reference, target)
    except ValueError as error:
        print(error)
    """
    )
    message = run(code, tmp_path, BILATERAL_NUM_THREADS=value)
    assert message.startswith("BILATERAL_NUM_THREADS:")
    assert value in message


@linux
@pytest.mark.parametrize("n", [10**6, 10**9, 2**31, 10**12])
def test_a_huge_number_of_threads_needs_no_memory(n: int, tmp_path: Path) -> None:
    code = (
        SMALL
        + f"""
    import resource
    expected = bilateral.solve(reference, target)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    bilateral.set_num_threads({n})
    print(np.array_equal(bilateral.solve(reference, target), expected))
    """
    )
    assert run(code, tmp_path).split() == ["True"]
