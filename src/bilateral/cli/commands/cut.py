"""The command `cut`: cut an object out of a photograph by scribbles or a rough mask."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from bilateral import tasks
from bilateral.cli.command import Command, FileSet, Result
from bilateral.cli.commands import arguments as args
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.commands.pictures import photo_for_file
from bilateral.io import FileError
from bilateral.io.messages import printable

Array = NDArray[Any]

_WITHOUT_ALPHA = (".jpg", ".jpeg", ".bmp", ".pfm")


def cut(
    image: args.Image,
    scribbles: args.CutScribbles,
    mask: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Rough mask of the object, corrected by the scribbles."),
    ] = None,
    write: Annotated[
        Literal["cutout", "matte", "mask"],
        typer.Option(help="Photograph with transparency, its opacity, or black and white."),
    ] = "cutout",
    reference_max: args.ReferenceMax = None,
    *,
    common: CommonOptions,
) -> Command:
    """Cut an object out of a photograph from a few scribbles.

    Paint green or white strokes on the object, and red or black ones on what does not belong to
    it, in any paint program; save it as PNG under another name. A black and white picture counts
    as a rough mask.

    Example: bilateral cut photo.jpg scribbled.png -o cutout.png
    """
    reader = common.reader()

    def process(files: FileSet) -> Result:
        photo = reader.photo(files.paths["image"])
        strokes: Array | None = reader.array(files.paths["scribbles"])
        rough = reader.optional_mask(files.paths.get("mask"))
        if rough is None and strokes is not None and _is_mask(strokes):
            rough, strokes = _first_channel(strokes) > 0, None
        if write == "cutout" and files.suffix in _WITHOUT_ALPHA:
            raise _no_transparency(files.suffix)
        matte = tasks.cut_out(photo, strokes, mask=rough, reference_max=reference_max)
        if write == "cutout":
            output = photo_for_file(with_alpha(photo, matte, reference_max), common, files)
        else:
            levels = matte if write == "matte" else (matte > 0.5).astype(np.float32)
            output = photo_for_file(_gray_picture(levels, photo.dtype), common, files)
        return Result(output, matte, photo)

    inputs = {"image": image, "scribbles": scribbles, "mask": mask}
    return Command(inputs, process, reader.single_channel, "map", _suffix)


def with_alpha(photo: Array, matte: Array, white: float | None = None) -> Array:
    """Return a photograph as RGBA, with the matte as its opacity and in the same dtype."""
    rgb = photo if photo.ndim == 3 else np.repeat(photo[..., np.newaxis], 3, axis=2)
    if white is None:
        white = float(np.iinfo(photo.dtype).max) if photo.dtype.kind == "u" else 1.0
    alpha = matte * white
    alpha = np.rint(alpha) if photo.dtype.kind == "u" else alpha
    return np.dstack([rgb, alpha.astype(photo.dtype)])


def _gray_picture(levels: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind != "u":
        return levels.astype(np.float32)
    return np.asarray(np.rint(levels * np.iinfo(dtype).max), dtype)


def _is_mask(picture: Array) -> bool:
    """Whether a picture has one channel, black and white only."""
    if picture.ndim == 3 and picture.shape[2] in (2, 4):
        return False
    channel = _first_channel(picture)
    if picture.ndim == 3 and (picture != channel[..., np.newaxis]).any():
        return False
    return bool(((channel == 0) | (channel == channel.max())).all())


def _first_channel(picture: Array) -> Array:
    return picture if picture.ndim == 2 else picture[..., 0]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return ".png" if suffix in _WITHOUT_ALPHA else suffix


def _no_transparency(suffix: str) -> FileError:
    return FileError(
        f"{printable(suffix)} files hold no transparency. Choose .png or .tif, or --write matte."
    )
