"""Pictures for people: maps in colour, captions, colour bars, panels side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Array = NDArray[Any]
Colormap = Callable[[Array], Array]

UNKNOWN = (64, 64, 64)
_PAPER, _INK, _FAINT = (255, 255, 255), (20, 20, 20), (90, 90, 90)
_GAP, _TITLE, _TEXT, _BAR = 16, 40, 28, 22

# The polynomial fit of Google's turbo (Apache-2.0), one column per power, rows R, G, B.
_TURBO = (
    (0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943),
    (0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604),
    (0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973),
)
# Even steps of lightness, so that twice as bright reads as twice the error.
_HEAT = ((0, 0, 0), (70, 15, 95), (165, 40, 90), (235, 105, 40), (252, 190, 60), (255, 255, 215))


@dataclass(frozen=True)
class Scale:
    """What the colours of a map mean."""

    colormap: Colormap
    low: float
    high: float
    unit: str
    open_ended: bool = False
    """Larger values exist and are drawn like `high`."""

    def paint(self, values: Array) -> Array:
        """Colours of a map; what is not finite is gray.

        Parameters
        ----------
        values : (H, W) array

        Returns
        -------
        (H, W, 3) uint8 array
        """
        known = np.isfinite(values)
        unit = (np.where(known, values, self.low) - self.low) / (self.high - self.low)
        colours = self.colormap(np.clip(unit, 0, 1))
        return np.where(known[..., np.newaxis], colours, np.array(UNKNOWN, np.uint8))


@dataclass(frozen=True)
class Panel:
    """One picture of a sheet: what it shows, in one line and a fainter second one."""

    image: Array
    caption: str
    detail: str = ""
    scale: Scale | None = None


def turbo(unit: Array) -> Array:
    """From blue over green to red, for maps without a special zero.

    Parameters
    ----------
    unit : array
        Numbers from 0 to 1.

    Returns
    -------
    uint8 array with one more axis, of three
    """
    powers = np.stack([np.ones_like(unit), unit, unit**2, unit**3, unit**4, unit**5], axis=-1)
    return _bytes(255 * powers @ np.array(_TURBO).T)


def heat(unit: Array) -> Array:
    """From black over red to pale yellow, for errors: as `turbo`."""
    stops = np.linspace(0, 1, len(_HEAT))
    channels = [np.interp(unit, stops, [colour[c] for colour in _HEAT]) for c in range(3)]
    return _bytes(np.stack(channels, axis=-1))


def enlarge_dots(values: Array, radius: int = 1) -> Array:
    """Spread isolated known pixels over their unknown neighbours, to be seen at all."""
    out = values.copy()
    for axis in (0, 1):
        for shift in (*range(-radius, 0), *range(1, radius + 1)):
            moved = np.roll(values, shift, axis)
            edge = slice(0, shift) if shift > 0 else slice(shift, None)
            moved[edge if axis == 0 else (slice(None), edge)] = np.nan
            out = np.where(np.isfinite(out), out, moved)
        values = out
    return out


def sheet(title: str, panels: Sequence[Panel]) -> Image.Image:
    """Panels of one size side by side, under a title.

    Parameters
    ----------
    title : str
    panels : sequence of Panel

    Returns
    -------
    PIL.Image.Image
    """
    height, width = panels[0].image.shape[:2]
    captions = _TITLE + 2 * _GAP
    top = captions + 2 * (_TEXT + 8) + 4
    size = (
        _GAP + len(panels) * (width + _GAP),
        top + height + _GAP + _BAR + _GAP,
    )
    canvas = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(canvas)
    draw.text((_GAP, _GAP), title, _INK, _font(_TITLE))
    for number, panel in enumerate(panels):
        left = _GAP + number * (width + _GAP)
        draw.text((left, captions), panel.caption, _INK, _font(_TEXT))
        draw.text((left, captions + _TEXT + 8), panel.detail, _FAINT, _font(_TEXT))
        canvas.paste(Image.fromarray(np.ascontiguousarray(panel.image)), (left, top))
        if panel.scale is not None:
            _draw_bar(canvas, draw, panel.scale, left, top + height + _GAP // 2, width)
    return canvas


def contact_sheet(files: Sequence[Path], width: int = 1800) -> Image.Image:
    """Pictures from files one below the other, of one width."""
    scaled = []
    for file in files:
        with Image.open(file) as picture:
            height = round(picture.height * width / picture.width)
            scaled.append(picture.resize((width, height), Image.Resampling.LANCZOS))
    canvas = Image.new("RGB", (width, sum(part.height for part in scaled)), _PAPER)
    top = 0
    for part in scaled:
        canvas.paste(part, (0, top))
        top += part.height
    return canvas


def _draw_bar(
    canvas: Image.Image, draw: ImageDraw.ImageDraw, scale: Scale, left: int, top: int, width: int
) -> None:
    font = _font(_BAR)
    low = f"{scale.low:g}"
    high = f"{scale.high:g} {scale.unit}" + (" or more" if scale.open_ended else "")
    begin = left + int(font.getlength(low)) + 10
    end = left + width - int(font.getlength(high)) - 10
    ramp = scale.colormap(np.linspace(0, 1, max(end - begin, 2)))
    canvas.paste(Image.fromarray(np.repeat(ramp[np.newaxis], _BAR, axis=0)), (begin, top))
    draw.text((left, top), low, _INK, font)
    draw.text((end + 10, top), high, _INK, font)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _bytes(values: Array) -> Array:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
