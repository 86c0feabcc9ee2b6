"""Run jobs in threads of this process."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import bilateral
from bilateral.cli.running.job import Job, Outcome
from bilateral.io import atomic


def run(
    jobs: Sequence[Job], process: Callable[[Job], Outcome], threads: int | None
) -> Iterator[Outcome]:
    """Process jobs in some threads, which share the cores; yield each outcome when it is there.

    Parameters
    ----------
    jobs : sequence of Job
    process : function
    threads : int, optional
        Number of jobs at a time. Default: one per core. A single thread keeps the order.
    """
    cores = bilateral.get_num_threads()
    threads = min(threads or cores, len(jobs))
    if threads <= 1:
        yield from map(process, jobs)
        return
    bilateral.set_num_threads(max(1, cores // threads))
    pool = ThreadPoolExecutor(threads)
    try:
        futures = {pool.submit(process, job) for job in jobs}
        for future in as_completed(futures):
            futures.discard(future)
            yield future.result()
    except BaseException:
        atomic.abandon()  # threads continue until the program ends, and must not write any more
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        bilateral.set_num_threads(cores)
    pool.shutdown()
