"""Colorization from a few strokes (paper, section 5.3)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.colorize import strokes

Array = NDArray[Any]


@dataclass(frozen=True)
class Preset:
    """Sizes in pixels and 8-bit grey levels."""

    sigma_luma: float
    smoothness: float
    sigma_gray: float
    """Of the domain transform that takes away the grid's blocks."""
    cell: float | None = None
    """The size of the grid's cells in an image of 0.35 megapixels; None: 4 in any."""
    texture: float | None = None
    """The size of cells along the texture, where that is a feature of the grid."""
    method: str | None = None


PRESETS = {
    "best": Preset(sigma_luma=8, smoothness=0.1, sigma_gray=16, cell=10, texture=8),
    "paper": Preset(sigma_luma=4, smoothness=0.5, sigma_gray=8, method="paper"),
}
_LEAST_CELL = 4.0
_LEAST_FILTER = 4.0
"""Of the domain transform, in pixels, where half a cell is less."""
_WINDOW = 5
"""Side of the square of pixels whose standard deviation is the texture."""


def colorize(
    gray: ArrayLike,
    scribbles: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    preset: str = "best",
    sigma_xy: float | None = None,
    sigma_luma: float | None = None,
    smoothness: float | None = None,
    reference_max: float | None = None,
) -> Array:
    """Colorize a gray photograph by a few strokes of colour.

    Colours spread from the strokes as far as brightness and texture stay the same. The luma of the
    result is that of `gray`; of a stroke, hue and saturation count. Where a colour is too strong
    for the luma, it gets paler and keeps its hue.

    Parameters
    ----------
    gray : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1. Of one in
        colour, the luma is taken.
    scribbles : (H, W, 3) or (H, W, 4) array
        Either the same photograph with strokes painted on it (a stroke is where the two differ),
        or a layer of strokes whose alpha is 0 where nobody painted, and else how much the colour
        counts. An alpha that is the same everywhere tells nothing and is ignored. White is that
        of `gray` for the same dtype, and else its dtype's usual one. A pixel with a value that is
        not finite is no stroke.
    mask : (H, W) array of bool or integers, optional
        Where the strokes are, instead: the way to mark something as gray.
    preset : {"best", "paper"}
        "paper" is what the paper did: cells of 4 pixels and grey levels, a smoothness of 0.5, 25
        steps, and brightness alone. "best" converges, takes cells in proportion to the image's
        side (10 pixels for 0.35 megapixels), and tells rough from smooth surfaces.
    sigma_xy, sigma_luma : float, optional
        Size of the grid's cells in pixels and in 8-bit grey levels, instead of the preset's.
    smoothness : float, optional
        Larger values average over strokes that contradict each other; instead of the preset's.
    reference_max : float, optional
        The value of `gray` that means white, where it is not the dtype's usual one.

    Returns
    -------
    (H, W, 3) array
        RGB, in the dtype and with the white of `gray`. What the strokes cannot reach takes the
        colours of its surroundings.

    See Also
    --------
    Colorizer : the same for one photograph and many sets of strokes.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import colorize
    >>> gray = np.full((30, 40), 80, np.uint8)
    >>> gray[:, 20:] = 170
    >>> marked = np.stack([gray] * 3, axis=2)
    >>> marked[5:8, 4:12] = (170, 40, 40)  # a stroke of red on the left
    >>> marked[20:23, 30:36] = (150, 170, 220)  # and one of blue on the right
    >>> colorize(gray, marked)[15, [2, 37]].tolist()
    [[171, 41, 41], [150, 170, 220]]
    """
    painter = Colorizer(
        gray,
        preset=preset,
        sigma_xy=sigma_xy,
        sigma_luma=sigma_luma,
        smoothness=smoothness,
        reference_max=reference_max,
    )
    return painter._colorize(scribbles, mask, stacklevel=3)


class Colorizer:
    """One gray photograph, to be colorized again with each new stroke.

    It keeps the grid, and each solve starts from the last solution: for editors and tools, where
    somebody paints and wants to see. Arguments are those of `colorize`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import Colorizer
    >>> gray = np.full((30, 40), 120, np.uint8)
    >>> layer = np.zeros((30, 40, 4), np.uint8)
    >>> painter = Colorizer(gray)
    >>> layer[5:8, 4:12] = (160, 110, 100, 255)
    >>> painter.colorize(layer)[20, 20].tolist()
    [156, 106, 96]
    >>> layer[20:23, 30:36] = (100, 130, 120, 255)  # one more stroke
    >>> bool(painter.colorize(layer)[29, 39, 0] < 120)
    True
    """

    def __init__(
        self,
        gray: ArrayLike,
        *,
        preset: str = "best",
        sigma_xy: float | None = None,
        sigma_luma: float | None = None,
        smoothness: float | None = None,
        reference_max: float | None = None,
    ) -> None:
        self._gray = validation.reference(gray, reference_max, name="gray")
        validation.finite_values("gray", self._gray.pixels)
        self._dtype = np.asarray(gray).dtype.newbyteorder("=")
        self._luma = color.luma(self._gray.pixels)
        kind = PRESETS[validation.choice("preset", preset, PRESETS)]
        grid, cell = self._grid(kind, sigma_xy, sigma_luma)
        self._solver = BilateralSolver(
            grid,
            kind.smoothness if smoothness is None else smoothness,
            method=kind.method,
        )
        self._filter = (max(_LEAST_FILTER, cell / 2), kind.sigma_gray)
        self._painted = False

    def _grid(
        self, kind: Preset, sigma_xy: float | None, sigma_luma: float | None
    ) -> tuple[BilateralGrid, float]:
        """A grid over the luma, and the texture if the preset wants it, and its cells' size."""
        shape = self._luma.shape
        usual = _LEAST_CELL if kind.cell is None else cell_size(shape, kind.cell, _LEAST_CELL)
        cell = usual if sigma_xy is None else validation.positive("sigma_xy", sigma_xy)
        luma = (
            kind.sigma_luma if sigma_luma is None else validation.positive("sigma_luma", sigma_luma)
        )
        levels = self._luma * self._luma.dtype.type(255 / self._gray.highest)
        features, sigmas = [levels], [luma]
        if kind.texture is not None:
            features.append(_texture(levels))
            sigmas.append(kind.texture)
        return BilateralGrid.from_features(np.stack(features, axis=2), sigmas, cell), cell

    def colorize(self, scribbles: ArrayLike, mask: ArrayLike | None = None) -> Array:
        """Colorize the photograph by a set of strokes, as `bilateral.tasks.colorize` does.

        Parameters
        ----------
        scribbles : (H, W, 3) or (H, W, 4) array
        mask : (H, W) array of bool or integers, optional

        Returns
        -------
        (H, W, 3) array
        """
        return self._colorize(scribbles, mask, stacklevel=3)

    def _colorize(self, scribbles: ArrayLike, mask: ArrayLike | None, stacklevel: int) -> Array:
        painted = strokes.find(self._gray, scribbles, mask, stacklevel + 1)
        chroma = self._solver.solve(
            painted.chroma, painted.weights, warm_start="last" if self._painted else None
        )
        self._painted = True
        chroma = domain_transform(
            chroma, self._luma, *self._filter, reference_max=self._gray.highest
        )
        return color.colored(self._luma, chroma, self._gray.highest, self._dtype)


def _texture(levels: Array) -> Array:
    """The standard deviation of the luma over a window, of those with the pixel the least.

    Beside an edge, that is a window which does not cross it: an edge is no texture.
    """
    centred = levels - np.mean(levels, dtype=np.float64).astype(levels.dtype)
    count = levels.dtype.type(_WINDOW**2)
    mean = _over_window(np.add, centred) / count
    square = _over_window(np.add, centred * centred) / count
    return _over_window(np.minimum, np.sqrt(np.maximum(square - mean * mean, 0)))


def _over_window(join: np.ufunc, image: Array) -> Array:
    """The sum, say, over a window around each pixel; edges are replicated."""
    height, width = image.shape
    padded = np.pad(image, _WINDOW // 2, mode="edge")
    rows = padded[:height].copy()
    for i in range(1, _WINDOW):
        join(rows, padded[i : i + height], out=rows)
    out = rows[:, :width].copy()
    for i in range(1, _WINDOW):
        join(out, rows[:, i : i + width], out=out)
    return out
