"""Decode a video file frame by frame."""

import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import FileError
from bilateral.io.messages import one_line, os_reason, printable
from bilateral.io.video import missing_package

Array = NDArray[Any]

_LOSSLESS_CODECS = ("ffv1", "rawvideo", "png", "huffyuv", "ffvhuff", "utvideo", "v210", "tiff")


class VideoReader:
    """The frames of a video file, in order. Only one of them is in memory.

    Gray videos of more than 8 bits, such as depth, give (H, W) uint16 frames with the numbers of
    the file. Other gray videos give (H, W) uint8, all others (H, W, 3) uint8.

    Parameters
    ----------
    path : path
    limit : int
        Maximum size of one frame in bytes.

    Attributes
    ----------
    shape : (int, int)
        Height and width of a frame, upright.
    rate : Fraction or None
        Frames per second; None if the file does not say.
    length : int or None
        Number of frames, from the header of the file: the last frames may be missing.
    lossless : bool
        Whether the codec preserves every bit.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        self._name = printable(path)
        try:
            import av
        except ModuleNotFoundError:
            raise missing_package() from None
        if not os.path.isfile(path):
            raise FileError(f"{self._name}: cannot be read: No such file.")
        try:
            self._container = av.open(os.fspath(path))
        except OSError as error:
            raise FileError(f"{self._name}: cannot be read: {os_reason(error)}.") from None
        except (ValueError, EOFError):  # FFmpeg's errors of invalid data and of a file cut short
            raise FileError(f"{self._name}: is damaged or no video file.") from None
        if not self._container.streams.video:
            raise FileError(f"{self._name}: has no pictures, only sound or text.")
        stream = self._container.streams.video[0]
        stream.thread_type = "AUTO"
        self._stream = stream
        context = stream.codec_context
        self.shape = context.height, context.width
        size = 6 * context.height * context.width
        if size > limit or not size:
            raise FileError(
                f"{self._name}: a frame of {context.height} x {context.width} pixels takes "
                f"{size / 1e6:.0f} MB, expected at most {limit / 1e6:.0f}; raise --limit."
            )
        rate = stream.average_rate or stream.guessed_rate
        self.rate = Fraction(rate) if rate else None
        self.lossless = context.name in _LOSSLESS_CODECS
        self.length = self._length()

    def _length(self) -> int | None:
        if self._stream.frames:
            return int(self._stream.frames)
        duration = self._container.duration  # in microseconds
        if duration is None or self.rate is None:
            return None
        return max(1, round(Fraction(duration, 1_000_000) * self.rate))

    def __iter__(self) -> Iterator[Array]:
        """Decode all frames from the start."""
        try:
            for frame in self._container.decode(self._stream):
                yield np.rot90(_array(frame), frame.rotation // 90)
        except (OSError, ValueError, EOFError) as error:
            raise FileError(f"{self._name}: is damaged: {one_line(error)}.") from None

    def close(self) -> None:
        """Close the file."""
        self._container.close()


def _array(frame: Any) -> Array:
    """Return the pixels of a decoded frame."""
    components = frame.format.components
    if len(components) > 1:
        array: Array = frame.to_ndarray(format="rgb24")
        return array
    if components[0].bits <= 8:
        return np.asarray(frame.to_ndarray(format="gray"))
    if frame.format.name not in ("gray16le", "gray16be"):  # gray10, gray12: keep their numbers
        return np.asarray(frame.to_ndarray())
    return np.asarray(frame.to_ndarray(format="gray16le"))
