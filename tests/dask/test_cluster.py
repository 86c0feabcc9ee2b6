"""A real cluster: the same bits, also after workers were killed."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
import pytest
from distributed import Client, LocalCluster

import bilateral
import bilateral.dask
from support.block_chunks import same_bits

Array = npt.NDArray[Any]
pytestmark = [
    pytest.mark.cluster,
    # Workers that die leave sockets and unfinished tasks of asyncio behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
]


@pytest.fixture
def client() -> Iterator[Client]:
    config = {
        "distributed.scheduler.allowed-failures": 10,
        "distributed.comm.timeouts.connect": "20s",
        "distributed.worker.memory.terminate": False,
    }
    with (
        dask.config.set(config),
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def scene(shape: tuple[int, int] = (300, 400)) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(3)
    y, x = np.mgrid[: shape[0], : shape[1]]
    tone = 120 + 80 * np.sin(x / 19) + 30 * np.cos(y / 13)
    photo = np.clip(tone[..., np.newaxis] + rng.normal(0, 9, (*shape, 3)), 0, 255).astype(np.uint8)
    target = (tone + rng.normal(0, 20, shape)).astype(np.float32)
    target[rng.uniform(size=shape) < 0.3] = np.nan
    return photo, target, rng.uniform(size=shape).astype(np.float32)


def lazily(parts: tuple[Array, ...], chunks: int = 100) -> list[Any]:
    return [da.from_array(part, chunks=(chunks, chunks, *part.shape[2:])) for part in parts]


@pytest.mark.smoke
def test_a_cluster_gives_the_same_bits(client: Client) -> None:
    parts = scene()
    x = bilateral.dask.solve(*lazily(parts), smooth=(4, 30)).compute()
    assert same_bits(x, bilateral.solve(*parts, smooth=(4, 30)))
    robust = bilateral.dask.solve_robust(*lazily(parts), bilateral.Cauchy(9), 3).compute()
    solver = bilateral.BilateralSolver(bilateral.BilateralGrid(parts[0]))
    assert same_bits(robust, solver.solve_robust(*parts[1:], bilateral.Cauchy(9), 3))


def slow(block: Array, seconds: float) -> Array:
    time.sleep(seconds)
    return block


class SlowCallback:
    """Makes the solve last long enough to be killed."""

    def __call__(self, *_: float) -> bool:
        time.sleep(0.5)
        return False


def kill_busy(client: Client, pids: dict[str, int], task: str) -> None:
    """Kill the worker that runs a task whose key contains this text."""
    for _ in range(1500):
        for worker, keys in client.processing().items():
            if any(task in str(key) for key in keys):
                os.kill(pids[worker], signal.SIGKILL)
                return
        time.sleep(0.02)
    raise AssertionError(f"no worker ran {task}")


@pytest.mark.parametrize("stage", ["build", "solve", "slice"])
def test_a_killed_worker_changes_nothing(client: Client, stage: str) -> None:
    parts = scene()
    inputs = lazily(parts)
    if stage == "build":
        inputs[1] = inputs[1].map_blocks(slow, seconds=0.3, dtype=np.float32)
    callback = SlowCallback() if stage == "solve" else None
    x = bilateral.dask.solve(*inputs, tolerance=1e-5, callback=callback)
    if stage == "slice":
        x = x.map_blocks(slow, seconds=0.3, dtype=np.float32)
    pids = client.run(os.getpid)
    future = client.compute(x)
    kill_busy(client, pids, {"build": "slow", "solve": "solve-", "slice": "slow"}[stage])
    assert same_bits(future.result(timeout=120), bilateral.solve(*parts, tolerance=1e-5))
    assert set(client.run(os.getpid).values()) != set(pids.values())


def test_a_worker_that_dies_during_robust_rounds_changes_nothing(client: Client) -> None:
    parts = scene((120, 160))
    loss = bilateral.GemanMcClure(20)
    x = bilateral.dask.solve_robust(*lazily(parts, 64), loss, 4, callback=SlowCallback())
    pids = client.run(os.getpid)
    future = client.compute(x)
    kill_busy(client, pids, "_next_round")
    solver = bilateral.BilateralSolver(bilateral.BilateralGrid(parts[0]))
    expected = solver.solve_robust(*parts[1:], loss, 4)
    assert same_bits(future.result(timeout=120), expected)
