"""Label maps: connected regions, majority vote, and depth inside a label region."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]


def find_regions(
    values: Array, mask: NDArray[np.bool_], tolerance: float
) -> tuple[NDArray[np.int32], int]:
    """Number the connected regions of similar values inside a mask.

    Parameters
    ----------
    values : (H, W) array
        Compared in float32.
    mask : (H, W) bool array
    tolerance : float
        Neighbours in x or y belong to one region if their values differ by at most this.

    Returns
    -------
    regions : (H, W) int32 array
        Numbers from 1; 0 outside the mask.
    count : int
        Number of regions.
    """
    return cpu.find_regions(np.ascontiguousarray(values, np.float32), mask, tolerance)


def object_regions(
    values: NDArray[np.float64], threshold: float
) -> tuple[NDArray[np.int32], list[int]]:
    """Number the connected regions of a mask whose holes are filled.

    Parameters
    ----------
    values : (H, W) array
    threshold : float
        The mask is ``values > threshold``. A hole is a part of the rest that does not reach the
        border of the image. Only pixels that share a side are connected.

    Returns
    -------
    regions : (H, W) int32 array
        Numbers from 1; 0 outside the filled mask.
    sizes : list of int
        Number of pixels of each number, 0 included.
    """
    return cpu.object_regions(np.ascontiguousarray(values, np.float64), threshold)


def majority(labels: NDArray[np.int32], classes: int, radius: int) -> NDArray[np.int32]:
    """Replace each label by the label of more than half of the window around it, if there is one.

    Parameters
    ----------
    labels : (H, W) int32 array
        Numbers from 0 to `classes` - 1.
    classes : int
    radius : int
        The window has 2 `radius` + 1 pixels along each side.
    """
    return cpu.majority(labels, classes, radius)


def label_depth(labels: NDArray[np.int32], radius: int) -> NDArray[np.float32]:
    """Distance to the nearest border of the label region, relative to the largest one nearby.

    Parameters
    ----------
    labels : (H, W) int32 array
        Negative labels are unknown.
    radius : int
        "Nearby" means up to so many pixels along the row, then along the column, in the same
        region.

    Returns
    -------
    (H, W) float32 array
        From 0 to 1; 1 everywhere if there is no border.
    """
    return cpu.label_depth(labels, radius)
