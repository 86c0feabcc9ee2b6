"""The function of TokenCut and FOUND: smooth a network's mask and pick the object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.compat.notebook import BilateralGrid
from bilateral.compat.steps import Options, solve
from bilateral.filters.labels import object_regions

Array = NDArray[Any]

_LAMBDA, _CONFIDENCE, _STEPS, _THRESHOLD = 256.0, 0.999, 25, 0.5


def bilateral_solver_output(
    img_pth: Any = None,
    target: ArrayLike | None = None,
    sigma_spatial: float = 24,
    sigma_luma: float = 4,
    sigma_chroma: float = 4,
    img: Any = None,
    get_all_cc: bool = False,
) -> tuple[NDArray[np.float64], Array]:
    """Smooth a mask along the edges of its image, and return the soft map and the object's mask.

    Parameters
    ----------
    img_pth : path, (H, W, 3) or (H, W) array, or PIL image
        The image, RGB from 0 to 255. Paths need Pillow (``pip install 'bilateral[cli]'``).
    target : (H, W) array
        The mask, 0 and 1 (or soft, or 0 and 255).
    sigma_spatial, sigma_luma, sigma_chroma : float
        Size of a grid cell, in pixels and grey levels.
    img : array or PIL image, optional
        The image itself; the path is not read then.
    get_all_cc : bool
        Return all connected components but the largest one, as whole numbers, instead of the
        second largest.

    Returns
    -------
    soft : (H, W) float64 array
        The smooth target.
    mask : (H, W) bool array
        Where soft > 0.5, holes filled, the second-largest connected component; the rest of the
        image counts as a component. So the mask is the object if it covers less than half of the
        image, else its background, as in the original.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import bilateral_solver_output
    >>> image = np.zeros((48, 64, 3), np.uint8)
    >>> image[12:36, 16:40] = 220
    >>> rough = np.zeros((48, 64))
    >>> rough[10:34, 18:42] = 1
    >>> soft, mask = bilateral_solver_output(image, rough, sigma_spatial=8)
    >>> soft.dtype, mask.dtype, int(mask.sum())
    (dtype('float64'), dtype('bool'), 576)
    """
    image = _image(img_pth if img is None else img)
    if target is None:
        raise TypeError("target: expected an (H, W) array, the mask to smooth, got None.")
    values = np.asarray(target)
    if values.shape != image.shape[:2]:
        raise ValueError(
            f"target: expected shape {image.shape[:2]}, the image's, got {values.shape}. Resize "
            f"the mask to the image first."
        )
    if np.ndim(sigma_spatial) != 0 or sigma_spatial is None:
        raise TypeError(
            f"sigma_spatial: expected a number, got {type(sigma_spatial).__name__}. Pass an image "
            f"as img=..."
        )
    grid = BilateralGrid(image, sigma_spatial, sigma_luma, sigma_chroma)
    # Equal confidences of all pixels scale the smoothness, and cost nothing then.
    options = Options.checked(_LAMBDA / _CONFIDENCE, _STEPS)
    soft = solve(grid.grid, options, values.astype(np.float32))
    return soft, _choose(soft, get_all_cc)


def _image(given: Any) -> Array:
    """Return an image as an (H, W, 3) array; read it if a path is given."""
    if given is None:
        raise TypeError("img_pth: expected a path or an image, got None, and img is None, too.")
    if isinstance(given, str | Path):
        try:
            from PIL import Image
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "Reading an image from a path needs Pillow. Install it with: pip install pillow, "
                "or pass the image as an array: img=array.",
                name="PIL",
            ) from error
        with Image.open(given) as file:
            return np.asarray(file if file.mode == "RGB" else file.convert("RGB"))
    image = np.asarray(given)
    if image.ndim == 2:
        image = np.repeat(image[..., np.newaxis], 3, axis=2)
    if image.ndim != 3 or image.shape[2] not in (3, 4):
        raise ValueError(f"img: expected shape (H, W, 3), got {image.shape}.")
    return image[..., :3]


def _choose(soft: NDArray[np.float64], get_all_cc: bool) -> Array:
    """Return the second-largest component, or all but the largest; the background is one, too."""
    labels, sizes = object_regions(soft, _THRESHOLD)
    order = np.argsort(sizes)
    chosen: Array
    if get_all_cc:
        chosen = (labels != order[-1]).astype(np.int64)
    else:
        chosen = labels == order[-2] if len(sizes) > 1 else np.ones(soft.shape, np.bool_)
    return chosen
