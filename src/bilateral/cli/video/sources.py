"""Open the frames of an input one after the other: a video file, numbered pictures, one picture."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bilateral.cli.files.inputs import Reader
from bilateral.cli.files.name_numbers import natural_order, varying_numbers
from bilateral.cli.files.sources import expand
from bilateral.io.errors import FileError
from bilateral.io.messages import printable
from bilateral.io.video import is_video
from bilateral.io.video.reader import VideoReader

Array = NDArray[Any]


class Frames:
    """Frames of one input, in order. Each pass reads them from the start.

    Attributes
    ----------
    name : str
        The argument, for messages.
    length : int or None
        Number of frames, as far as it is known; None for one picture that serves all frames.
    exact : bool
        Whether the length is certain. Headers of videos may be wrong.
    rate : Fraction or None
        Frames per second of a video file.
    names : list of str
        Names of the pictures, without suffix; empty for a video file.
    """

    def __init__(self, path: Path, reader: Reader) -> None:
        self.name, self._reader = printable(path), reader
        self._video: VideoReader | None = None
        self._pictures: list[Path] = []
        self.names: list[str] = []
        self.length: int | None = None
        self.rate: Fraction | None = None
        self.exact, self.lossless, self.suffix = True, True, path.suffix.lower()
        if is_video(path) and not path.is_dir():
            self._video = VideoReader(path, reader.limit)
            self.length, self.rate = self._video.length, self._video.rate
            self.exact, self.lossless = False, self._video.lossless
            return
        source = expand(str(path))
        if source.single is not None:
            self._pictures = [source.single]
            return
        keys = sorted(source.many, key=natural_order)
        self._pictures = [source.find(key) for key in keys]
        self.names, self.length = [file.stem for file in self._pictures], len(keys)
        self.suffix = self._pictures[0].suffix.lower()

    @property
    def repeats(self) -> bool:
        """Whether one picture serves all frames."""
        return self._video is None and self.length is None

    def __iter__(self) -> Iterator[Array]:
        """Read all frames; one picture is repeated for ever."""
        if self._video is not None:
            yield from self._video
        elif self.repeats:
            picture = self._reader.array(self._pictures[0])
            while True:
                yield picture
        else:
            for path in self._pictures:
                yield self._reader.array(path)

    def close(self) -> None:
        """Close a video file."""
        if self._video is not None:
            self._video.close()


def numbered(path: Path, frames: Frames) -> Mapping[int, Path]:
    """Return the pictures that belong to some frames only, by the index of the frame from 0.

    For numbered frames, pictures have the names of their frames. For a video file, the number in a
    name counts frames from 1, as ``ffmpeg -i video.mp4 %04d.png`` does. A single picture without a
    number belongs to the first frame.
    """
    source = expand(str(path))
    files = {source.single.stem: source.single} if source.single is not None else {}
    files |= {key: source.find(key) for key in source.many}
    if frames.names:
        index = {name: number for number, name in enumerate(frames.names)}
        unknown = [key for key in files if key not in index]
        if unknown:
            raise FileError(
                f"{printable(files[unknown[0]])}: no frame in {frames.name} has this name. Its "
                f"frames are named such as {printable(frames.names[0])}."
            )
        return {index[key]: file for key, file in files.items()}
    numbers = varying_numbers(list(files))
    if numbers is None:
        if len(files) == 1:
            return dict.fromkeys([0], next(iter(files.values())))
        raise FileError(
            f"{printable(path)}: expected names with the number of a frame, such as 0012.png for "
            f"the 12th, got {printable(next(iter(files)))}."
        )
    wrong = [key for key, number in numbers.items() if number < 1 or number % 1]
    if wrong:
        raise FileError(
            f"{printable(files[wrong[0]])}: frames are counted from 1, as by ffmpeg; no frame has "
            f"the number {numbers[wrong[0]]}."
        )
    return {int(number) - 1: files[key] for key, number in numbers.items()}
