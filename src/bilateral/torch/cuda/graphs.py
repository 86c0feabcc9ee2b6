"""Record CUDA graphs: of one function, and of the steps of a solve."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from bilateral.backends.cuda.constants import holding
from bilateral.backends.cuda.solve import pcg
from bilateral.backends.cuda.solve.report import CONVERGED, DIVERGED, HEADER
from bilateral.torch.cuda.device_memory import lock_of

_FIRST_STEPS = {"multigrid": 2, "pyramid": 8, "jacobi": 8}
"""Steps in the first graph of a solve."""
_MORE_STEPS = {"multigrid": 1, "pyramid": 4, "jacobi": 4}
"""Steps in the second graph. It is replayed as many times as the previous solve needed, and then
until the error is small enough; the host reads the error after each of these replays."""
_MAX_FIRST_STEPS = 32
"""If `max_iterations` is at most this, the first graph has all steps, except for multigrid's."""

_MAX_REMEMBERED = 64
"""Number of kinds of solve whose number of steps is remembered."""


@contextmanager
def lasting_tensors() -> Iterator[None]:
    """Allow tensors made here to be written later, inside and outside `torch.inference_mode`."""
    with torch.inference_mode(False), torch.no_grad():
        yield


class Graph:
    """A CUDA graph of all kernels that a function launches.

    Parameters
    ----------
    function : function
    pool : optional
        Memory of other graphs to share. Default: memory of its own.
    ready : bool
        Whether all kernels are compiled and all constants exist. If not, the function is called
        once before the recording, to make them.
    """

    def __init__(
        self, function: Callable[[], None], pool: Any = None, *, ready: bool = False
    ) -> None:
        if not ready:
            stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                function()
            torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # "thread_local": calls of other threads must not end the recording.
        recording = torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local")
        with holding() as self._tables, recording:
            function()
        self.pool = graph.pool()
        self.replay: Callable[[], None] = graph.replay


def record_briefly(launch: Callable[[], None]) -> Callable[[], None]:
    """Record a CUDA graph of what a function launches; return the function that replays it.

    It is for work that is repeated within one call, in memory that the caller keeps. Unlike
    `Graph`, this neither waits for the device nor returns PyTorch's free memory, which would take
    longer than the launches that it saves. All kernels must have been launched before.
    """
    device = torch.device("cuda", torch.cuda.current_device())
    stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with lock_of(device), holding() as tables, torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            launch()
        finally:
            graph.capture_end()

    def replay(_: Any = tables) -> None:
        graph.replay()

    return replay


class Steps:
    """The steps of a solve as two graphs: everything up to the first steps, and some more steps.

    Parameters
    ----------
    kind : str
        Name of the preconditioner.
    max_iterations : int
    start, proceed : function of the number of steps
        Launch the solve up to its first steps, and more steps.
    pool
        Memory of both graphs.
    """

    def __init__(
        self,
        kind: str,
        max_iterations: int,
        start: Callable[[int], None],
        proceed: Callable[[int], None],
        pool: Any,
    ) -> None:
        limit = _FIRST_STEPS[kind] if kind == "multigrid" else _MAX_FIRST_STEPS
        self._first_steps = max_iterations if max_iterations <= limit else _FIRST_STEPS[kind]
        self._more_steps, self._max_iterations = _MORE_STEPS[kind], max_iterations
        self._repeats: dict[Hashable, int] = {}
        """How many times the second graph is replayed before the host reads the error: as many as
        the previous solve of the same kind needed."""
        self._first = Graph(partial(start, self._first_steps), pool)
        self._more = None
        if self._first_steps < max_iterations:
            self._more = Graph(partial(proceed, self._more_steps), pool, ready=True)

    def replay(self, kind: Hashable = None) -> None:
        """Replay as many steps as the previous solve of a kind needed."""
        self._first.replay()
        for _ in range(self._repeats.get(kind, 0)):
            self._replay_more()

    def _replay_more(self) -> None:
        assert self._more is not None
        self._more.replay()

    def finish(
        self, report: list[float], read: Callable[[], list[float]], kind: Hashable = None
    ) -> tuple[pcg.Outcome, bool]:
        """Replay steps until the report says that the solve of a kind has converged.

        Returns the outcome, and whether any step was replayed.
        """
        replayed = steps = self._first_steps + self._repeats.get(kind, 0) * self._more_steps
        while not report[CONVERGED] and steps < self._max_iterations:
            self._replay_more()
            steps += self._more_steps
            report = read()
        errors = pcg.trim_errors(report[HEADER : HEADER + steps])
        if len(self._repeats) >= _MAX_REMEMBERED:
            self._repeats.clear()
        self._repeats[kind] = max(0, -(-(len(errors) - self._first_steps) // self._more_steps))
        diverged = bool(report[DIVERGED])
        outcome = pcg.Outcome(errors, bool(report[CONVERGED]) and not diverged, diverged)
        return outcome, steps > replayed
