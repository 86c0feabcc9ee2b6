"""The frames of a video of maps: values in units, with their photographs and confidences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.files.inputs import one_channel, without_alpha
from bilateral.cli.files.units import Units
from bilateral.io.errors import FileError
from bilateral.io.messages import size_text

Array = NDArray[Any]


@dataclass(frozen=True)
class MapFrame:
    """One frame of a video of maps."""

    raw_dtype: np.dtype[Any]
    """Dtype of the numbers in the file."""
    values: Array
    """(H, W) in units, NaN where unknown."""
    photo: Array
    confidence: Array | None
    mask: Array | None
    working_dtype: np.dtype[Any]


def map_frame(arrays: Mapping[str, Array], units: Units) -> MapFrame:
    """Convert the arrays of a frame: the map is named depth or target."""
    name = "depth" if "depth" in arrays else "target"
    raw = _gray(name, arrays[name])
    known = arrays.get("mask")
    weights = arrays.get("confidence")
    return MapFrame(
        raw.dtype,
        units.from_file(raw),
        without_alpha(arrays["reference"]),
        None if weights is None else _gray("confidence", weights),
        None if known is None else _gray("mask", known) != 0,
        units.working_dtype(raw),
    )


def stack_frames(frames: Sequence[MapFrame]) -> tuple[Array, Array, Array | None]:
    """Return values, photographs and confidences of a window with an axis of frames."""
    shapes = {(frame.values.shape, frame.photo.shape) for frame in frames}
    if len(shapes) > 1:
        raise FileError("the frames of a video differ in size; bring them to one size.")
    weights = [frame.confidence for frame in frames if frame.confidence is not None]
    return (
        np.stack([frame.values for frame in frames]),
        np.stack([frame.photo for frame in frames]),
        np.stack(weights) if weights else None,
    )


def _gray(name: str, array: Array) -> Array:
    gray = one_channel(array)
    if gray is None:
        raise FileError(
            f"{name}: expected frames with one number per pixel, got {size_text(array.shape)}. "
            f"Store maps as 16-bit gray pictures, or as a video of FFV1 with gray16le in .mkv."
        )
    return gray
