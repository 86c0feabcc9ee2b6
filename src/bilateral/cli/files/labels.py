"""Convert class scores to labels, and labels to the pixels of a picture."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LABEL_FORMATS = (".png", ".bmp")
"""Formats in which the command `segment` always writes labels."""


def best_class(scores: Array) -> Array:
    """Return the most probable class of each pixel.

    Scores (H, W) of a foreground give 1 where it is more probable than not: above 0 for logits
    (some score is negative), above 0.5 for probabilities.
    """
    if scores.ndim == 3:
        return np.asarray(np.argmax(scores, axis=2))
    return (scores > (0 if scores.min() < 0 else 0.5)).astype(np.int64)


def labels_for_file(labels: Array, foreground: bool) -> Array:
    """Convert labels to the smallest dtype, and a foreground mask to black and white.

    Examples
    --------
    >>> import numpy as np
    >>> labels_for_file(np.array([[0, 1]]), foreground=True).tolist()
    [[0, 255]]
    """
    if foreground:
        return np.where(labels > 0, 255, 0).astype(np.uint8)
    return labels.astype(np.uint8 if labels.max() < 256 else np.uint16)
