"""Time work that is recorded as CUDA graphs, by the device's clock."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.common.timing import Timing

WARM_UPS, REPLAYS = 5, 20
_HEAD_START = 200_000  # cycles, a tenth of a millisecond
_COPIED = 2**30

_cuda: Any = torch.cuda  # partly without types

Work = Callable[[], Any]


def timed(work: Work, replays: int, before: Work | None = None) -> Timing:
    """Record work, which must not wait for the device, and time replays of the recording.

    The work `before` each replay is a recording of its own and is not timed.
    """
    parts = [work] if before is None else [before, work]
    stream = _cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compile all kernels, make all constants
        for part in parts:
            part()
    torch.cuda.current_stream().wait_stream(stream)
    graphs, outputs = [], []
    for part in parts:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs.append(part())  # else its memory could be reused while it is written to
        graphs.append(graph)
    *first, last = (graph.replay for graph in graphs)
    return _between_events(last, replays, lambda: [replay() for replay in first])


def copy_bandwidth(replays: int) -> float:
    source = torch.zeros(_COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * _COPIED / _between_events(lambda: target.copy_(source), replays).median


def _between_events(work: Work, replays: int, prepare: Work = lambda: None) -> Timing:
    pairs = []
    for _ in range(WARM_UPS + replays):
        prepare()
        begin, end = (_cuda.Event(enable_timing=True) for _ in range(2))
        # The host gets ahead meanwhile; else the clock could include waiting for launches.
        _cuda._sleep(_HEAD_START)
        begin.record()
        work()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return Timing.of([begin.elapsed_time(end) / 1e3 for begin, end in pairs[WARM_UPS:]])
