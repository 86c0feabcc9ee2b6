"""How many threads a call may use."""

import os

from bilateral import validation

_ENVIRONMENT = "BILATERAL_NUM_THREADS"
_MOST = 1024
_chosen: int | None = None


def set_num_threads(n: int) -> None:
    """Use at most `n` threads per call from now on. Results do not depend on it.

    Parameters
    ----------
    n : int
        At least 1; more than 1024 count as 1024.

    Examples
    --------
    >>> import bilateral
    >>> before = bilateral.get_num_threads()
    >>> bilateral.set_num_threads(1)
    >>> bilateral.get_num_threads()
    1
    >>> bilateral.set_num_threads(before)
    """
    global _chosen
    _chosen = min(validation.count("n", n, least=1), _MOST)


def get_num_threads() -> int:
    """Threads per call: what was set, else ``BILATERAL_NUM_THREADS``, else every usable core.

    Returns
    -------
    int
    """
    if _chosen is not None:
        return _chosen
    value = os.environ.get(_ENVIRONMENT, "").strip()
    if value:
        return min(validation.count_from_text(_ENVIRONMENT, value, least=1), _MOST)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
