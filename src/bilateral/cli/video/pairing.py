"""Check that the videos of a command belong together, and read their frames side by side."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from bilateral.cli.video.sources import Frames
from bilateral.io.errors import FileError
from bilateral.io.messages import printable

Array = NDArray[Any]

_RATE_TOLERANCE = 0.001
"""29.97 and 30000/1001 are one rate; 29.97 and 30 differ by one frame in 33 seconds."""


def check(inputs: Mapping[str, Frames], *, by_name: bool) -> None:
    """Refuse videos whose frame rate or number of frames differ.

    With `by_name`, pictures in several folders must have the same names.
    """
    videos = [frames for frames in inputs.values() if frames.rate is not None]
    for other in videos[1:]:
        _check_rates(videos[0], other)
    counted = [frames for frames in inputs.values() if frames.length is not None]
    for other in counted[1:]:
        _check_lengths(counted[0], other)
    named = [frames for frames in inputs.values() if frames.names]
    for other in named[1:] if by_name else ():
        _check_names(named[0], other)


def side_by_side(inputs: Mapping[str, Frames]) -> Iterator[dict[str, Array]]:
    """Yield the frames of all inputs together; refuse an input that ends before the others."""
    streams = {name: iter(frames) for name, frames in inputs.items()}
    ending = [name for name, frames in inputs.items() if not frames.repeats]
    count = 0
    while True:
        found = {name: next(stream, None) for name, stream in streams.items()}
        ended = [name for name in ending if found[name] is None]
        if len(ended) == len(ending):
            return
        if ended:
            short, long = inputs[ended[0]], inputs[next(n for n in ending if n not in ended)]
            raise FileError(
                f"{short.name}: has {count} frames, fewer than {long.name}. Cut both to the same "
                f"part: each frame needs its partner."
            )
        yield {name: array for name, array in found.items() if array is not None}
        count += 1


def _check_rates(first: Frames, other: Frames) -> None:
    a, b = first.rate or Fraction(1), other.rate or Fraction(1)
    if abs(a - b) > _RATE_TOLERANCE * max(a, b):
        raise FileError(
            f"{other.name}: has {float(b):.5g} frames per second, {first.name} has {float(a):.5g}. "
            f"Convert one to the rate of the other: ffmpeg -i VIDEO -r {float(a):.5g} ..."
        )


def _check_lengths(first: Frames, other: Frames) -> None:
    a, b = first.length or 0, other.length or 0
    # Headers of videos are exact to about a frame; a wrong one shows when a video ends early.
    if abs(a - b) > (0 if first.exact and other.exact else 1):
        seconds = "".join(
            f" ({number / float(frames.rate):.2f} s)"
            for number, frames in ((b, other),)
            if frames.rate
        )
        raise FileError(
            f"{other.name}: has {b} frames{seconds}, {first.name} has {a}. Cut both to the same "
            f"part: each frame needs its partner."
        )


def _check_names(first: Frames, other: Frames) -> None:
    for a, b in zip(first.names, other.names, strict=True):
        if a != b:
            raise FileError(
                f"{other.name}: has no frame named {printable(a)} as {first.name} has, but "
                f"{printable(b)}. --pair sorted pairs frames by their order."
            )
