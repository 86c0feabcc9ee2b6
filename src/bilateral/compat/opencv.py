"""OpenCV's `fastBilateralSolverFilter`, with its names, dtypes and rounding."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.compat import cells
from bilateral.compat.steps import Options, solve

Array = NDArray[Any]

_CENTRE = 10.0
"""Centre of the blur, for gray guides, too."""
_SCALES = {"u1": (255.0, 0.0), "u2": (65535.0, 0.0), "i2": (65535.0, 32768.0), "f4": (1.0, 0.0)}
"""Range and offset of each dtype of a source."""


class FastBilateralSolverFilter:
    """A filter for one guide; see `fastBilateralSolverFilter`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import FastBilateralSolverFilter
    >>> made = FastBilateralSolverFilter(np.zeros((32, 48), np.uint8), 8, 8, 8)
    >>> np.unique(made.filter(np.full((32, 48), 7, np.uint8), np.ones((32, 48), np.float32)))
    array([7], dtype=uint8)
    """

    def __init__(
        self,
        guide: ArrayLike,
        sigma_spatial: float,
        sigma_luma: float,
        sigma_chroma: float,
        lambda_: float = 128.0,
        num_iter: int = 25,
        max_tol: float = 1e-5,
    ) -> None:
        image = np.asarray(guide)
        if image.ndim == 3 and image.shape[2] == 1:
            image = image[..., 0]
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
            raise ValueError(
                f"guide: expected a uint8 image of shape (H, W) or (H, W, 3), BGR, got "
                f"{image.dtype} and shape {image.shape}. bilateral.solve takes other dtypes, RGB."
            )
        if image.size == 0:
            raise ValueError(f"guide: expected at least one pixel, got shape {image.shape}.")
        space = validation.positive("sigma_spatial", sigma_spatial)
        luma = validation.positive("sigma_luma", sigma_luma)
        chroma = validation.positive("sigma_chroma", sigma_chroma)
        validation.not_negative("max_tol", max_tol)
        self._grid = cells.build(cells.opencv_cells(image, luma, chroma), space, _CENTRE)
        self._count = self._grid.splat(np.ones(image.shape[:2]))
        smoothness = validation.positive("lambda_", lambda_)
        self._options = Options.checked(smoothness, int(num_iter))

    def filter(self, src: ArrayLike, confidence: ArrayLike, dst: Array | None = None) -> Array:
        """Return the smooth source, in its dtype; also written to `dst` if that is given."""
        source = np.asarray(src)
        kind = source.dtype.str[1:]
        if kind not in _SCALES or source.ndim not in (2, 3) or source.shape[2:] > (4,):
            raise ValueError(
                f"src: expected uint8, int16, uint16 or float32 of shape (H, W) or (H, W, K) with "
                f"K up to 4, got {source.dtype} and shape {source.shape}."
            )
        weights = np.asarray(confidence)
        if weights.dtype not in (np.uint8, np.float32):
            raise ValueError(f"confidence: expected uint8 or float32, got {weights.dtype}.")
        if weights.dtype == np.uint8:
            weights = weights / np.float32(255)
        for name, shape in (("src", source.shape[:2]), ("confidence", weights.shape)):
            if shape != self._grid.shape:
                raise ValueError(
                    f"{name}: expected the guide's size {self._grid.shape}, got {shape}."
                )
        scale, offset = _SCALES[kind]
        x = (source.astype(np.float32) + np.float32(offset)) / np.float32(scale)
        y = solve(self._grid, self._options, x, weights, self._means(x)) * scale - offset
        if kind != "f4":
            limits = np.iinfo(source.dtype)
            y = np.clip(np.rint(y), limits.min, limits.max)
        out = y.astype(source.dtype)
        if dst is not None:
            dst[...] = out
        return out

    def _means(self, x: Array) -> Array:
        """Mean of all pixels of each vertex, whatever their confidence: OpenCV starts there."""
        sums = self._grid.splat(np.where(np.isfinite(x), x, 0))
        return sums.reshape(len(sums), -1) / self._count[:, np.newaxis]


def createFastBilateralSolverFilter(  # noqa: N802
    guide: ArrayLike,
    sigma_spatial: float,
    sigma_luma: float,
    sigma_chroma: float,
    lambda_: float = 128.0,
    num_iter: int = 25,
    max_tol: float = 1e-5,
) -> FastBilateralSolverFilter:
    """Build the filter of one guide, for many sources; see `fastBilateralSolverFilter`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import createFastBilateralSolverFilter
    >>> made = createFastBilateralSolverFilter(np.zeros((32, 48), np.uint8), 8, 8, 8)
    >>> np.unique(made.filter(np.full((32, 48), 7, np.uint8), np.ones((32, 48), np.float32)))
    array([7], dtype=uint8)
    """
    return FastBilateralSolverFilter(
        guide, sigma_spatial, sigma_luma, sigma_chroma, lambda_, num_iter, max_tol
    )


def fastBilateralSolverFilter(  # noqa: N802
    guide: ArrayLike,
    src: ArrayLike,
    confidence: ArrayLike,
    *positional: Any,
    **named: Any,
) -> Array:
    """Smooth a source along the edges of a guide, as ``cv2.ximgproc.fastBilateralSolverFilter``.

    Parameters
    ----------
    guide : (H, W) or (H, W, 3) uint8 array
        Gray or BGR.
    src : (H, W) or (H, W, K) array
        uint8, int16, uint16 or float32, up to four channels.
    confidence : (H, W) array
        uint8, where 255 means 1, or float32.
    sigma_spatial, sigma_luma, sigma_chroma : float
        Size of a grid cell, in pixels and grey levels; 8 by default.
    lambda_ : float
        The smoothness; 128 by default.
    num_iter : int
        Number of steps of conjugate gradients, all of which are taken; 25 by default.
    max_tol : float
        Accepted; more steps than OpenCV takes can only be more exact.
    dst : array like `src`, optional
        Also receives the result. As in OpenCV, it may stand before `sigma_spatial`, None included.

    Returns
    -------
    array like `src`

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import fastBilateralSolverFilter
    >>> guide = np.zeros((32, 48, 3), np.uint8)
    >>> guide[:, 24:] = 180
    >>> src = np.where(guide[..., 0] > 0, 200, 50).astype(np.uint8)
    >>> confidence = np.full((32, 48), 255, np.uint8)
    >>> np.unique(fastBilateralSolverFilter(guide, src, confidence)).tolist()
    [50, 200]
    """
    if positional and (positional[0] is None or isinstance(positional[0], np.ndarray)):
        named["dst"], *positional = positional  # type: ignore[assignment]
    return _filter(guide, src, confidence, *positional, **named)


def _filter(
    guide: ArrayLike,
    src: ArrayLike,
    confidence: ArrayLike,
    sigma_spatial: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    lambda_: float = 128.0,
    num_iter: int = 25,
    max_tol: float = 1e-5,
    dst: Array | None = None,
) -> Array:
    made = createFastBilateralSolverFilter(
        guide, sigma_spatial, sigma_luma, sigma_chroma, lambda_, num_iter, max_tol
    )
    return made.filter(src, confidence, dst)


fastBilateralSolverFilter.__signature__ = inspect.signature(_filter)  # type: ignore[attr-defined]
