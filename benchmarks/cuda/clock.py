"""Time calls on a CUDA device by the host's clock, the host's own work included."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.common.timing import Timing, clock
from benchmarks.cuda.events import WARM_UPS


def repeated(repeats: int, call: Callable[..., Any], **options: Any) -> Timing:
    """Time a call after the warm-ups, in which recordings are made."""
    taken = [seconds(call, **options)[0] for _ in range(WARM_UPS + repeats)]
    return Timing.of(taken[WARM_UPS:])


def seconds(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Time a call until the device has finished."""
    torch.cuda.synchronize()
    return clock(lambda: (call(*arguments, **options), torch.cuda.synchronize())[0])
