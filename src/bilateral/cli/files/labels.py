"""Classes as numbers in a picture."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LABEL_FORMATS = (".png", ".bmp")


def best_class(scores: Array) -> Array:
    """The most probable class of each pixel; of a foreground, whether it is that."""
    if scores.ndim == 3:
        return np.asarray(np.argmax(scores, axis=2))
    return (scores > (0 if scores.min() < 0 else 0.5)).astype(np.int64)


def stored_labels(labels: Array, foreground: bool) -> Array:
    """In the smallest dtype; a foreground as a picture in black and white.

    Examples
    --------
    >>> import numpy as np
    >>> stored_labels(np.array([[0, 1]]), foreground=True).tolist()
    [[0, 255]]
    """
    if foreground:
        return np.where(labels > 0, 255, 0).astype(np.uint8)
    return labels.astype(np.uint8 if labels.max() < 256 else np.uint16)
