"""How large a grid cell suits an image."""

import math
from collections.abc import Sequence

import numpy as np

_PIXELS = 345_600
"""The size of image at which cells of a size were found to work well."""
_LARGEST = 64.0


def cell_size(shape: Sequence[int], usual: float, least: float) -> float:
    """The size of cells in pixels, in proportion to the image's side.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    usual : float
        The size for an image of 0.35 megapixels.
    least : float
        For images however small.
    """
    side = math.sqrt(math.prod(shape[:2]) / _PIXELS)
    return float(np.clip(round(usual * side), least, _LARGEST))
