"""Measure the error of an input and of a result against the truth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.command import Kind, Result
from bilateral.cli.files.outputs import to_uint8
from bilateral.io.messages import size_text

Array = NDArray[Any]
Metrics = dict[str, dict[str, float]]

_NO_CLASS = 255
"""Label of pixels in the truth that belong to no class."""


def measure(kind: Kind, result: Result, truth: Array) -> Metrics:
    """Return the metrics of the input, if it has the size of the truth, and of the result.

    Returns
    -------
    dict
        ``{"before": {...}, "after": {...}}``. Maps: mean absolute error, root mean square error
        and 95th percentile of the absolute error, in the map's unit, over pixels known in both.
        Photographs: mean absolute error in 8-bit levels and PSNR in dB. Labels: accuracy and mean
        intersection over union.
    """
    if truth.shape != result.values.shape:
        raise ValueError(
            f"truth: expected {size_text(result.values.shape)} like the result, "
            f"got {size_text(truth.shape)}."
        )
    compare = {"map": map_errors, "photo": photo_errors, "labels": label_scores}[kind]
    metrics = {"after": compare(result.values, truth)}
    if result.input is not None and result.input.shape == truth.shape:
        metrics = {"before": compare(result.input, truth), **metrics}
    return metrics


def map_errors(values: Array, truth: Array) -> dict[str, float]:
    """Return the errors of a map in its unit, over pixels known in both."""
    known = np.isfinite(values) & np.isfinite(truth)
    if not known.any():
        return {}
    error = np.abs(values[known].astype(np.float64) - truth[known])
    return {
        "mae": float(error.mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p95": float(np.percentile(error, 95)),
    }


def photo_errors(photo: Array, truth: Array) -> dict[str, float]:
    """Return the mean absolute error in 8-bit levels, and PSNR in dB."""
    error = np.abs(to_uint8(photo).astype(np.float64) - to_uint8(truth))
    mean_square = max(float(np.mean(error**2)), 1e-10)
    return {"mae": float(error.mean()), "psnr": float(10 * np.log10(255**2 / mean_square))}


def label_scores(labels: Array, truth: Array) -> dict[str, float]:
    """Return accuracy and mean intersection over union, over the classes of the truth."""
    known = truth != _NO_CLASS
    if not known.any():
        return {}
    ratios = []
    for label in np.unique(truth[known]):
        predicted, true = labels[known] == label, truth[known] == label
        ratios.append((predicted & true).sum() / (predicted | true).sum())
    accuracy = float((labels[known] == truth[known]).mean())
    return {"accuracy": accuracy, "mean_iou": float(np.mean(ratios))}
