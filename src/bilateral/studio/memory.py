"""Give freed memory back to the system."""

import ctypes
import gc
from contextlib import suppress

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_arenas() -> None:
    """Let all threads share few heaps of glibc, where there is one: each keeps freed memory."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Collect cycles, and ask glibc, where there is one, to return the pages of its heaps."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
