"""Refine a semantic segmentation by its photograph (paper, section 5.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.grid import BilateralGrid
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.solve import Solve
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.array_types import find_refinement
from bilateral.tasks.segmentation.class_balance import balance_classes
from bilateral.tasks.segmentation.classes import (
    ActiveClasses,
    active_classes,
    join_classes,
    probabilities_at_size,
)
from bilateral.tasks.segmentation.label_trust import belt_width, boundary_confidence
from bilateral.tasks.segmentation.policy import DEFAULTS, Parameters, SegmentationOptions
from bilateral.tasks.segmentation.ranking import rank
from bilateral.tasks.segmentation.small_regions import clean_labels

Array = NDArray[Any]


@validation.keywords(photo="image", reference="image", target="probabilities")
def refine_segmentation(
    probabilities: ArrayLike,
    image: ArrayLike,
    *,
    confidence: str | ArrayLike = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: ArrayLike | None = None,
    sigma_xy: float | None = DEFAULTS.sigma_xy,
    sigma_luma: float = DEFAULTS.sigma_luma,
    sigma_chroma: float = DEFAULTS.sigma_chroma,
    smoothness: float | None = DEFAULTS.smoothness,
    rank_tolerance: float | None = DEFAULTS.rank_tolerance,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Move the borders of a segmentation's regions to the edges of its photograph.

    Segmentation networks return scores at their own resolution or enlarged: blurred at the borders
    of regions, which are off by about a cell of the network. Labels well inside a region are
    trusted, however thin the region is. Labels near a border follow the photograph.

    Parameters
    ----------
    probabilities : (h, w, K) or (h, w) array
        Probabilities of K classes, or of a foreground, of any size: linear interpolation (with
        half-pixel centres) brings them to the size of the image. Logits work as well. A pixel with
        NaN or infinity is unknown; in logits, -inf is a probability of 0. Masks may be bool.
    image : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : {"boundary", "uniform", "entropy"} or (H, W) array
        Trust in each pixel. "boundary": more trust deeper inside a region. "uniform": the same
        trust everywhere, as in the paper. "entropy": more trust where fewer classes are possible.
        Or any numbers, 0 for no trust.
    labels : bool
        Return the most probable class of each pixel instead of probabilities.
    logits : bool, optional
        Whether `probabilities` are logits. By default they are if any value is below 0, or if the
        sum of the classes differs from 1 by more than 0.01 (if a foreground exceeds 1).
    ignore : (H, W) array of bool or integers, optional
        Nonzero where the probabilities mean nothing, such as a border or a logo. These pixels get
        values from their surroundings.
    sigma_xy : float, optional
        Size of a grid cell in pixels. It is also the scale of all other steps: how far around a
        pixel the thickness of its region is measured, and the window of the final vote. The
        default is 17 for 500 x 375 pixels and proportional to the side of the image, from 8 to 64.
        For maps with sharp borders it is down to half of that: four times the width of the belt in
        which the two best classes differ by less than a half.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    smoothness : float, optional
        The paper's lambda. The default is 4 for confidence "boundary", else 16.
    rank_tolerance : float, optional
        Solve for as few combinations of the classes as hold all but this fraction of their
        variance (supplement, section 4). A larger value saves time if many classes are possible,
        but loses small objects. None: solve for every class. A class that is nowhere the most
        probable, and nowhere more probable than 25 %, is never solved for and keeps its values.
    reference_max : float, optional
        Value of white in the image. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of `probabilities` (float32 if that is not floating
        point), or int64 for labels.

    Returns
    -------
    (H, W, K) or (H, W) array
        Probabilities: finite, from 0 to 1, with sums of 1. Or labels (H, W), from 0 to K - 1; 0
        and 1 for a foreground.

    Notes
    -----
    A PyTorch tensor is handed to `bilateral.torch.refine_segmentation`.

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
    arguments = locals()
    refine_other = find_refinement(probabilities)
    if refine_other is not None:
        return refine_other(**arguments)
    labels = validation.flag("labels", labels)
    guide = validation.reference(image, reference_max, name="image")
    validation.finite_values("image", guide.pixels)
    shape = guide.pixels.shape[:2]
    hidden = None if ignore is None else validation.mask("ignore", ignore, shape)
    scores = validation.scores("probabilities", probabilities, logits, shape, dtype, hidden)
    p, known = probabilities_at_size(scores, shape)
    if hidden is not None:
        known = ~hidden if known is None else known & ~hidden
    if known is not None:
        validation.some_scores(known)
        p = np.where(known[..., np.newaxis], p, 0)
    options = SegmentationOptions.checked(arguments)
    active = active_classes(p)
    x = _refine(active, known, guide, confidence, options)
    if labels:
        numbers = active.classes[rank(x).labels]
        return validation.as_dtype(numbers, np.dtype(np.int64) if dtype is None else scores.dtype)
    full = join_classes(p, active, x)
    if scores.values.shape[2] == 1:
        full = full[..., 1:]
    return validation.as_dtype(full.reshape(*shape, *scores.layout), scores.dtype)


def _refine(
    active: ActiveClasses,
    known: Array | None,
    guide: validation.Reference,
    confidence: str | ArrayLike,
    options: SegmentationOptions,
) -> Array:
    """Compute new probabilities of the active classes."""
    p, ranked = active.p, active.ranked
    if isinstance(confidence, str):
        policy.check_confidence(confidence)
    parameters = options.for_image(
        ranked.labels.shape, confidence, lambda: belt_width(ranked, known)
    )
    c = _confidence(confidence, p, ranked.labels, known, parameters)
    x = sum(_solve(p, c, guide, parameters, shift) for shift in parameters.shifts)
    x = balance_classes(np.maximum(x, policy.MIN_PROBABILITY), ranked.labels, known)
    return clean_labels(x, parameters.vote_radius, parameters.min_region_area)


def _confidence(
    confidence: str | ArrayLike,
    p: Array,
    labels: NDArray[np.int32],
    known: Array | None,
    parameters: Parameters,
) -> Array | None:
    """Compute the weight of each pixel, 0 where nothing is known; None: 1 everywhere."""
    c: Array | None = None
    if not isinstance(confidence, str):
        c = validation.pixel_weights("confidence", confidence, labels.shape, np.dtype(np.float64))
        validation.some_scores(c > 0 if known is None else (c > 0) & known)
        c = (c / c.max()).astype(np.float32)
    elif confidence == "boundary":
        c = boundary_confidence(labels, known, parameters.depth_radius)
    elif confidence == "entropy":
        entropy = -np.sum(p * np.log(np.maximum(p, np.finfo(p.dtype).tiny)), axis=2)
        c = np.maximum(1 - entropy / np.log(max(p.shape[2], 2)), policy.MIN_CONFIDENCE)
    if known is None:
        return c
    return known.astype(np.float32) if c is None else np.where(known, c, 0)


def _solve(
    p: Array,
    c: Array | None,
    guide: validation.Reference,
    parameters: Parameters,
    shift: int,
) -> Array:
    """Solve on a grid whose cells begin `shift` pixels before the image."""
    min_confidence = 1.0 if c is None else float(c.min())
    padding = [(shift, 0), (shift, 0)]
    if shift > 0 and c is None:
        c = np.ones(p.shape[:2], np.float32)
    grid = BilateralGrid(
        np.pad(guide.pixels, [*padding, (0, 0)], mode="edge"),
        parameters.cell,
        parameters.sigma_luma,
        parameters.sigma_chroma,
        reference_max=guide.highest,
    )
    options = SolveOptions(
        tolerance=policy.TOLERANCE,
        preconditioner=parameters.preconditioner(min_confidence),
        initial="pyramid",
        checks_error=False,  # labels need no bound of the error
    )
    # Solutions sum to 1, because the classes do: the largest class follows from the others.
    largest = int(p.sum(axis=0).sum(axis=0).argmax())
    others = [k for k in range(p.shape[2]) if k != largest]
    out = np.ones_like(p)
    if others:
        x = (
            Solve(
                grid,
                parameters.smoothness,
                options,
                np.pad(p[..., others], [*padding, (0, 0)]),
                None if c is None else np.pad(c, padding),
            )
            .plain(parameters.rank_tolerance, stacklevel=1)
            .x[shift:, shift:]
        )
        out[..., others] = x
        out[..., largest] -= x @ np.ones(len(others), x.dtype)
    return out
