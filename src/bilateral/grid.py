"""The simplified bilateral grid of a reference: an image, a video, or any features of pixels."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color
from bilateral import validation as checks
from bilateral.backends import cpu

Array = NDArray[Any]


class BilateralGrid:
    """The vertices that a reference image occupies in bilateral space.

    A pixel at (x, y) with luma Y and chroma U, V belongs to the vertex ``floor(x / sigma_xy),
    floor(y / sigma_xy), floor(Y / sigma_luma), floor(U / sigma_chroma), floor(V / sigma_chroma)``
    (a value that lies on a cell's edge up to rounding belongs to the upper cell). A gray
    reference has no chroma, a video also has ``floor(t / sigma_t)``. For other features than
    colours see `from_features`. Building a grid is the larger part of a solve for easy problems:
    keep it when one reference serves many targets.

    Parameters
    ----------
    reference : (H, W) or (H, W, 3) array
        Gray or RGB; uint8, uint16 or floating point, with white at 255, 65535 or 1. It is kept,
        not copied: a solve with `smooth` reads it again. With `sigma_t`, a video (T, H, W) or
        (T, H, W, 3).
    sigma_xy : float
        Size of a cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a cell in 8-bit grey levels.
    blur : {"paper", "uniform"} or (centre, space, range)
        B-bar's weights: its diagonal, and its entries between neighbours along x, y and t, and
        along luma and chroma. "paper" is (2, 1, 1/8), "uniform" (2 d, 1, 1) in d dimensions.
    sigma_t : float, optional
        Size of a cell in frames. Left out, the reference is one image.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.

    Attributes
    ----------
    n_vertices : int
    shape : tuple of int
        Height and width of the reference; of a video or volume, its length comes first.

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
        sigma_t: float | None = None,
        reference_max: float | None = None,
    ) -> None:
        self._like: Callable[[ArrayLike], BilateralGrid] = partial(
            BilateralGrid,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            blur=blur,
            sigma_t=sigma_t,
            reference_max=reference_max,
        )
        image = checks.reference(reference, reference_max, video=sigma_t is not None)
        channels = image.pixels.shape[-1]
        luma = checks.positive("sigma_luma", sigma_luma)
        chroma = checks.positive("sigma_chroma", sigma_chroma)
        space = [checks.positive("sigma_xy", sigma_xy)] * 2
        if sigma_t is not None:
            space.insert(0, checks.positive("sigma_t", sigma_t))
        self._reference: checks.Reference | None = image
        self._change_scale = [255 / image.highest / luma] * channels
        matrix, offset = color.feature_map(channels, image.highest)
        sigmas = (luma, chroma, chroma)[:channels]
        self._build("reference", image.pixels, matrix, offset, sigmas, image.highest, space, blur)

    @classmethod
    def from_features(
        cls,
        features: ArrayLike,
        sigmas: float | Sequence[float],
        sigma_space: float | Sequence[float],
        *,
        blur: str | tuple[float, float, float] = "paper",
    ) -> Self:
        """Make the grid of pixels that are described by any features, in two or three dimensions.

        Infrared and depth, normals, a network's features; an image, a video or a volume. Pixels
        belong to one vertex if all their features and coordinates fall into the same cells,
        ``floor(feature / sigma)``.

        Parameters
        ----------
        features : (H, W, C) or (T, H, W, C) array
            None to eight features per pixel, in any unit, as they are: no colour is converted. The
            last axis may be left out for one feature of an image (H, W) and, if `sigma_space` has
            three numbers, of a volume (T, H, W).
        sigmas : float or C floats
            Size of a cell in each feature's unit.
        sigma_space : float or 2 or 3 floats
            Size of a cell in pixels, along all axes or along each of them in their order: (y, x)
            or (t, y, x).
        blur : {"paper", "uniform"} or (centre, space, range)
            B-bar's weights, as for an image; along t as along x and y.

        Returns
        -------
        BilateralGrid

        Examples
        --------
        A video of infrared and depth, in its own units:

        >>> import numpy as np
        >>> from bilateral import BilateralGrid, BilateralSolver
        >>> infrared, depth = np.full((2, 6, 32, 48), 0.3)
        >>> depth[:, :, 24:] = 2.5
        >>> features = np.stack([infrared, depth], axis=-1)
        >>> grid = BilateralGrid.from_features(features, (0.05, 0.2), (3, 8, 8))
        >>> grid.n_vertices, grid.shape
        (48, (6, 32, 48))
        >>> target = np.full(grid.shape, np.nan)
        >>> target[0, 0, 0], target[0, 0, 47] = 10, 20
        >>> BilateralSolver(grid).solve(target)[5, 31, [0, 23, 24, 47]].round(2).tolist()
        [10.0, 10.0, 20.0, 20.0]
        """
        given = checks.features(features, sigmas, sigma_space)
        grid = cls.__new__(cls)
        grid._like = partial(
            BilateralGrid.from_features, sigmas=sigmas, sigma_space=sigma_space, blur=blur
        )
        grid._reference = None
        grid._change_scale = [1 / sigma for sigma in given.sigmas]
        channels = len(given.sigmas)
        grid._build(
            "features",
            given.pixels,
            np.eye(channels),
            np.zeros(channels),
            given.sigmas,
            None,
            given.sigma_space,
            blur,
        )
        return grid

    def _build(
        self,
        name: str,
        pixels: Array,
        matrix: NDArray[np.float64],
        offset: NDArray[np.float64],
        sigmas: Sequence[float],
        highest: float | None,
        sigma_space: Sequence[float],
        blur: str | tuple[float, float, float],
    ) -> None:
        weights = checks.blur(blur, len(sigma_space) + len(sigmas))
        self.shape: tuple[int, ...] = pixels.shape[:-1]
        self._features = pixels
        try:
            self._core = cpu.build_grid(pixels, matrix, offset, sigmas, highest, sigma_space)
        except cpu.PixelError as error:
            checks.finite_values(name, pixels)
            raise ValueError(f"{name}: {error}") from None
        cpu.coarsen(self._core)
        # Only the weights' ratios matter for n B-bar n, so the core gets moderate numbers.
        self._blur_unit = max(weights)
        centre, space, range_ = (weight / self._blur_unit for weight in weights)
        cpu.bistochastize(self._core, (centre, space, range_))

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
            For a video or volume, with a T before H.

        Returns
        -------
        (n_vertices,) or (n_vertices, K) array
        """
        return cpu.splat(self._core, checks.pixel_values("pixels", pixels, self.shape), self.shape)

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
        """Cell of each vertex: x, y, for a video or volume t, then luma, U, V or the features.

        Features with negative values are counted from their lowest cell.

        Returns
        -------
        (n_vertices, dimensions) int64 array
        """
        return np.array(self._core.coordinates(), np.int64).reshape(self.n_vertices, -1)
