"""Draw sheets: pictures side by side with captions and colour bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bilateral.cli.display.colormaps import Scale

Array = NDArray[Any]

_PAPER, _INK, _FAINT = (255, 255, 255), (20, 20, 20), (90, 90, 90)
_GAP, _TITLE, _TEXT, _BAR = 16, 40, 28, 22


@dataclass(frozen=True)
class Panel:
    """One picture of a sheet, with a caption and a fainter second line."""

    image: Array
    caption: str
    detail: str = ""
    scale: Scale | None = None
    """Scale to draw as a colour bar."""


def sheet(title: str, panels: Sequence[Panel]) -> Image.Image:
    """Draw panels of one size side by side, below a title.

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
    """Scale the pictures of files to one width and stack them vertically."""
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
