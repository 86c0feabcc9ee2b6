"""Weigh the classes so that each keeps its area: `tasks.segmentation.class_balance` for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.labels.class_balance import ClassBalance
from bilateral.backends.cuda.labels.probabilities import count_labels, rank
from bilateral.tasks.segmentation import policy


def balance_classes(x: Tensor, labels: Tensor, known: Tensor | None) -> Tensor:
    """Multiply the classes of (K, H, W) probabilities by factors that preserve their areas.

    `labels` are the labels before the smoothing, which define the areas.
    """
    classes, ranked = len(x), rank(x)
    close = ranked.second > ranked.best * policy.CLOSE_RATIO
    fixed = ~close
    if known is not None:
        close, fixed = close & known, fixed & known
    balance = ClassBalance(
        x.clamp(min=torch.finfo(x.dtype).tiny).log(),
        close,
        count_labels(ranked.labels, classes, fixed),
        count_labels(labels, classes, known),
    )
    for _ in range(policy.BALANCE_ROUNDS):
        balance.adjust(
            policy.BALANCE_STEP,
            policy.MAX_BIAS,
            policy.NEGLIGIBLE_PIXELS,
            policy.BALANCE_TOLERANCE,
        )
    return x * balance.bias.exp().to(x.dtype)[:, None, None]
