"""Block means: a low-resolution pixel observes the mean of a map over its block.

An observation is a linear operator B whose rows sum to 1. By Jensen's inequality, its data term
``sum_b w_b ((B x)_b - low_b)^2`` is at most ``sum_b w_b sum_p B_bp (x_p - (y_p + low_b -
(B y)_b))^2`` for any y, and both are equal at x = y. The second term is a sum over pixels, which
every solver of this package accepts: `BlockMeans.back_project` returns its target and confidence.
Repeated solves with them, each from the last solution, never increase the first objective and
converge to its solution (majorization-minimization).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]


class BlockMeans:
    """Low-resolution values, each the mean of a high-resolution map over its block.

    Parameters
    ----------
    low : (h, w) array
        Observed values. A value that is not finite is unknown.
    shape : (int, int)
        Height and width (H, W) of the high-resolution map, no smaller than `low`. A block has
        ``H / h`` by ``W / w`` pixels. These need not be whole numbers: a pixel on the border of two
        blocks belongs to both in parts.
    weights : (h, w) array, optional
        Weight of each value. Default: 1 everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> observation = BlockMeans([[1.0, 5.0]], (2, 4))
    >>> observation.means(np.arange(8).reshape(2, 4)).tolist()
    [[2.5, 4.5]]
    >>> target, confidence = observation.back_project(np.zeros((2, 4)))
    >>> target[0].tolist(), confidence[0].tolist()
    ([1.0, 1.0, 5.0, 5.0], [0.25, 0.25, 0.25, 0.25])
    """

    def __init__(
        self, low: ArrayLike, shape: tuple[int, int], weights: ArrayLike | None = None
    ) -> None:
        values = validation.map_2d("low", low)
        self.shape = validation.height_and_width("shape", shape)
        validation.shape_at_least("shape", self.shape, "low", values.shape)
        block_weights = validation.pixel_weights("weights", weights, values.shape, values.dtype)
        known = np.isfinite(values)
        self.weights: Array = np.where(known, block_weights, 0)
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
        return cpu.block_means(self._pixels(pixels), self.low.shape)

    def spread(self, values: ArrayLike) -> Array:
        """B^T v: distribute the value of each block over its pixels.

        Parameters
        ----------
        values : (h, w) array

        Returns
        -------
        (H, W) array
        """
        blocks = validation.one_per_pixel("values", values, self.low.shape)
        return cpu.spread_blocks(blocks.astype(self.low.dtype, copy=False), self.shape)

    def back_project(self, pixels: ArrayLike) -> tuple[Array, Array]:
        """Return a target and a confidence per pixel that bound the data term from above.

        The bound is exact at `pixels`.

        Parameters
        ----------
        pixels : (H, W) array
            The current map, such as the last solution.

        Returns
        -------
        target, confidence : (H, W) array
            Where no block is known, the target is `pixels` and the confidence 0.
        """
        x = self._pixels(pixels)
        confidence = self.spread(self.weights)
        correction = self.spread(self.weights * (self.low - self.means(x)))
        known = confidence > 0
        target = x + np.divide(correction, confidence, out=np.zeros_like(x), where=known)
        return target, confidence

    def _pixels(self, pixels: ArrayLike) -> Array:
        values = validation.one_per_pixel("pixels", pixels, self.shape)
        return values.astype(self.low.dtype, copy=False)
