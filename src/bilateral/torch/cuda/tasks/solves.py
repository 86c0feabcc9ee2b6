"""Solve several maps on one photograph, whose grid is built once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from bilateral.torch import operators
from bilateral.torch.cuda import device_memory, recording_cache
from bilateral.torch.cuda.batch_grid import BatchGrid
from bilateral.torch.cuda.recording_cache import ReplayedSolve
from bilateral.torch.cuda.solve import Inputs, solve
from bilateral.torch.cuda.system import System
from bilateral.torch.options import LayerOptions


class PhotoSolver:
    """The solves of a task on one photograph (C, H, W), without derivatives.

    They bypass PyTorch's dispatcher, which takes as long as the launches of a replay.
    """

    def __init__(self, photo: Tensor) -> None:
        self._reference = photo.contiguous()[None]
        self._replayed: ReplayedSolve | None = None
        self._grid: BatchGrid | None = None
        self._system: System | None = None
        self._last: tuple[Inputs, LayerOptions]

    def solve(
        self, maps: Tensor, confidence: Tensor | None, smoothness: float, options: LayerOptions
    ) -> Tensor:
        """Solve for finite maps (K, H, W) with confidences (H, W); None: 1 everywhere.

        The options for the grid are the same in all calls.
        """
        shape = maps.shape
        values = maps.reshape(-1, 1) if len(maps) == 1 else maps.flatten(1).T.contiguous()
        weights = None if confidence is None else confidence.reshape(-1, 1)
        inputs = Inputs(self._reference, values, weights, smoothness)
        self._last, self._system = (inputs, options), None
        x = self._replay(inputs, options)
        if x is None:
            self._replayed = None
            x, self._system, outcome = solve(inputs, options, self._grid)
            operators.warn_of(outcome, options)
            self._grid = self._system.batch_grid
        return x.T.reshape(shape)

    @contextmanager
    def system(self) -> Iterator[System]:
        """Return the system of the last solve; nobody else overwrites it in this context."""
        inputs, options = self._last
        if self._replayed is not None:
            with self._replayed.recording(inputs) as recording:
                if recording is not None:
                    yield recording.system
                    return
        if self._system is None:
            _, self._system, _ = solve(inputs, options, self._grid)
        yield self._system

    def _replay(self, inputs: Inputs, options: LayerOptions) -> Tensor | None:
        if not device_memory.can_record(inputs.values):
            return None
        solution = recording_cache.solve(inputs, options, earlier=self._replayed, keep_grid=True)
        if solution is None:
            return None
        self._replayed = solution.replayed
        operators.warn_of(solution.outcome, options)
        return solution.x
