"""Solves in forked processes, and signals that end a solve."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support.scripts import run

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
smoke = pytest.mark.smoke


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
@pytest.mark.stress
@pytest.mark.parametrize("before", ["", pytest.param("expected = solve()", marks=smoke)])
def test_a_forked_child_solves(before: str, tmp_path: Path) -> None:
    # The parent may have used threads before the fork.
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
@pytest.mark.stress
@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=smoke)])
def test_workers_of_a_forked_pool_solve(busy: bool, tmp_path: Path) -> None:
    # As in PyTorch's DataLoader. `busy`: another Python thread solves during the forks.
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
@pytest.mark.stress
@pytest.mark.parametrize("threads", ["1", pytest.param("3", marks=smoke)])
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
    # A handler of any signal runs, and its exception ends the solve.
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
