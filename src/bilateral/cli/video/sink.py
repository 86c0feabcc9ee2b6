"""Write the frames of a result: to a video file, or as numbered pictures in a folder."""

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from bilateral import io
from bilateral.cli.files import outputs
from bilateral.io.video import is_video
from bilateral.io.video.writer import VideoWriter

Array = NDArray[Any]

DEFAULT_RATE = Fraction(30)
"""Frames per second of a video made from pictures."""


class Sink:
    """Takes one frame after the other.

    Parameters
    ----------
    path : Path
        A video file, which is complete or absent in the end, or a folder, which gets one picture
        per frame.
    suffix : str
        Suffix of the pictures in a folder.
    names : list of str
        Names of the pictures; by default they are counted from 1 with six digits.
    rate : Fraction, optional
        Frames per second of a video file.
    force : bool
        Replace existing files.
    repeated : bool
        Accept existing files that are the same.
    """

    def __init__(
        self,
        path: Path,
        suffix: str,
        names: list[str],
        rate: Fraction | None,
        *,
        force: bool,
        repeated: bool,
    ) -> None:
        self._path, self._suffix, self._names = path, suffix, names
        self._force, self._repeated = force, repeated
        self._rate, self._count = rate or DEFAULT_RATE, 0
        self._writer: VideoWriter | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if is_video(self._path):
            outputs.make_folder(self._path.parent)
            writer = VideoWriter(
                self._path, self._rate, overwrite=self._force, accept_same=self._repeated
            )
            self._writer = self._stack.enter_context(writer)
        else:
            outputs.make_folder(self._path)
        return self

    def write(self, array: Array) -> None:
        """Write the next frame."""
        self._count += 1
        if self._writer is not None:
            self._writer.write(array)
            return
        name = self._names[self._count - 1] if self._names else f"{self._count:06}"
        path = self._path / (name + self._suffix)
        data = io.encode(array, path)
        outputs.save(path, data, force=self._force, repeated=self._repeated)

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
