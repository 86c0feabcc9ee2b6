"""Oracle of the median filter: a plain loop."""

import numpy as np
from numpy.typing import NDArray


def median_filter(image: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Median over size x size pixels of an (H, W) float64 image, NaN left out."""
    height, width = image.shape
    padded = np.pad(image, size // 2, mode="symmetric")
    out = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            out[y, x] = median(padded[y : y + size, x : x + size])
    return out


def median(values: NDArray[np.float64]) -> float:
    """Middle value, or mean of the two middle values, without NaN."""
    known = np.sort(values[~np.isnan(values)])
    if known.size == 0:
        return np.nan
    low, high = known[(known.size - 1) // 2], known[known.size // 2]
    if low == high or low == -np.inf:
        return float(low)
    return float(low / 2 + high / 2)
