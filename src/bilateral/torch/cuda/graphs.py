"""CUDA graphs: what a function launches, and the steps of a solve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from bilateral.backends.cuda.constants import holding
from bilateral.backends.cuda.solve import pcg
from bilateral.backends.cuda.solve.report import HEADER

_FIRST = {"multigrid": 2, "pyramid": 8, "jacobi": 8}
"""Steps in the first graph of a recording."""
_NEXT = {"multigrid": 1, "pyramid": 4, "jacobi": 4}
"""Steps in the other, which is replayed as often as the solve before took it to be, and then until
the error is small enough, at which the host looks each time."""
_ALL = 32
"""If no more steps are allowed, the first graph has all of them, but for multigrid's."""


@contextmanager
def lasting() -> Iterator[None]:
    """Tensors made here may be written to later, inside `torch.inference_mode` and outside."""
    with torch.inference_mode(False), torch.no_grad():
        yield


class Graph:
    """What a function launches, in memory of its own or that of other graphs.

    It is called first, to compile all kernels and to make all constants, unless they are ready.
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
        # Threads other than this one may do what they want meanwhile.
        recording = torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local")
        with holding() as self._tables, recording:
            function()
        self.pool = graph.pool()
        self.replay: Callable[[], None] = graph.replay


class Steps:
    """The steps of a solve as two graphs: everything up to the first ones; and some more."""

    def __init__(
        self,
        kind: str,
        most: int,
        begin: Callable[[int], None],
        go_on: Callable[[int], None],
        pool: Any,
    ) -> None:
        few = most <= (_FIRST[kind] if kind == "multigrid" else _ALL)
        self._few = most if few else _FIRST[kind]
        self._more, self._most = _NEXT[kind], most
        self._ahead = 0
        """How often the second graph is replayed before the host looks."""
        self._first = Graph(partial(begin, self._few), pool)
        self._next = None
        if self._few < most:
            self._next = Graph(partial(go_on, self._more), pool, ready=True)

    def replay(self) -> None:
        """Make as many as the solve before took."""
        self._first.replay()
        for _ in range(self._ahead):
            self._go_on()

    def _go_on(self) -> None:
        assert self._next is not None
        self._next.replay()

    def finish(
        self, report: list[float], read: Callable[[], list[float]]
    ) -> tuple[pcg.Outcome, bool]:
        """Go on until the report says that it is done; and whether that took anything."""
        made = steps = self._few + self._ahead * self._more
        while not report[HEADER - 1] and steps < self._most:
            self._go_on()
            steps += self._more
            report = read()
        errors = pcg.trim_errors(report[HEADER : HEADER + steps])
        self._ahead = max(0, -(-(len(errors) - self._few) // self._more))
        return pcg.Outcome(errors, bool(report[HEADER - 1])), steps > made
