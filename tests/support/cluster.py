"""Start a Dask scheduler with workers, and find and kill workers."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def scheduler(folder: Path, workers: int) -> Iterator[str]:
    """Run a scheduler and workers as their own processes, in a folder; yield the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    local = ["--host", "127.0.0.1", "--no-dashboard"]
    commands = [["scheduler", "--port", str(port), *local]]
    commands += [["worker", address, "--nthreads", "1", "--no-nanny", *local]] * workers
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]  # fmt: skip
    try:
        yield address
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def local_workers(command: int) -> list[psutil.Process]:
    """Return the workers of a command with ``--workers``: children of its fork server."""
    for child in psutil.Process(command).children():
        if "forkserver" in " ".join(child.cmdline()):
            return child.children()
    return []


def kill_when(process: subprocess.Popen[str], out: Path, results: int) -> int:
    """Kill a worker of a command with SIGKILL once there are so many results; return its id."""
    while len(finished(out)) < results or not local_workers(process.pid):
        assert process.poll() is None, "the command ended before a worker could be killed"
        time.sleep(0.005)
    victim = local_workers(process.pid)[results % 2].pid
    os.kill(victim, signal.SIGKILL)
    return victim


def finished(out: Path) -> list[str]:
    """Return the names of the results in a folder."""
    return [name for name in os.listdir(out) if not name.startswith(".")] if out.exists() else []
