"""The commands that produce photographs and labels: `defocus`, `colorize` and `segment`.

Each one reads its files, calls the library and returns the result.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer
from numpy.typing import NDArray

from bilateral import tasks
from bilateral.cli.command import Command, FileSet, Result, VideoInput
from bilateral.cli.commands import arguments as args
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.device import Task
from bilateral.cli.files.inputs import without_alpha
from bilateral.cli.files.labels import LABEL_FORMATS, best_class, labels_for_file
from bilateral.cli.files.mistakes import (
    read_map,
    refuse_gray_strokes,
    refuse_holes,
    refuse_photo_as_scores,
    refuse_smaller_map,
)
from bilateral.cli.files.outputs import output_dtype, photo_for_format
from bilateral.cli.files.units import Units
from bilateral.cli.video.strokes import FrameStrokes
from bilateral.tasks.segmentation.policy import CONFIDENCES

Array = NDArray[Any]


def defocus(
    image: args.Image,
    depth: args.Depth,
    focus: Annotated[float, typer.Option(show_default=False, help="Depth in focus, in units.")],
    aperture: Annotated[
        float,
        typer.Option(
            min=0,
            show_default=False,
            help="Strength of the blur. Its radius is aperture x |1/depth - 1/focus| pixels, "
            "for disparities aperture x |depth - focus|.",
        ),
    ],
    kind: Annotated[
        Literal["depth", "disparity"],
        typer.Option(help="Kind of map: large depths are far, large disparities near."),
    ] = "depth",
    blades: Annotated[
        int | None,
        typer.Option(min=3, help="Blades of the aperture: highlights become polygons."),
    ] = None,
    rotation: Annotated[float, typer.Option(help="Rotation of the polygons in degrees.")] = 0.0,
    max_radius: Annotated[
        float | None,
        typer.Option(callback=args.positive, help="Largest radius of the blur in pixels."),
    ] = None,
    linear: Annotated[
        bool | None,
        typer.Option(help="Whether values are linear light. Default: only floats are."),
    ] = None,
    depth_scale: args.DepthScale = 1.0,
    *,
    common: CommonOptions,
) -> Command:
    """Blur a photograph by its depth map, like a camera lens.

    Example: bilateral defocus photo.jpg depth.png -o soft.jpg --depth-scale 0.001 --focus 2
    --aperture 30
    """
    reader, units = common.reader(), Units(depth_scale)
    task = Task("defocus", common.device)

    def process(files: FileSet) -> Result:
        photo_path, path = files.paths["image"], files.paths["depth"]
        raw = read_map(reader, path, photo_path, "bilateral defocus IMAGE DEPTH")
        photo, z = reader.photo(photo_path), units.from_file(raw)
        refuse_smaller_map(path, z, photo)
        refuse_holes(path, raw, z, kind)
        x: Array = task(
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
        return Result(photo_for_file(x, common, files), x, input=photo)

    return Command({"image": image, "depth": depth}, process, reader.photo, "photo", task=task)


def colorize(
    gray: args.Gray,
    scribbles: args.Scribbles,
    mask: args.StrokeMask = None,
    preset: Annotated[
        Literal["best", "paper"], typer.Option(help="Best quality, or as in the paper.")
    ] = "best",
    sigma_xy: args.SigmaXYAuto = None,
    sigma_luma: args.SigmaLumaAuto = None,
    smoothness: args.SmoothnessAuto = None,
    reference_max: args.ReferenceMax = None,
    video: args.Video = False,
    *,
    common: CommonOptions,
) -> Command:
    """Colorize a gray photograph from a few strokes of colour.

    Paint strokes on the photograph in any paint program and save it under another name.

    Example: bilateral colorize gray.png scribbled.png -o colour.png

    A video, with strokes on frames such as strokes/0012.png: bilateral colorize gray.mp4 strokes/
    -o colour.mp4
    """
    reader, task = common.reader(), Task("colorize", common.device)

    def process(files: FileSet) -> Result:
        path, strokes_path = files.paths["gray"], files.paths["scribbles"]
        photo, strokes = reader.photo(path), reader.array(strokes_path)
        if "mask" not in files.paths:
            refuse_gray_strokes(path, photo, strokes_path, strokes)
        x: Array = task(
            photo,
            strokes,
            reader.optional_mask(files.paths.get("mask")),
            preset=preset,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            smoothness=smoothness,
            reference_max=reference_max,
        )
        return Result(photo_for_file(x, common, files), x, photo, strokes[..., :3])

    def colorize_frames(given: VideoInput) -> Iterator[Array]:
        masks = given.sparse.get("mask", {})
        strokes = FrameStrokes(given.sparse["scribbles"], masks, reader)

        def photos() -> Iterator[Array]:
            for frame in given.frames:
                strokes.frame = without_alpha(frame["gray"])
                yield strokes.frame

        coloured = tasks.colorize_video(
            photos(),
            strokes,
            preset=preset,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            smoothness=smoothness,
            reference_max=reference_max,
        )
        return (photo_for_file(x, common, FileSet({}, given.suffix)) for x in coloured)

    inputs = {"gray": gray, "scribbles": scribbles, "mask": mask}
    return Command(
        inputs,
        process,
        reader.photo,
        "photo",
        task=task,
        frames=colorize_frames,
        sparse=("scribbles", "mask"),
        video=video,
    )


def segment(
    probabilities: args.Probabilities,
    image: args.Image,
    confidence: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH", help="Weights: boundary, uniform, entropy, or a picture."
        ),
    ] = "boundary",
    ignore: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Picture: not 0 where the scores mean nothing."),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Write labels in NPY, NPZ and TIFF files, too.")
    ] = False,
    logits: Annotated[
        bool | None, typer.Option(help="Whether the scores are logits. Default: by their range.")
    ] = None,
    sigma_xy: args.SigmaXYAuto = None,
    sigma_luma: args.SigmaLuma = 16.0,
    sigma_chroma: args.SigmaChroma = 8.0,
    smoothness: args.SmoothnessAuto = None,
    reference_max: args.ReferenceMax = None,
    *,
    common: CommonOptions,
) -> Command:
    """Align the outlines of a segmentation with its photograph.

    PNG and BMP results hold labels, or 0 and 255 for a mask. NPY, NPZ and TIFF results hold
    probabilities.

    Example: bilateral segment scores.npy photo.jpg -o labels.png --preview
    """
    reader, is_name = common.reader(), confidence in CONFIDENCES
    task = Task("refine_segmentation", common.device)

    def process(files: FileSet) -> Result:
        scores = reader.scores(files.paths["probabilities"])
        photo = reader.photo(files.paths["image"])
        refuse_photo_as_scores(files.paths["probabilities"], scores, files.paths["image"], photo)
        weights = reader.optional_single_channel(files.paths.get("confidence"))
        p: Array = task(
            scores,
            photo,
            confidence=confidence if weights is None else weights,
            logits=logits,
            ignore=reader.optional_mask(files.paths.get("ignore")),
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            smoothness=smoothness,
            reference_max=reference_max,
        )
        refined_labels = best_class(p)
        as_labels = labels or files.suffix in LABEL_FORMATS
        output = labels_for_file(refined_labels, p.ndim == 2) if as_labels else p
        if common.dtype is not None:
            output = output.astype(output_dtype(output.dtype, common.dtype, files.suffix))
        return Result(output, refined_labels, photo, best_class(scores), weights)

    inputs = {
        "probabilities": probabilities,
        "image": image,
        "confidence": None if is_name else confidence,
        "ignore": ignore,
    }
    return Command(inputs, process, reader.labels, "labels", lambda _: ".png", task=task)


def photo_for_file(x: Array, common: CommonOptions, files: FileSet) -> Array:
    """Convert a photograph to the dtype of ``--dtype``, or to one that the format can store."""
    if common.dtype is None:
        return photo_for_format(x, files.suffix)
    return x.astype(output_dtype(x.dtype, common.dtype, files.suffix))
