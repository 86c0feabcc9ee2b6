"""The graphs of one kind of solve, for certain shapes and options, and their memory."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import pcg
from bilateral.backends.cuda.solve.input_stats import compute_input_stats
from bilateral.backends.cuda.solve.iteration import Iteration
from bilateral.backends.cuda.solve.report import HEADER, new_report, write_report
from bilateral.numerics import policy
from bilateral.torch.cuda import system as device
from bilateral.torch.cuda.graphs import Graph, Steps, lasting
from bilateral.torch.cuda.system import HierarchyRooms, Inputs
from bilateral.torch.options import LayerOptions

_LEAST_ROOM = 256
_MORE_LEVELS = 1
"""Of multigrid's hierarchy, than the recorded images had."""


class Rooms:
    """How much a recording has room for."""

    def __init__(self, reference: Tensor, options: LayerOptions, kind: str) -> None:
        where = device.space(reference, options)
        self.grid = [_more(n) for n in where.grid.rooms]
        self.hierarchy: HierarchyRooms | None = None
        if kind == "multigrid":
            found = where.hierarchy(torch.float32)
            sizes = [(_more(rows), _more(links)) for rows, links in found.rooms]
            sizes += [(_LEAST_ROOM, _LEAST_ROOM)] * _MORE_LEVELS
            self.hierarchy = HierarchyRooms(sizes, found.first_small)

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
        self, inputs: Inputs, options: LayerOptions, kind: str, least: Rooms | None
    ) -> None:
        reference, values, weights, _ = inputs
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
        self._report = new_report(options.solve.max_iterations, values.device)
        self._free: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.solves = 0
        """How many were replayed."""
        # Apart, so that the device has work as soon as it has the reference, and that what needs
        # the values, and the pyramid, go on beside the rest, in memory of their own.
        self._grid_graph = Graph(self._build_grid)
        self._grid_graph.replay()
        self.pool = self._grid_graph.pool
        """The memory of all graphs but one, which follow one another."""
        self._space_graph = Graph(self._complete_space, self.pool)
        self._space_graph.replay()
        self._beside: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._values_graph = Graph(self._take_values)
        self._values_graph.replay()
        self._steps = Steps(kind, options.solve.max_iterations, self._begin, self._go_on, self.pool)
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
            hierarchy.small_levels  # noqa: B018

    def _take_values(self) -> None:
        self._grid = grid = replace(self._space.grid)  # whose pyramid is still to be built
        self._seen = compute_input_stats(self._values, self._weights, grid.shape[0])
        self._weight, self._b = splatting.splat_weighted(grid, self._values, self._weights)
        self._poor = device.count_poor(grid, self._weight, self._smoothness)
        self._elsewhere: Tensor | None = None
        if self._kind == "multigrid":
            self._elsewhere = pyramid_transfer.push_pull(grid, self._b, self._weight)
        else:
            grid.pyramid  # noqa: B018

    def _begin(self, steps: int) -> None:
        """The rest, up to the first steps."""
        options, where, weight = self._options, self._space, self._weight
        where.grid = self._grid
        self.problem = problem = device.Problem(
            where, weight, self._smoothness, self._kind, False, options.solve.max_iterations
        )
        self._trouble: tuple[Tensor | None, Tensor | None] = None, None
        fine, stream = problem.preconditioner, torch.cuda.current_stream()
        self._beside.wait_stream(stream)
        if isinstance(fine, VCycle):
            with torch.cuda.stream(self._beside):  # what is not needed before the end
                problem.active = fine.with_data
                self._trouble = where.hierarchy(weight.dtype).overflow, fine.has_faint_component
        self._x = problem.start(self._b)
        # Where both graphs leave the solution.
        problem.y = self._x if self._elsewhere is None else torch.empty_like(self._x)
        self._run = Iteration(
            problem.matrix,
            problem.preconditioner,
            self._b,
            self._x,
            self._seen.scale,
            None,
            device.pcg_options(options.solve.max_iterations, options.solve.stop_tolerance),
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

    def report(self, run: Iteration) -> None:
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
        self, inputs: Inputs, same_reference: bool = False
    ) -> tuple[Tensor, pcg.Outcome] | str | None:
        """Replay it for other inputs, or but for the reference.

        None if it does not serve for them, the preconditioner's name if another would.
        """
        reference, values, weights, smoothness = inputs
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
            kind = self._judge(report[: HEADER - 1], smoothness)
            if kind != self._kind:
                return kind
            outcome, more = self._steps.finish(report, self.read)
            if more:
                out = splatting.slice_(self._grid, self.problem.y)
        return out, device.reached(outcome, self._options)

    def inverse(self, g: Tensor) -> tuple[device.Inverse, pcg.Outcome]:
        """For (B H W, K) pixels and the last solve's matrix, in memory that is used again."""
        if self._inverse is None or self._inverse.g.shape != g.shape:
            with lasting():
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
        if not policy.float32_is_enough(smoothness, pixels, weight, totals[0] / images):
            return None
        kind = device.choose(
            self._options, smoothness, pixels, weight, bare, poor / (images * pixels)
        )
        return None if bare and kind != "multigrid" else kind


class _Inverse:
    """The graphs that apply A^-1 S with the matrix of a recording."""

    def __init__(self, recording: Recording, g: Tensor, kind: str, options: LayerOptions) -> None:
        self._recording = weakref.proxy(recording)
        self._most = options.solve.max_iterations
        self._tolerance = recording.problem.of_result(options.solve.tolerance)
        self.g = g.clone()
        self._steps = Steps(kind, self._most, self._begin, self._go_on, recording.pool)
        self._steps.replay()
        self._last = Graph(self._end, recording.pool)

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
        self._run = Iteration(
            problem.matrix,
            problem.preconditioner,
            part.b,
            part.x,
            None,
            problem.active,
            device.pcg_options(self._most, self._tolerance),
        )
        self._go_on(steps)

    def _go_on(self, steps: int) -> None:
        for _ in range(steps):
            self._run.step()
        self._run.finish()
        self._recording.report(self._run)

    def _end(self) -> None:
        self._found = self._part.end()
