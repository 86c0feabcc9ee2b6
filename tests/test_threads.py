"""Threads: the same bits from any number of them, and safe beside Python's threads and forks."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.strategies import Array

COUNTS = (1, 2, 3, 7)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def photo(shape: tuple[int, int], channels: tuple[int, ...], noise: float) -> Array:
    """Return a smooth image of many colours with noise: uint8, gray or RGB."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 255, (8, 8, *channels))
    smooth = coarse.repeat(-(-shape[0] // 8), axis=0).repeat(-(-shape[1] // 8), axis=1)
    noisy = smooth[: shape[0], : shape[1]] + rng.normal(0, noise, (*shape, *channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)


# Large enough that seven threads are put to work in every part.
CASES = {
    "gray, one channel": ((600, 800), (), (), "float32", {"sigma_xy": 2}),
    "RGB, one channel": ((600, 800), (3,), (), "float32", {"sigma_xy": 4}),
    "RGB, three channels": ((600, 800), (3,), (3,), "float32", {"sigma_xy": 3.5}),
    "gray, three channels": ((600, 800), (), (3,), "float64", {"sigma_xy": 3}),
    "RGB, nine channels": ((400, 600), (3,), (9,), "float64", {"sigma_xy": 4}),
    "wide keys": ((600, 800), (3,), (), "float64", {"sigma_xy": 4, "sigma_chroma": 1e-3}),
    "a wide image": ((40, 12_000), (3,), (), "float32", {"sigma_xy": 8}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_from_any_number_of_threads(case: str, keep_num_threads: None) -> None:
    shape, colours, channels, dtype, options = CASES[case]
    rng = np.random.default_rng(0)
    reference = photo(shape, colours, 20)
    target = rng.normal(size=(*shape, *channels)).astype(dtype)
    confidence = (rng.uniform(size=shape) < 0.1) * rng.uniform(size=shape)
    vertices: Array | None = None
    found: dict[int, list[Array]] = {}
    for threads in (*COUNTS, 2):
        bilateral.set_num_threads(threads)
        grid = BilateralGrid(reference, **options)
        assert grid.n_vertices > 10_000
        if vertices is None:
            vertices = rng.normal(size=(grid.n_vertices, *channels)).astype(dtype)
        results = [grid.coordinates(), grid.splat(target), grid.slice(vertices)]
        results.append(grid.blur(vertices))
        for more in ({"method": "paper", "max_iterations": 8}, {"tolerance": 0.02}):
            x, info = BilateralSolver(grid, **more).solve(target, confidence, return_info=True)
            results += [x, np.array(info.residuals)]
        jacobi = BilateralSolver(grid, preconditioner="jacobi", initial="flat", tolerance=0.05)
        results.append(jacobi.solve(target, confidence, warm_start=target))
        expected = found.setdefault(1, results)
        for result, same in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, same)


def test_small_problems_with_more_threads_than_pixels(keep_num_threads: None) -> None:
    bilateral.set_num_threads(64)
    for shape in ((1, 1), (1, 5), (7, 3)):
        target = np.arange(np.prod(shape), dtype=float).reshape(shape)
        x = bilateral.solve(np.zeros(shape, np.uint8), target, sigma_xy=1)
        bilateral.set_num_threads(1)
        np.testing.assert_array_equal(
            x, bilateral.solve(np.zeros(shape, np.uint8), target, sigma_xy=1)
        )
        bilateral.set_num_threads(64)


def problem_of(seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shape = (200 + 10 * seed, 300)
    reference = photo(shape, (3,), 20 + seed)
    return reference, rng.normal(size=shape), (rng.uniform(size=shape) < 0.2).astype(float)


def test_calls_from_eight_python_threads_at_once(keep_num_threads: None) -> None:
    bilateral.set_num_threads(2)
    problems = [problem_of(seed) for seed in range(8)]
    serial = [bilateral.solve(*problem, sigma_xy=3) for problem in problems]
    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            parallel = pool.map(lambda problem: bilateral.solve(*problem, sigma_xy=3), problems)
            for x, expected in zip(parallel, serial, strict=True):
                np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_new_solver_from_eight_python_threads_at_once(dtype: str) -> None:
    # What a grid prepares on its first use in float64 is prepared once.
    reference, target, confidence = problem_of(0)
    target = target.astype(dtype)
    solver = BilateralSolver(BilateralGrid(reference, 3), tolerance=1e-3)
    expected = BilateralSolver(BilateralGrid(reference, 3), tolerance=1e-3).solve(
        target, confidence
    )
    with ThreadPoolExecutor(8) as pool:
        for x in pool.map(lambda _: solver.solve(target, confidence), range(16)):
            np.testing.assert_array_equal(x, expected)


def test_callbacks_from_several_python_threads() -> None:
    reference, target, confidence = problem_of(0)
    solver = BilateralSolver(BilateralGrid(reference, 3))

    def steps(_: int) -> list[int]:
        seen: list[int] = []
        solver.solve(target, confidence, callback=lambda step, _: seen.append(step))
        return seen

    with ThreadPoolExecutor(4) as pool:
        for seen in pool.map(steps, range(8)):
            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) >= 2


# How many threads


@contextmanager
def watching(look: Callable[[], Any]) -> Iterator[list[Any]]:
    """Call `look` from a thread of its own, again and again, and collect what it returns."""
    seen: list[Any] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.append(look())
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def long_solve() -> Callable[[], Any]:
    """Return a function that takes a fixed, large number of steps on a large grid."""
    target, confidence = np.zeros((600, 600)), np.zeros((600, 600))
    target[0, 0] = confidence[0, 0] = confidence[-1, -1] = 1
    solver = BilateralSolver(
        BilateralGrid(np.zeros((600, 600), np.uint8), 1), tolerance=0, max_iterations=100
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
    reference = photo((1500, 1500), (3,), 30)
    with watching(time.perf_counter) as ticks:
        began = time.perf_counter()
        BilateralGrid(reference, 2, 4, 4)
        ended = time.perf_counter()
    assert sum(began < tick < ended for tick in ticks) >= 10


@linux
@pytest.mark.parametrize("threads", COUNTS)
def test_a_solve_uses_as_many_threads_as_it_may(threads: int, keep_num_threads: None) -> None:
    solve = long_solve()
    bilateral.set_num_threads(threads)

    def count() -> int:
        return len(os.listdir("/proc/self/task"))

    def settled() -> int:
        """Count when threads that have ended are gone: on a busy machine that takes a while."""
        last = 0
        while last != (last := count()):
            time.sleep(0.2)
        return last

    before = settled()
    with watching(count) as seen:
        solve()
    assert max(seen) == before + 1 + (threads - 1)  # the watching thread, and the team
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
def test_the_number_of_threads_is_kept(n: Any, keep_num_threads: None) -> None:
    bilateral.set_num_threads(n)
    assert bilateral.get_num_threads() == int(n)


def run(code: str, tmp_path: Path, **environment: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    known = {k: v for k, v in os.environ.items() if k != "BILATERAL_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        env=known | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
def test_a_wrong_environment_is_told(value: str, tmp_path: Path) -> None:
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
def test_any_number_of_threads_may_be_allowed(n: int, tmp_path: Path) -> None:
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


# Forks and signals, in processes of their own

LARGE = """
    import os, sys
    import numpy as np
    import bilateral
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 256, (400, 500)).astype(np.uint8)
    target = rng.normal(size=(400, 500))
    bilateral.set_num_threads(4)

    def solve(_=None):
        return bilateral.solve(reference, target, sigma_xy=4, method="paper")
"""


@forks
@pytest.mark.parametrize("before", ["", "expected = solve()"])
def test_a_forked_child_solves(before: str, tmp_path: Path) -> None:
    # Also when the parent has used threads before.
    code = (
        LARGE
        + f"""
    {before}
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, solve().tobytes()[:4096])
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.read(read, 4096) == solve().tobytes()[:4096]
    print("done")
    """
    )
    assert run(code, tmp_path).split() == ["done"]


@forks
@pytest.mark.parametrize("busy", [False, True])
def test_workers_of_a_forked_pool_solve(busy: bool, tmp_path: Path) -> None:
    # As in PyTorch's DataLoader; `busy`: while another Python thread is in the middle of a solve.
    code = (
        LARGE
        + f"""
    import multiprocessing, threading
    expected = solve()
    if {busy}:
        stop = threading.Event()
        def work():
            while not stop.is_set():
                solve()
        thread = threading.Thread(target=work)
        thread.start()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for x in pool.map(solve, range(6)):
            assert np.array_equal(x, expected)
    if {busy}:
        stop.set()
        thread.join()
    print("done")
    """
    )
    assert run(code, tmp_path).split() == ["done"]


ENDLESS = """
    import signal, sys
    import numpy as np
    import bilateral
    target, confidence = np.zeros((1000, 1000)), np.zeros((1000, 1000))
    target[0, 0] = confidence[0, 0] = confidence[-1, -1] = 1
    grid = bilateral.BilateralGrid(np.zeros((1000, 1000), np.uint8), sigma_xy=1)
    hard = bilateral.BilateralSolver(
        grid, smoothness=1e4, preconditioner="jacobi", initial="flat", tolerance=0,
        max_iterations=10**9,
    )
    expected = bilateral.BilateralSolver(grid).solve(target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("threads", ["1", "3"])
def test_ctrl_c_ends_a_solve_and_the_next_one_works(threads: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    code = (
        ENDLESS
        + """
    for _ in range(2):
        try:
            print("ready", flush=True)
            hard.solve(target, confidence)
            print("finished", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        same = np.array_equal(bilateral.BilateralSolver(grid).solve(target), expected)
        print("works" if same else "differs", flush=True)
    """
    )
    script.write_text(textwrap.dedent(code))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"BILATERAL_NUM_THREADS": threads},
    )
    try:
        assert child.stdout is not None
        for _ in range(2):
            assert child.stdout.readline() == "ready\n"
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            assert child.stdout.readline() == "works\n"
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_a_signal_handler_runs_during_a_solve(tmp_path: Path) -> None:
    # Any handler, not only Ctrl-C's; its exception ends the solve.
    code = (
        ENDLESS
        + """
    class Enough(Exception):
        pass

    def handler(number, frame):
        raise Enough

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        hard.solve(target, confidence)
    except Enough:
        print("done")
    """
    )
    assert run(code, tmp_path).split() == ["done"]
