"""Time one of our functions on several threads, in turns with OpenCV's."""

import time
from collections.abc import Callable
from typing import Any

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.timing import Stopwatch, clock, in_turns

Row = dict[str, Any]


def with_opencv(
    ours: tuple[Any, ...],
    call: tuple[Any, ...],
    peer: Worker | None,
    check: Callable[[Any], None],
    counts: tuple[int, ...],
    repeats: int,
    more: dict[Any, Stopwatch] | None = None,
) -> Row:
    """Time ``ours[0](*ours[1:])``, `more`, and the worker's call, whose result `check` gets."""

    def on_threads(threads: int) -> Stopwatch:
        def run() -> float:
            bilateral.set_num_threads(threads)
            return clock(*ours)[0]

        return run

    calls = (more or {}) | {threads: on_threads(threads) for threads in counts}
    if peer:
        peer.run(*call, threads=counts[-1], save=True)
        check(peer.result())
        calls["opencv"] = lambda: peer.run(*call, threads=counts[-1])["seconds"]
    others = Others(lambda: time.process_time() + (peer.cpu_seconds if peer else 0.0))
    times = in_turns(calls, repeats)
    opencv = times.get("opencv")
    return {
        "ours": {threads: times[threads] for threads in counts},
        "opencv": opencv,
        "ratio": opencv.median / times[counts[-1]].median if opencv else None,
        "other_work": others.cores(),
        **{name: times[name] for name in more or {}},
    }
