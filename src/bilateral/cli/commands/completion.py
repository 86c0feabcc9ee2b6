"""The command `complete`: a dense map from few points."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from numpy.typing import NDArray

from bilateral.cli.command import Command, FileSet, Result
from bilateral.cli.commands import arguments as args
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.device import Task
from bilateral.cli.files.maps import MapFiles
from bilateral.cli.files.points import is_list, read_points
from bilateral.cli.files.units import Units

Array = NDArray[Any]


def complete(
    points: args.Points,
    reference: args.Reference,
    confidence: args.Confidence = None,
    mask: args.Mask = None,
    kind: Annotated[
        Literal["auto", "depth", "disparity"],
        typer.Option(help="What the values are; auto: what predicts the points better."),
    ] = "auto",
    invalid: args.Invalid = [],  # noqa: B006
    depth_scale: args.DepthScale = 1.0,
    reference_max: args.ReferenceMax = None,
    sigma_xy: args.SigmaXYAuto = None,
    sigma_luma: args.SigmaLuma = 8.0,
    sigma_chroma: args.SigmaChroma = 8.0,
    *,
    common: CommonOptions,
) -> Command:
    """Complete the depth or disparity of few points to a dense map.

    Points are a map with 0 or NaN for unknown pixels, or a list: text with x, y and value per
    line (.csv, .txt, .xyz), or an N x 3 array (.npy).

    Example: bilateral complete lidar.png photo.jpg -o dense.png

    A list: bilateral complete points.csv photo.jpg -o dense.pfm
    """
    maps = MapFiles(common.reader(), Units(depth_scale, invalid), common.dtype)
    task = Task("complete_depth", common.device)

    def process(files: FileSet) -> Result:
        raw = read_points(maps.reader, files.paths["points"], files.paths["reference"])
        known = maps.reader.optional_mask(files.paths.get("mask"))

        def fill(values: Array, photo: Array, weights: Array | None, dtype: Any) -> Array:
            dense: Array = task(
                values,
                photo,
                weights,
                kind=kind,
                mask=known,
                sigma_xy=sigma_xy,
                sigma_luma=sigma_luma,
                sigma_chroma=sigma_chroma,
                reference_max=reference_max,
                dtype=dtype,
            )
            return dense

        return maps.refine(files, raw, fill)

    def default_suffix(path: Path) -> str:
        return ".pfm" if is_list(path) else path.suffix.lower()

    inputs = {"points": points, "reference": reference, "confidence": confidence, "mask": mask}
    return Command(inputs, process, maps.read_truth, task=task, default_suffix=default_suffix)
