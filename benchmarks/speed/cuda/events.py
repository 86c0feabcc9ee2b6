"""Times by the device's own clock, of work recorded as CUDA graphs."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import Timing

WARM_UPS, REPLAYS = 5, 20
_HEAD_START = 200_000
"""Cycles, a tenth of a millisecond."""
_COPIED = 2**30

_cuda: Any = torch.cuda  # partly without types

Work = Callable[[], Any]


def timed(work: Work, replays: int, before: Work | None = None) -> Timing:
    """Record work, which must not wait for the device, and time replays of the recording.

    What comes `before` each of them is a recording of its own, and not timed.
    """
    parts = [work] if before is None else [before, work]
    stream = _cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compile all kernels, make all constants
        for part in parts:
            part()
    torch.cuda.current_stream().wait_stream(stream)
    graphs, kept = [], []
    for part in parts:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept.append(part())  # or its memory might serve others while it is written to
        graphs.append(graph)
    *first, last = (graph.replay for graph in graphs)

    def prepare() -> None:
        for replay in first:
            replay()

    return _between_events(last, replays, prepare)


def copy_bandwidth(replays: int) -> float:
    """Bytes per second, read and written, of a copy on the device."""
    source = torch.zeros(_COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * _COPIED / _between_events(lambda: target.copy_(source), replays).median


def _between_events(work: Work, replays: int, prepare: Work = lambda: None) -> Timing:
    pairs = []
    for _ in range(WARM_UPS + replays):
        prepare()
        begin, end = (_cuda.Event(enable_timing=True) for _ in range(2))
        # The host gets ahead meanwhile: or the device might wait for its launches, and be timed.
        _cuda._sleep(_HEAD_START)
        begin.record()
        work()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return Timing.of([begin.elapsed_time(end) / 1e3 for begin, end in pairs[WARM_UPS:]])
