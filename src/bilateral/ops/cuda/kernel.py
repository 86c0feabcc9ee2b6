"""How kernels are compiled and launched.

Once for all sizes: Triton compiles a kernel anew for each combination of numbers that are 1 or a
multiple of 16. With sizes among them, images of many sizes would wait for compilations again and
again.

And ahead of time, where the device can: a kernel is launched while the one before it still runs,
and waits for its end before it reads or writes anything. A solve is hundreds of kernels of a few
microseconds, of which launches take a large part.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait
except ImportError:  # an older Triton
    gdc_launch_dependents = gdc_wait = None

_SIZES = [
    "across",
    "bounds_of_images",
    "coarse_room",
    "columns",
    "columns_of_tiles",
    "count",
    "depth",
    "entries",
    "height",
    "images",
    "lower",
    "most_steps",
    "programs",
    "room",
    "rows",
    "steps",
    "stride",
    "tiles",
    "upper",
    "width",
]


def _can_overlap() -> bool:
    """Whether all devices can launch a kernel before the one before it has ended."""
    devices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    new = [torch.cuda.get_device_capability(k) >= (9, 0) for k in devices]
    return gdc_wait is not None and bool(new) and all(new)


_OVERLAP: tl.constexpr = tl.constexpr(_can_overlap())


class Kernel:
    """What the host launches, with a number of programs in brackets."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, programs: tuple[int, ...]) -> Callable[..., None]:
        launch: Callable[..., None] = self._function[programs]
        return partial(launch, launch_pdl=True) if _OVERLAP.value else launch


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function, which must call `after_previous` before all else."""
    return Kernel(triton.jit(do_not_specialize=_SIZES)(function))


@triton.jit
def after_previous():
    """Wait until the kernels before have ended; from then on the next one may be launched."""
    if _OVERLAP:
        gdc_wait()
        gdc_launch_dependents()
