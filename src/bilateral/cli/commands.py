"""The commands on files, each thin: read, call the task, hand over what came out."""

from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

import bilateral
from bilateral import losses, tasks
from bilateral.cli import arguments as a
from bilateral.cli.inputs import Reader, Unit
from bilateral.cli.labels import CONFIDENCES, LABEL_FORMATS, best_class, stored_labels
from bilateral.cli.outputs import dtype_for, photo_for
from bilateral.cli.result import Files, Result, Task
from bilateral.cli.shared import Shared

Array = NDArray[Any]


def _reader(shared: Shared) -> Reader:
    return Reader(shared.limit * 1_000_000, shared.key, shared.page)


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
    read, unit = _reader(shared), Unit(invalid=invalid)

    def work(files: Files) -> Result:
        photo, raw = read.photo(files.paths["reference"]), read.any(files.paths["target"])
        trust = read.optional_plane(files.paths.get("confidence"))
        values = unit.values(raw)
        x = bilateral.solve(
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
            dtype=unit.exact(raw),
        )
        output = unit.stored(x, dtype_for(raw.dtype, shared.dtype, files.suffix))
        if sigma_t is None:
            return Result(output, x, photo, values, trust)
        return Result(output, x[0], photo[0], values[0], pages=True)

    inputs = {"target": target, "reference": reference, "confidence": confidence}
    return Task(inputs, work, lambda path: unit.values(read.any(path)))


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
    read, unit = _reader(shared), Unit(depth_scale, invalid)

    def work(files: Files) -> Result:
        photo, raw = read.photo(files.paths["reference"]), read.plane(files.paths["depth"])
        trust = read.optional_plane(files.paths.get("confidence"))
        values = unit.values(raw)
        x = tasks.refine_depth(
            values,
            photo,
            trust,
            preset=preset,
            mask=_as_mask(read.optional_plane(files.paths.get("mask"))),
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            scale=scale,
            reference_max=reference_max,
            dtype=unit.exact(raw),
        )
        output = unit.stored(x, dtype_for(raw.dtype, shared.dtype, files.suffix))
        return Result(output, x, photo, values, trust)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence, "mask": mask}
    return Task(inputs, work, lambda path: unit.values(read.plane(path)))


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
    read, unit = _reader(shared), Unit(depth_scale, invalid)

    def work(files: Files) -> Result:
        photo, raw = read.photo(files.paths["reference"]), read.plane(files.paths["depth"])
        trust = read.optional_plane(files.paths.get("confidence"))
        values = unit.values(raw)
        x = tasks.superres_depth(
            values,
            photo,
            factor,
            preset,
            confidence=trust,
            keep_holes=keep_holes,
            reference_max=reference_max,
            dtype=unit.exact(raw),
        )
        output = unit.stored(x, dtype_for(raw.dtype, shared.dtype, files.suffix))
        return Result(output, x, photo, values, trust)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence}
    return Task(inputs, work, lambda path: unit.values(read.plane(path)))


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
    read, unit = _reader(shared), Unit(depth_scale, invalid)

    def work(files: Files) -> Result:
        photo, other = read.photo(files.paths["left"]), read.photo(files.paths["right"])
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
        output = unit.stored(x, dtype_for(x.dtype, shared.dtype, files.suffix))
        return Result(output, x, photo)

    return Task(
        {"left": left, "right": right},
        work,
        lambda path: unit.values(read.plane(path)),
        suffix=lambda _: ".pfm",
    )


def defocus(
    image: a.Image,
    depth: a.Depth,
    focus: Annotated[
        float, typer.Option(show_default=False, help="Depth that is sharp, in units.")
    ],
    aperture: Annotated[
        float,
        typer.Option(
            min=0,
            show_default=False,
            help="Blur: a disc of aperture x |1/depth - 1/focus| pixels radius, "
            "or of aperture x |depth - focus| for disparities.",
        ),
    ],
    kind: Annotated[
        Literal["depth", "disparity"], typer.Option(help="Whether large is far or near.")
    ] = "depth",
    blades: Annotated[
        int | None, typer.Option(min=3, help="Of the aperture: highlights become polygons.")
    ] = None,
    rotation: Annotated[float, typer.Option(help="Of these, in degrees.")] = 0.0,
    max_radius: Annotated[
        float | None, typer.Option(callback=a.positive, help="Largest blur in pixels.")
    ] = None,
    linear: Annotated[
        bool | None,
        typer.Option(help="Whether values are light; by default so for floating point."),
    ] = None,
    depth_scale: a.DepthScale = 1.0,
    *,
    shared: Shared,
) -> Task:
    """Blur a photograph where it is out of focus, by its depth map.

    Example: bilateral defocus photo.jpg depth.png -o soft.jpg --depth-scale 0.001 --focus 2
    --aperture 30
    """
    read, unit = _reader(shared), Unit(depth_scale)

    def work(files: Files) -> Result:
        photo = read.photo(files.paths["image"])
        z = unit.values(read.plane(files.paths["depth"]))
        x = tasks.defocus(
            photo,
            z,
            focus,
            aperture,
            kind=kind,
            blades=blades,
            rotation=rotation,
            max_radius=max_radius,
            linear=linear,
        )
        return Result(_photo_out(x, shared, files), x, given=photo)

    return Task({"image": image, "depth": depth}, work, read.photo, "photo")


def colorize(
    gray: a.Gray,
    scribbles: a.Scribbles,
    mask: a.StrokeMask = None,
    preset: Annotated[
        Literal["best", "paper"], typer.Option(help="Best quality, or as in the paper.")
    ] = "best",
    sigma_xy: a.SigmaXYAuto = None,
    sigma_luma: a.SigmaLumaAuto = None,
    smoothness: a.SmoothnessAuto = None,
    reference_max: a.ReferenceMax = None,
    *,
    shared: Shared,
) -> Task:
    """Colour a gray photograph by a few strokes of colour.

    Paint strokes on the picture with any paint program, save it under another name, then:

    Example: bilateral colorize gray.png scribbled.png -o colour.png
    """
    read = _reader(shared)

    def work(files: Files) -> Result:
        picture, strokes = read.photo(files.paths["gray"]), read.any(files.paths["scribbles"])
        x = tasks.colorize(
            picture,
            strokes,
            _as_mask(read.optional_plane(files.paths.get("mask"))),
            preset=preset,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            smoothness=smoothness,
            reference_max=reference_max,
        )
        return Result(_photo_out(x, shared, files), x, picture, strokes[..., :3])

    inputs = {"gray": gray, "scribbles": scribbles, "mask": mask}
    return Task(inputs, work, read.photo, "photo")


def segment(
    probabilities: a.Probabilities,
    image: a.Image,
    confidence: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH", help="What to trust: boundary, uniform, entropy, or a picture."
        ),
    ] = "boundary",
    ignore: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Not 0 where the probabilities mean nothing."),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Labels also in formats that hold probabilities.")
    ] = False,
    logits: Annotated[
        bool | None, typer.Option(help="Whether these are logits; by default by their range.")
    ] = None,
    sigma_xy: a.SigmaXYAuto = None,
    sigma_luma: a.SigmaLuma = 16.0,
    sigma_chroma: a.SigmaChroma = 8.0,
    smoothness: a.SmoothnessAuto = None,
    reference_max: a.ReferenceMax = None,
    *,
    shared: Shared,
) -> Task:
    """Move the outlines of a segmentation to the photograph's edges.

    A PNG result holds labels; of a mask 0 and 255. NPY, NPZ and TIFF hold probabilities.

    Example: bilateral segment scores.npy photo.jpg -o labels.png --preview
    """
    read, chosen = _reader(shared), confidence if confidence in CONFIDENCES else None

    def work(files: Files) -> Result:
        scores, photo = read.scores(files.paths["probabilities"]), read.photo(files.paths["image"])
        trust = read.optional_plane(files.paths.get("confidence"))
        p = tasks.refine_segmentation(
            scores,
            photo,
            confidence=trust if chosen is None else chosen,
            logits=logits,
            ignore=_as_mask(read.optional_plane(files.paths.get("ignore"))),
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            smoothness=smoothness,
            reference_max=reference_max,
        )
        found = best_class(p)
        as_labels = labels or files.suffix in LABEL_FORMATS
        output = stored_labels(found, p.ndim == 2) if as_labels else p
        if shared.dtype is not None:
            output = output.astype(dtype_for(output.dtype, shared.dtype, files.suffix))
        return Result(output, found, photo, best_class(scores), trust)

    inputs = {
        "probabilities": probabilities,
        "image": image,
        "confidence": confidence if chosen is None else None,
        "ignore": ignore,
    }
    return Task(inputs, work, read.labels, "labels", lambda _: ".png")


def _photo_out(x: Array, shared: Shared, files: Files) -> Array:
    """A photograph in the dtype asked for, or in one that the format holds."""
    if shared.dtype is None:
        return photo_for(x, files.suffix)
    return x.astype(dtype_for(x.dtype, shared.dtype, files.suffix))


def _as_mask(plane: Array | None) -> Array | None:
    return None if plane is None else np.asarray(plane != 0)


ALL = (solve, depth, superres, stereo, defocus, colorize, segment)
