"""Set the number of threads that a call may use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bilateral import validation

_ENVIRONMENT = "BILATERAL_NUM_THREADS"
_MAX_THREADS = 1024
_num_threads: int | None = None
"""None: by the environment variable or the number of cores."""
_single = ContextVar("_single", default=False)


def set_num_threads(n: int) -> None:
    """Set the largest number of threads per call. Results do not depend on this number.

    Parameters
    ----------
    n : int
        At least 1. Numbers above 1024 count as 1024.

    Examples
    --------
    >>> import bilateral
    >>> before = bilateral.get_num_threads()
    >>> bilateral.set_num_threads(1)
    >>> bilateral.get_num_threads()
    1
    >>> bilateral.set_num_threads(before)
    """
    global _num_threads
    _num_threads = min(validation.count("n", n, least=1), _MAX_THREADS)


def get_num_threads() -> int:
    """Return the largest number of threads per call.

    It is the number of `set_num_threads`, else that of the environment variable
    ``BILATERAL_NUM_THREADS``, else the number of usable cores.

    Returns
    -------
    int

    Examples
    --------
    >>> import bilateral
    >>> bilateral.get_num_threads() >= 1
    True
    """
    if _single.get():
        return 1
    if _num_threads is not None:
        return _num_threads
    value = os.environ.get(_ENVIRONMENT, "").strip()
    if value:
        return min(validation.count_from_text(_ENVIRONMENT, value, least=1), _MAX_THREADS)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


@contextmanager
def single_threaded() -> Iterator[None]:
    """Use one thread per call: for tasks that already run side by side."""
    token = _single.set(True)
    try:
        yield
    finally:
        _single.reset(token)
