"""Choose the size of grid cells by the size of an image."""

import math
from collections.abc import Sequence

import numpy as np

_TUNED_PIXELS = 345_600
"""Size of the images for which the tasks' cell sizes were tuned, in pixels."""
_MAX_CELL = 64.0


def cell_size(shape: Sequence[int], tuned: float, least: float) -> float:
    """Return the size of a cell in pixels, in proportion to the side of the image, at most 64.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    tuned : float
        The size for an image of 0.35 megapixels.
    least : float
        The smallest size, for small images.
    """
    side = math.sqrt(math.prod(shape[:2]) / _TUNED_PIXELS)
    return float(np.clip(round(tuned * side), least, _MAX_CELL))
