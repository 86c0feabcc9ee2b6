"""Solves without derivatives on a device: recorded once as CUDA graphs, then replayed.

A solve is some two hundred small kernels, and to launch them takes far longer than to run them. So
from the second solve of a kind on, for the same shapes and options, the whole of it is replayed
from a recording, in memory that it keeps. That works where nothing needs the host: data
everywhere, numbers that the dtype serves, hardly more vertices than the recorded images had. The
device tells whether it was so; if not, the solve is done again, step by step.
"""

import math
import threading
from collections import OrderedDict
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from bilateral.ops.cuda import diffusion, pcg, sums
from bilateral.ops.cuda.preconditioner import Preconditioner
from bilateral.ops.cuda.survey import count_bare, survey
from bilateral.torch import device
from bilateral.torch.device import Options

_ALL, _CHUNK = 32, 12
"""Steps in a recording: all if they are few. The host looks at the error after each replay."""
_LEAST_ROOM = 256
_FACTS = 10
"""Numbers in a report before the errors of all steps."""
_KEPT = 4
"""Recordings of so many kinds of solve are kept."""

_lock = threading.Lock()
_seen: OrderedDict[Any, "Recording | None"] = OrderedDict()


def solve(
    reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float, options: Options
) -> tuple[Tensor, pcg.Outcome] | None:
    """As `device.solve`, for (B, C, H, W) references; None if it must be done otherwise."""
    if options.steps == 0:
        return None
    shapes = tuple(reference.shape), tuple(values.shape), weights is not None
    key = *shapes, reference.dtype, values.dtype, values.device, tuple(map(_plain, options))
    with _lock:
        if key not in _seen:
            _seen[key] = None
            while len(_seen) > _KEPT:
                _seen.popitem(last=False)
            return None
        _seen.move_to_end(key)
        recording = _seen[key]
        if recording is None or recording.outgrown:
            least = () if recording is None else recording.rooms
            recording = _seen[key] = None  # its memory is free for the next
            recording = _seen[key] = Recording(reference, values, weights, options, least)
        return recording.solve(reference, values, weights, smoothness)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


class Recording:
    """The graphs of one kind of solve, and their memory."""

    def __init__(
        self,
        reference: Tensor,
        values: Tensor,
        weights: Tensor | None,
        options: Options,
        least: tuple[int, ...],
    ) -> None:
        self._options = options
        self.outgrown = False
        found = device.space(reference, options).grid.rooms
        self.rooms = tuple(
            max(low, n + n // 4 + _LEAST_ROOM) for n, low in zip_longest(found, least, fillvalue=0)
        )
        self._reference, self._values = reference.clone(), values.clone()
        self._weights = None if weights is None else weights.clone()
        self._smoothness = torch.ones((), dtype=torch.float64, device=values.device)
        # As many as make up the most allowed.
        most = options.steps
        few = max(n for n in range(1, _CHUNK + 1) if most % n == 0)
        self._steps = most if most <= _ALL else few
        self._report = torch.empty(
            _FACTS + options.steps, dtype=torch.float64, device=values.device
        )
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # compile all kernels, make all constants
            self._begin()
        torch.cuda.current_stream().wait_stream(stream)
        self._first, self._next = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._first):
            self._begin()
        if self._steps < options.steps:
            with torch.cuda.graph(self._next, pool=self._first.pool()):
                self._go_on()

    def _begin(self) -> None:
        """Everything up to the first steps."""
        options, values = self._options, self._values
        where = device.space(self._reference, options, self.rooms)
        self._grid = grid = where.grid
        self._seen = survey(values, self._weights, grid.shape[0])
        c = torch.ones_like(values[:, :1]) if self._weights is None else self._weights
        both = sums.splat(grid, values, c)
        weight, b = both[:, 0].contiguous(), both[:, 1:].contiguous()
        self._bare = count_bare(grid, weight, self._smoothness, device.STIFF)
        matrix = diffusion.Matrix(
            grid, where.balanced(weight.dtype), where.blur, weight, self._smoothness
        )
        pulled = sums.push_pull(grid, both)
        self._x = (pulled[:, 1:] / pulled[:, :1]).contiguous()
        self._run = pcg.Iteration(
            matrix,
            Preconditioner(matrix, options.kind),
            b,
            self._x,
            self._seen.scale,
            None,
            options.steps,
            options.tolerance,
        )
        self._go_on()

    def _go_on(self) -> None:
        """Some more steps, and a report."""
        for _ in range(self._steps):
            self._run.step()
        grid = self._grid
        counts = grid.total, grid.pyramid.totals, grid.colours.strange, self._bare
        seen = self._seen
        sums_ = seen.total.amin(), seen.invalid.amax(), seen.unknown.amax(), self._run.done.amin()
        facts = [torch.cat(counts).double(), torch.stack([v.double() for v in sums_])]
        torch.cat([*facts, self._run.worst], out=self._report)

    def solve(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float
    ) -> tuple[Tensor, pcg.Outcome] | None:
        """Replay it for other inputs; None if it does not serve for them."""
        self._reference.copy_(reference)
        self._values.copy_(values)
        if self._weights is not None and weights is not None:
            self._weights.copy_(weights)
        self._smoothness.fill_(smoothness)
        self._first.replay()
        out = sums.slice_(self._grid, self._x)
        steps = self._steps
        *facts, done = (report := self._report.tolist())[:_FACTS]
        if not self._serves(facts, smoothness):
            return None
        if not done and steps < self._options.steps:
            while not done and steps < self._options.steps:
                self._next.replay()
                steps += self._steps
                done = (report := self._report.tolist())[_FACTS - 1]
            out = sums.slice_(self._grid, self._x)
        return out, pcg.Outcome(pcg.until_zero(report[_FACTS : _FACTS + steps]), bool(done))

    def _serves(self, facts: list[float], smoothness: float) -> bool:
        """Whether there was room, and the data were as a recording needs them."""
        *totals, strange, bare, _, weight, invalid, unknown = facts
        self.outgrown = any(n > room for n, room in zip(totals, self.rooms, strict=True))
        images, height, width = self._grid.shape
        if self.outgrown or strange or bare or invalid or unknown or weight <= 0:
            return False
        stiff = smoothness * height * width / weight
        return stiff <= device.STIFF * math.sqrt(totals[0] / images)
