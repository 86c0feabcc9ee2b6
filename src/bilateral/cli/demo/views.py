"""How the demo measures and draws what it repaired: maps of depth, pictures, or labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bilateral.cli.display.pictures import Panel, Scale

Array = NDArray[Any]

_DOTTED = 0.05
"""Fewer known pixels are drawn larger than they are."""


@dataclass(frozen=True)
class Look:
    """A kind of data: its errors' unit, and its pictures."""

    unit: str
    paint: Callable[[Array], Array]
    """A picture of values."""
    wrong: Callable[[Array, Array], Array]
    """The error of values at each pixel, given the truth; NaN where that is unknown."""
    error_shown: float
    """Larger errors are drawn like this one."""
    scale: "Scale | None" = None
    """What the picture's colours mean."""

    def error(self, values: Array, truth: Array) -> float:
        """The mean error where the truth is known."""
        return float(np.nanmean(self.wrong(values, truth), dtype=np.float64))

    def panel(self, values: Array, caption: str, detail: str) -> "Panel":
        """A picture of values, with a colour bar if it needs one."""
        from bilateral.cli.display.pictures import Panel

        return Panel(self.paint(values), caption, detail, self.scale)

    def error_panel(self, values: Array, truth: Array) -> "Panel":
        """A picture of the errors."""
        from bilateral.cli.display.pictures import Panel, Scale, heat

        scale = Scale(heat, 0, self.error_shown, f"{self.unit} of error", open_ended=True)
        wrong = self.wrong(values, truth)
        unknown = "gray: truth unknown" if np.isnan(wrong).any() else ""
        return Panel(scale.paint(wrong), "Error left", unknown, scale)


def disparities(truth: Array) -> Look:
    """Disparity maps, on the scale of the true one. Unknown values count as the mean."""
    from bilateral.cli.display import pictures

    low, high = np.floor(np.nanmin(truth)), np.ceil(np.nanmax(truth))
    scale = pictures.Scale(pictures.turbo, low, high, "px of disparity")

    def paint(values: Array) -> Array:
        known = np.isfinite(values)
        return scale.paint(pictures.enlarge_dots(values) if known.mean() < _DOTTED else values)

    def wrong(values: Array, truth: Array) -> Array:
        filled = np.where(np.isfinite(values), values, np.nanmean(values))
        difference: Array = np.abs(filled - truth)
        return difference

    return Look("px", paint, wrong, error_shown=10, scale=scale)


def gaps(values: Array) -> str:
    """What to say of a picture of a map with unknown pixels."""
    known = np.isfinite(values)
    if known.all():
        return ""
    text = f"gray: {100 - 100 * known.mean():.0f} % unknown, counted as the mean"
    return text + "; dots enlarged" if known.mean() < _DOTTED else text


_CLASSES = np.array([(40, 60, 90), (240, 190, 60), (230, 60, 50)], np.float32)


def classes(photo: Array) -> Look:
    """Labels, laid over a photograph. Pixels with another label than the true one are counted."""

    def paint(labels: Array) -> Array:
        shade = photo.mean(axis=2, keepdims=True, dtype=np.float32) / 255
        mixed: Array = (_CLASSES[labels] * (0.35 + 0.65 * shade)).astype(np.uint8)
        return mixed

    def wrong(labels: Array, truth: Array) -> Array:
        counted: Array = np.where(labels == truth, np.float32(0), np.float32(100))
        return counted

    return Look("%", paint, wrong, error_shown=100)


def colours() -> Look:
    """RGB pictures."""

    def wrong(values: Array, truth: Array) -> Array:
        difference: Array = np.abs(values.astype(np.float32) - truth).mean(axis=2)
        return difference

    return Look("grey levels", lambda picture: picture, wrong, error_shown=40)
