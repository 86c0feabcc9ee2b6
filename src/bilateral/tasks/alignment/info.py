"""Report of an alignment: form, scale, shift, inliers and errors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AlignInfo:
    """Report of `align_depth`.

    Attributes
    ----------
    unit : str
        Unit of the fit: "depth" or "inverse depth".
    kind : str
        What the relative map holds: "depth", if it rises with the depth, or "inverse depth".
    reciprocal : bool
        Whether scale and shift apply to 1 / relative.
    scale, shift : float
        The global fit: depth, or inverse depth, is ``scale * relative + shift``, or
        ``scale / relative + shift``, in the unit of the metric values. It is that of the best form;
        with few points, the result is a mean over several forms.
    points, inliers : int
        Number of metric values, and of those that are no outliers.
    smoothness : float or None
        Smoothness of the residual; None: the result is the global fit alone.
    error : float
        RMS difference between the result and the inliers, in the unit of the metric values.
    expected_error : float
        The same for points that were left out of the fit (cross-validation); NaN for fewer than
        three points.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import align_depth
    >>> depth = np.linspace(1, 5, 48) * np.ones((32, 1))
    >>> points = np.full((32, 48), np.nan)
    >>> points[8::16, 4::10] = depth[8::16, 4::10]
    >>> x, info = align_depth(3 * depth + 1, points, return_info=True)
    >>> info.kind, info.points, info.inliers
    ('depth', 10, 10)
    """

    unit: str
    kind: str
    reciprocal: bool
    scale: float
    shift: float
    points: int
    inliers: int
    smoothness: float | None
    error: float
    expected_error: float
