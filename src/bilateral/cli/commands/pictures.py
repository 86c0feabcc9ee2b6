"""The commands that make pictures and labels, each thin as those that make maps."""

from typing import Annotated, Any, Literal

import typer
from numpy.typing import NDArray

from bilateral import tasks
from bilateral.cli.commands import arguments as a
from bilateral.cli.commands.command import Files, Result, Task
from bilateral.cli.commands.options import Shared
from bilateral.cli.files.inputs import Unit, reader
from bilateral.cli.files.labels import LABEL_FORMATS, best_class, stored_labels
from bilateral.cli.files.outputs import dtype_for, photo_for
from bilateral.tasks.segmentation.policy import CONFIDENCES

Array = NDArray[Any]


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
    read, unit = reader(shared), Unit(depth_scale)

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
    read = reader(shared)

    def work(files: Files) -> Result:
        picture, strokes = read.photo(files.paths["gray"]), read.any(files.paths["scribbles"])
        x = tasks.colorize(
            picture,
            strokes,
            read.optional_mask(files.paths.get("mask")),
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
    read, is_name = reader(shared), confidence in CONFIDENCES

    def work(files: Files) -> Result:
        scores, photo = read.scores(files.paths["probabilities"]), read.photo(files.paths["image"])
        trust = read.optional_plane(files.paths.get("confidence"))
        p = tasks.refine_segmentation(
            scores,
            photo,
            confidence=confidence if trust is None else trust,
            logits=logits,
            ignore=read.optional_mask(files.paths.get("ignore")),
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
        "confidence": None if is_name else confidence,
        "ignore": ignore,
    }
    return Task(inputs, work, read.labels, "labels", lambda _: ".png")


def _photo_out(x: Array, shared: Shared, files: Files) -> Array:
    """A photograph in the dtype asked for, or in one that the format holds."""
    if shared.dtype is None:
        return photo_for(x, files.suffix)
    return x.astype(dtype_for(x.dtype, shared.dtype, files.suffix))
