"""Colorize a gray photograph by strokes of colour (paper, section 5.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.numerics.pcg import Callback
from bilateral.solver import BilateralSolver
from bilateral.tasks.colorize.presets import PRESETS
from bilateral.tasks.colorize.strokes import find_strokes
from bilateral.tasks.colorize.surroundings import Specks

Array = NDArray[Any]


STATE_VERSION = 1
"""Changes whenever an entry of a pickled `Colorizer` changes its meaning."""


@validation.keywords(photo="gray", reference="gray")
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

    Colours spread from the strokes as far as brightness and texture stay the same. The result has
    the luma of `gray`; only the hue and saturation of a stroke count. A colour that is too strong
    for the luma becomes paler and keeps its hue.

    Parameters
    ----------
    gray : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1. Of a colour
        photograph, only the luma is used.
    scribbles : (H, W, 3) or (H, W, 4) array
        Either the photograph with strokes painted on it (a stroke is where the two differ), or a
        layer of strokes with an alpha channel: 0 where there is no stroke, else the weight of the
        colour. A constant alpha is ignored. White is that of `gray` if both have one dtype, else
        255, 65535 or 1. A pixel with a value that is not finite is no stroke.
    mask : (H, W) array of bool or integers, optional
        Where the strokes are, instead of the rules above. A mask can mark gray strokes.
    preset : {"best", "paper"}
        "paper" uses the paper's parameters: cells of 4 pixels and grey levels, a smoothness of
        0.5, 25 steps, and brightness alone. "best" solves to convergence, uses cells in proportion
        to the side of the image (10 pixels for 0.35 megapixels), separates rough from smooth
        surfaces, and gives isolated specks the colours around them in the picture.
    sigma_xy, sigma_luma : float, optional
        Size of a grid cell in pixels and in 8-bit grey levels. Default: the preset's.
    smoothness : float, optional
        Larger values average over strokes that contradict each other. Default: the preset's.
    reference_max : float, optional
        Value of white in `gray`. Default: 255, 65535 or 1, by its dtype.

    Returns
    -------
    (H, W, 3) array
        RGB, with the dtype and the white of `gray`. Parts that no stroke reaches get the colours
        of their surroundings.

    See Also
    --------
    Colorizer : Colorize one photograph with many sets of strokes.

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
    colorizer = Colorizer(
        gray,
        preset=preset,
        sigma_xy=sigma_xy,
        sigma_luma=sigma_luma,
        smoothness=smoothness,
        reference_max=reference_max,
    )
    return colorizer._colorize(scribbles, mask, stacklevel=4)


class Colorizer:
    """Colorize one gray photograph again and again, after each new stroke.

    For editors, where a user paints and sees the result: a colorizer keeps its grid, and each solve
    starts from the last solution. The arguments are those of `colorize`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import Colorizer
    >>> gray = np.full((30, 40), 120, np.uint8)
    >>> layer = np.zeros((30, 40, 4), np.uint8)
    >>> colorizer = Colorizer(gray)
    >>> layer[5:8, 4:12] = (160, 110, 100, 255)
    >>> colorizer.colorize(layer)[20, 20].tolist()
    [156, 106, 96]
    >>> layer[20:23, 30:36] = (100, 130, 120, 255)  # one more stroke
    >>> bool(colorizer.colorize(layer)[29, 39, 0] < 120)
    True
    """

    @validation.keywords(photo="gray", reference="gray")
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
        self._set_luma()
        parameters = PRESETS[validation.choice("preset", preset, PRESETS)]
        features, sigmas, cell = parameters.features(self._levels, sigma_xy, sigma_luma)
        grid = BilateralGrid.from_features(features, sigmas, cell)
        self._solver = BilateralSolver(
            grid,
            parameters.smoothness if smoothness is None else smoothness,
            method=parameters.method,
        )
        self._speck_cell = cell if parameters.recolor_specks else None
        self._specks = self._find_specks()
        self._filter = parameters.filter(cell)
        self._has_solution = False

    def __getstate__(self) -> dict[str, Any]:
        rebuilt = ("_luma", "_levels", "_specks")
        state = {name: value for name, value in vars(self).items() if name not in rebuilt}
        return {"version": STATE_VERSION, **state, "_gray": tuple(self._gray)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = "Colorizer"
        entries = ("_gray", "_dtype", "_solver", "_speck_cell", "_filter", "_has_solution")
        restored = validation.state(name, state, STATE_VERSION, entries)
        pixels, highest = restored["_gray"]
        pixels = validation.state_features(name, pixels, restored["_solver"].grid.shape, (1, 3))
        restored["_gray"] = validation.Reference(pixels, highest)
        vars(self).update(restored)
        self._set_luma()
        self._specks = self._find_specks()

    def _set_luma(self) -> None:
        """Compute the luma, and the same in 8-bit grey levels."""
        self._luma = color.luma(self._gray.pixels)
        self._levels = self._luma * self._luma.dtype.type(255 / self._gray.highest)

    def _find_specks(self) -> Specks | None:
        cell = self._speck_cell
        return None if cell is None else Specks(self._solver.grid, self._levels, cell)

    def colorize(
        self,
        scribbles: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        warm_start: bool = True,
        callback: Callback | None = None,
    ) -> Array:
        """Colorize the photograph by a set of strokes, as `bilateral.tasks.colorize` does.

        Parameters
        ----------
        scribbles : (H, W, 3) or (H, W, 4) array
            The photograph with strokes painted on it, or a layer of strokes.
        mask : (H, W) array of bool or integers, optional
            Where the strokes are.
        warm_start : bool
            Start from the last solution. Without it, the result is exactly that of
            `bilateral.tasks.colorize`; with it, within the tolerance of the solver.
        callback : function of (step, residual), optional
            Called after each step of the solve; a true result ends it, an exception cancels it.

        Returns
        -------
        (H, W, 3) array
        """
        warm_start = validation.flag("warm_start", warm_start)
        return self._colorize(scribbles, mask, 3, warm_start, callback)

    def _colorize(
        self,
        scribbles: ArrayLike,
        mask: ArrayLike | None,
        stacklevel: int,
        warm_start: bool = False,
        callback: Callback | None = None,
    ) -> Array:
        strokes = find_strokes(self._gray, scribbles, mask, stacklevel + 1)
        start = "last" if warm_start and self._has_solution else None
        chroma = self._solver.solve(
            strokes.chroma, strokes.weights, warm_start=start, callback=callback
        )
        self._has_solution = True
        if self._specks is not None:
            self._specks.recolor(chroma, strokes.weights)
        chroma = domain_transform(
            chroma, self._luma, *self._filter, reference_max=self._gray.highest
        )
        return color.colored(self._luma, chroma, self._gray.highest, self._dtype)
