"""Solve several maps on one photograph, whose grid is built once."""

from __future__ import annotations

from torch import Tensor

from bilateral.torch import operators
from bilateral.torch.cuda import device_memory, recording_cache
from bilateral.torch.cuda.batch_grid import BatchGrid
from bilateral.torch.cuda.recording_cache import ReplayedSolve
from bilateral.torch.cuda.solve import Inputs, solve
from bilateral.torch.options import LayerOptions


class PhotoSolver:
    """The solves of a task on one photograph (C, H, W), without derivatives.

    They bypass PyTorch's dispatcher, which takes as long as the launches of a replay.
    """

    def __init__(self, photo: Tensor) -> None:
        self._reference = photo[None]
        self._replayed: ReplayedSolve | None = None
        self._grid: BatchGrid | None = None

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
        x = self._replay(inputs, options)
        if x is None:
            x, system, outcome = solve(inputs, options, self._grid)
            operators.warn_of(outcome, options)
            self._grid = system.batch_grid
        return x.T.reshape(shape)

    def _replay(self, inputs: Inputs, options: LayerOptions) -> Tensor | None:
        if not device_memory.can_record(inputs.values):
            return None
        solution = recording_cache.solve(inputs, options, earlier=self._replayed, keep_grid=True)
        if solution is None:
            return None
        self._replayed = solution.replayed
        operators.warn_of(solution.outcome, options)
        return solution.x
