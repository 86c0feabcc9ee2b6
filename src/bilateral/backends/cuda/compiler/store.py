"""Get the binary of a kernel: from the cache on disk, from helper processes, or by compiling it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from bilateral.backends.cuda.compiler import disk
from bilateral.backends.cuda.compiler.catalogue import catalogue
from bilateral.backends.cuda.compiler.driver import LoadedKernel
from bilateral.backends.cuda.compiler.pool import pool
from bilateral.backends.cuda.compiler.variant import Variant, compile_variant

_LONG_WAIT = 2.0
_SECONDS_PER_REPORT = 0.5
_lock = threading.Lock()
_waited, _told = 0.0, False


@cache
def capability(device: int) -> int:
    """Return the compute capability of a device, as 90."""
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


def load(variant: Variant, device: int) -> LoadedKernel:
    """Load a variant into the memory of a device."""
    described, code = _binary(variant, capability(device))
    return LoadedKernel(described, code, variant.types, device)


def compile_usual(target: int, progress: Callable[[int, int], None] | None = None) -> int:
    """Compile what usual calls need for a compute capability; return the number of kernels.

    `progress` is told how many of them are done and how many there are.
    """
    needed = missing(target)
    pool.request(needed, target)
    while needed and pool.left:
        pool.wait(_SECONDS_PER_REPORT)
        if progress is not None:
            progress(max(0, len(needed) - pool.left), len(needed))
    for variant in missing(target):  # without helpers
        disk.write(variant, target, *compile_variant(variant, target))
    return len(needed)


def missing(target: int) -> list[Variant]:
    """Return the variants of usual calls that no one has compiled for a compute capability yet."""
    return [variant for variant in catalogue() if not disk.exists(variant, target)]


def _binary(variant: Variant, target: int) -> tuple[dict[str, Any], bytes]:
    """Return the description and the code of a variant for a compute capability."""
    found = disk.read(variant, target)
    if found is not None:
        return found
    begin = time.monotonic()
    _request_usual(target)
    if pool.wait_for(variant, target):
        found = disk.read(variant, target)
    if found is None:
        found = compile_variant(variant, target)
        disk.write(variant, target, *found)
    _count_wait(time.monotonic() - begin)
    return found


@cache
def _request_usual(target: int) -> None:
    """Have all usual kernels compiled, since one was missing."""
    pool.request(missing(target), target)


def _count_wait(seconds: float) -> None:
    """Tell the user once why calls take so long."""
    global _waited, _told
    with _lock:
        _waited += seconds
        tell = _waited > _LONG_WAIT and not _told
        _told = _told or tell
    if tell:
        logging.getLogger("bilateral").warning(
            "bilateral compiles its CUDA kernels for this GPU, which takes some seconds once; "
            "they are kept in %s. `bilateral info --warm-up` does this ahead of time.",
            disk.folder(),
        )
