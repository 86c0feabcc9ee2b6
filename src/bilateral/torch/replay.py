"""Solves without derivatives on a device: recorded once as CUDA graphs, then replayed.

A solve is hundreds of small kernels, and to launch them takes far longer than to run them. So from
the second solve of a kind on, for the same shapes and options, the whole of it is replayed from a
recording, in memory that it keeps. That works where nothing needs the host: values and weights in
order, numbers that the dtype serves, hardly more vertices than the recorded images had. The device
tells whether it was so; if not, the solve is done again, step by step.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from bilateral.ops.cuda import pcg, splatting
from bilateral.ops.cuda.constants import holding
from bilateral.ops.cuda.multigrid import Multigrid
from bilateral.ops.cuda.report import FACTS, new_report, write_report
from bilateral.ops.cuda.survey import survey
from bilateral.torch import device
from bilateral.torch.device import HierarchyRooms, Options

_FIRST = {"multigrid": 2, "pyramid": 8, "jacobi": 8}
"""Steps in the first graph of a recording."""
_NEXT = {"multigrid": 1, "pyramid": 4, "jacobi": 4}
"""Steps in the other, which is replayed as often as the solve before took it to be, and then until
the error is small enough, at which the host looks each time."""
_ALL = 32
"""If no more steps are allowed, the first graph has all of them, but for multigrid's."""
_LEAST_ROOM = 256
_MORE_LEVELS = 1
"""Of multigrid's hierarchy, than the recorded images had."""
_KEPT = 4
"""Recordings of so many kinds of solve are kept."""

_lock = threading.Lock()
_seen: OrderedDict[Any, "Recorder"] = OrderedDict()


def solve(
    reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float, options: Options
) -> tuple[Tensor, pcg.Outcome] | None:
    """As `device.solve`, for (B, C, H, W) references; None if it must be done otherwise."""
    if options.max_iterations == 0:
        return None
    shapes = tuple(reference.shape), tuple(values.shape), weights is not None
    key = *shapes, reference.dtype, values.dtype, values.device, tuple(map(_plain, options))
    with _lock:
        if key not in _seen:
            _seen[key] = Recorder(options)
            while len(_seen) > _KEPT:
                _seen.popitem(last=False)
            return None
        _seen.move_to_end(key)
        return _seen[key].solve(reference, values, weights, smoothness)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


class Recorder:
    """Recordings for the same shapes and options, by their preconditioner."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kind = "pyramid" if options.preconditioner == "multigrid" else options.preconditioner
        self._recordings: dict[str, Recording] = {}
        self._no_memory = False

    def solve(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float
    ) -> tuple[Tensor, pcg.Outcome] | None:
        """By the preconditioner that served last, or by the other."""
        inputs = reference, values, weights
        for _ in range(2):
            if self._no_memory:
                return None
            recording = self._recordings.get(self._kind)
            if recording is None or recording.outgrown:
                least = None if recording is None else recording.rooms
                self._recordings.pop(self._kind, None)
                del recording  # its memory is free, then
                recording = self._record(*inputs, least)
            found = None if recording is None else recording.solve(*inputs, smoothness)
            if not isinstance(found, str):
                return found
            self._kind = found
        return None

    def _record(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, least: "Rooms | None"
    ) -> "Recording | None":
        try:
            made = Recording(reference, values, weights, self._options, self._kind, least)
        except RuntimeError as error:
            # The end of a recording that failed may fail, too.
            if not any(isinstance(e, torch.OutOfMemoryError) for e in (error, error.__context__)):
                raise
            self._no_memory = True
            for recorder in _seen.values():
                recorder._recordings.clear()
            torch.cuda.empty_cache()
            return None  # a plain solve takes less
        self._recordings[self._kind] = made
        return made


class Rooms:
    """How much a recording has room for."""

    def __init__(self, reference: Tensor, options: Options, kind: str) -> None:
        where = device.space(reference, options)
        self.grid = [_more(n) for n in where.grid.rooms]
        self.hierarchy: HierarchyRooms | None = None
        if kind == "multigrid":
            found = where.hierarchy(torch.float32)
            sizes = [(_more(rows), _more(links)) for rows, links in found.rooms]
            sizes += [(_LEAST_ROOM, _LEAST_ROOM)] * _MORE_LEVELS
            self.hierarchy = HierarchyRooms(sizes, found.alone)

    def grow(self, other: "Rooms") -> None:
        """To what either has."""
        self.grid = _larger(self.grid, other.grid)
        if self.hierarchy is not None and other.hierarchy is not None:
            pairs = zip_longest(
                self.hierarchy.levels or (), other.hierarchy.levels or (), fillvalue=(0, 0)
            )
            larger = [(max(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
            self.hierarchy = self.hierarchy._replace(levels=larger)


def _more(count: int) -> int:
    return count + count // 4 + _LEAST_ROOM


def _larger(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return [max(pair) for pair in zip(a, b, strict=True)]


class Recording:
    """The graphs of one kind of solve, and their memory."""

    def __init__(
        self,
        reference: Tensor,
        values: Tensor,
        weights: Tensor | None,
        options: Options,
        kind: str,
        least: Rooms | None,
    ) -> None:
        self._options = options
        self._kind = kind
        self.outgrown = False
        self.rooms = Rooms(reference, options, kind)
        if least is not None:
            self.rooms.grow(least)
        self._reference, self._values = reference.clone(), values.clone()
        self._weights = None if weights is None else weights.clone()
        self._smoothness = torch.ones((), dtype=torch.float64, device=values.device)
        self._smoothness_there = 1.0
        most = options.max_iterations
        few = most <= (_FIRST[kind] if kind == "multigrid" else _ALL)
        self._steps = most if few else _FIRST[kind]
        self._ahead = 0
        """How often the second graph is replayed before the host looks."""
        self._report = new_report(most, values.device)
        self._free: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # compile all kernels, make all constants
            self._begin()
        torch.cuda.current_stream().wait_stream(stream)
        self._first, self._next = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with holding() as self._tables:
            with torch.cuda.graph(self._first):
                self._begin()
            if self._steps < most:
                with torch.cuda.graph(self._next, pool=self._first.pool()):
                    self._go_on(_NEXT[kind])

    def _begin(self) -> None:
        """Everything up to the first steps."""
        options, values = self._options, self._values
        rooms = self.rooms
        where = device.space(self._reference, options, rooms.grid, rooms.hierarchy)
        self._grid = grid = where.grid
        self._seen = survey(values, self._weights, grid.shape[0])
        weight, self._b = splatting.splat_weighted(grid, values, self._weights)
        self._poor = device.count_poor(grid, weight, self._smoothness)
        gaps = self._kind == "multigrid"
        self._problem = problem = device.Problem(
            where, weight, self._smoothness, self._kind, gaps, options.max_iterations
        )
        self._trouble: tuple[Tensor | None, Tensor | None] = None, None
        if isinstance(problem.preconditioner, Multigrid):
            overflow = where.hierarchy(weight.dtype).overflow
            self._trouble = overflow, problem.preconditioner.faint
        self._x = problem.start(self._b)
        self._elsewhere = problem.elsewhere(self._b)
        # Where both graphs leave the solution.
        self._y = self._x if self._elsewhere is None else torch.empty_like(self._x)
        self._run = pcg.Iteration(
            problem.matrix,
            problem.preconditioner,
            self._b,
            self._x,
            self._seen.scale,
            None,
            options.max_iterations,
            options.tolerance,
        )
        self._go_on(self._steps)

    def _go_on(self, steps: int) -> None:
        """Some more steps, and a report."""
        for _ in range(steps):
            self._run.step()
        if self._elsewhere is not None:
            self._problem.fill(self._x, self._elsewhere, out=self._y)
        seen, poor = self._seen, self._poor
        write_report(self._report, self._grid, seen, poor, *self._trouble, self._run)

    def solve(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float
    ) -> tuple[Tensor, pcg.Outcome] | str | None:
        """Replay it for other inputs.

        None if it does not serve for them, the preconditioner's name if another would.
        """
        stream = torch.cuda.current_stream()
        stream.wait_event(self._free)
        self._reference.copy_(reference)
        self._values.copy_(values)
        if self._weights is not None and weights is not None:
            self._weights.copy_(weights)
        if smoothness != self._smoothness_there:
            self._smoothness.fill_(smoothness)
            self._smoothness_there = smoothness
        self._first.replay()
        for _ in range(self._ahead):
            self._next.replay()
        out = splatting.slice_(self._grid, self._y)
        more, most = _NEXT[self._kind], self._options.max_iterations
        steps = self._steps + self._ahead * more
        *facts, done = (report := self._report.tolist())[:FACTS]
        kind = self._judge(facts, smoothness)
        if kind != self._kind:
            return kind
        if not done and steps < most:
            while not done and steps < most:
                self._next.replay()
                steps += more
                done = (report := self._report.tolist())[FACTS - 1]
            out = splatting.slice_(self._grid, self._y)
        self._free.record(stream)
        errors = pcg.until_zero(report[FACTS : FACTS + steps])
        self._ahead = max(0, -(-(len(errors) - self._steps) // more))
        return out, pcg.Outcome(errors, bool(done))

    def _judge(self, facts: list[float], smoothness: float) -> str | None:
        """The preconditioner that it takes; None if no recording is right."""
        *totals, strange, bare, poor, overflow, faint, weight, invalid, unknown = facts
        rooms = self.rooms.grid
        self.outgrown = bool(overflow) or any(
            n > room for n, room in zip(totals, rooms, strict=True)
        )
        images, height, width = self._grid.shape
        pixels = height * width
        if self.outgrown or strange or invalid or unknown or weight <= 0 or faint:
            return None
        if not device.single_serves(smoothness, pixels, weight, totals[0] / images):
            return None
        kind = device.choose(
            self._options, smoothness, pixels, weight, bare, poor / (images * pixels)
        )
        return None if bare and kind != "multigrid" else kind
