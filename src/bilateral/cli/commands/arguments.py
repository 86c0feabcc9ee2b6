"""Arguments and options that several commands have, named like the library's."""

import math
from typing import Annotated, Any, Literal

import typer

_UNITS = "Units"
_SOLVER = "Solver"


def positive(value: float | None) -> float | None:
    """Refuse what no task takes, before any file is read."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"expected a number above 0, got {value:g}.")
    return value


def _input(name: str, text: str) -> Any:
    return typer.Argument(metavar=name, help=text, show_default=False)


Reference = Annotated[str, _input("REFERENCE", "The photograph whose edges to follow.")]
Target = Annotated[str, _input("TARGET", "What to smooth: any map or picture of the same size.")]
Depth = Annotated[str, _input("DEPTH", "The depth or disparity map.")]
Left = Annotated[str, _input("LEFT", "The left view of a rectified pair.")]
Right = Annotated[str, _input("RIGHT", "The right view.")]
Image = Annotated[str, _input("IMAGE", "The photograph.")]
Gray = Annotated[str, _input("GRAY", "The picture without colours.")]
Scribbles = Annotated[
    str,
    _input("SCRIBBLES", "The same picture with strokes of colour, or a transparent layer of them."),
]
Probabilities = Annotated[
    str,
    _input("PROBABILITIES", "Of each class (NPY, NPZ, TIFF; at any resolution), or a mask."),
]

Confidence = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="How much to trust each pixel, 0 for not at all."),
]
Mask = Annotated[str | None, typer.Option(metavar="PATH", help="0 where the map is unknown.")]
StrokeMask = Annotated[str | None, typer.Option(metavar="PATH", help="0 where there is no stroke.")]

Invalid = Annotated[
    list[float],
    typer.Option(
        metavar="NUMBER", rich_help_panel=_UNITS,
        help="Number in the file that means unknown, such as 0; may be given repeatedly.",
    ),
]  # fmt: skip
DepthScale = Annotated[
    float,
    typer.Option(
        callback=positive, rich_help_panel=_UNITS,
        help="Units per step of integers: 0.001 for metres in millimetres. Floats are in units.",
    ),
]  # fmt: skip
ReferenceMax = Annotated[
    float | None,
    typer.Option(
        callback=positive, rich_help_panel=_UNITS,
        help="Value of white, if not 255, 65535 or, of floats, 1.",
    ),
]  # fmt: skip

_XY, _GREY = "Size of a grid cell in pixels", "Size of a grid cell in 8-bit grey levels"
SigmaXY = Annotated[float, typer.Option(callback=positive, help=f"{_XY}.", rich_help_panel=_SOLVER)]
SigmaXYAuto = Annotated[
    float | None,
    typer.Option(
        callback=positive, help=f"{_XY}; by default by the image's size.", rich_help_panel=_SOLVER
    ),
]
SigmaLuma = Annotated[
    float, typer.Option(callback=positive, help=f"{_GREY}.", rich_help_panel=_SOLVER)
]
SigmaLumaAuto = Annotated[
    float | None, typer.Option(callback=positive, help=f"{_GREY}.", rich_help_panel=_SOLVER)
]
SigmaChroma = Annotated[
    float, typer.Option(callback=positive, help="The same for colour.", rich_help_panel=_SOLVER)
]
SigmaT = Annotated[
    float | None,
    typer.Option(
        callback=positive, help="The same in frames, for multi-page TIFF and NPY videos.",
        rich_help_panel=_SOLVER,
    ),
]  # fmt: skip
Smoothness = Annotated[
    float,
    typer.Option(callback=positive, help="Larger is smoother.", rich_help_panel=_SOLVER),
]
SmoothnessAuto = Annotated[
    float | None,
    typer.Option(callback=positive, help="Larger is smoother.", rich_help_panel=_SOLVER),
]
Smooth = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="XY RGB", rich_help_panel=_SOLVER,
        help="Filter the result by the domain transform: 4 4 takes away the grid's blocks.",
    ),
]  # fmt: skip
Tolerance = Annotated[
    float,
    typer.Option(callback=positive, help="Error to stop at.", rich_help_panel=_SOLVER),
]
MaxIterations = Annotated[
    int | None, typer.Option(min=1, help="Most steps.", rich_help_panel=_SOLVER)
]
Blur = Annotated[
    Literal["paper", "uniform"], typer.Option(help="The grid's blur.", rich_help_panel=_SOLVER)
]
Method = Annotated[
    Literal["paper"] | None,
    typer.Option(help="Exactly the paper's solver.", rich_help_panel=_SOLVER),
]
