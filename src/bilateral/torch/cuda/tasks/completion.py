"""Complete few points on a CUDA device: the planar solves and the medians of the recipe."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral import validation
from bilateral.backends.cuda.solve import pcg
from bilateral.numerics import policy
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.completion.candidates import (
    MEDIAN_SIZE,
    RECIPES,
    Candidates,
    Cells,
    HostCandidates,
)
from bilateral.torch import inputs, planar
from bilateral.torch.cuda import operators
from bilateral.torch.cuda.tasks import pixels
from bilateral.torch.cuda.tasks.photos import levels
from bilateral.torch.options import LayerOptions

Array = NDArray[Any]


class DeviceCandidates(Candidates):
    """Candidates whose solves run on the device of a photograph (C, H, W).

    The recipe around them, which asks for few numbers of each, stays on the host.
    """

    def __init__(self, photo: Tensor, guide: validation.Reference, cells: Cells) -> None:
        super().__init__(guide.pixels.shape, cells)
        self._photo, self._guide, self._host_cells = levels(photo[None]), guide, cells
        self._grids: dict[tuple[float, float, float], Tensor] = {}
        """A handle of a solve on each grid, so that the next one finds the grid again."""

    def solve(
        self,
        index: int,
        points: tuple[Array, Array],
        tolerance: float,
        slope_ridge: float,
        most_steps: int | None,
    ) -> tuple[Tensor, bool]:
        """Solve on the device; the solution is (1, 1, H, W)."""
        photo, sigmas = self._photo, self.sigmas(index)
        target, weights = (torch.from_numpy(part)[None, None].to(photo.device) for part in points)
        known = weights > 0
        target = torch.where(known, target, 0)
        blur = validation.blur("paper", 2 + photo.shape[1])
        options = LayerOptions(
            GridOptions(*sigmas, blur, self._guide.highest),
            SolveOptions(
                model="planar",
                tolerance=tolerance,
                slope_ridge=slope_ridge,
                max_iterations=policy.MAX_ITERATIONS if most_steps is None else most_steps,
            ),
        )
        outcomes: list[pcg.Outcome] = []
        x, self._grids[sigmas] = operators.solve(
            lambda outcome, _: outcomes.append(outcome),
            *(photo, target, weights, inputs.smoothness(RECIPES[index].smoothness)),
            self._grids.get(sigmas),
            *options.arguments,
        )
        return planar.clamp(x, target, known), outcomes[0].converged

    def smooth(self, u: Tensor) -> Array:
        """Return the median in small windows, as an array (H, W)."""
        return np.asarray(inputs.as_array(pixels.median(u, MEDIAN_SIZE)[0, 0]))

    def variance(self, weights: Array) -> Array:
        """Estimate the variance of the cheap recipe's solution, on the host."""
        return HostCandidates(self._guide, self._host_cells).variance(weights)
