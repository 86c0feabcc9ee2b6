"""Divide 8-bit colours into cells."""

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu


def color_cells(
    image: NDArray[np.uint8],
    weights: NDArray[np.float64],
    shift: NDArray[np.float64],
    margin: NDArray[np.float64],
    gray: NDArray[np.uint8],
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Compute the cells of colours in single precision, and tell which depend on rounding.

    Parameters
    ----------
    image : (H, W, 3) uint8 array
    weights, shift : (3, 3) array, (3,) array
        The cells of a colour are ``trunc(weights @ colour + shift)``, from 0 to 255.
    margin : (3,) array
        A colour is near the border of a cell if it is so close in one of the three dimensions.
    gray : (256, 3) uint8 array
        The cells of the gray levels, which are never near.

    Returns
    -------
    cells : (H, W, 3) uint8 array
    near : (H, W) bool array
    """
    return cpu.color_cells(image, weights, shift, margin, gray)
