"""Complete the depth of few points to a dense map, with the photograph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.filters.interpolation import interpolate_points
from bilateral.tasks.completion.blend import weigh
from bilateral.tasks.completion.candidates import (
    PROBE,
    RECIPES,
    Candidates,
    Cells,
    HostCandidates,
)
from bilateral.tasks.completion.features import edge_rank
from bilateral.tasks.completion.holdout import distances, held_out, pixel_distances, shares
from bilateral.tasks.completion.outliers import find_outliers, seen_through
from bilateral.tasks.completion.units import Unit
from bilateral.tasks.depth.depth_input import depth_input

Array = NDArray[Any]

CandidatesOf = Callable[[validation.Reference, Cells], Candidates]

KINDS = ("auto", "depth", "disparity")
_MOST_WRONG = 0.1
"""Part of the points that may be wrong: those far from the predictions in both units do not choose
the one in which outliers are searched for."""
_LINEAR, _LINEAR_OF_FEATURES = 0.9, 0.5
"""Factor of the error of interpolation, since it does no harm; and how much less it is for feature
points."""
_RANDOM, _FEATURES = 0.6, 0.8
"""Mean rank of the points' contrast up to which they are random, and from which on features."""


@overload
def complete_depth(
    points: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: ArrayLike | None = ...,
    sigma_xy: float | None = ...,
    sigma_luma: float = ...,
    sigma_chroma: float = ...,
    reference_max: float | None = ...,
    dtype: DTypeLike | None = ...,
    return_confidence: Literal[False] = ...,
) -> Array: ...
@overload
def complete_depth(
    points: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: ArrayLike | None = ...,
    sigma_xy: float | None = ...,
    sigma_luma: float = ...,
    sigma_chroma: float = ...,
    reference_max: float | None = ...,
    dtype: DTypeLike | None = ...,
    return_confidence: Literal[True],
) -> tuple[Array, Array]: ...
@validation.keywords(photo="reference", depth="points", target="points")
def complete_depth(
    points: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    kind: str = "auto",
    invalid: float | Sequence[float] | None = None,
    mask: ArrayLike | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 8.0,
    sigma_chroma: float = 8.0,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
    return_confidence: bool = False,
) -> Array | tuple[Array, Array]:
    """Complete the depth or disparity of few points to a dense map, with the photograph.

    For points of SLAM, COLMAP or a LiDAR: some ten points to every tenth pixel, at random, at
    features or on scan lines. Values keep their unit. The result is a weighted mean of planar
    solves on several grids and of linear interpolation. Some of the points are held out to find the
    weights: where the photograph does not help to predict them, interpolation prevails. Outliers
    are dropped if the other points are predicted better without them.

    Parameters
    ----------
    points : (H, W) array
        Depth or disparity, in any unit and real dtype. A value that is 0 or not finite is unknown.
    reference : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : (H, W) array, optional
        Weight of each point relative to the others, on any scale; 0 for unknown. Default: 1.
    kind : {"auto", "depth", "disparity"}
        What the values are. "depth": distances; surfaces are planes in their inverse, and points
        seen through a nearer surface are dropped; values below 0 are unknown. "disparity": values
        that are larger for nearer points, or any others; surfaces are planes in the values
        themselves. "auto": the one with which the points predict each other better, "disparity" if
        a value is negative.
    invalid : float or floats, optional
        Values that mean "unknown" besides 0.
    mask : (H, W) array of bool or integers, optional
        0 where the map is unknown.
    sigma_xy : float, optional
        Size of the finest grid cells in pixels; other grids have twice the size. Default: 4 for
        0.35 megapixels, and in proportion to the side of the image, from 3 to 64.
    sigma_luma, sigma_chroma : float
        Size of the finest grid cells in 8-bit grey levels.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the points. Integer results are rounded.
    return_confidence : bool
        Whether to return a confidence, too.

    Returns
    -------
    (H, W) array
        Finite everywhere, within the range of the points and 5 % beyond it.
    (H, W) float32 array
        Only with `return_confidence`: from 0 to 1, high at points and on surfaces with many
        points, low far from points. It is v / (v + variance), where v is the variance of a point's
        value and the variance is that of a planar solution.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.full((60, 80), 40, np.uint8)
    >>> photo[:, 40:] = 200
    >>> points = np.zeros((60, 80), np.uint16)  # 0: unknown
    >>> points[5::10, 5:40:10] = 3000  # millimetres
    >>> points[5::10, 45::10] = 1500
    >>> dense = bilateral.tasks.complete_depth(points, photo)
    >>> dense.dtype, bool((dense == np.where(photo > 100, 1500, 3000)).all())
    (dtype('uint16'), True)
    """
    return complete(
        HostCandidates,
        points,
        reference,
        confidence,
        cells=Cells(sigma_xy, sigma_luma, sigma_chroma),
        kind=kind,
        invalid=invalid,
        mask=mask,
        reference_max=reference_max,
        dtype=dtype,
        return_confidence=return_confidence,
    )


def complete(
    candidates_of: CandidatesOf,
    points: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None,
    *,
    cells: Cells,
    kind: str,
    invalid: float | Sequence[float] | None,
    mask: ArrayLike | None,
    reference_max: float | None,
    dtype: DTypeLike | None,
    return_confidence: bool,
) -> Array | tuple[Array, Array]:
    """Complete the depth of few points by solves that run where `candidates_of` lets them run."""
    kind = validation.choice("kind", kind, KINDS)
    unknown = (*validation.number_list("invalid", invalid), 0.0)
    with_confidence = validation.flag("return_confidence", return_confidence)
    if cells[0] is not None:
        validation.positive("sigma_xy", cells[0])
    for name, size in (("sigma_luma", cells[1]), ("sigma_chroma", cells[2])):
        validation.positive(name, size)
    validation.depth_not_swapped("complete_depth", "points", points, reference)
    guide = validation.reference(reference, reference_max)
    shape = guide.pixels.shape[:2]
    checked = depth_input(points, shape, confidence, mask, unknown, dtype, "points")
    known = np.isfinite(checked.z)
    if kind == "depth":
        known &= checked.z > 0
    validation.some_known("points", known, positive=kind == "depth")
    size = float(np.median(np.abs(checked.z[known])))
    z = np.where(known, checked.z / np.float32(size), np.float32(np.nan)).astype(np.float32)
    trust = np.ones(shape, np.float32) if checked.trust is None else checked.trust
    candidates = candidates_of(guide, cells)
    x = size * _complete(candidates, z, trust, kind, guide.pixels).astype(np.float64)
    dense = validation.as_dtype(x.reshape(checked.shape), checked.dtype)
    if not with_confidence:
        return dense
    variance = candidates.variance(np.where(known, trust, np.float32(0)))
    return dense, (1 / (1 + variance)).astype(np.float32)


def _complete(candidates: Candidates, z: Array, trust: Array, kind: str, photo: Array) -> Array:
    """Complete a map of typical size 1, NaN where unknown."""
    known = np.isfinite(z)
    if np.ptp(z[known]) == 0:
        return np.full(z.shape, z[known][0])
    linear, nearest = interpolate_points(z)
    held = held_out(known, nearest)
    unit, wrong, probe = _unit(candidates, z, trust, kind, held)
    if wrong.any():
        z = np.where(wrong, np.float32(np.nan), z)
        known, probe = np.isfinite(z), None
        linear, nearest = interpolate_points(z)
        held = held_out(known, nearest)
    rest = np.where(held, np.float32(np.nan), z)
    predictions = [
        probe
        if index == PROBE and probe is not None
        else candidates.planar(index, rest, trust, unit, loose=True)[held]
        for index in range(len(RECIPES))
    ]
    of_rest, nearest_of_rest = interpolate_points(rest)
    predictions.append(of_rest[held])
    share = shares(distances(held, nearest_of_rest), pixel_distances(known, nearest))
    at_edges = np.clip((edge_rank(photo, known) - _RANDOM) / (_FEATURES - _RANDOM), 0, 1)
    factor = _LINEAR * (1 - _LINEAR_OF_FEATURES * float(at_edges))
    *weights, last = weigh(predictions, z[held], share, factor)
    x = np.float32(last) * linear
    for index, weight in enumerate(weights):
        if weight > 0:
            x += np.float32(weight) * candidates.planar(index, z, trust, unit)
    return x


def _unit(
    candidates: Candidates, z: Array, trust: Array, kind: str, held: NDArray[np.bool_]
) -> tuple[Unit, NDArray[np.bool_], Array | None]:
    """Return the unit of planes for a kind of values, and the wrong points.

    Also return the predictions of the held-out points by the cheap recipe, if they were needed.
    """
    values = z[np.isfinite(z)]
    direct = Unit.of(values, inverse=False)
    if values.min() <= 0 or kind == "disparity" or (kind == "auto" and not held.any()):
        return direct, _wrong(candidates, z, trust, direct), None
    inverse = Unit.of(values, inverse=True)
    if kind == "depth":
        return inverse, _wrong(candidates, z, trust, inverse), None
    rest = np.where(held, np.float32(np.nan), z)
    units = inverse, direct
    predictions = [candidates.planar(PROBE, rest, trust, unit, loose=True)[held] for unit in units]
    errors = np.abs(np.stack(predictions) - z[held]).astype(np.float64)
    least = errors.min(axis=0)
    near = least <= np.quantile(least, 1 - _MOST_WRONG)
    wrong = _wrong(candidates, z, trust, units[int(np.argmin(errors[:, near].mean(axis=1)))])
    right = ~wrong[held]
    best = int(np.argmin(errors[:, right].mean(axis=1))) if right.any() else 1
    return units[best], wrong, predictions[best]


def _wrong(candidates: Candidates, z: Array, trust: Array, unit: Unit) -> NDArray[np.bool_]:
    """Find the points to drop, in a unit of planes."""
    wrong = seen_through(z) if unit.inverse else np.zeros(z.shape, bool)
    return wrong | find_outliers(candidates, np.where(wrong, np.float32(np.nan), z), trust, unit)
