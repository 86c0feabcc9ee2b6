"""The simplified bilateral grid of a reference image."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import checks, color
from bilateral.ops import cpu

Array = NDArray[Any]


class BilateralGrid:
    """The vertices that a reference image occupies in bilateral space.

    A pixel at (x, y) with luma Y and chroma U, V belongs to the vertex ``floor(x / sigma_xy),
    floor(y / sigma_xy), floor(Y / sigma_luma), floor(U / sigma_chroma), floor(V / sigma_chroma)``
    (a value that lies on a cell's edge up to rounding belongs to the upper cell). A gray
    reference has no chroma. Building a grid is the larger part of a solve for easy problems: keep
    it when one reference serves many targets.

    Parameters
    ----------
    reference : (H, W) or (H, W, 3) array
        Gray or RGB; uint8, uint16 or floating point, with white at 255, 65535 or 1. It is kept,
        not copied: a solve with `smooth` reads it again.
    sigma_xy : float
        Size of a cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a cell in 8-bit grey levels.
    blur : {"paper", "uniform"} or (centre, space, range)
        B-bar's weights: its diagonal, and its entries between neighbours along x and y, and along
        luma and chroma. "paper" is (2, 1, 1/8), "uniform" (2 d, 1, 1) in d dimensions.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.

    Attributes
    ----------
    n_vertices : int
    shape : (int, int)
        Height and width of the reference.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral import BilateralGrid
    >>> grid = BilateralGrid(np.zeros((16, 24), np.uint8))
    >>> grid.n_vertices, grid.shape
    (6, (16, 24))
    >>> grid.splat(np.ones((16, 24))).tolist()
    [64.0, 64.0, 64.0, 64.0, 64.0, 64.0]
    """

    def __init__(
        self,
        reference: ArrayLike,
        sigma_xy: float = 8,
        sigma_luma: float = 8,
        sigma_chroma: float = 8,
        blur: str | tuple[float, float, float] = "paper",
        *,
        reference_max: float | None = None,
    ) -> None:
        self._made_with = (sigma_xy, sigma_luma, sigma_chroma, blur), reference_max
        image = checks.reference(reference, reference_max)
        height, width, channels = image.pixels.shape
        sigmas = (
            checks.positive("sigma_luma", sigma_luma),
            checks.positive("sigma_chroma", sigma_chroma),
            checks.positive("sigma_chroma", sigma_chroma),
        )
        sigma_xy = checks.positive("sigma_xy", sigma_xy)
        weights = checks.blur(blur, 2 + channels)
        matrix, offset = color.feature_map(channels, image.highest)
        self.shape: tuple[int, int] = (height, width)
        self._reference = image
        try:
            self._core = cpu.build_grid(
                image.pixels, matrix, offset, image.highest, sigma_xy, sigmas
            )
        except ValueError:
            checks.reference_value(image.pixels)
            raise
        cpu.coarsen(self._core)
        # Only the weights' ratios matter for n B-bar n, so the core gets moderate numbers.
        self._blur_unit = max(weights)
        centre, space, range_ = (weight / self._blur_unit for weight in weights)
        cpu.bistochastize(self._core, (centre, space, range_))

    def _like(self, reference: ArrayLike) -> "BilateralGrid":
        """The grid of another reference with the same sigmas and blur."""
        options, reference_max = self._made_with
        return BilateralGrid(reference, *options, reference_max=reference_max)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self._core.n_vertices

    def __repr__(self) -> str:
        return f"BilateralGrid(shape={self.shape}, n_vertices={self.n_vertices})"

    def splat(self, pixels: ArrayLike) -> Array:
        """S p: sum the pixels of each vertex.

        Parameters
        ----------
        pixels : (H, W) or (H, W, K) array

        Returns
        -------
        (n_vertices,) or (n_vertices, K) array
        """
        return cpu.splat(self._core, checks.pixel_values("pixels", pixels, self.shape))

    def slice(self, vertices: ArrayLike) -> Array:
        """S^T v: give every pixel its vertex's value.

        Parameters
        ----------
        vertices : (n_vertices,) or (n_vertices, K) array

        Returns
        -------
        (H, W) or (H, W, K) array
        """
        values = checks.vertex_values("vertices", vertices, self.n_vertices)
        return cpu.slice_(self._core, values, self.shape)

    def blur(self, vertices: ArrayLike) -> Array:
        """B-bar v: each vertex's value times the centre weight, plus its weighted neighbours.

        Parameters
        ----------
        vertices : (n_vertices,) or (n_vertices, K) array

        Returns
        -------
        array of the same shape
        """
        values = checks.vertex_values("vertices", vertices, self.n_vertices)
        blurred: Array = cpu.blur(self._core, values) * values.dtype.type(self._blur_unit)
        return blurred

    def coordinates(self) -> NDArray[np.int64]:
        """Cell of each vertex: x, y, luma and, for an RGB reference, U and V.

        Returns
        -------
        (n_vertices, 3 or 5) int64 array
        """
        return np.array(self._core.coordinates(), np.int64).reshape(self.n_vertices, -1)
