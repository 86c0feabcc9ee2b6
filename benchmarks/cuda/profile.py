"""Count the launches of each task on a CUDA device, and list the kernels that take longest.

``python -m benchmarks.cuda.profile [name ...]``: tasks whose name contains one of these; default:
all.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import torch
from torch import profiler

from benchmarks.cuda import tasks
from benchmarks.cuda.clock import repeated
from benchmarks.cuda.drawn import drawn, mirrored
from benchmarks.cuda.figures import MEGAPIXEL, Call, task_calls

REPEATS, WARM_UPS, KERNELS = 10, 3, 8
LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
COPIES, WAITS = ("cudaMemcpyAsync", "cudaMemsetAsync"), ("cudaStreamSynchronize",)


def measured(name: str, call: Call, tensors: tuple[Any, ...]) -> str:
    """Return lines on one task."""
    on = [tensor.cuda() for tensor in tensors]
    for _ in range(WARM_UPS):
        call(*on)
    milliseconds = 1e3 * repeated(REPEATS, lambda: call(*on)).median
    activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
    with profiler.profile(activities=activities) as profile:
        call(*on)
        torch.cuda.synchronize()
    calls: Counter[str] = Counter()
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name] += event.time_range.elapsed_us()
            counts[event.name] += 1
        else:
            calls[event.name] += 1
    launches, copies, waits = (
        sum(calls[each] for each in names) for names in (LAUNCHES, COPIES, WAITS)
    )
    lines = [
        f"{name}: {milliseconds:.2f} ms; device {sum(times.values()) / 1e3:.2f} ms in "
        f"{sum(counts.values())} kernels; host: {launches} launches, {calls['cudaGraphLaunch']} "
        f"graphs, {copies} copies, {waits} waits"
    ]
    for kernel, microseconds in times.most_common(KERNELS):
        lines.append(f"    {microseconds:8.0f} us {counts[kernel]:5d} x {kernel[:70]}")
    return "\n".join(lines)


def main() -> None:
    if not torch.cuda.is_available():
        print("CUDA skipped: PyTorch finds no device here.")
        return
    pixels = drawn()
    photo, square = tasks.as_tensor(pixels), tasks.as_tensor(mirrored(pixels, *MEGAPIXEL))
    calls = {**task_calls(), **tasks.cases(photo, square)}
    for name, (call, tensors) in calls.items():
        if len(sys.argv) < 2 or any(part in name for part in sys.argv[1:]):
            print(measured(name, call, tensors), flush=True)


if __name__ == "__main__":
    main()
