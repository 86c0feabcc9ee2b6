"""Semantic segmentation (paper, section 5.4): outlines of classes where the photograph has them."""

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation as checks
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.segmentation import classes
from bilateral.tasks.segmentation import label_trust as outline
from bilateral.tasks.segmentation import policy as rules
from bilateral.tasks.segmentation.policy import USUAL, Settings

Array = NDArray[Any]


def refine_segmentation(
    probabilities: ArrayLike,
    image: ArrayLike,
    *,
    confidence: str | ArrayLike = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: ArrayLike | None = None,
    sigma_xy: float | None = USUAL.sigma_xy,
    sigma_luma: float = USUAL.sigma_luma,
    sigma_chroma: float = USUAL.sigma_chroma,
    smoothness: float | None = USUAL.smoothness,
    rank_tolerance: float | None = USUAL.rank_tolerance,
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
    settings = Settings(sigma_xy, sigma_luma, sigma_chroma, smoothness, rank_tolerance).checked()
    few = classes.active(p)
    x = _refine(few, known, guide, confidence, settings)
    if labels:
        found = few.classes[outline.rank(x).labels]
        return checks.as_dtype(found, np.dtype(np.int64) if dtype is None else scores.dtype)
    full = classes.joined(p, few, x)
    if scores.values.shape[2] == 1:
        full = full[..., 1:]
    return checks.as_dtype(full.reshape(*shape, *scores.layout), scores.dtype)


def _refine(
    few: classes.Active,
    known: Array | None,
    guide: checks.Reference,
    confidence: str | ArrayLike,
    settings: Settings,
) -> Array:
    """The recipe, for the classes that take part."""
    p, before = few.p, few.ranked
    cell = settings.sigma_xy or rules.cell_for(before.labels.shape, outline.belt(before, known))
    c = _confidence(confidence, p, before.labels, known, cell)
    settings = settings._replace(
        sigma_xy=cell, smoothness=rules.smoothness_for(settings, confidence)
    )
    x = sum(_solve(p, c, guide, settings, shift) for shift in rules.shifts(cell))
    x = outline.keep_areas(np.maximum(x, rules.LEAST), before.labels, known)
    return outline.calm(x, round(cell * rules.VOTE), cell**2 * rules.ISLAND)


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
        c = checks.pixel_weights("confidence", confidence, labels.shape, np.dtype(np.float64))
        checks.some_scores(c > 0 if known is None else (c > 0) & known)
        c = (c / c.max()).astype(np.float32)
    elif rules.kind_of(confidence) == "boundary":
        c = outline.trust(labels, known, round(cell))
    elif confidence == "entropy":
        entropy = -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=2)
        c = np.maximum(1 - entropy / np.log(max(p.shape[2], 2)), outline.LEAST_TRUST)
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
        tolerance=rules.TOLERANCE,
        preconditioner=rules.preconditioner_for(smoothness, least),
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
