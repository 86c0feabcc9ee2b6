"""How a map was observed: a low-resolution pixel is the mean of the map over its block.

An observation is a linear operator B with rows that sum to 1. Its data term ``sum_b w_b
((B x)_b - low_b)^2`` lies, by Jensen's inequality, below ``sum_b w_b sum_p B_bp (x_p - (y_p + low_b
- (B y)_b))^2`` for any y, and touches it where x = y. The latter is a data term by pixels, which
every solver here takes: `BlockMeans.back_project` gives its target and confidence, and solving with
them again and again from the last solution goes downhill to the solution of the former.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]


class BlockMeans:
    """Low-resolution values, each the mean over its block of a map of another shape.

    Parameters
    ----------
    low : (h, w) array
        The values that were observed. One that is not finite counts as unknown.
    shape : (int, int)
        Height and width of the map, no smaller than `low`. Blocks have ``H / h`` by ``W / w``
        pixels, which need not be whole numbers: a pixel on the edge of two belongs to both in
        parts.
    weights : (h, w) array, optional
        How much each value counts; 1 everywhere if left out.

    Examples
    --------
    >>> import numpy as np
    >>> seen = BlockMeans([[1.0, 5.0]], (2, 4))
    >>> seen.means(np.arange(8).reshape(2, 4)).tolist()
    [[2.5, 4.5]]
    >>> target, confidence = seen.back_project(np.zeros((2, 4)))
    >>> target[0].tolist(), confidence[0].tolist()
    ([1.0, 1.0, 5.0, 5.0], [0.25, 0.25, 0.25, 0.25])
    """

    def __init__(
        self, low: ArrayLike, shape: tuple[int, int], weights: ArrayLike | None = None
    ) -> None:
        values = validation.map_2d("low", low)
        self.shape = validation.height_and_width("shape", shape)
        validation.shape_at_least("shape", self.shape, "low", values.shape)
        given = validation.pixel_weights("weights", weights, values.shape, values.dtype)
        known = np.isfinite(values)
        self.weights: Array = np.where(known, given, 0)
        self.low: Array = np.where(known, values, 0)

    def means(self, pixels: ArrayLike) -> Array:
        """B x: the mean of a map over each block.

        Parameters
        ----------
        pixels : (H, W) array

        Returns
        -------
        (h, w) array
        """
        values = validation.one_per_pixel("pixels", pixels, self.shape)
        return cpu.block_means(values.astype(self.low.dtype, copy=False), self.low.shape)

    def spread(self, values: ArrayLike) -> Array:
        """B^T v: to each pixel its part of its block's value.

        Parameters
        ----------
        values : (h, w) array

        Returns
        -------
        (H, W) array
        """
        given = validation.one_per_pixel("values", values, self.low.shape)
        return cpu.spread_blocks(given.astype(self.low.dtype, copy=False), self.shape)

    def back_project(self, pixels: ArrayLike) -> tuple[Array, Array]:
        """A target and a confidence by pixels that touch the data term at a map.

        Parameters
        ----------
        pixels : (H, W) array
            The map, such as the last solution.

        Returns
        -------
        target, confidence : (H, W) array
            The target is the map where no block is known.
        """
        x = validation.one_per_pixel("pixels", pixels, self.shape).astype(
            self.low.dtype, copy=False
        )
        confidence = self.spread(self.weights)
        lacking = self.spread(self.weights * (self.low - self.means(x)))
        known = confidence > 0
        target = x + np.divide(lacking, confidence, out=np.zeros_like(x), where=known)
        return target, confidence
