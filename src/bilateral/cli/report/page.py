"""A page of HTML that shows what went in and what came out, with everything inside."""

import base64
import html
import io as streams
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.commands.command import Kind, Result
from bilateral.cli.demo.errors import Figures
from bilateral.cli.display import pictures
from bilateral.cli.display.previews import preview, span_of
from bilateral.cli.files.outputs import eight_bits

Array = NDArray[Any]

_WIDTH = 720
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em; color: #1a1a1a; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; overflow-wrap: anywhere; margin: 2em 0 .5em }
.panels { display: flex; flex-wrap: wrap; gap: 1em }
figure { margin: 0; width: min(360px, 100%) } img { width: 100%; display: block; cursor: zoom-in }
img:target, img:active { width: auto }
figcaption { margin-bottom: .2em } .bar { height: .7em; margin-top: .3em }
.ends { display: flex; justify-content: space-between; font-size: .85em; color: #555 }
table { border-collapse: collapse; margin: .7em 0 } td, th { padding: .15em .9em .15em 0 }
td { text-align: right; font-variant-numeric: tabular-nums } td:first-child { text-align: left }
th { text-align: right; font-weight: 600; border-bottom: 1px solid #bbb } .error { color: #a00 }
"""


def page(title: str, sections: Sequence[str]) -> bytes:
    """The whole file.

    Parameters
    ----------
    title : str
        Plain text.
    sections : sequence of str
        From `section` and `note`.
    """
    text = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{text}</h1>\n{''.join(sections)}</body></html>\n"
    ).encode("utf-8", "replace")


def section(
    name: str,
    kind: Kind,
    result: Result,
    truth: Array | None,
    figures: Figures | None,
    span: tuple[float, float] | None,
) -> str:
    """One result: reference, input, confidence, output, and what is wrong with it."""
    panels = []
    scale = pictures.Scale(pictures.turbo, *(span or span_of(result.shown)), "")
    bar = scale if kind == "map" and result.shown.ndim == 2 else None
    if result.reference is not None:
        panels.append(_panel("Reference", eight_bits(result.reference), photo=True))
    for caption, values in (("Input", result.given), ("Output", result.shown), ("Truth", truth)):
        if caption == "Output" and result.confidence is not None:
            panels.append(_confidence(result.confidence))
        if values is not None:
            colours = preview(kind, values, (scale.low, scale.high))
            panels.append(_panel(caption, colours, photo=kind == "photo", scale=bar))
    if truth is not None:
        panels += _errors(kind, result, truth)
    return (
        f"<h2>{html.escape(name)}</h2>\n{_table(figures) if figures else ''}"
        f'<div class="panels">\n{"".join(panels)}</div>\n'
    )


def note(name: str, error: str | None) -> str:
    """A file without pictures: it failed, or was left out."""
    text = error or "Left out: there is a result already."
    return f'<h2>{html.escape(name)}</h2><p class="error">{html.escape(text)}</p>\n'


def _confidence(confidence: Array) -> str:
    weights = confidence.astype(np.float64)
    highest = float(np.nanmax(weights, initial=0)) or 1.0
    return _panel("Confidence", eight_bits(np.clip(weights / highest, 0, 1)))


def _errors(kind: Kind, result: Result, truth: Array) -> list[str]:
    """Where the input, if it can be compared, and the output are wrong; both on one scale."""
    if kind == "labels":
        return [_panel("Wrong", np.where(result.shown != truth, 255, 0).astype(np.uint8))]
    after = _differences(kind, result.shown, truth)
    known = after[np.isfinite(after)]
    most = 2 * float(np.sqrt(np.mean(known**2))) if known.size else 0.0
    scale = pictures.Scale(pictures.heat, 0, most or 1.0, "", open_ended=True)
    panels = [_panel("Error", scale.paint(after), scale=scale)]
    if result.given is not None and result.given.shape == truth.shape:
        before = _differences(kind, result.given, truth)
        panels = [_panel("Error before", scale.paint(before), scale=scale), *panels]
    return panels


def _differences(kind: Kind, values: Array, truth: Array) -> Array:
    if kind == "photo":
        values, truth = eight_bits(values), eight_bits(truth)
    error = np.abs(values.astype(np.float64) - truth)
    return error.mean(axis=2) if error.ndim == 3 else error


def _panel(
    caption: str, image: Array, photo: bool = False, scale: pictures.Scale | None = None
) -> str:
    bar = ""
    if scale is not None:
        stops = scale.colormap(np.linspace(0, 1, 17))
        colours = ", ".join(f"rgb({r},{g},{b})" for r, g, b in stops)
        more = " or more" if scale.open_ended else ""
        bar = (
            f'<div class="bar" style="background: linear-gradient(to right, {colours})"></div>'
            f'<div class="ends"><span>{scale.low:.4g}</span><span>{scale.high:.4g}{more}</span>'
            "</div>"
        )
    return (
        f'<figure><figcaption>{caption}</figcaption><img alt="{caption}" '
        f'src="{_data(image, photo)}">{bar}</figure>\n'
    )


def _data(image: Array, photo: bool) -> str:
    """A picture as an address that holds it."""
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(image))
    picture.thumbnail((_WIDTH, 2 * _WIDTH), Image.Resampling.LANCZOS)
    stream = streams.BytesIO()
    picture.save(stream, "JPEG" if photo else "PNG", quality=88)
    name = "jpeg" if photo else "png"
    return f"data:image/{name};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _table(figures: Figures) -> str:
    names = list(next(iter(figures.values())))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{when}</td>" + "".join(f"<td>{found.get(n, np.nan):.4g}</td>" for n in names)
        + "</tr>"
        for when, found in figures.items()
    )  # fmt: skip
    return f"<table><tr><th></th>{head}</tr>{rows}</table>\n"
