"""The commands that produce maps: `solve`, `depth`, `superres` and `stereo`.

Each one reads its files, calls the library and returns the result.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

import bilateral
from bilateral import tasks
from bilateral.cli.command import Command, FileSet, Result, VideoInput
from bilateral.cli.commands import arguments as args
from bilateral.cli.commands.large import large_solve
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.device import Task
from bilateral.cli.display.warning_log import discard_warnings
from bilateral.cli.errors import UsageError
from bilateral.cli.files.maps import MapFiles
from bilateral.cli.files.mistakes import (
    read_map,
    refuse_smaller_map,
    refuse_smaller_photo,
)
from bilateral.cli.files.units import Units
from bilateral.cli.files.video_maps import stack_frames
from bilateral.cli.video.windows import Window
from bilateral.io.errors import FileError
from bilateral.validation import ZeroDepthWarning

Array = NDArray[Any]


def solve(
    reference: args.Reference,
    target: args.Target,
    confidence: args.Confidence = None,
    sigma_xy: args.SigmaXY = 8,
    sigma_luma: args.SigmaLuma = 8,
    sigma_chroma: args.SigmaChroma = 8,
    sigma_t: args.SigmaT = None,
    smoothness: args.SmoothnessOfAnyMap = 4.0,
    blur: args.Blur = "paper",
    tolerance: args.Tolerance = 1e-3,
    max_iterations: args.MaxIterations = None,
    method: args.Method = None,
    smooth: args.Smooth = None,
    invalid: args.Invalid = [],  # noqa: B006
    reference_max: args.ReferenceMax = None,
    video: args.Video = False,
    memory: args.Memory = None,
    *,
    common: CommonOptions,
) -> Command:
    """Smooth any map so that it follows the edges of a photograph.

    Example: bilateral solve photo.jpg noisy.tif -o smooth.tif --smoothness 16

    A video: bilateral solve photo.mp4 noisy.mkv -o smooth.mkv --sigma-t 4

    Few known pixels: bilateral solve photo.jpg sparse.tif -o dense.tif --smoothness auto

    Larger than memory: bilateral solve huge.tif depth.zarr -o smooth.tif --memory 2GB
    """
    maps = _map_files(common, invalid=invalid)

    arguments = {
        "sigma_xy": sigma_xy,
        "sigma_luma": sigma_luma,
        "sigma_chroma": sigma_chroma,
        "sigma_t": sigma_t,
        "smoothness": smoothness,
        "blur": blur,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
        "method": method,
        "smooth": smooth,
        "reference_max": reference_max,
    }

    cpu_only = {
        "--sigma-t": sigma_t is not None,
        "--method": method is not None,
        "--smooth": smooth is not None,
        "--smoothness auto": smoothness == "auto",
    }
    task = Task("solve", common.device, next((name for name, on in cpu_only.items() if on), ""))

    def solve_map(values: Array, photo: Array, weights: Array | None, dtype: Any) -> Array:
        x: Array = task(photo, values, weights, dtype=dtype, **arguments)
        return x

    def process(files: FileSet) -> Result:
        raw = maps.reader.array(files.paths["target"])
        return maps.refine(files, raw, solve_map, pages=sigma_t is not None)

    def read_truth(path: Path) -> Array:
        return maps.units.from_file(maps.reader.array(path))

    def solve_frames(given: VideoInput) -> Iterator[Array]:
        frames = map(maps.video_frame, given.frames)
        if sigma_t is None:
            for frame in frames:
                x = solve_map(frame.values, frame.photo, frame.confidence, frame.working_dtype)
                yield maps.frame_to_file(x, frame, given.suffix)
            return
        for window, kept in Window.of_cells(sigma_t).over(frames):
            values, photos, weights = stack_frames(window)
            x = solve_map(values, photos, weights, window[0].working_dtype)
            for refined, frame in zip(x[kept], window[kept], strict=True):
                yield maps.frame_to_file(refined, frame, given.suffix)

    inputs = {"reference": reference, "target": target, "confidence": confidence}
    run_large = large_solve(inputs, memory, arguments, maps.units, common)
    return Command(
        inputs,
        process,
        read_truth,
        task=task,
        lead="target",
        frames=solve_frames,
        video=video,
        frames_on_device=True,
        run_large=run_large,
    )


def depth(
    depth: args.Depth,
    reference: args.Reference,
    confidence: args.Confidence = None,
    mask: args.Mask = None,
    preset: Annotated[
        Literal["sensor", "stereo", "sparse"],
        typer.Option(help="Kind of map: any dense one, left disparities, or few known pixels."),
    ] = "sensor",
    scale: Annotated[
        float | None,
        typer.Option(
            callback=args.positive, help="Errors above this, in units, are outliers, not noise."
        ),
    ] = None,
    invalid: args.Invalid = [],  # noqa: B006
    depth_scale: args.DepthScale = 1.0,
    reference_max: args.ReferenceMax = None,
    sigma_xy: args.SigmaXYAuto = None,
    sigma_luma: args.SigmaLuma = 8.0,
    sigma_chroma: args.SigmaChroma = 8.0,
    video: args.Video = False,
    *,
    common: CommonOptions,
) -> Command:
    """Refine a depth or disparity map with its photograph.

    Removes noise and outliers, fills holes, and moves edges to those of the photograph.

    Example: bilateral depth depth.png photo.jpg -o refined.png --invalid 0

    Many files: bilateral depth depths/ photos/ -o refined/ --skip-existing

    A video: bilateral depth depth.mkv photo.mp4 -o refined.mkv --invalid 0

    Its frames: bilateral depth depths/ photos/ -o refined/ --video --invalid 0
    """
    maps = _map_files(common, depth_scale, invalid)
    tuned = (scale, sigma_xy) != (None, None) or (sigma_luma, sigma_chroma) != (8.0, 8.0)
    plain = preset == "sensor" and not tuned
    if video and not plain:
        raise UsageError("--video: expected no --preset, --scale or --sigma-... beside it.")
    stream = tasks.DepthStream(reference_max=reference_max, dtype=np.float32) if video else None
    task = Task("refine_depth", common.device, "--video" if video else "")

    def process(files: FileSet) -> Result:
        path = files.paths["depth"]
        raw = read_map(
            maps.reader, path, files.paths["reference"], "bilateral depth DEPTH REFERENCE"
        )
        known = maps.reader.optional_mask(files.paths.get("mask"))

        def refine(values: Array, photo: Array, weights: Array | None, dtype: Any) -> Array:
            refuse_smaller_map(path, values, photo)
            if stream is not None:
                return stream.push(values, photo, weights, known).astype(dtype, copy=False)
            refined: Array = task(
                values,
                photo,
                weights,
                preset=preset,
                mask=known,
                sigma_xy=sigma_xy,
                sigma_luma=sigma_luma,
                sigma_chroma=sigma_chroma,
                scale=scale,
                reference_max=reference_max,
                dtype=dtype,
            )
            return refined

        return maps.refine(files, raw, refine)

    def refine_frames(given: VideoInput) -> Iterator[Array]:
        if not plain:
            raise FileError("a video takes no --preset, --scale or --sigma-...; leave them out.")
        past = tasks.DepthStream(reference_max=reference_max, dtype=np.float32)
        with discard_warnings((ZeroDepthWarning,) if invalid else ()):
            for frame in map(maps.video_frame, given.frames):
                x = past.push(frame.values, frame.photo, frame.confidence, frame.mask)
                yield maps.frame_to_file(x, frame, given.suffix)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence, "mask": mask}
    return Command(
        inputs, process, maps.read_truth, task=task, in_order=video, frames=refine_frames
    )


def superres(
    depth: args.Depth,
    reference: args.Reference,
    factor: Annotated[
        float | None,
        typer.Option(
            min=1, help="Photograph pixels per map pixel. Default: the ratio of the sizes."
        ),
    ] = None,
    preset: Annotated[
        Literal["best", "fast", "paper"],
        typer.Option(help="Best quality, less time, or exactly as in the paper."),
    ] = "best",
    confidence: args.Confidence = None,
    keep_holes: Annotated[
        bool, typer.Option("--keep-holes", help="Keep unknown pixels unknown.")
    ] = False,
    invalid: args.Invalid = [],  # noqa: B006
    depth_scale: args.DepthScale = 1.0,
    reference_max: args.ReferenceMax = None,
    *,
    common: CommonOptions,
) -> Command:
    """Enlarge a depth map to the size of its photograph.

    Example: bilateral superres small.png photo.jpg -o large.png --preview
    """
    maps = _map_files(common, depth_scale, invalid)
    task = Task("superres_depth", common.device)

    def process(files: FileSet) -> Result:
        path, photo_path = files.paths["depth"], files.paths["reference"]
        raw = read_map(maps.reader, path, photo_path, "bilateral superres DEPTH REFERENCE")

        def enlarge(values: Array, photo: Array, weights: Array | None, dtype: Any) -> Array:
            refuse_smaller_photo(path, values, photo_path, photo)
            enlarged: Array = task(
                values,
                photo,
                factor,
                preset,
                confidence=weights,
                keep_holes=keep_holes,
                reference_max=reference_max,
                dtype=dtype,
            )
            return enlarged

        return maps.refine(files, raw, enlarge)

    inputs = {"depth": depth, "reference": reference, "confidence": confidence}
    return Command(inputs, process, maps.read_truth, task=task)


def stereo(
    left: args.Left,
    right: args.Right,
    max_disparity: Annotated[
        int,
        typer.Option(min=1, show_default=False, help="Largest disparity to search, in pixels."),
    ],
    window: Annotated[
        int, typer.Option(min=1, help="Side of the matched windows in pixels, odd.")
    ] = 7,
    margin: Annotated[
        float, typer.Option(min=0, help="Accept costs up to 1 + this times the lowest cost.")
    ] = 0.05,
    consistency: Annotated[
        float,
        typer.Option(
            callback=args.positive,
            help="Left-right check: largest difference of both matches, in pixels.",
        ),
    ] = 1.0,
    loss: Annotated[
        Literal["geman-mcclure", "none"],
        typer.Option(help="Loss of the robust solve; none: only one plain solve."),
    ] = "geman-mcclure",
    iterations: Annotated[int, typer.Option(min=1, help="Maximum number of robust rounds.")] = 16,
    invalid: args.Invalid = [],  # noqa: B006
    depth_scale: args.DepthScale = 1.0,
    reference_max: args.ReferenceMax = None,
    sigma_xy: args.SigmaXYAuto = None,
    sigma_luma: args.SigmaLuma = 8.0,
    sigma_chroma: args.SigmaChroma = 8.0,
    smoothness: args.Smoothness = 0.5,
    smooth: args.Smooth = (4, 4),
    *,
    common: CommonOptions,
) -> Command:
    """Compute the disparities of a rectified stereo pair.

    Example: bilateral stereo left.png right.png -o disparity.pfm --max-disparity 70

    For integers in steps of 1/256 pixel, add --dtype uint16 --depth-scale 0.00390625
    """
    maps = _map_files(common, depth_scale, invalid)

    def process(files: FileSet) -> Result:
        left_photo = maps.reader.photo(files.paths["left"])
        right_photo = maps.reader.photo(files.paths["right"])
        x = tasks.stereo_depth(
            left_photo,
            right_photo,
            max_disparity,
            window=window,
            margin=margin,
            consistency=consistency,
            sigma_xy=sigma_xy,
            sigma_luma=sigma_luma,
            sigma_chroma=sigma_chroma,
            smoothness=smoothness,
            loss=None if loss == "none" else bilateral.GemanMcClure(1.0),
            iterations=iterations,
            smooth=smooth,
            reference_max=reference_max,
        )
        return Result(maps.to_file(x, x.dtype, files), x, left_photo)

    inputs = {"left": left, "right": right}
    return Command(inputs, process, maps.read_truth, default_suffix=lambda _: ".pfm")


def _map_files(
    common: CommonOptions, scale: float = 1.0, invalid: Sequence[float] = ()
) -> MapFiles:
    return MapFiles(common.reader(), Units(scale, invalid), common.dtype)
