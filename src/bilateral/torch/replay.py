"""Solves on a device: recorded once as CUDA graphs, then replayed.

A solve is hundreds of small kernels, and to launch them takes far longer than to run them. So from
the second solve of a kind on, for the same shapes and options, the whole of it is replayed from a
recording, in memory that it keeps. That works where nothing needs the host: values and weights in
order, numbers that the dtype serves, hardly more vertices than the recorded images had. The device
tells whether it was so; if not, the solve is done again, step by step.

A backward replays a recording, too, in the memory of its forward's, where the matrix is. If that
was replayed for another solve meanwhile, the forward is replayed first.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

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


class Solved(NamedTuple):
    """What a recording made."""

    x: Tensor
    """(B H W, K)"""
    outcome: pcg.Outcome
    ticket: "Ticket"


def solve(
    reference: Tensor,
    values: Tensor,
    weights: Tensor | None,
    smoothness: float,
    options: Options,
    *,
    like: "Ticket | None" = None,
    remember: bool = True,
) -> Solved | None:
    """As `device.solve`, for (B, C, H, W) references; None if it must be done otherwise.

    The second solve of a kind that is to be remembered makes a recording. One that is `like`
    another has the same reference.
    """
    if options.max_iterations == 0:
        return None
    kind = key(reference, values, weights, options)
    with _lock:
        if kind not in _seen and remember:
            _seen[kind] = Recorder(options)
            while len(_seen) > _KEPT:
                _seen.popitem(last=False)
            return None
    return replay(kind, reference, values, weights, smoothness, like)


def key(reference: Tensor, values: Tensor, weights: Tensor | None, options: Options) -> Any:
    """What recordings have in common with a solve that they serve for."""
    shapes = tuple(reference.shape), tuple(values.shape), weights is not None
    return *shapes, reference.dtype, values.dtype, values.device, tuple(map(_plain, options))


def replay(
    kind: Any,
    reference: Tensor,
    values: Tensor,
    weights: Tensor | None,
    smoothness: float,
    like: "Ticket | None" = None,
) -> Solved | None:
    """A solve by the recordings of a key; None if there are none that serve."""
    with _lock:
        recorder = _seen.get(kind)
        if recorder is None:
            return None
        _seen.move_to_end(kind)
        return recorder.solve(reference, values, weights, smoothness, like)


def forget() -> None:
    """Give back the memory of all recordings."""
    with _lock:
        _forget()


def _forget() -> None:
    for recorder in _seen.values():
        recorder.recordings.clear()
    torch.cuda.empty_cache()


def lacks_memory(error: RuntimeError) -> bool:
    """Whether it is the device's memory that was too little."""
    # The end of a recording that failed may fail, too.
    return any(isinstance(e, torch.OutOfMemoryError) for e in (error, error.__context__))


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


class Recorder:
    """Recordings for the same shapes and options, by their preconditioner."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kind = "pyramid" if options.preconditioner == "multigrid" else options.preconditioner
        self.recordings: dict[str, Recording] = {}
        self._no_memory = self._declined = False

    def solve(
        self,
        reference: Tensor,
        values: Tensor,
        weights: Tensor | None,
        smoothness: float,
        like: "Ticket | None" = None,
    ) -> Solved | None:
        """By the preconditioner that served last, or by the other."""
        if self._declined:  # a moment ago, and this is the same call
            self._declined = False
            return None
        inputs = reference, values, weights
        for _ in range(2):
            if self._no_memory:
                return None
            recording = self.recordings.get(self._kind)
            if recording is None or recording.outgrown:
                least = None if recording is None else recording.rooms
                self.recordings.pop(self._kind, None)
                del recording  # its memory is free, then
                recording = self._record(*inputs, least)
            same = recording is not None and like is not None and like.is_last_of(recording)
            found = None if recording is None else recording.solve(*inputs, smoothness, same)
            if recording is None or found is None:
                self._declined = recording is not None and not recording.may_serve
                return None
            if not isinstance(found, str):
                return Solved(*found, Ticket(recording))
            self._kind = found
        return None

    def _record(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, least: "Rooms | None"
    ) -> "Recording | None":
        try:
            made = Recording(reference, values, weights, self._options, self._kind, least)
        except RuntimeError as error:
            if not lacks_memory(error):
                raise
            self._no_memory = True
            _forget()
            return None  # a plain solve takes less
        self.recordings[self._kind] = made
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
        self.outgrown = self.may_serve = False
        """Whether the last solve needed more room; whether with that it would do, or with values
        that are finite."""
        self.rooms = Rooms(reference, options, kind)
        if least is not None:
            self.rooms.grow(least)
        self._reference, self._values = reference.clone(), values.clone()
        self._weights = None if weights is None else weights.clone()
        self._smoothness = torch.ones((), dtype=torch.float64, device=values.device)
        self._smoothness_there = 1.0
        self._report = new_report(options.max_iterations, values.device)
        self._free: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.solves = 0
        """How many were replayed."""
        # Apart, so that the device has work as soon as it has the reference, and that what needs
        # the values, and the pyramid, go on beside the rest, in memory of their own.
        self._grid_graph = _Graph(self._build_grid)
        self._grid_graph.replay()
        self.pool = self._grid_graph.pool
        """The memory of all graphs but one, which follow one another."""
        self._space_graph = _Graph(self._complete_space, self.pool)
        self._space_graph.replay()
        self._beside: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._values_graph = _Graph(self._take_values)
        self._values_graph.replay()
        self._steps = _Steps(kind, options.max_iterations, self._begin, self._go_on, self.pool)
        self._inverse: _Inverse | None = None

    def _build_grid(self) -> None:
        rooms = self.rooms
        self._space = device.space(self._reference, self._options, rooms.grid, rooms.hierarchy)

    def _complete_space(self) -> None:
        """All that a space would otherwise make, and keep, when it is asked for."""
        self._space = self._space.renewed()
        dtype = self._values.dtype
        self._space.balanced(dtype)
        if self._kind == "multigrid" and (hierarchy := self._space.hierarchy(dtype)).depth > 0:
            hierarchy.tail  # noqa: B018

    def _take_values(self) -> None:
        self._grid = grid = replace(self._space.grid)  # whose pyramid is still to be built
        self._seen = survey(self._values, self._weights, grid.shape[0])
        self._weight, self._b = splatting.splat_weighted(grid, self._values, self._weights)
        self._poor = device.count_poor(grid, self._weight, self._smoothness)
        self._elsewhere: Tensor | None = None
        if self._kind == "multigrid":
            self._elsewhere = device.pulled(grid, self._b, self._weight)
        else:
            grid.pyramid  # noqa: B018

    def _begin(self, steps: int) -> None:
        """The rest, up to the first steps."""
        options, where, weight = self._options, self._space, self._weight
        where.grid = self._grid
        self.problem = problem = device.Problem(
            where, weight, self._smoothness, self._kind, False, options.max_iterations
        )
        self._trouble: tuple[Tensor | None, Tensor | None] = None, None
        fine, stream = problem.preconditioner, torch.cuda.current_stream()
        self._beside.wait_stream(stream)
        if isinstance(fine, Multigrid):
            with torch.cuda.stream(self._beside):  # what is not needed before the end
                problem.active = fine.with_data
                self._trouble = where.hierarchy(weight.dtype).overflow, fine.faint
        self._x = problem.start(self._b)
        # Where both graphs leave the solution.
        problem.y = self._x if self._elsewhere is None else torch.empty_like(self._x)
        self._run = pcg.Iteration(
            problem.matrix,
            problem.preconditioner,
            self._b,
            self._x,
            self._seen.scale,
            None,
            options.max_iterations,
            device.tolerance_for(options),
        )
        stream.wait_stream(self._beside)
        self._go_on(steps)

    def _go_on(self, steps: int) -> None:
        """Some more steps, and a report."""
        for _ in range(steps):
            self._run.step()
        self._run.finish()
        if self._elsewhere is not None:
            self.problem.fill(self._x, self._elsewhere, out=self.problem.y)
        self.report(self._run)

    def report(self, run: pcg.Iteration) -> None:
        """Write one on an iteration with this matrix."""
        write_report(self._report, self._grid, self._seen, self._poor, *self._trouble, run)

    def read(self) -> list[float]:
        """The report, when the device has come to it."""
        found: list[float] = self._report.tolist()
        return found

    @contextmanager
    def in_use(self) -> Iterator[torch.cuda.Stream]:
        """Its memory is nobody else's meanwhile, on whatever stream: the current one."""
        stream = torch.cuda.current_stream()
        stream.wait_event(self._free)
        try:
            yield stream
        finally:
            self._free.record(stream)

    def solve(
        self,
        reference: Tensor,
        values: Tensor,
        weights: Tensor | None,
        smoothness: float,
        same_reference: bool = False,
    ) -> tuple[Tensor, pcg.Outcome] | str | None:
        """Replay it for other inputs, or but for the reference.

        None if it does not serve for them, the preconditioner's name if another would.
        """
        self.solves += 1
        with self.in_use() as stream:
            if smoothness != self._smoothness_there:
                self._smoothness.fill_(smoothness)
                self._smoothness_there = smoothness
            self._beside.wait_stream(stream)
            if not same_reference:
                self._reference.copy_(reference)
                self._grid_graph.replay()
            with torch.cuda.stream(self._beside):
                self._values.copy_(values)
                if self._weights is not None and weights is not None:
                    self._weights.copy_(weights)
            if not same_reference:
                self._beside.wait_stream(stream)
                self._space_graph.replay()
            with torch.cuda.stream(self._beside):
                self._values_graph.replay()
            stream.wait_stream(self._beside)
            self._steps.replay()
            out = splatting.slice_(self._grid, self.problem.y)
            report = self.read()
            kind = self._judge(report[: FACTS - 1], smoothness)
            if kind != self._kind:
                return kind
            outcome, more = self._steps.finish(report, self.read)
            if more:
                out = splatting.slice_(self._grid, self.problem.y)
        return out, device.reached(outcome, self._options)

    def inverse(self, g: Tensor) -> tuple[device.Inverse, pcg.Outcome]:
        """For (B H W, K) pixels and the last solve's matrix, in memory that is used again."""
        if self._inverse is None or self._inverse.g.shape != g.shape:
            self._inverse = _Inverse(self, g, self._kind, self._options)
        return self._inverse(g)

    def _judge(self, facts: list[float], smoothness: float) -> str | None:
        """The preconditioner that it takes; None if no recording is right."""
        *totals, strange, bare, poor, overflow, faint, weight, invalid, unknown = facts
        rooms = self.rooms.grid
        self.outgrown = bool(overflow) or any(
            n > room for n, room in zip(totals, rooms, strict=True)
        )
        self.may_serve = self.outgrown or bool(unknown)
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


class _Inverse:
    """The graphs that apply A^-1 S with the matrix of a recording."""

    def __init__(self, recording: Recording, g: Tensor, kind: str, options: Options) -> None:
        self._recording = weakref.proxy(recording)
        self._most = options.max_iterations
        self._tolerance = recording.problem.of_result(options.tolerance)
        self.g = g.clone()
        self._steps = _Steps(kind, self._most, self._begin, self._go_on, recording.pool)
        self._steps.replay()
        self._last = _Graph(self._end, recording.pool)

    def __call__(self, g: Tensor) -> tuple[device.Inverse, pcg.Outcome]:
        self.g.copy_(g)
        self._steps.replay()
        self._last.replay()
        read = self._recording.read
        outcome, more = self._steps.finish(read(), read)
        if more:
            self._last.replay()
        return self._found, outcome

    def _begin(self, steps: int) -> None:
        problem = self._recording.problem
        self._part = part = device.Inversion(problem, self.g)
        self._run = pcg.Iteration(
            problem.matrix,
            problem.preconditioner,
            part.b,
            part.x,
            None,
            problem.active,
            self._most,
            self._tolerance,
        )
        self._go_on(steps)

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            self._run.step()
        self._run.finish()
        self._recording.report(self._run)

    def _end(self) -> None:
        self._found = self._part.end()


class _Steps:
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
        self._first = _Graph(partial(begin, self._few), pool)
        self._next = None
        if self._few < most:
            self._next = _Graph(partial(go_on, self._more), pool, ready=True)

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
        while not report[FACTS - 1] and steps < self._most:
            self._go_on()
            steps += self._more
            report = read()
        errors = pcg.until_zero(report[FACTS : FACTS + steps])
        self._ahead = max(0, -(-(len(errors) - self._few) // self._more))
        return pcg.Outcome(errors, bool(report[FACTS - 1])), steps > made


class _Graph:
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


class Ticket:
    """A solve by a recording, which has its matrix until it is replayed again."""

    def __init__(self, recording: Recording) -> None:
        self._recording: Recording | None = recording
        self._solve = recording.solves
        self.may_have_gaps = recording.problem.may_have_gaps

    def is_last_of(self, recording: Recording) -> bool:
        """Whether this is its last solve, whose grid it still has."""
        return self._recording is recording and self._solve == recording.solves

    @contextmanager
    def recording(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float
    ) -> Iterator[Recording | None]:
        """The recording after this solve, which may have to be replayed; None if that fails."""
        made = self._recording
        with _lock:
            if made is not None and not self.is_last_of(made):
                again = made.solve(reference, values, weights, smoothness)
                made = made if isinstance(again, tuple) else None
            if made is None:
                yield None
                return
            with made.in_use():
                try:
                    yield made
                except RuntimeError as error:
                    if lacks_memory(error):
                        self._recording = None
                    raise
