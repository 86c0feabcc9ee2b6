"""Weigh the classes so that each class keeps its area."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.ranking import rank

Array = NDArray[Any]


def balance_classes(x: Array, labels: Array, known: Array | None) -> Array:
    """Multiply the classes of (H, W, K) probabilities by factors that preserve their areas.

    Smoothing takes pixels from small regions and gives them to the large regions around them.
    `labels` are the labels before the smoothing, which define the areas.
    """
    classes = x.shape[2]
    ranked = rank(x)
    close = ranked.second > ranked.best * policy.CLOSE_RATIO
    before, after = labels, ranked.labels
    if known is not None:
        close, before, after = close & known, before[known], after[known]
    target, area = (np.bincount(a.ravel(), minlength=classes) for a in (before, after))
    # Pixels that no bias can change.
    fixed = area - np.bincount(ranked.labels[close], minlength=classes)
    scores = np.log(np.maximum(x[close], np.finfo(x.dtype).tiny))
    bias = np.zeros(classes)
    for _ in range(policy.BALANCE_ROUNDS):
        area = fixed + np.bincount((scores + bias).argmax(axis=1), minlength=classes)
        ratio = (target + policy.NEGLIGIBLE_PIXELS) / (area + policy.NEGLIGIBLE_PIXELS)
        step = policy.BALANCE_STEP * np.log(ratio)
        last, bias = bias, np.clip(bias + step, -policy.MAX_BIAS, policy.MAX_BIAS)
        if np.abs(bias - last).max() < policy.BALANCE_TOLERANCE:
            break
    balanced: Array = x * np.exp(bias).astype(x.dtype)
    return balanced
