"""Read the strokes that belong to some frames of a video."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.files.inputs import Reader
from bilateral.cli.files.outputs import to_uint8
from bilateral.io.errors import FileError
from bilateral.io.messages import printable, size_text

Array = NDArray[Any]

_DIFFERENCE = 24
"""A pixel is a stroke if it differs from its frame by more 8-bit levels, summed over red, green
and blue: decoders of videos differ by two or three."""
_MOST = 0.5
"""If more pixels differ, the picture shows another frame."""


class FrameStrokes(Mapping[int, Array]):
    """Layers of strokes by the number of their frame from 0, read when they are asked for.

    Parameters
    ----------
    paths, masks : dict of int to Path
        Pictures by the number of their frame.
    reader : Reader
    """

    def __init__(
        self, paths: Mapping[int, Path], masks: Mapping[int, Path], reader: Reader
    ) -> None:
        self._paths, self._masks, self._reader = paths, masks, reader
        self.frame: Array | None = None
        """The frame that was read last: the one whose strokes are asked for."""

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[int]:
        return iter(self._paths)

    def __getitem__(self, number: int) -> Array:
        path = self._paths[number]
        picture = to_uint8(self._reader.array(path))
        if number in self._masks:
            mask = self._reader.single_channel(self._masks[number]) != 0
        elif picture.ndim == 3 and picture.shape[-1] == 4 and np.ptp(picture[..., 3]):
            return picture
        else:
            mask = self._differences(path, picture, number)
        if picture.ndim == 2:
            picture = np.repeat(picture[..., np.newaxis], 3, axis=2)
        alpha = np.where(mask, np.uint8(255), np.uint8(0))
        if mask.all():  # a constant alpha would be ignored
            alpha[0, 0] = 0
        return np.dstack([picture[..., :3], alpha])

    def _differences(self, path: Path, picture: Array, number: int) -> Array:
        """Return where a picture differs from its frame."""
        assert self.frame is not None
        gray = to_uint8(self.frame).astype(np.int16)
        if gray.ndim == 2:
            gray = gray[..., np.newaxis]
        if picture.shape[:2] != gray.shape[:2]:
            raise FileError(
                f"{printable(path)}: expected the size of the frames, {size_text(gray.shape[:2])}, "
                f"got {size_text(picture.shape[:2])}."
            )
        other = picture[..., :3] if picture.ndim == 3 else picture[..., np.newaxis]
        different: Array = np.abs(other.astype(np.int16) - gray).sum(axis=2) > _DIFFERENCE
        if different.mean() > _MOST:
            raise FileError(
                f"{printable(path)}: differs from frame {number + 1} in "
                f"{100 * different.mean():.0f} % of the pixels: it shows another frame. Frames "
                f"are counted from 1. Or save the strokes alone, as a layer with alpha."
            )
        return different
