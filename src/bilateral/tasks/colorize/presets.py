"""Parameters of colorization, and the features of its grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.colorize.texture import texture

Array = NDArray[Any]

_LEAST_CELL = 4.0
_LEAST_FILTER = 4.0
"""Smallest sigma of the domain transform in pixels; otherwise it is half a cell."""


@dataclass(frozen=True)
class Preset:
    """Parameters of a colorization, in pixels and 8-bit grey levels."""

    sigma_luma: float
    smoothness: float
    sigma_gray: float
    """Contrast of an edge for the domain transform that removes the blocks of grid cells."""
    cell: float | None = None
    """Size of a grid cell for an image of 0.35 megapixels; None: 4 for every image."""
    sigma_texture: float | None = None
    """Size of a grid cell along the texture; None: texture is no feature of the grid."""
    method: str | None = None
    recolor_specks: bool = True
    """Colour isolated vertices by the pixels around them."""

    def features(
        self, levels: Array, sigma_xy: float | None, sigma_luma: float | None
    ) -> tuple[Array, list[float], float]:
        """Return the features of a grid, their sigmas, and the size of a cell in pixels.

        The features are the luma and, if the preset says so, the texture.
        """
        cell, luma = self.cell_of(levels.shape, sigma_xy), self.sigma_luma
        if sigma_luma is not None:
            luma = validation.positive("sigma_luma", sigma_luma)
        features, sigmas = [levels], [luma]
        if self.sigma_texture is not None:
            features.append(texture(levels))
            sigmas.append(self.sigma_texture)
        return np.stack(features, axis=2), sigmas, cell

    def cell_of(self, shape: tuple[int, ...], sigma_xy: float | None) -> float:
        """Return the size of a cell in pixels for an image of this shape."""
        if sigma_xy is not None:
            return validation.positive("sigma_xy", sigma_xy)
        return _LEAST_CELL if self.cell is None else cell_size(shape, self.cell, _LEAST_CELL)

    def filter(self, cell: float) -> tuple[float, float]:
        """Return the sigmas of the domain transform that removes the blocks of the grid."""
        return max(_LEAST_FILTER, cell / 2), self.sigma_gray


PRESETS = {
    "best": Preset(sigma_luma=8, smoothness=0.1, sigma_gray=16, cell=10, sigma_texture=8),
    "paper": Preset(
        sigma_luma=4, smoothness=0.5, sigma_gray=8, method="paper", recolor_specks=False
    ),
}
