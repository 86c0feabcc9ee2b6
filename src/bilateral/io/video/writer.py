"""Encode a video file frame by frame: complete or absent, like every result."""

import os
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bilateral.io import atomic
from bilateral.io.errors import FileError
from bilateral.io.messages import one_line, printable
from bilateral.io.video import LOSSLESS, missing_package

Array = NDArray[Any]

_QUALITY = {"crf": "16", "preset": "medium"}
"""H.264 without visible losses."""
_CONTAINERS = {".mkv": "matroska", ".mp4": "mp4", ".mov": "mov"}


class VideoWriter:
    """Writes frames to a temporary file, which gets its name after the last frame.

    Matroska files (.mkv) are lossless: FFV1 with 16 bits for (H, W) uint16 frames, 8 bits for
    (H, W) uint8 and (H, W, 3) uint8. Other files hold 8 bits in H.264.

    Parameters
    ----------
    path : path
    rate : Fraction
        Frames per second.
    overwrite : bool
        Allow to replace an existing file.
    accept_same : bool
        Without `overwrite`, accept an existing file with the same content.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        rate: Fraction,
        *,
        overwrite: bool = False,
        accept_same: bool = False,
    ) -> None:
        try:
            import av
        except ModuleNotFoundError:
            raise missing_package() from None
        self._av, self._path, self._rate = av, path, rate
        self._suffix = os.path.splitext(path)[1].lower()
        self._file = atomic.Replacement(path, overwrite=overwrite, accept_same=accept_same)
        self._stream: Any = None
        self._shape: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        temporary = self._file.__enter__()
        self._container = self._av.open(
            temporary,
            "w",
            format=_CONTAINERS[self._suffix],
            options={"fflags": "+bitexact"},  # no time and no random numbers in the file
        )
        return self

    def write(self, array: Array) -> None:
        """Append a frame: (H, W) uint8 or uint16, or (H, W, 3) uint8, all of one kind."""
        array = np.ascontiguousarray(array)
        kind = (array.shape, array.dtype)
        if self._stream is None:
            self._start(array)
            self._kind = kind
        elif kind != self._kind:
            raise FileError(f"{printable(self._path)}: its frames differ in size or dtype.")
        try:
            frame = self._av.VideoFrame.from_ndarray(array, format=self._format)
            self._container.mux(self._stream.encode(frame))
        except (OSError, ValueError) as error:
            raise self._failure(error) from None

    def _start(self, array: Array) -> None:
        """Choose codec and pixels by the first frame."""
        gray = array.ndim == 2
        if array.dtype not in (np.uint8, np.uint16) or (array.dtype == np.uint16 and not gray):
            raise FileError(
                f"{printable(self._path)}: a video holds 8-bit pictures or 16-bit maps, got "
                f"{array.dtype}. Name a folder for single frames, or add --dtype."
            )
        self._format = "rgb24" if not gray else "gray" if array.dtype == np.uint8 else "gray16le"
        height, width = array.shape[:2]
        if self._suffix == LOSSLESS:
            codec, options = "ffv1", {"level": "3", "slicecrc": "1"}
            pixels = {"rgb24": "bgr0"}.get(self._format, self._format)
        elif self._format == "gray16le":
            raise FileError(
                f"{printable(self._path)}: 16-bit maps need a lossless video: name it {LOSSLESS}."
            )
        else:
            codec, options = "libx264", _QUALITY
            pixels = "yuv444p" if height % 2 or width % 2 else "yuv420p"
        self._stream = self._container.add_stream(codec, rate=self._rate, options=dict(options))
        self._stream.height, self._stream.width, self._stream.pix_fmt = height, width, pixels

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                if self._stream is None:
                    raise FileError(f"{printable(self._path)}: the video has no frame.")
                self._container.mux(self._stream.encode())
            if self._stream is not None:
                self._container.close()
        except (OSError, ValueError) as problem:
            failure = self._failure(problem)
            self._file.__exit__(FileError, failure, None)
            raise failure from None
        except BaseException as problem:
            self._file.__exit__(type(problem), problem, None)
            raise
        self._file.__exit__(kind, error, where)

    def _failure(self, error: Exception) -> FileError:
        return FileError(f"{printable(self._path)}: cannot be written: {one_line(error)}.")
