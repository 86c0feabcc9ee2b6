"""Semantic segmentation (paper, section 5.4): outlines of classes where the photograph has them."""

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import checks
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks import classes, outline
from bilateral.tasks.cells import cell_size

Array = NDArray[Any]

CONFIDENCES = ("boundary", "uniform", "entropy")

_CELL = 24.0
"""The largest cells in an image of 0.35 megapixels, in pixels; 17 in one of 500 x 366."""
_BELTS = 4
"""A cell is as wide as this many belts of doubt: twice a network's own, as far as that shows."""
_SMOOTHNESS = {"boundary": 4.0, "uniform": 16.0, "entropy": 16.0}
"""The less the confidences are on the whole, the less of it there must be."""
_TOLERANCE = 0.01
"""Of the solve: labels feel nothing of it."""
_VOTE = 0.2
"""Radius of the vote's window, in cells."""
_ISLAND = 0.25
"""Area of the smallest region, in squares of cells."""
_LEAST_TRUST = 0.01
_EASY = 16.0
"""Up to this smoothness the pyramid converges soon, and is ready sooner than multigrid."""
_LEAST = 1e-9
"""Of a solution: probabilities may be below 0 by a rounding error."""


def refine_segmentation(
    probabilities: ArrayLike,
    image: ArrayLike,
    *,
    confidence: str | ArrayLike = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: ArrayLike | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 16.0,
    sigma_chroma: float = 8.0,
    smoothness: float | None = None,
    rank_tolerance: float | None = 1e-4,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Move the outlines of a segmentation to the edges of the photograph that it belongs to.

    For what segmentation networks return, at their own resolution or enlarged: blurred at the
    outlines, and off by about a cell of the network. Labels well inside a region are believed,
    however thin the region is; those near an outline follow the photograph.

    Parameters
    ----------
    probabilities : (h, w, K) or (h, w) array
        Of K classes, or of a foreground, of any size: it is brought to the image's by linear
        interpolation (with half-pixel centres). Logits will do as well. A pixel with NaN or
        infinity is unknown; in logits, -inf is a probability of 0. Masks may be bool.
    image : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : {"boundary", "uniform", "entropy"} or (H, W) array
        How much to trust each pixel. "boundary": the more the deeper it lies in its region.
        "uniform": all alike, as in the paper. "entropy": the less classes are in question, the
        more. Or any numbers, 0 for not at all.
    labels : bool
        Return the most probable class of each pixel, rather than probabilities.
    logits : bool, optional
        Whether `probabilities` are logits. Left out, they are if any value is below 0, or if the
        classes do not sum to 1 up to 0.01 (if a foreground's exceed 1).
    ignore : (H, W) array of bool or integers, optional
        Nonzero where the probabilities mean nothing, such as a border or a logo. These pixels get
        what their surroundings suggest.
    sigma_xy : float, optional
        Size of the grid's cells in pixels, and the scale of all else that is done: how far around
        a pixel its region's thickness is measured, and the window of the final vote. By default
        17 for 500 x 375 pixels and in proportion to the image's side, from 8 to 64; down to half
        of that for maps with sharp outlines, four times the width of the belt in which the two
        best classes differ by less than a half.
    sigma_luma, sigma_chroma : float
        Size of the grid's cells in 8-bit grey levels.
    smoothness : float, optional
        The paper's lambda: 4 for confidence "boundary", else 16.
    rank_tolerance : float, optional
        Solve for as few combinations of the classes as hold all but this part of their variance
        (supplement, section 4). More saves time where many classes are in question, and loses
        small objects. None: solve for every class. Classes that are nowhere the most probable, nor
        more probable than 25 %, are left as they are in any case.
    reference_max : float, optional
        The image's value that means white, where it is not the dtype's usual one.
    dtype : dtype, optional
        The result's, if not that of `probabilities` (float32 if that is no floating point) or,
        for labels, int64.

    Returns
    -------
    (H, W, K) or (H, W) array
        Probabilities: finite, from 0 to 1, with sums of 1; or labels (H, W), from 0 to K - 1, of a
        foreground 0 and 1.

    Notes
    -----
    Given a PyTorch tensor, this is `bilateral.torch.refine_segmentation`.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import refine_segmentation
    >>> photo = np.zeros((64, 96), np.uint8)
    >>> photo[:, 40:] = 200
    >>> coarse = np.array([[0, 0, 0.7, 1, 1, 1]] * 4)  # 16 pixels to a cell
    >>> mask = refine_segmentation(coarse, photo, labels=True)
    >>> mask[32, [0, 39, 40, 95]].tolist()
    [0, 0, 1, 1]
    """
    if "torch" in sys.modules and isinstance(probabilities, sys.modules["torch"].Tensor):
        return _refine_tensors(
            probabilities,
            image,
            confidence=confidence,
            labels=labels,
            logits=logits,
            ignore=ignore,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            smoothness=smoothness,
            rank_tolerance=rank_tolerance,
            reference_max=reference_max,
            dtype=dtype,
        )
    guide = checks.reference(image, reference_max, name="image")
    checks.finite_values("image", guide.pixels)
    shape = guide.pixels.shape[:2]
    hidden = None if ignore is None else checks.mask("ignore", ignore, shape)
    scores = checks.scores("probabilities", probabilities, logits, shape, dtype, hidden)
    p, known = classes.at_size(scores, shape)
    if hidden is not None:
        known = ~hidden if known is None else known & ~hidden
    if known is not None:
        checks.some_scores(known)
        p = np.where(known[..., np.newaxis], p, 0)
    settings = Settings(
        None if sigma_xy is None else checks.positive("sigma_xy", sigma_xy),
        checks.positive("sigma_luma", sigma_luma),
        checks.positive("sigma_chroma", sigma_chroma),
        None if smoothness is None else checks.positive("smoothness", smoothness),
        rank_tolerance,
    )
    few = classes.active(p)
    x = _refine(few, known, guide, confidence, settings)
    if labels:
        found = few.classes[outline.rank(x).labels]
        return checks.as_dtype(found, np.dtype(np.int64) if dtype is None else scores.dtype)
    full = classes.joined(p, few, x)
    if scores.values.shape[2] == 1:
        full = full[..., 1:]
    return checks.as_dtype(full.reshape(*shape, *scores.layout), scores.dtype)


class Settings(NamedTuple):
    """Numbers of the recipe; None: what suits the map."""

    sigma_xy: float | None
    sigma_luma: float
    sigma_chroma: float
    smoothness: float | None
    rank_tolerance: float | None


def _refine(
    few: classes.Active,
    known: Array | None,
    guide: checks.Reference,
    confidence: str | ArrayLike,
    settings: Settings,
) -> Array:
    """The recipe, for the classes that take part."""
    p, before = few.p, few.ranked
    cell = settings.sigma_xy or _cell(before, known)
    c = _confidence(confidence, p, before.labels, known, cell)
    smoothness = settings.smoothness
    if smoothness is None:
        kind = confidence if isinstance(confidence, str) else "uniform"
        smoothness = _SMOOTHNESS[kind]
    # The grids' cells overlap by half, so that no outline suffers from the cells of both.
    x = sum(
        _solve(p, c, guide, settings._replace(sigma_xy=cell, smoothness=smoothness), round(shift))
        for shift in (0, cell / 2)
    )
    x = outline.keep_areas(np.maximum(x, _LEAST), before.labels, known)
    return outline.calm(x, round(cell * _VOTE), cell**2 * _ISLAND)


def _cell(before: outline.Ranked, known: Array | None) -> float:
    """The size of cells that suits a map and its image."""
    most = cell_size(before.labels.shape, _CELL, least=8)
    width = outline.belt(before, known)
    # Where there is no doubt at all, nothing is known of how exact the outlines are.
    return float(np.clip(_BELTS * width, most / 2, most)) if width > 0 else most


def _confidence(
    confidence: str | ArrayLike,
    p: Array,
    labels: NDArray[np.int32],
    known: Array | None,
    cell: float,
) -> Array | None:
    """A weight per pixel, 0 where nothing is known; None: 1 everywhere."""
    c: Array | None = None
    if not isinstance(confidence, str):
        c = checks.plain_weights("confidence", confidence, labels.shape, np.dtype(np.float64))
        checks.some_scores(c > 0 if known is None else (c > 0) & known)
        c = (c / c.max()).astype(np.float32)
    elif checks.choice("confidence", confidence, CONFIDENCES) == "boundary":
        c = outline.trust(labels, known, round(cell))
    elif confidence == "entropy":
        entropy = -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=2)
        c = np.maximum(1 - entropy / np.log(max(p.shape[2], 2)), _LEAST_TRUST)
    if known is None:
        return c
    return known.astype(np.float32) if c is None else np.where(known, c, 0)


def _solve(
    p: Array,
    c: Array | None,
    guide: checks.Reference,
    settings: Settings,
    shift: int,
) -> Array:
    """Solve on a grid whose cells begin `shift` pixels before the image does."""
    smoothness = settings.smoothness or 1.0
    least = 1.0 if c is None else float(c.min())
    easy = smoothness <= _EASY and least >= _LEAST_TRUST / 2
    before = [(shift, 0), (shift, 0)]
    if shift > 0 and c is None:
        c = np.ones(p.shape[:2], np.float32)
    grid = BilateralGrid(
        np.pad(guide.pixels, [*before, (0, 0)], mode="edge"),
        settings.sigma_xy or 1.0,
        settings.sigma_luma,
        settings.sigma_chroma,
        reference_max=guide.highest,
    )
    solver = BilateralSolver(
        grid,
        smoothness,
        tolerance=_TOLERANCE,
        preconditioner="pyramid" if easy else "multigrid",
        initial="pyramid",
    )
    # Solutions sum to 1 as the classes do: the one with most pixels follows from the others.
    most = int(p.sum(axis=0).sum(axis=0).argmax())
    others = [k for k in range(p.shape[2]) if k != most]
    out = np.ones_like(p)
    if others:
        x = solver.solve(
            np.pad(p[..., others], [*before, (0, 0)]),
            None if c is None else np.pad(c, before),
            rank_tolerance=settings.rank_tolerance,
        )[shift:, shift:]
        out[..., others] = x
        out[..., most] -= x @ np.ones(len(others), x.dtype)
    return out


def _refine_tensors(probabilities: Any, image: Any, **options: Any) -> Any:
    from bilateral.torch import refine_segmentation as refine

    return refine(probabilities, image, **options)
