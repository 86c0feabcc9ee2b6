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
from bilateral.torch import device
from bilateral.torch.device import Options

_CHUNK = 8
"""Steps in a recording. The host looks at the error after each replay."""
_LEAST_ROOM = 256
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
        self._steps = max(n for n in range(1, _CHUNK + 1) if options.steps % n == 0)
        # Both graphs write these.
        self._out = torch.empty_like(values)
        self._report = torch.empty(6, dtype=torch.bool, device=values.device)
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # compile all kernels, make all constants
            self._begin()
            self._go_on()
        torch.cuda.current_stream().wait_stream(stream)
        self._first, self._next = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._first):
            self._begin()
        with torch.cuda.graph(self._next, pool=self._first.pool()):
            self._go_on()

    def _begin(self) -> None:
        """Everything up to the first steps."""
        options, values = self._options, self._values
        where = device.space(self._reference, options, self.rooms)
        grid = where.grid
        images, height, width = grid.shape
        c = torch.ones_like(values[:, :1]) if self._weights is None else self._weights
        seen = sums.splat(grid, torch.cat([c, c * values], 1))
        weight, b = seen[:, 0].contiguous(), seen[:, 1:].contiguous()
        self._status = self._check(grid, c, weight)
        matrix = diffusion.Matrix(
            grid, where.balanced(weight.dtype), where.blur, weight, self._smoothness
        )
        self._grid = grid
        pulled = sums.push_pull(grid, seen)
        self._x = (pulled[:, 1:] / pulled[:, :1]).contiguous()
        scale = device.scale_of(
            values.reshape(images, height * width, -1), c.reshape(images, -1, 1)
        )
        self._run = pcg.Iteration(
            matrix,
            Preconditioner(matrix, options.kind),
            b,
            self._x,
            scale,
            None,
            options.steps,
            options.tolerance,
        )
        self._go_on()

    def _go_on(self) -> None:
        """Some more steps, and what they lead to."""
        for _ in range(self._steps):
            self._run.step()
        self._out.copy_(sums.slice_(self._grid, self._x))
        self._report[:-1] = self._status
        self._report[-1] = (self._run.done != 0).all()

    def _check(self, grid: Any, c: Tensor, weight: Tensor) -> Tensor:
        """Whether a replay is right: finite, in range, served by the dtype, without gaps."""
        pixels = math.prod(grid.shape[1:])
        total = c.reshape(grid.shape[0], -1).sum(1, dtype=torch.float64).amin()
        there = torch.arange(grid.room, device=weight.device) < grid.vertices.total
        full = ((weight > 0) | ~there).all()
        stiff = self._smoothness * pixels / total
        vertices = grid.vertices.total.double() / grid.shape[0]
        served = stiff <= device.STIFF * torch.sqrt(vertices)
        valid = ((c >= 0) & torch.isfinite(c)).all()
        finite = torch.isfinite(self._reference).all()
        return torch.stack([~grid.overflow, full, served.reshape(()), valid, finite])

    def solve(
        self, reference: Tensor, values: Tensor, weights: Tensor | None, smoothness: float
    ) -> tuple[Tensor, pcg.Outcome] | None:
        """Replay it for other inputs."""
        self._reference.copy_(reference)
        self._values.copy_(values)
        if self._weights is not None and weights is not None:
            self._weights.copy_(weights)
        self._smoothness.fill_(smoothness)
        self._first.replay()
        steps = self._steps
        *right, done = self._report.tolist()
        if not all(right):
            self.outgrown = not right[0]
            return None
        while not done and steps < self._options.steps:
            self._next.replay()
            steps += self._steps
            done = self._report.tolist()[-1]
        return self._out.clone(), pcg.Outcome(self._run.errors(steps), bool(done))
