"""How far a result is from the truth, in numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.commands.command import Kind, Result
from bilateral.cli.files.outputs import eight_bits
from bilateral.io.messages import size_text

Array = NDArray[Any]
Figures = dict[str, dict[str, float]]


def figures(kind: Kind, result: Result, truth: Array) -> Figures:
    """Errors of what was given, where it can be compared, and of the result.

    Returns
    -------
    dict
        ``{"before": {...}, "after": {...}}``. Maps: mean absolute error, its root mean square, its
        95th percentile, in the map's unit, where both are known. Photographs: mean absolute error
        in 8-bit levels and PSNR in dB. Labels: accuracy and mean intersection over union.
    """
    if truth.shape != result.shown.shape:
        raise ValueError(
            f"truth: expected {size_text(result.shown.shape)} as the result, "
            f"got {size_text(truth.shape)}."
        )
    measure = {"map": of_map, "photo": of_photo, "labels": of_labels}[kind]
    found = {"after": measure(result.shown, truth)}
    if result.given is not None and result.given.shape == truth.shape:
        found = {"before": measure(result.given, truth), **found}
    return found


def of_map(values: Array, truth: Array) -> dict[str, float]:
    """Errors in the map's unit, where both are known."""
    both = np.isfinite(values) & np.isfinite(truth)
    if not both.any():
        return {}
    error = np.abs(values[both].astype(np.float64) - truth[both])
    return {
        "mae": float(error.mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p95": float(np.percentile(error, 95)),
    }


def of_photo(photo: Array, truth: Array) -> dict[str, float]:
    """Errors in 8-bit levels."""
    error = np.abs(eight_bits(photo).astype(np.float64) - eight_bits(truth))
    mean_square = max(float(np.mean(error**2)), 1e-10)
    return {"mae": float(error.mean()), "psnr": float(10 * np.log10(255**2 / mean_square))}


def of_labels(labels: Array, truth: Array) -> dict[str, float]:
    """Over the classes that the truth has; 255 is no class there."""
    known = truth != 255
    if not known.any():
        return {}
    shares = []
    for label in np.unique(truth[known]):
        ours, right = labels[known] == label, truth[known] == label
        shares.append((ours & right).sum() / (ours | right).sum())
    accuracy = float((labels[known] == truth[known]).mean())
    return {"accuracy": accuracy, "mean_iou": float(np.mean(shares))}
