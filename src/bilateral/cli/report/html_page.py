"""Write results as an HTML page: inputs, outputs and errors side by side, in one file."""

import base64
import html
import io as streams
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.command import Kind, Result
from bilateral.cli.display.colormaps import Scale, heat, turbo
from bilateral.cli.display.previews import percentile_range, preview
from bilateral.cli.files.outputs import to_uint8
from bilateral.cli.report.metrics import Metrics

Array = NDArray[Any]

_WIDTH = 720
"""Largest width of a picture in the page, in pixels."""
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


def render_page(title: str, sections: Sequence[str]) -> bytes:
    """Return the whole HTML file.

    Parameters
    ----------
    title : str
        Plain text.
    sections : sequence of str
        HTML from `render_section` and `render_note`.
    """
    text = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{text}</h1>\n{''.join(sections)}</body></html>\n"
    ).encode("utf-8", "replace")


def render_section(
    name: str,
    kind: Kind,
    result: Result,
    truth: Array | None,
    metrics: Metrics | None,
    value_range: tuple[float, float] | None,
) -> str:
    """Return the HTML of one result: reference, input, confidence, output, truth and errors."""
    panels = []
    scale = Scale(turbo, *(value_range or percentile_range(result.values)), "")
    bar = scale if kind == "map" and result.values.ndim == 2 else None
    if result.reference is not None:
        panels.append(_panel("Reference", to_uint8(result.reference), photo=True))
    for caption, values in (("Input", result.input), ("Output", result.values), ("Truth", truth)):
        if caption == "Output" and result.confidence is not None:
            panels.append(_confidence_panel(result.confidence))
        if values is not None:
            colours = preview(kind, values, (scale.low, scale.high))
            panels.append(_panel(caption, colours, photo=kind == "photo", scale=bar))
    if truth is not None:
        panels += _error_panels(kind, result, truth)
    return (
        f"<h2>{html.escape(name)}</h2>\n{_table(metrics) if metrics else ''}"
        f'<div class="panels">\n{"".join(panels)}</div>\n'
    )


def render_note(name: str, error: str | None) -> str:
    """Return the HTML of a file without pictures: it failed, or it was skipped."""
    text = error or "Skipped: the result exists already."
    return f'<h2>{html.escape(name)}</h2><p class="error">{html.escape(text)}</p>\n'


def _confidence_panel(confidence: Array) -> str:
    weights = confidence.astype(np.float64)
    highest = float(np.nanmax(weights, initial=0)) or 1.0
    return _panel("Confidence", to_uint8(np.clip(weights / highest, 0, 1)))


def _error_panels(kind: Kind, result: Result, truth: Array) -> list[str]:
    """Return the error maps of the output and, if its size allows, of the input, on one scale."""
    if kind == "labels":
        return [_panel("Wrong", np.where(result.values != truth, 255, 0).astype(np.uint8))]
    after = _absolute_error(kind, result.values, truth)
    finite = after[np.isfinite(after)]
    highest = 2 * float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    scale = Scale(heat, 0, highest or 1.0, "", open_ended=True)
    panels = [_panel("Error", scale.paint(after), scale=scale)]
    if result.input is not None and result.input.shape == truth.shape:
        before = _absolute_error(kind, result.input, truth)
        panels = [_panel("Error before", scale.paint(before), scale=scale), *panels]
    return panels


def _absolute_error(kind: Kind, values: Array, truth: Array) -> Array:
    if kind == "photo":
        values, truth = to_uint8(values), to_uint8(truth)
    error = np.abs(values.astype(np.float64) - truth)
    return error.mean(axis=2) if error.ndim == 3 else error


def _panel(caption: str, image: Array, photo: bool = False, scale: Scale | None = None) -> str:
    bar = ""
    if scale is not None:
        stops = scale.colormap(np.linspace(0, 1, 17))
        colours = ", ".join(f"rgb({r},{g},{b})" for r, g, b in stops)
        suffix = " or more" if scale.open_ended else ""
        bar = (
            f'<div class="bar" style="background: linear-gradient(to right, {colours})"></div>'
            f'<div class="ends"><span>{scale.low:.4g}</span><span>{scale.high:.4g}{suffix}</span>'
            "</div>"
        )
    return (
        f'<figure><figcaption>{caption}</figcaption><img alt="{caption}" '
        f'src="{_data_url(image, photo)}">{bar}</figure>\n'
    )


def _data_url(image: Array, photo: bool) -> str:
    """Return a picture as a data URL, so that the page needs no other file."""
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(image))
    picture.thumbnail((_WIDTH, 2 * _WIDTH), Image.Resampling.LANCZOS)
    stream = streams.BytesIO()
    picture.save(stream, "JPEG" if photo else "PNG", quality=88)
    name = "jpeg" if photo else "png"
    return f"data:image/{name};base64,{base64.b64encode(stream.getvalue()).decode()}"


def _table(metrics: Metrics) -> str:
    names = list(next(iter(metrics.values())))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{stage}</td>" + "".join(f"<td>{row.get(n, np.nan):.4g}</td>" for n in names)
        + "</tr>"
        for stage, row in metrics.items()
    )  # fmt: skip
    return f"<table><tr><th></th>{head}</tr>{rows}</table>\n"
