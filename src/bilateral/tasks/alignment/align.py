"""Give a network's relative depth a metric scale, from few metric values or a noisy metric map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import color, validation
from bilateral.tasks.alignment.candidates import Fit, best_fit
from bilateral.tasks.alignment.forms import KINDS
from bilateral.tasks.alignment.info import AlignInfo
from bilateral.tasks.alignment.local_fit import Cells, Metric

Array = NDArray[Any]


@overload
def align_depth(
    relative: ArrayLike,
    metric: ArrayLike,
    reference: ArrayLike | None = ...,
    confidence: ArrayLike | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: ArrayLike | None = ...,
    sigma_xy: float | None = ...,
    sigma_relative: float = ...,
    sigma_luma: float = ...,
    reference_max: float | None = ...,
    return_info: Literal[False] = ...,
    dtype: DTypeLike | None = ...,
) -> Array: ...
@overload
def align_depth(
    relative: ArrayLike,
    metric: ArrayLike,
    reference: ArrayLike | None = ...,
    confidence: ArrayLike | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: ArrayLike | None = ...,
    sigma_xy: float | None = ...,
    sigma_relative: float = ...,
    sigma_luma: float = ...,
    reference_max: float | None = ...,
    return_info: Literal[True],
    dtype: DTypeLike | None = ...,
) -> tuple[Array, AlignInfo]: ...
@validation.keywords(photo="reference", depth="metric", target="metric")
def align_depth(
    relative: ArrayLike,
    metric: ArrayLike,
    reference: ArrayLike | None = None,
    confidence: ArrayLike | None = None,
    *,
    kind: str = "auto",
    invalid: float | Sequence[float] | None = None,
    mask: ArrayLike | None = None,
    sigma_xy: float | None = None,
    sigma_relative: float = 0.07,
    sigma_luma: float = 32.0,
    reference_max: float | None = None,
    return_info: bool = False,
    dtype: DTypeLike | None = None,
) -> Array | tuple[Array, AlignInfo]:
    """Align a relative depth map with metric values.

    A network's depth is often right only up to a scale and a shift, in depth or in inverse depth,
    and both drift over the image. Ten metric points give a useful map, fifty a good one; a whole
    noisy map works, too. First a robust scale and shift are fitted, in inverse depth or in depth,
    whichever fits. What they leave over is solved on the bilateral grid of the relative map, as
    smooth as cross-validation asks for: if it does not predict points that were left out, the
    result is the global fit alone. Up to 30 % of the metric values may be wrong.

    Parameters
    ----------
    relative : (H, W) array
        Depth or inverse depth (disparity) up to scale and shift, rising or falling, finite
        everywhere.
    metric : (H, W) array
        Metric depth in any unit. Values that are not finite or not above 0 are unknown.
    reference : (H, W) or (H, W, 3) array, optional
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1. Without it,
        the edges of the relative map are the only ones.
    confidence : (H, W) array, optional
        Weight of each metric value relative to the others; 0 for unknown. Default: 1 everywhere.
    kind : {"auto", "depth", "inverse depth"}
        What `relative` holds. "auto" finds out, with either sign; for one point it means "depth".
    invalid : float or floats, optional
        Further values that mean "unknown".
    mask : (H, W) array of bool or integers, optional
        0 where `metric` is unknown.
    sigma_xy : float, optional
        Size of a grid cell in pixels. Default: 24 for 0.35 megapixels, and in proportion to the
        side of the image, from 4 to 64.
    sigma_relative : float
        Size of a grid cell in the relative map, as a part of its range.
    sigma_luma : float
        Size of a grid cell in 8-bit grey levels of the photograph.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    return_info : bool
        Return ``(x, info)``.
    dtype : dtype, optional
        Dtype of the result. Default: that of `metric`. Integer results are rounded.

    Returns
    -------
    x : (H, W) array
        Metric depth, finite and above 0 (an integer dtype may round it to 0).
    info : AlignInfo
        Only with ``return_info=True``: the form of the fit, its scale and shift, the number of
        inliers, and errors.

    Notes
    -----
    Two points determine scale and shift; one point, or points at one value of the relative map,
    determine only a scale. With some ten points, several forms may fit: the result is then their
    mean, in which the better ones count more. A constant relative map has no scale: the result is
    then smoothed from the metric values alone. Where the fit gives depths below 0 or far beyond the
    metric values, the result is limited to a margin around these values.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import align_depth
    >>> depth = np.linspace(1, 5, 48) * np.ones((32, 1))
    >>> disparity = 3 / depth - 0.2  # what a network might see
    >>> points = np.full((32, 48), np.nan)
    >>> points[8::16, 4::10] = depth[8::16, 4::10]
    >>> x, info = align_depth(disparity, points, return_info=True)
    >>> info.unit, info.kind, round(info.scale, 3), round(info.shift, 3), info.inliers
    ('inverse depth', 'inverse depth', 0.333, 0.067, 10)
    >>> bool(np.allclose(x, depth))
    True
    """
    validation.flag("return_info", return_info)
    validation.choice("kind", kind, KINDS)
    guide = validation.relative_depth(relative)
    shape = guide.shape
    checked = validation.metric_depth(metric, shape, dtype)
    values = checked.values[..., 0].astype(np.float64)
    weights = validation.pixel_weights("confidence", confidence, shape, np.dtype(np.float64))
    known = np.isfinite(values) & (values > 0) & (weights > 0)
    known &= ~np.isin(values, validation.number_list("invalid", invalid))
    if mask is not None:
        known &= validation.mask("mask", mask, shape)
    validation.some_known("metric", known, positive=True)
    luma = None
    if reference is not None:
        photo = validation.reference(reference, reference_max)
        validation.same_shape("reference", photo.pixels.shape[:2], "relative", shape)
        luma = color.luma(photo.pixels).reshape(shape) * (255 / photo.highest)
    cells = Cells(
        None if sigma_xy is None else validation.positive("sigma_xy", sigma_xy),
        validation.positive("sigma_relative", sigma_relative),
        validation.positive("sigma_luma", sigma_luma),
    )
    at = np.nonzero(known)
    unit = float(np.median(values[at]))
    points = Metric(at, values[at] / unit, weights[at] / float(weights[at].max()))
    fit = best_fit(guide, points, luma, cells, kind)
    x = validation.as_dtype(unit * fit.depth, checked.dtype)
    return (x, _info(fit, unit)) if return_info else x


def _info(fit: Fit, unit: float) -> AlignInfo:
    """Report a fit in the caller's unit."""
    factor = 1 / unit if fit.form.inverse else unit
    line = fit.line
    return AlignInfo(
        unit=fit.form.unit,
        kind=fit.form.kind(line.scale),
        reciprocal=fit.form.reciprocal,
        scale=line.scale * factor,
        shift=line.shift * factor,
        points=fit.points,
        inliers=fit.inliers,
        smoothness=fit.smoothness,
        error=fit.error * unit,
        expected_error=fit.expected_error * unit,
    )
