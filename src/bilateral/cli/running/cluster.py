"""Run jobs on the workers of a Dask cluster; those of a worker that dies run on another one."""

import dataclasses
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bilateral
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.running.job import Job, Outcome, Processor
from bilateral.io.atomic import Tag
from bilateral.io.errors import FileError, MissingPackageError
from bilateral.io.messages import one_line, printable

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_SECONDS = 10
_JOBS_PER_THREAD, _LEAST_JOBS = 4, 64
"""Jobs on their way: few enough for millions of files, enough to keep all workers busy."""
_COUNT_SECONDS = 5.0
"""Workers come and go: they are counted again after this time."""


def run(
    jobs: Iterable[Job],
    processor: Processor,
    settle: Callable[[Job], Outcome | None],
    folder: Path,
) -> Iterator[Outcome]:
    """Process jobs on a cluster; yield each outcome when it is there.

    Parameters
    ----------
    jobs : iterable of Job
    processor : Processor
        Its options name the cluster: ``--scheduler`` or ``--workers``.
    settle : function
        Returns the outcome of a job that needs no work, else None.
    folder : Path
        Folder of the results, which all workers must see.
    """
    try:
        import cloudpickle
        import distributed
    except ModuleNotFoundError as error:
        message = f'clusters need {error.name}: pip install "bilateral[dask]"'
        raise MissingPackageError(message) from None
    with _connected(processor.common) as client, _tagged(folder) as (tag, folders):
        sender = _Sender(client, cloudpickle.dumps(processor), tag, os.path.abspath(folder))
        arriving = distributed.as_completed(with_results=True, raise_errors=False)
        waiting: dict[Any, Job] = {}
        for job in jobs:
            outcome = settle(job)
            if outcome is not None:
                yield outcome
                continue
            folders.add(job.output.parent)
            future = sender.send(job)
            waiting[future.key] = job
            arriving.add(future)
            while len(waiting) >= sender.most():
                yield _outcome(processor, waiting, *next(arriving))
        for future, result in arriving:
            yield _outcome(processor, waiting, future, result)


@contextmanager
def _tagged(folder: Path) -> Iterator[tuple[Tag, set[Path]]]:
    """Mark a folder; at the end, remove the mark and what killed workers left in the folders."""
    tag, folders = Tag(), {folder}
    tag.mark(folder)
    try:
        yield tag, folders
    finally:
        tag.remove(folders)


class _Sender:
    """Sends jobs to a cluster, with all that a worker needs to know."""

    def __init__(self, client: "Client", command: bytes, tag: Tag, folder: str) -> None:
        self._client, self._command, self._tag, self._folder = client, command, tag, folder
        # Keys of one group: the scheduler holds jobs back until a worker is free. The death of a
        # worker therefore counts only against the few jobs that it had.
        self._group, self._sent = f"bilateral-{secrets.token_hex(4)}", 0
        self._most, self._counted = 0, 0.0

    def send(self, job: Job) -> Any:
        """Submit a job; return Dask's future."""
        from bilateral.cli.running import worker

        self._sent += 1
        return self._client.submit(
            worker.process,
            self._command,
            bilateral.__version__,
            self._tag.text,
            self._folder,
            _absolute(job),
            key=(self._group, self._sent),
            pure=False,
        )

    def most(self) -> int:
        """Return how many jobs may be on their way."""
        now = time.monotonic()
        if now - self._counted > _COUNT_SECONDS:
            threads = sum(self._client.nthreads().values())
            self._most, self._counted = max(_LEAST_JOBS, _JOBS_PER_THREAD * threads), now
        return self._most


def _absolute(job: Job) -> Job:
    """Return the job with absolute paths: workers may have started in other folders."""
    paths = {name: path.absolute() for name, path in job.paths.items()}
    return dataclasses.replace(job, output=job.output.absolute(), paths=paths)


def _outcome(processor: Processor, waiting: dict[Any, Job], future: Any, result: Any) -> Outcome:
    """Return the outcome of a job from what its future holds."""
    from distributed import KilledWorker

    job = waiting.pop(future.key)
    if isinstance(result, Outcome):
        return _with_given_names(result, job)
    if future.status != "error":
        raise FileError(
            "the connection to the scheduler was lost. Run the same command again with "
            "--skip-existing to continue."
        )
    _, error, _ = result
    if isinstance(error, KilledWorker):
        message = (
            f"{printable(job.input)}: {error.allowed_failures + 1} workers died while they "
            f"processed it: they had too little memory, or this file crashes the program."
        )
        return processor.failed(job, FileError(message))
    message = f"{printable(job.input)}: a worker failed: {type(error).__name__}: {one_line(error)}"
    if isinstance(error, ModuleNotFoundError):
        message += '. Install "bilateral[cli,dask]" on all machines.'
    return processor.failed(job, FileError(message))


def _with_given_names(outcome: Outcome, job: Job) -> Outcome:
    """Replace the absolute paths of a worker by those of the command line."""
    record = outcome.record
    names = {
        printable(path.absolute()): printable(path) for path in (*job.paths.values(), job.output)
    }

    def given(text: str) -> str:
        for absolute, name in names.items():
            text = text.replace(absolute, name)
        return text

    record.output = str(job.output)
    record.names = job.names()
    if record.inputs is not None:
        record.inputs = {name: str(path) for name, path in job.paths.items()}
    if record.error is not None:
        record.error = given(record.error)
    record.warnings = [given(text) for text in record.warnings]
    return outcome._replace(record=record)


@contextmanager
def _connected(common: CommonOptions) -> Iterator["Client"]:
    """Connect to a scheduler, or start a cluster of processes on this machine."""
    for name in logging.root.manager.loggerDict:
        if name.partition(".")[0] in ("asyncio", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # workers that die are no news
    if common.scheduler is None:
        from bilateral.cli.running.local_cluster import local_cluster

        with local_cluster(common.workers or 1) as client:
            yield client
    else:
        with _client(common.scheduler) as client:
            yield client


def _client(address: str) -> "Client":
    """Connect to the scheduler at an address, or to the one that a file describes."""
    from distributed import Client

    where = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
    try:
        return Client(**where, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise FileError(
            f"--scheduler: no Dask scheduler answers at {printable(address)}: {one_line(error)}. "
            f"Expected an address such as tcp://host:8786, or the file of dask scheduler "
            f"--scheduler-file."
        ) from None
