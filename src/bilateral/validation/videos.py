"""Check videos: maps and photographs with a first axis of frames."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.validation.arrays import any_real_array
from bilateral.validation.images import Reference, reference

Array = NDArray[Any]


def is_video(depth: ArrayLike, photo: ArrayLike) -> bool:
    """Whether a map has the axes (T, H, W), and its photograph (T, H, W) or (T, H, W, C)."""
    try:
        shape, other = np.shape(depth), np.shape(photo)
    except Exception:  # ragged lists, arrays of other libraries: other checks say what is wrong
        return False
    if len(shape) != 3:
        return len(other) == 4
    # (H, W, 1) is a map with a channel, and (H, W, 3) a photograph.
    return len(other) == 4 or (shape == other and shape[2] not in (1, 3, 4))


def video_reference(value: ArrayLike, highest: float | None) -> Reference:
    """Return the photographs (T, H, W) or (T, H, W, 3) of a video."""
    return reference(value, highest, video=True)


def per_frame(name: str, value: ArrayLike, frames: int) -> list[Array]:
    """Return the frames of an array (T, ...), which must have `frames` of them."""
    array = any_real_array(name, value)
    if array.ndim < 3 or len(array) != frames:
        raise ValueError(
            f"{name}: expected shape (T, H, W) with T = {frames} frames, as the reference has, "
            f"got {array.shape}. Give one map for each photograph."
        )
    return list(array)


def options_of_video(preset: str, scale: float | None) -> None:
    """Raise if options do not serve videos."""
    if preset != "sensor":
        raise ValueError(
            f"preset: expected 'sensor' for a video, got {preset!r}. Refine its frames one by "
            f"one: [refine_depth(d, r, preset={preset!r}) for d, r in zip(depth, reference)]."
        )
    if scale is not None:
        raise ValueError(
            f"scale: expected None for a video, whose noise is estimated, got {scale!r}. "
            f"Leave it out."
        )


def same_frame_shape(shape: tuple[int, ...], before: tuple[int, ...] | None) -> None:
    """Raise if a frame of a stream has another size than those before."""
    if before is not None and shape != before:
        raise ValueError(
            f"reference: expected the size of the frames before, {before}, got {shape}. "
            f"Call reset() before frames of another size, or use a stream for each camera."
        )


def same_frames(
    kind: tuple[tuple[int, ...], np.dtype[Any]], first: tuple[tuple[int, ...], np.dtype[Any]]
) -> None:
    """Raise if a frame has another shape or dtype than the first one."""
    if kind != first:
        raise ValueError(
            f"frames: expected the shape and dtype of the first frame, {first[0]} {first[1]}, got "
            f"{kind[0]} {kind[1]}. Bring all frames to one size."
        )


def frames_of_scribbles(numbers: Sequence[int], frames: int) -> None:
    """Raise if strokes belong to a frame that a video does not have."""
    wrong = [number for number in numbers if not 0 <= number < frames]
    if wrong:
        raise ValueError(
            f"scribbles: expected numbers of frames from 0 to {frames - 1}, got {wrong[0]}. The "
            f"video has {frames} frames."
        )
