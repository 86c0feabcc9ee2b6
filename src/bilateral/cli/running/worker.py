"""Run jobs on a worker of a Dask cluster."""

import functools
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cloudpickle

import bilateral
from bilateral.cli.display.warning_log import redirect_warnings
from bilateral.cli.running.job import Job, Outcome, Processor
from bilateral.io.atomic import Tag
from bilateral.io.errors import FileError
from bilateral.io.messages import printable

_lock = threading.Lock()
_active = 0
_redirection = None


def process(command: bytes, version: str, tag: str, folder: str, job: Job) -> Outcome:
    """Process one set of files.

    Parameters
    ----------
    command : bytes
        Pickled `Processor`.
    version : str
        Version of bilateral that sends the job.
    tag, folder : str
        Tag of the run, by which the sender has marked the folder of the results.
    job : Job
        With absolute paths.
    """
    processor = _load(command)
    if bilateral.__version__ != version:
        message = (
            f"worker {socket.gethostname()}: has bilateral {bilateral.__version__}, expected "
            f"{version}. Install the same version on all machines."
        )
        return processor.failed(job, FileError(message))
    if not _sees(tag, folder):
        message = (
            f"worker {socket.gethostname()}: does not see the folder {printable(folder)}. A "
            f"cluster needs a file system that all its machines share."
        )
        return processor.failed(job, FileError(message))
    if "BILATERAL_NUM_THREADS" not in os.environ:
        bilateral.set_num_threads(1)  # the other cores have workers of their own
    with _warnings_redirected(), Tag(tag).used():
        return processor.process(job, repeated=True)


@functools.lru_cache(maxsize=4)
def _load(command: bytes) -> Processor:
    processor: Processor = cloudpickle.loads(command)
    return processor


@functools.lru_cache(maxsize=64)
def _sees(tag: str, folder: str) -> bool:
    return Tag(tag).marks(Path(folder))


@contextmanager
def _warnings_redirected() -> Iterator[None]:
    """Redirect warnings while any thread of this worker processes a job."""
    global _active, _redirection
    with _lock:
        _active += 1
        if _redirection is None:
            _redirection = redirect_warnings()
            _redirection.__enter__()
    try:
        yield
    finally:
        with _lock:
            _active -= 1
            if _active == 0 and _redirection is not None:
                _redirection.__exit__(None, None, None)
                _redirection = None
