"""The numbers of `refine_segmentation`, for arrays and for tensors on a device."""

from typing import Any, NamedTuple

import numpy as np

from bilateral import validation as checks
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.segmentation.label_trust import LEAST_TRUST

CONFIDENCES = ("boundary", "uniform", "entropy")

_CELL = 24.0
"""The largest cells in an image of 0.35 megapixels, in pixels; 17 in one of 500 x 366."""
_BELTS = 4
"""A cell is as wide as this many belts of doubt: twice a network's own, as far as that shows."""
_SMOOTHNESS = {"boundary": 4.0, "uniform": 16.0, "entropy": 16.0}
"""The less the confidences are on the whole, the less of it there must be."""
TOLERANCE = 0.01
"""Of the solve: labels feel nothing of it."""
VOTE = 0.2
"""Radius of the vote's window, in cells."""
ISLAND = 0.25
"""Area of the smallest region, in squares of cells."""
_EASY = 16.0
"""Up to this smoothness the pyramid converges soon, and is ready sooner than multigrid."""
LEAST = 1e-9
"""Of a solution: probabilities may be below 0 by a rounding error."""


class Settings(NamedTuple):
    """Numbers of the recipe; None: what suits the map."""

    sigma_xy: float | None = None
    sigma_luma: float = 16.0
    sigma_chroma: float = 8.0
    smoothness: float | None = None
    rank_tolerance: float | None = 1e-4

    def checked(self) -> "Settings":
        """The same as plain numbers, or an error."""
        sigma_xy, smoothness, rank = self.sigma_xy, self.smoothness, self.rank_tolerance
        return Settings(
            None if sigma_xy is None else checks.positive("sigma_xy", sigma_xy),
            checks.positive("sigma_luma", self.sigma_luma),
            checks.positive("sigma_chroma", self.sigma_chroma),
            None if smoothness is None else checks.positive("smoothness", smoothness),
            None if rank is None else checks.fraction("rank_tolerance", rank),
        )


USUAL = Settings()


def cell_for(shape: tuple[int, ...], belt: float) -> float:
    """The size of cells that suits an image and a map with a belt of doubt so wide."""
    most = cell_size(shape, _CELL, least=8)
    # Where there is no doubt at all, nothing is known of how exact the outlines are.
    return float(np.clip(_BELTS * belt, most / 2, most)) if belt > 0 else most


def kind_of(confidence: str) -> str:
    """The same, or an error."""
    return checks.choice("confidence", confidence, CONFIDENCES)


def smoothness_for(settings: Settings, confidence: Any) -> float:
    """The given one, or what suits the confidence."""
    if settings.smoothness is not None:
        return settings.smoothness
    return _SMOOTHNESS[confidence if isinstance(confidence, str) else "uniform"]


def shifts(cell: float) -> tuple[int, int]:
    """By how many pixels the grids begin before the image.

    Their cells overlap by half, so that no outline suffers from the cells of both.
    """
    return 0, round(cell / 2)


def preconditioner_for(smoothness: float, least: float) -> str:
    """What converges soonest, by the least confidence, relative to the largest."""
    easy = smoothness <= _EASY and least >= LEAST_TRUST / 2
    return "pyramid" if easy else "multigrid"
