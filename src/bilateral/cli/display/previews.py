"""Convert results to pictures to look at."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.command import Kind
from bilateral.cli.display.colormaps import Scale, turbo
from bilateral.cli.files.outputs import to_uint8

Array = NDArray[Any]


def preview(kind: Kind, values: Array, value_range: tuple[float, float] | None) -> Array:
    """Paint a map with the colours of turbo, or labels with one colour each.

    Photographs stay as they are.

    Parameters
    ----------
    kind : {"map", "photo", "labels"}
    values : (H, W) or (H, W, K) array
        Of a map with several channels other than three, only the first is shown.
    value_range : (low, high), optional
        Values at both ends of the colours. Default: the 1st and 99th percentile.

    Returns
    -------
    (H, W, 3) or (H, W) uint8 array
    """
    if kind == "photo" or values.shape[2:] == (3,):
        return to_uint8(values)
    if values.ndim == 3:
        values = values[..., 0]
    if kind == "labels":
        return label_colours(values)
    return Scale(turbo, *(value_range or percentile_range(values)), "").paint(values)


def percentile_range(values: Array) -> tuple[float, float]:
    """Return the 1st and 99th percentile of the finite values, never equal."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 1.0
    low, high = (float(q) for q in np.percentile(finite, (1, 99)))
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def label_colours(labels: Array) -> Array:
    """Return a colour for each label, very different for consecutive labels; 0 is black."""
    # The bits of a label are dealt to the three channels in turn, to their highest bits first.
    numbers = labels.astype(np.int64) & 0xFFFFFF
    colours = np.zeros((*labels.shape, 3), np.uint8)
    for bit in range(24):
        channel, weight = bit % 3, 7 - bit // 3
        colours[..., channel] |= (((numbers >> bit) & 1) << weight).astype(np.uint8)
    return colours
