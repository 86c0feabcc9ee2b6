"""Filter label maps and find their regions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]


def label_depth(labels: NDArray[np.int32], radius: int) -> NDArray[np.float32]:
    """Compute the distance of each pixel to the nearest border, relative to the largest nearby.

    "Nearby" means in the same region, up to `radius` pixels along the row, then along the column.
    `labels` are (H, W); labels below 0 are unknown. The result is 1 where there is no border.
    """
    out = np.empty(labels.shape, np.float32)
    _core.label_depth(labels, radius, out, get_num_threads())
    return out


def majority(labels: NDArray[np.int32], classes: int, radius: int) -> NDArray[np.int32]:
    """Replace each label by the label that fills more than half of its window, if there is one.

    `labels` are (H, W), from 0 to `classes` - 1. The sides of the window are 2 `radius` + 1 pixels.
    """
    out = np.empty_like(labels)
    _core.majority(labels, classes, radius, out, get_num_threads())
    return out


def find_regions(
    values: Array, mask: NDArray[np.bool_], tolerance: float
) -> tuple[NDArray[np.int32], int]:
    """Label the connected regions of a mask with about the same float32 value, from 1.

    Returns the labels, which are 0 outside the mask, and the number of regions.
    """
    labels = np.empty(values.shape, np.int32)
    return labels, _core.find_regions(values, mask, tolerance, labels)


def object_regions(
    values: NDArray[np.float64], threshold: float
) -> tuple[NDArray[np.int32], list[int]]:
    """Label the connected regions of ``values > threshold`` with its holes filled, from 1.

    Returns the labels, which are 0 outside, and the number of pixels of each label, 0 included.
    """
    labels = np.empty(values.shape, np.int32)
    return labels, _core.object_regions(values, threshold, labels)
