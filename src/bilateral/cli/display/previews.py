"""A result as a picture to look at."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.commands.command import Kind
from bilateral.cli.files.outputs import eight_bits

Array = NDArray[Any]


def preview(kind: Kind, values: Array, span: tuple[float, float] | None) -> Array:
    """Maps in turbo's colours, labels in one colour each, photographs as they are.

    Parameters
    ----------
    kind : {"map", "photo", "labels"}
    values : (H, W) or (H, W, K) array
        Of many channels only the first is shown.
    span : (low, high), optional
        The values at both ends of the colours; by default the 1st and 99th percentile.

    Returns
    -------
    (H, W, 3) or (H, W) uint8 array
    """
    if kind == "photo" or values.shape[2:] == (3,):
        return eight_bits(values)
    if values.ndim == 3:
        values = values[..., 0]
    if kind == "labels":
        return label_colours(values)
    from bilateral.cli.display import pictures

    return pictures.Scale(pictures.turbo, *(span or span_of(values)), "").paint(values)


def span_of(values: Array) -> tuple[float, float]:
    """Nearly the smallest and largest value."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = (float(q) for q in np.percentile(known, (1, 99)))
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def label_colours(labels: Array) -> Array:
    """Colours far from each other for neighbouring numbers; 0 is black."""
    # The bits of a label go round the three channels, the highest bits of a channel first.
    numbers = labels.astype(np.int64) & 0xFFFFFF
    colours = np.zeros((*labels.shape, 3), np.uint8)
    for bit in range(24):
        channel, weight = bit % 3, 7 - bit // 3
        colours[..., channel] |= (((numbers >> bit) & 1) << weight).astype(np.uint8)
    return colours
