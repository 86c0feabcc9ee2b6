"""Declare arguments and options that several commands have, with the names of the library."""

import math
from typing import Annotated, Any, Literal

import typer

from bilateral.cli.commands.grouped_help import FILES, SOLVER, UNITS, option


def positive(value: float | None) -> float | None:
    """Refuse a number that is not above 0 and finite, before any file is read."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"expected a number above 0, got {value:g}.")
    return value


def positive_or_auto(value: str | float) -> float | str:
    """Read a number above 0, or "auto"."""
    if value == "auto":
        return value
    try:
        number = float(value)
    except ValueError:
        raise typer.BadParameter(f"expected a number above 0 or auto, got {value!r}.") from None
    positive(number)
    return number


def _input(name: str, text: str) -> Any:
    return typer.Argument(metavar=name, help=text, show_default=False)


def _positive_option(heading: str, text: str) -> Any:
    return option(heading, text, callback=positive)


Reference = Annotated[str, _input("REFERENCE", "Photograph whose edges the result follows.")]
Target = Annotated[str, _input("TARGET", "Map or picture to smooth, of the photograph's size.")]
Depth = Annotated[str, _input("DEPTH", "Depth or disparity map.")]
Relative = Annotated[
    str, _input("RELATIVE", "Depth or disparity up to scale and shift, as of a network.")
]
Metric = Annotated[str, _input("METRIC", "Metric depth where it is known, of the same size.")]
Points = Annotated[str, _input("POINTS", "Map with few known pixels, or a list of points.")]
Left = Annotated[str, _input("LEFT", "Left photograph of a rectified pair.")]
Right = Annotated[str, _input("RIGHT", "Right photograph of the pair.")]
Image = Annotated[str, _input("IMAGE", "Photograph.")]
Gray = Annotated[str, _input("GRAY", "Photograph without colours.")]
Scribbles = Annotated[
    str, _input("SCRIBBLES", "The photograph with strokes of colour, or a layer with strokes only.")
]
CutScribbles = Annotated[
    str,
    _input("SCRIBBLES", "The photograph with strokes, a layer with strokes only, or a rough mask."),
]
Probabilities = Annotated[
    str, _input("PROBABILITIES", "Scores of all classes (NPY, NPZ, TIFF; any size), or a mask.")
]

Confidence = Annotated[
    str | None, option(None, "Picture of weights: 0 for unknown pixels.", metavar="PATH")
]
Mask = Annotated[str | None, option(None, "Picture: 0 where the map is unknown.", metavar="PATH")]
StrokeMask = Annotated[
    str | None, option(None, "Picture: 0 where there is no stroke.", metavar="PATH")
]

Invalid = Annotated[
    list[float],
    option(
        UNITS, "Number in the file that means unknown, such as 0. Repeat for more.",
        metavar="NUMBER",
    ),
]  # fmt: skip
DepthScale = Annotated[
    float,
    _positive_option(
        UNITS, "Units per integer step: 0.001 reads millimetres as metres. Floats are in units."
    ),
]
ReferenceMax = Annotated[
    float | None,
    _positive_option(UNITS, "Value of white. Default: 255, 65535, or 1 for floats."),
]

Memory = Annotated[
    str | None,
    option(
        FILES, "Read and write larger TIFF, Zarr and NPY files in rows, within this memory.",
        metavar="SIZE",
    ),
]  # fmt: skip
Video = Annotated[
    bool,
    typer.Option("--video", help="The files of a folder are the frames of one video."),
]

_CELL_XY = "Size of a grid cell in pixels."
_CELL_LUMA = "Size of a grid cell in brightness, in 8-bit grey levels."
_SMOOTHNESS = "Larger values give a smoother result (lambda in the paper)."
SigmaXY = Annotated[float, _positive_option(SOLVER, _CELL_XY)]
SigmaXYAuto = Annotated[
    float | None, _positive_option(SOLVER, f"{_CELL_XY} Default: depends on the input.")
]
SigmaLuma = Annotated[float, _positive_option(SOLVER, _CELL_LUMA)]
SigmaLumaAuto = Annotated[
    float | None, _positive_option(SOLVER, f"{_CELL_LUMA} Default: the preset's.")
]
SigmaChroma = Annotated[
    float, _positive_option(SOLVER, "Size of a grid cell in colour, in 8-bit grey levels.")
]
SigmaT = Annotated[
    float | None,
    _positive_option(SOLVER, "Size of a grid cell in frames, for videos (NPY, multi-page TIFF)."),
]
Smoothness = Annotated[float, _positive_option(SOLVER, _SMOOTHNESS)]
SmoothnessOfAnyMap = Annotated[
    Any,
    option(
        SOLVER, f"{_SMOOTHNESS} auto: chosen by the number of known pixels and their noise.",
        parser=positive_or_auto, metavar="NUMBER",
    ),
]  # fmt: skip
SmoothnessAuto = Annotated[
    float | None, _positive_option(SOLVER, f"{_SMOOTHNESS} Default: depends on other options.")
]
Smooth = Annotated[
    tuple[float, float] | None,
    option(
        SOLVER, "Domain transform of the result: 4 4 removes the blocks of the grid.",
        metavar="XY RGB",
    ),
]  # fmt: skip
Tolerance = Annotated[
    float, _positive_option(SOLVER, "Stop at this error, as a fraction of the range of values.")
]
MaxIterations = Annotated[int | None, option(SOLVER, "Maximum number of solver steps.", min=1)]
Blur = Annotated[Literal["paper", "uniform"], option(SOLVER, "Weights of the blur in the grid.")]
Method = Annotated[Literal["paper"] | None, option(SOLVER, "Run exactly the paper's solver.")]
