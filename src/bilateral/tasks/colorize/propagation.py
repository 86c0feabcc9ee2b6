"""Pass colours from frame to frame of a shot, in windows of a few frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.colorize.presets import Preset

Array = NDArray[Any]

_SIGMA_T = 2
"""Frames in a cell of the grid."""
_OVERLAP = _SIGMA_T
"""Frames that a window has in common with the one before."""
_WINDOW, _LEAST_WINDOW = 8, 4
"""Frames of a window; fewer for large frames."""
_WINDOW_PIXELS = 5e6
"""Most pixels of a window with more than the fewest frames: a solve takes 100 bytes per pixel."""
_WARM = 0.1
"""Weight of a pixel that was coloured before, against 1 for a stroke."""


class Known(NamedTuple):
    """Colours of a frame from which others get theirs."""

    chroma: Array
    """(H, W, 2): U and V in 8-bit grey levels."""
    weights: Array
    """(H, W): 0 for no colour, 1 for a stroke."""


@dataclass(frozen=True)
class Propagation:
    """Passes colours on, with the parameters of a colorization."""

    preset: Preset
    sigma_xy: float | None
    sigma_luma: float | None
    smoothness: float

    def cell(self, shape: tuple[int, ...]) -> float:
        """Return the size of a cell in pixels."""
        return self.preset.cell_of(shape, self.sigma_xy)

    def run(
        self, levels: Callable[[int], Array], order: Sequence[int], start: Known
    ) -> Iterator[tuple[int, Array]]:
        """Yield the number of each frame with its chroma (H, W, 2), in some order.

        Each window is one solve over space, time, luma and texture. Frames that the window before
        coloured keep their colours with a low weight.

        Parameters
        ----------
        levels : function
            Returns the luma (H, W) of a frame in 8-bit grey levels.
        order : sequence of int
            Numbers of consecutive frames, forwards or backwards.
        start : Known
            Colours of the first frame.
        """
        size = start.weights.size
        length = int(np.clip(_WINDOW_PIXELS // size, _LEAST_WINDOW, _WINDOW))
        length -= length % _SIGMA_T
        known, first, done = [start], 0, 0
        while done < len(order):
            window = order[first : first + length]
            chroma = self._solve([levels(number) for number in window], known)
            yield from zip(window[done - first :], chroma[done - first :], strict=True)
            done = first + len(window)
            known = [warm(frame) for frame in chroma[-_OVERLAP:]]
            first = done - len(known)

    def _solve(self, levels: Sequence[Array], known: Sequence[Known]) -> Array:
        """Return the chroma (T, H, W, 2) of some frames, of which the first have known colours."""
        parts = [self.preset.features(frame, self.sigma_xy, self.sigma_luma) for frame in levels]
        _, sigmas, cell = parts[0]
        features = np.stack([features for features, _, _ in parts])
        del parts
        target = np.zeros((*features.shape[:3], 2), np.float32)
        weights = np.zeros(features.shape[:3], np.float32)
        for t, frame in enumerate(known):
            target[t], weights[t] = frame
        grid = BilateralGrid.from_features(features, sigmas, (_SIGMA_T, cell, cell))
        solver = BilateralSolver(grid, self.smoothness, method=self.preset.method)
        solved: Array = solver.solve(target, weights)
        return solved


def warm(chroma: Array, strokes: Known | None = None) -> Known:
    """Return colours that were solved for as known ones, with the strokes of their frame."""
    weights = np.full(chroma.shape[:2], _WARM, np.float32)
    if strokes is None:
        return Known(chroma, weights)
    is_stroke = strokes.weights > 0
    return Known(
        np.where(is_stroke[..., np.newaxis], strokes.chroma, chroma),
        np.where(is_stroke, strokes.weights, weights),
    )
