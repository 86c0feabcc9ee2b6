"""Start a Dask cluster of processes on this machine, and replace the processes that die."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dask
from distributed import Client, LocalCluster, Status
from distributed.utils import get_mp_context

from bilateral.io.errors import FileError

if TYPE_CHECKING:
    from distributed.deploy.spec import SpecCluster

_START_SECONDS = 60
_CHECK_SECONDS = 0.5
"""Time between two looks for workers that died."""
_CONFIGURATION = {
    # Workers are forked from a process that has imported everything: a new one starts at once.
    "distributed.worker.multiprocessing-method": "forkserver",
    # Nobody watches the dashboard of this cluster, and its measurements take time.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    # Dask's default also trims the heap after every array that is freed, which takes much time.
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(
        ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 1
    ),
}
_PRELOADED = [
    "distributed.nanny",
    "bilateral.cli.running.worker",
    "bilateral.io.jpeg_bmp",
    "bilateral.io.png",
]
"""Modules that the workers share, as far as their packages are installed."""


@contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """Start so many workers of one thread each; yield a client of their scheduler."""
    with dask.config.set(_CONFIGURATION):
        get_mp_context().set_forkserver_preload(_PRELOADED)
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
        with cluster, _kept_at(cluster, workers), Client(cluster) as client:
            try:
                client.wait_for_workers(1, timeout=_START_SECONDS)
            except TimeoutError:
                message = f"--workers: no worker started within {_START_SECONDS} s."
                raise FileError(message) from None
            yield client


@contextmanager
def _kept_at(cluster: "SpecCluster", workers: int) -> Iterator[None]:
    """Keep a number of workers, also if one dies while it starts and Dask gives it up."""
    cluster.scale(workers)
    loop: Any = cluster.loop
    ended = threading.Event()

    def replace_dead() -> None:
        for name, worker in list(cluster.workers.items()):
            if worker.status in (Status.closed, Status.failed):
                cluster.worker_spec.pop(name, None)
        if len(cluster.worker_spec) < workers and not ended.is_set():
            cluster.scale(workers)

    def watch() -> None:
        while not ended.wait(_CHECK_SECONDS):
            loop.add_callback(replace_dead)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
