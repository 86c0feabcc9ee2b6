"""Hold every threshold and choice of `refine_segmentation` that the CPU and CUDA share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bilateral import validation
from bilateral.numerics.options import Options
from bilateral.tasks.cell_size import cell_size

CONFIDENCES = ("boundary", "uniform", "entropy")

# Scores of classes.

MIN_LOGIT = -80.0
"""A logit this far below the largest one means a probability of 0, but its exponential is above
0."""
ACTIVE_PROBABILITY = 0.25
"""A class that is no pixel's label, and nowhere more probable than this, takes no part."""
FAINT_PROBABILITY = 0.05
"""A class that is nowhere more probable than this is no pixel's label. If there are so many classes
that the most probable one may be less probable, the limit is lower."""
MIN_SUM = 1e-30
"""Sums of probabilities are raised to this before a division."""
SUM_TOLERANCE = 1e-3
"""Probabilities whose sums differ from 1 by at most this are not scaled: the result is."""
MIN_KNOWN_SHARE = 0.25
"""An interpolated pixel is known if known samples have at least this weight, which is the smallest
weight of the nearest of four samples."""
BELOW_BEST = 1 - 1e-6
"""Upper limit for classes that take no part, relative to the most probable class."""

# Grids and solves.

_CELL = 24.0
"""Largest size of a cell in pixels, for an image of 0.35 megapixels; 17 for 500 x 366 pixels."""
_BELTS_PER_CELL = 4
"""A cell is as wide as this many belts of doubt. That is twice the cell of a network, as far as the
scores show it."""
_SMOOTHNESS = {"boundary": 4.0, "uniform": 16.0, "entropy": 16.0}
"""Lower total confidence needs lower smoothness."""
TOLERANCE = 0.01
"""Of the solves. A smaller tolerance does not change labels."""
_PYRAMID_SMOOTHNESS = 16.0
"""Up to this smoothness the pyramid converges soon, and its set-up is faster than multigrid's."""
MIN_PROBABILITY = 1e-9
"""Lower limit of a solution, because rounding errors may make probabilities negative."""
TIE_MARGIN = 1e-5
"""On CUDA a pixel's label gains this fraction of its probability, so that rounding errors do not
change the label where classes tie."""

# Confidence from the depth inside a region.

DOUBT_MARGIN = 0.5
"""A label is in doubt if the next class is less than this below it."""
DEPTH_GAIN = 2.0
"""The confidence is 1 - exp(-DEPTH_GAIN d^2) at the relative depth d."""
MIN_CONFIDENCE = 0.01

# Class balance.

MAX_BIAS = 0.25
"""Largest change of a class's log probability: the area of a class may change if the photograph
says so."""
CLOSE_RATIO = math.exp(-2 * MAX_BIAS)
"""A class below this fraction of the best one cannot become the label by any bias."""
BALANCE_ROUNDS = 20
BALANCE_STEP = 0.5
BALANCE_TOLERANCE = 0.003
"""The biases are final when no bias changes by more than this."""
NEGLIGIBLE_PIXELS = 20
"""A change of a class's area by fewer than about this many pixels does not matter."""

# Cleaning of labels.

_VOTE_RADIUS = 0.2
"""Radius of the window of the majority vote, in cells."""
_MIN_REGION_AREA = 0.25
"""Area of the smallest region that stays, in squares of cells."""
MERGE_ROUNDS = 4
"""A small region that touches only small regions waits for the next round."""


def faint_probability(classes: int) -> float:
    """Return the probability up to which a class is no pixel's label."""
    return min(FAINT_PROBABILITY, 0.99 / classes)


def _or_none(check: Callable[[str, Any], float]) -> Callable[[str, Any], float | None]:
    return lambda name, value: None if value is None else check(name, value)


@dataclass(frozen=True)
class SegmentationOptions(Options):
    """Options of `refine_segmentation`; None: chosen by the image and its scores."""

    sigma_xy: float | None = None
    sigma_luma: float = 16.0
    sigma_chroma: float = 8.0
    smoothness: float | None = None
    rank_tolerance: float | None = 1e-4

    checks: ClassVar[dict[str, Callable[[str, Any], Any]]] = {
        "sigma_xy": _or_none(validation.positive),
        "sigma_luma": validation.positive,
        "sigma_chroma": validation.positive,
        "smoothness": _or_none(validation.positive),
        "rank_tolerance": _or_none(validation.fraction),
    }

    def for_image(
        self, shape: tuple[int, ...], confidence: Any, belt_width: Callable[[], float]
    ) -> Parameters:
        """Choose what the caller left open.

        Parameters
        ----------
        shape : (int, int)
            Height and width of the image.
        confidence : str or array
            As given by the caller.
        belt_width : function
            Returns the width of the belt of doubt along the borders of regions, in pixels. It is
            called only if it decides.
        """
        kind = confidence if isinstance(confidence, str) else "uniform"
        return Parameters(
            _cell(shape, belt_width()) if self.sigma_xy is None else self.sigma_xy,
            self.sigma_luma,
            self.sigma_chroma,
            _SMOOTHNESS[kind] if self.smoothness is None else self.smoothness,
            self.rank_tolerance,
        )


DEFAULTS = SegmentationOptions()


class Parameters(NamedTuple):
    """Numbers of the refinement of one image."""

    cell: float
    """Size of a grid cell in pixels, and the scale of everything else."""
    sigma_luma: float
    sigma_chroma: float
    smoothness: float
    rank_tolerance: float | None

    @property
    def shifts(self) -> tuple[int, int]:
        """By how many pixels each grid begins before the image.

        The cells of the two grids overlap by half, so that no border of a region suffers from the
        cells of both.
        """
        return 0, round(self.cell / 2)

    @property
    def depth_radius(self) -> int:
        """How far around a pixel the thickness of its region is measured."""
        return round(self.cell)

    @property
    def vote_radius(self) -> int:
        """Radius of the window of the majority vote."""
        return round(self.cell * _VOTE_RADIUS)

    @property
    def min_region_area(self) -> float:
        """Number of pixels below which a region is merged into its neighbours."""
        return self.cell**2 * _MIN_REGION_AREA

    def preconditioner(self, min_confidence: float) -> str:
        """Choose what converges soonest, by the least confidence relative to the largest."""
        easy = self.smoothness <= _PYRAMID_SMOOTHNESS and min_confidence >= MIN_CONFIDENCE / 2
        return "pyramid" if easy else "multigrid"


def _cell(shape: tuple[int, ...], belt_width: float) -> float:
    """Choose the size of a cell for an image and scores with a belt of doubt of this width."""
    largest = cell_size(shape, _CELL, least=8)
    # Scores without any doubt do not tell how exact the borders are.
    if belt_width <= 0:
        return largest
    return float(np.clip(_BELTS_PER_CELL * belt_width, largest / 2, largest))


def check_confidence(confidence: str) -> str:
    """Return the name of a confidence, or raise if it is none of `CONFIDENCES`."""
    return validation.choice("confidence", confidence, CONFIDENCES)
