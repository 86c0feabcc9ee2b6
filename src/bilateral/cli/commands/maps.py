"""The commands that make maps, each thin: read, call the task, hand over what came out."""

from functools import partial
from typing import Annotated, Any, Literal

import typer
from numpy.typing import NDArray

import bilateral
from bilateral import losses, tasks
from bilateral.cli.commands import arguments as a
from bilateral.cli.commands.command import Files, Result, Task
from bilateral.cli.commands.options import Shared
from bilateral.cli.files.inputs import Unit, reader
from bilateral.cli.files.maps import Maps

Array = NDArray[Any]


def solve(
    reference: a.Reference,
    target: a.Target,
    confidence: a.Confidence = None,
    sigma_xy: a.SigmaXY = 8,
    sigma_luma: a.SigmaLuma = 8,
    sigma_chroma: a.SigmaChroma = 8,
    sigma_t: a.SigmaT = None,
    smoothness: a.Smoothness = 4.0,
    blur: a.Blur = "paper",
    tolerance: a.Tolerance = 1e-3,
    max_iterations: a.MaxIterations = None,
    method: a.Method = None,
    smooth: a.Smooth = None,
    invalid: a.Invalid = [],  # noqa: B006
    reference_max: a.ReferenceMax = None,
    *,
    shared: Shared,
) -> Task:
    """Smooth any map so that it follows the edges of a photograph.

    Example: bilateral solve photo.jpg noisy.tif -o smooth.tif --smoothness 16
    """
    maps = Maps(reader(shared), Unit(invalid=invalid), shared.dtype)

    def smoothed(values: Array, photo: Array, trust: Array | None, dtype: Any) -> Array:
        x: Array = bilateral.solve(
            photo,
            values,
            trust,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            sigma_t=sigma_t,
            smoothness=smoothness,
            blur=blur,
            tolerance=tolerance,
            max_iterations=max_iterations,
            method=method,
            smooth=smooth,
            reference_max=reference_max,
            dtype=dtype,
        )
        return x

    def work(files: Files) -> Result:
        raw = maps.read.any(files.paths["target"])
        return maps.refined(files, raw, smoothed, pages=sigma_t is not None)

    inputs = {"target": target, "reference": reference, "confidence": confidence}
    return Task(inputs, work, lambda path: maps.unit.values(maps.read.any(path)))


def depth(
    depth: a.Depth,
    reference: a.Reference,
    confidence: a.Confidence = None,
    mask: a.Mask = None,
    preset: Annotated[
        Literal["sensor", "stereo", "sparse"],
        typer.Option(
            help="What it is: any dense map, disparities of the left view, or few known pixels."
        ),
    ] = "sensor",
    scale: Annotated[
        float | None,
        typer.Option(
            callback=a.positive, help="Error, in units, from which on a value is wrong, not noisy."
        ),
    ] = None,
    invalid: a.Invalid = [],  # noqa: B006
    depth_scale: a.DepthScale = 1.0,
    reference_max: a.ReferenceMax = None,
    sigma_xy: a.SigmaXYAuto = None,
    sigma_luma: a.SigmaLuma = 8.0,
    sigma_chroma: a.SigmaChroma = 8.0,
    *,
    shared: Shared,
) -> Task:
    """Clean a depth or disparity map by its photograph.

    Noise, outliers and holes go, and edges move to where the photograph has them.

    Example: bilateral depth depth.png photo.jpg -o refined.png --invalid 0

    Many files: bilateral depth depths/ photos/ -o refined/ --skip-existing
    """
    maps = Maps(reader(shared), Unit(depth_scale, invalid), shared.dtype)

    def work(files: Files) -> Result:
        refine = partial(
            tasks.refine_depth,
            preset=preset,
            mask=maps.read.optional_mask(files.paths.get("mask")),
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            scale=scale,
            reference_max=reference_max,
        )

        def refined(values: Array, photo: Array, trust: Array | None, dtype: Any) -> Array:
            return refine(values, photo, trust, dtype=dtype)

        return maps.refined(files, maps.read.plane(files.paths["depth"]), refined)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence, "mask": mask}
    return Task(inputs, work, maps.truth)


def superres(
    depth: a.Depth,
    reference: a.Reference,
    factor: Annotated[
        float | None,
        typer.Option(min=1, help="Pixels of the photograph per pixel of the map, if not by size."),
    ] = None,
    preset: Annotated[
        Literal["best", "fast", "paper"], typer.Option(help="Quality or speed.")
    ] = "best",
    confidence: a.Confidence = None,
    keep_holes: Annotated[
        bool, typer.Option("--keep-holes", help="Leave unknown what is unknown.")
    ] = False,
    invalid: a.Invalid = [],  # noqa: B006
    depth_scale: a.DepthScale = 1.0,
    reference_max: a.ReferenceMax = None,
    *,
    shared: Shared,
) -> Task:
    """Enlarge a depth map to the size of a photograph.

    Example: bilateral superres small.png photo.jpg -o large.png --preview
    """
    maps = Maps(reader(shared), Unit(depth_scale, invalid), shared.dtype)

    def enlarged(values: Array, photo: Array, trust: Array | None, dtype: Any) -> Array:
        return tasks.superres_depth(
            values,
            photo,
            factor,
            preset,
            confidence=trust,
            keep_holes=keep_holes,
            reference_max=reference_max,
            dtype=dtype,
        )

    def work(files: Files) -> Result:
        return maps.refined(files, maps.read.plane(files.paths["depth"]), enlarged)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence}
    return Task(inputs, work, maps.truth)


def stereo(
    left: a.Left,
    right: a.Right,
    max_disparity: Annotated[
        int,
        typer.Option(min=1, show_default=False, help="Largest disparity to look for, in pixels."),
    ],
    window: Annotated[int, typer.Option(min=1, help="Side of the matched windows, odd.")] = 7,
    margin: Annotated[
        float, typer.Option(min=0, help="Costs so much above the least one count as equal.")
    ] = 0.05,
    consistency: Annotated[
        float,
        typer.Option(
            callback=a.positive, help="Pixels by which both views may disagree on a match."
        ),
    ] = 1.0,
    loss: Annotated[
        Literal["geman-mcclure", "none"],
        typer.Option(help="Robust rounds after the first solve, or only that one."),
    ] = "geman-mcclure",
    iterations: Annotated[int, typer.Option(min=1, help="Most robust rounds.")] = 16,
    invalid: a.Invalid = [],  # noqa: B006
    depth_scale: a.DepthScale = 1.0,
    reference_max: a.ReferenceMax = None,
    sigma_xy: a.SigmaXYAuto = None,
    sigma_luma: a.SigmaLuma = 8.0,
    sigma_chroma: a.SigmaChroma = 8.0,
    smoothness: a.Smoothness = 0.5,
    smooth: a.Smooth = (4, 4),
    *,
    shared: Shared,
) -> Task:
    """Find the disparities of a rectified stereo pair.

    Example: bilateral stereo left.png right.png -o disparity.pfm --max-disparity 70

    As integers: add --dtype uint16 --depth-scale 0.00390625, steps of 1/256 pixel.
    """
    maps = Maps(reader(shared), Unit(depth_scale, invalid), shared.dtype)

    def work(files: Files) -> Result:
        photo = maps.read.photo(files.paths["left"])
        other = maps.read.photo(files.paths["right"])
        x = tasks.stereo_depth(
            photo,
            other,
            max_disparity,
            window=window,
            margin=margin,
            consistency=consistency,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            smoothness=smoothness,
            loss=None if loss == "none" else losses.GemanMcClure(1.0),
            iterations=iterations,
            smooth=smooth,
            reference_max=reference_max,
        )
        return Result(maps.stored(x, x.dtype, files), x, photo)

    return Task({"left": left, "right": right}, work, maps.truth, suffix=lambda _: ".pfm")
