"""Views of the demo's data: paint and measure disparity maps, photographs and labels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.display.colormaps import Scale, enlarge_dots, heat, turbo

if TYPE_CHECKING:
    from bilateral.cli.display.sheets import Panel

Array = NDArray[Any]

_SPARSE = 0.05
"""Below this fraction of known pixels, dots are drawn larger."""


@dataclass(frozen=True)
class View:
    """How one kind of data is painted, and how its errors are measured."""

    unit: str
    """Unit of the errors."""
    paint: Callable[[Array], Array]
    """Returns a picture of values."""
    error_map: Callable[[Array, Array], Array]
    """Returns the error of values at each pixel, given the truth; NaN where it is unknown."""
    highest_error: float
    """Larger errors have the colour of this one."""
    scale: Scale | None = None
    """Meaning of the picture's colours."""

    def mean_error(self, values: Array, truth: Array) -> float:
        """Return the mean error over the pixels with a known truth."""
        return float(np.nanmean(self.error_map(values, truth), dtype=np.float64))

    def panel(self, values: Array, caption: str, detail: str) -> "Panel":
        """Return a picture of values, with a colour bar if it has a scale."""
        from bilateral.cli.display.sheets import Panel

        return Panel(self.paint(values), caption, detail, self.scale)

    def error_panel(self, values: Array, truth: Array) -> "Panel":
        """Return a picture of the errors."""
        from bilateral.cli.display.sheets import Panel

        scale = Scale(heat, 0, self.highest_error, f"{self.unit} of error", open_ended=True)
        errors = self.error_map(values, truth)
        detail = "gray: truth unknown" if np.isnan(errors).any() else ""
        return Panel(scale.paint(errors), "Error left", detail, scale)


def disparity_view(truth: Array, highest_error: float = 10) -> View:
    """Return the view of disparity maps, with the range of the truth.

    For the errors, unknown values count as the mean of the known ones.
    """
    low, high = np.floor(np.nanmin(truth)), np.ceil(np.nanmax(truth))
    scale = Scale(turbo, low, high, "px of disparity")

    def paint(values: Array) -> Array:
        known = np.isfinite(values)
        return scale.paint(enlarge_dots(values) if known.mean() < _SPARSE else values)

    def error_map(values: Array, truth: Array) -> Array:
        filled = np.where(np.isfinite(values), values, np.nanmean(values))
        difference: Array = np.abs(filled - truth)
        return difference

    return View("px", paint, error_map, highest_error, scale)


def unknown_note(values: Array) -> str:
    """Return the caption's second line for a map with unknown pixels."""
    known = np.isfinite(values)
    if known.all():
        return ""
    text = f"gray: {100 - 100 * known.mean():.3g} % unknown, counted as the mean"
    return text + "; dots enlarged" if known.mean() < _SPARSE else text


_CLASS_COLOURS = np.array([(40, 60, 90), (240, 190, 60), (230, 60, 50)], np.float32)


def label_view(photo: Array) -> View:
    """Return the view of labels, painted over a photograph. The error is the share of wrong ones.

    Parameters
    ----------
    photo : (H, W, 3) uint8 array
    """

    def paint(labels: Array) -> Array:
        shade = photo.mean(axis=2, keepdims=True, dtype=np.float32) / 255
        mixed: Array = (_CLASS_COLOURS[labels] * (0.35 + 0.65 * shade)).astype(np.uint8)
        return mixed

    def error_map(labels: Array, truth: Array) -> Array:
        percent: Array = np.where(labels == truth, np.float32(0), np.float32(100))
        return percent

    return View("%", paint, error_map, highest_error=100)


def photo_view() -> View:
    """Return the view of RGB photographs. The error is the mean difference of the channels."""

    def error_map(values: Array, truth: Array) -> Array:
        difference: Array = np.abs(values.astype(np.float32) - truth).mean(axis=2)
        return difference

    return View("grey levels", lambda picture: picture, error_map, highest_error=40)
