"""Cut an object out of a photograph: a soft matte from scribbles or a rough mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.numerics.pcg import Callback
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.cutout.edges import outline_opacity, remove_specks
from bilateral.tasks.cutout.scribbles import labels_of_mask, read_scribbles

Array = NDArray[Any]

_CELL = 10.0
"""Size of a grid cell for an image of 0.35 megapixels."""
_LEAST_CELL = 4.0
_SIGMA_COLOR = 8.0
_SMOOTHNESS = 1.0
_SCREEN = 1e-3
"""Confidence in "neither" of a pixel without a stroke: near strokes count more than many."""
_COLOR_WEIGHT = 1e-4
"""Confidence in the side that a pixel's colour speaks for, where the colour is unambiguous."""
_COLOR_CELLS = 2
"""Cells along the side of the image in which the colours of strokes are counted."""
_COLOR_BLURS = 2
_RARE_COLOR = 1e-3
"""A colour with this fraction of the most frequent stroke colour's count counts half."""
_CONTRADICTION = -0.2
"""A rough mask does not count where the colours of strokes contradict it so much, from -1 to 1."""
_TOLERANCE = 1e-5
"""Values far from all strokes are small, and their ratio counts."""
_SIGMA_EDGE = 16.0


@validation.keywords(image="photo", reference="photo")
def cut_out(
    photo: ArrayLike,
    scribbles: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    hard: bool = False,
    reference_max: float | None = None,
) -> Array:
    """Cut an object out of a photograph by scribbles that say "this" and "not this".

    Scribbles spread as far as colours stay the same. Colours of scribbles count elsewhere, too,
    the more the nearer. Along the outline, a pixel's opacity is the part of the object's colour in
    it, so that hair and soft edges stay soft.

    Parameters
    ----------
    photo : (H, W) or (H, W, 3) array
        uint8, uint16 or floating point, with white at 255, 65535 or 1.
    scribbles : (H, W) array of signed numbers, or (H, W, 3) or (H, W, 4) array, optional
        Numbers: above 0 for pixels of the object, below 0 for other pixels, 0 for unknown.
        Pictures: the photograph with strokes painted on it, or a layer of strokes with an alpha
        channel; green or white strokes say "this", red or black ones "not this".
    mask : (H, W) array of bool or integers, optional
        A rough mask of the object: not 0 inside. Its outline may be wrong by a twentieth of the
        image's side. Scribbles correct it.
    hard : bool
        Return a mask of bool, true where the matte is above one half.
    reference_max : float, optional
        Value of white in the photograph. Default: 255, 65535 or 1, by its dtype.

    Returns
    -------
    (H, W) array
        The matte: float32, 0 outside the object, 1 inside, in between on soft edges. Or a mask.

    See Also
    --------
    Cutter : Cut one photograph with many sets of scribbles.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import cut_out
    >>> photo = np.full((40, 60, 3), (40, 90, 160), np.uint8)
    >>> photo[10:30, 20:45] = (200, 120, 60)
    >>> scribbles = np.zeros((40, 60), np.int8)
    >>> scribbles[20, 25:30] = 1
    >>> scribbles[5, 5:50] = -1
    >>> int(cut_out(photo, scribbles, hard=True).sum())
    500
    """
    hard = validation.flag("hard", hard)
    matte = Cutter(photo, reference_max=reference_max).cut_out(scribbles, mask)
    return matte > 0.5 if hard else matte


class Cutter:
    """Cut objects out of one photograph again and again, after each new scribble.

    For editors: a cutter keeps its grids. The arguments are those of `cut_out`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import Cutter
    >>> photo = np.zeros((20, 30), np.uint8)
    >>> photo[:, 15:] = 200
    >>> cutter = Cutter(photo)
    >>> scribbles = np.zeros((20, 30), np.int8)
    >>> scribbles[5, 5], scribbles[5, 25] = -1, 1
    >>> cutter.cut_out(scribbles)[10, [0, 14, 15, 29]].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    @validation.keywords(image="photo", reference="photo")
    def __init__(self, photo: ArrayLike, *, reference_max: float | None = None) -> None:
        self._photo = validation.reference(photo, reference_max, name="photo")
        validation.finite_values("photo", self._photo.pixels)
        pixels, highest = self._photo
        self._cell = cell_size(pixels.shape, _CELL, _LEAST_CELL)
        self._solver = BilateralSolver(self._grid(self._cell), _SMOOTHNESS, tolerance=_TOLERANCE)
        side = math.sqrt(math.prod(pixels.shape[:2]))
        self._colors = self._grid(max(1.0, side / _COLOR_CELLS))
        self._levels = np.multiply(pixels, np.float32(255 / highest), dtype=np.float32)

    def _grid(self, sigma_xy: float) -> BilateralGrid:
        return BilateralGrid(
            self._photo.pixels,
            sigma_xy,
            _SIGMA_COLOR,
            _SIGMA_COLOR,
            reference_max=self._photo.highest,
        )

    def cut_out(
        self,
        scribbles: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> Array:
        """Return the matte for a set of scribbles, as `bilateral.tasks.cut_out` does.

        Parameters
        ----------
        scribbles : array, optional
            Labels or a picture of strokes.
        mask : (H, W) array, optional
            A rough mask.
        callback : function of (step, residual), optional
            Called after each step of the solve; a true result ends it, an exception cancels it.

        Returns
        -------
        (H, W) float32 array
        """
        strokes, rough = self._strokes(scribbles), self._rough_labels(mask)
        labels = np.where(strokes != 0, strokes, rough)
        validation.both_kinds_of_scribbles(labels)
        if rough.any() and (strokes > 0).any() and (strokes < 0).any():
            evidence = self._color_evidence(strokes)
            labels[(strokes == 0) & (rough * (2 * evidence[0] - 1) < _CONTRADICTION)] = 0
        else:
            evidence = self._color_evidence(labels)
        x = self._segment(labels, *evidence, callback)
        sigma = max(_LEAST_CELL, self._cell / 2)
        x = domain_transform(
            x, self._photo.pixels, sigma, _SIGMA_EDGE, reference_max=self._photo.highest
        )
        x = remove_specks(np.clip(x, 0, 1), labels)
        return outline_opacity(self._levels, x, strokes)

    def _strokes(self, scribbles: ArrayLike | None) -> NDArray[np.int8]:
        if scribbles is None:
            return np.zeros(self._photo.pixels.shape[:2], np.int8)
        return read_scribbles(scribbles, self._photo)

    def _rough_labels(self, mask: ArrayLike | None) -> NDArray[np.int8]:
        height, width = self._photo.pixels.shape[:2]
        if mask is None:
            return np.zeros((height, width), np.int8)
        return labels_of_mask(mask, (height, width))

    def _segment(
        self,
        labels: NDArray[np.int8],
        side: Array,
        weight: Array,
        callback: Callback | None,
    ) -> Array:
        """Solve for the share of each kind of stroke in each pixel; return that of "this".

        With a small confidence in "neither", shares fall with the distance from strokes, so that
        the nearest strokes decide (a random walk with restart).
        """
        confidence = np.where(labels != 0, 1, weight + _SCREEN).astype(np.float32)
        part = weight / confidence
        this = np.where(labels != 0, labels > 0, part * side)
        other = np.where(labels != 0, labels < 0, part * (1 - side))
        target = np.stack([this, other], axis=2).astype(np.float32)
        shares = np.maximum(self._solver.solve(target, confidence, callback=callback), 0)
        least = np.float32(1e-12)
        share: Array = (shares[..., 0] + least) / (shares[..., 0] + shares[..., 1] + 2 * least)
        return share

    def _color_evidence(self, labels: NDArray[np.int8]) -> tuple[Array, Array]:
        """Probability of "this" by colour and rough place, and its confidence, per pixel."""
        counts = []
        for sign in (1, -1):
            strokes = (labels == sign).astype(np.float32)
            count = self._colors.splat(strokes / strokes.sum())
            for _ in range(_COLOR_BLURS):
                count = self._colors.blur(count)
            counts.append(count)
        total = counts[0] + counts[1]
        tiny = np.finfo(np.float32).tiny
        p = np.where(total > 0, counts[0] / np.maximum(total, tiny), np.float32(0.5))
        seen = total / (total + _RARE_COLOR * total.max())
        weight = _COLOR_WEIGHT * seen * (2 * p - 1) ** 2
        vertices = np.stack([p, weight], axis=1).astype(np.float32)
        pixels = self._colors.slice(vertices)
        return pixels[..., 0], pixels[..., 1]
