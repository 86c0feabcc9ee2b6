"""The command `align`: give relative depth a metric scale."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from numpy.typing import NDArray

from bilateral import tasks
from bilateral.cli.command import Command, FileSet, Result
from bilateral.cli.commands import arguments as args
from bilateral.cli.commands.grouped_help import option
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.files.maps import MapFiles
from bilateral.cli.files.units import Units

Array = NDArray[Any]


def align(
    relative: args.Relative,
    metric: args.Metric,
    reference: Annotated[
        str | None, option(None, "Photograph whose edges the result follows, too.", metavar="PATH")
    ] = None,
    confidence: args.Confidence = None,
    mask: args.Mask = None,
    kind: Annotated[
        Literal["auto", "depth", "inverse depth"],
        typer.Option(help="What the relative map holds; auto finds out."),
    ] = "auto",
    invalid: args.Invalid = [],  # noqa: B006
    depth_scale: args.DepthScale = 1.0,
    reference_max: args.ReferenceMax = None,
    sigma_xy: args.SigmaXYAuto = None,
    *,
    common: CommonOptions,
) -> Command:
    """Give a network's relative depth the scale of few metric values, or of a noisy metric map.

    In the metric map, 0 and NaN are unknown. The result has its unit and numbers.

    Example: bilateral align network.npy lidar.png -o metric.png
    """
    maps = MapFiles(common.reader(), Units(depth_scale, invalid), common.dtype)

    def process(files: FileSet) -> Result:
        raw = maps.reader.single_channel(files.paths["metric"])
        values = maps.units.from_file(raw)
        photo_path: Path | None = files.paths.get("reference")
        photo = None if photo_path is None else maps.reader.photo(photo_path)
        weights = maps.reader.optional_single_channel(files.paths.get("confidence"))
        x = tasks.align_depth(
            maps.reader.single_channel(files.paths["relative"]),
            values,
            photo,
            weights,
            kind=kind,
            mask=maps.reader.optional_mask(files.paths.get("mask")),
            sigma_xy=sigma_xy,
            reference_max=reference_max,
            dtype=maps.units.working_dtype(raw),
        )
        return Result(maps.to_file(x, raw.dtype, files), x, photo, values, weights)

    inputs = {
        "relative": relative,
        "metric": metric,
        "reference": reference,
        "confidence": confidence,
        "mask": mask,
    }
    return Command(inputs, process, maps.read_truth, lead="metric")
