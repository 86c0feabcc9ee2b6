"""Oracle of block matching: plain loops."""

import numpy as np
import numpy.typing as npt

Gray = npt.NDArray[np.float32]
CENSUS = [(dy, dx) for dy in range(-3, 4) for dx in range(-4, 5) if (dy, dx) != (0, 0)]


def census(image: Gray) -> npt.NDArray[np.bool_]:
    """Mark the darker neighbours of each pixel; the border is repeated."""
    height, width = image.shape
    padded = np.pad(image, ((3, 3), (4, 4)), mode="edge")
    shifted = [padded[3 + dy :, 4 + dx :][:height, :width] for dy, dx in CENSUS]
    return np.stack([beside < image for beside in shifted], axis=2)


def costs(left: Gray, right: Gray, most: int, window: int) -> npt.NDArray[np.float64]:
    """Differing bits summed over windows, (H, W, most + 1); infinite where there is no partner.

    Windows repeat the first and last column, and leave out rows beyond the border.
    """
    height, width = left.shape
    a, b = census(left), census(right)
    pixels = np.full((height, width, most + 1), float(len(CENSUS)))
    for d in range(most + 1):
        pixels[:, d:, d] = (a[:, d:] != b[:, : width - d]).sum(axis=2)
    r = window // 2
    padded = np.pad(pixels, ((0, 0), (r, r), (0, 0)), mode="edge")
    padded = np.pad(padded, ((r, r), (0, 0), (0, 0)))
    sums = sum(padded[y : y + height, x : x + width] for y in range(window) for x in range(window))
    outside = np.arange(width)[:, np.newaxis] < np.arange(most + 1)
    return np.where(outside, np.inf, sums)


def intervals(
    left: Gray, right: Gray, most: int, window: int, margin: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Lower and upper ends in the left view, the best disparity in the right view."""
    cost = costs(left, right, most, window)
    height, width = left.shape
    lower, upper = np.empty((height, width)), np.empty((height, width))
    for y in range(height):
        for x in range(width):
            lower[y, x], upper[y, x] = interval(cost[y, x, : min(most, x) + 1], margin)
    best = np.empty((height, width), np.intp)
    for x in range(width):
        d = np.arange(min(most, width - 1 - x) + 1)
        best[:, x] = cost[:, x + d, d].argmin(axis=1)
    return lower, upper, best


def interval(cost: npt.NDArray[np.float64], margin: float) -> tuple[float, float]:
    """Interval around the least cost where straight lines between costs stay below the level.

    Beside the least cost both lines have the slope of the steeper one, and pass through the costs
    farther out.
    """
    best = int(cost.argmin())
    level = np.float64(np.float32(cost[best]) * (1 + np.float32(margin)))
    inside = cost <= level
    low = high = best
    while low > 0 and inside[low - 1]:
        low -= 1
    while high < len(cost) - 1 and inside[high + 1]:
        high += 1
    slopes = np.abs(np.diff(cost))
    around = slopes[best - 1 : best + 1].copy() if 0 < best < len(cost) - 1 else np.zeros(1)
    lower, upper = float(low), float(high)
    if low > 0:
        slope = max(slopes[low - 1], around.max() if low == best else 0)
        lower = (low - 1) + (cost[low - 1] - level) / slope
    if high < len(cost) - 1:
        slope = max(slopes[high], around.max() if high == best else 0)
        upper = (high + 1) - (cost[high + 1] - level) / slope
    return lower, upper
