"""Colorize a gray video by strokes on some of its frames."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.tasks.colorize.cuts import CutFinder
from bilateral.tasks.colorize.presets import PRESETS
from bilateral.tasks.colorize.propagation import Known, Propagation, warm
from bilateral.tasks.colorize.spool import Spool
from bilateral.tasks.colorize.strokes import find_strokes

Array = NDArray[Any]


@validation.keywords(photos="frames", gray="frames", reference="frames")
def colorize_video(
    frames: Iterable[ArrayLike],
    scribbles: Mapping[int, ArrayLike],
    *,
    preset: str = "best",
    sigma_xy: float | None = None,
    sigma_luma: float | None = None,
    smoothness: float | None = None,
    reference_max: float | None = None,
) -> Iterator[Array]:
    """Colorize a gray video by strokes of colour on some of its frames.

    The strokes of a frame colour the whole shot, forwards and backwards. Between two frames with
    strokes, the colours pass over from one to the other. Nothing passes a cut: every shot needs
    strokes on at least one frame; without, it stays gray, with a warning.

    Only a window of a few frames is in memory. The frames up to the next strokes or cut are stored
    in a temporary file.

    Parameters
    ----------
    frames : iterable of (H, W) or (H, W, 3) arrays
        The frames in order, of one size and dtype: uint8, uint16 or floating point.
    scribbles : dict of int to (H, W, 3) or (H, W, 4) array
        Strokes by the number of their frame from 0, as for `colorize`: the frame with strokes
        painted on it, or a layer with an alpha channel.
    preset, sigma_xy, sigma_luma, smoothness, reference_max
        As for `colorize`.

    Yields
    ------
    (H, W, 3) array
        The frames in RGB, in order, with the dtype of their gray frame.

    See Also
    --------
    colorize : Colorizes single photographs.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import colorize_video
    >>> frames = np.full((12, 30, 40), 120, np.uint8)
    >>> layer = np.zeros((30, 40, 4), np.uint8)
    >>> layer[5:8, 4:12] = (160, 110, 100, 255)
    >>> coloured = list(colorize_video(frames, {6: layer}))
    >>> len(coloured), coloured[0][20, 20].tolist(), coloured[11][20, 20].tolist()
    (12, [156, 106, 96], [156, 106, 96])
    """
    parameters = PRESETS[validation.choice("preset", preset, PRESETS)]
    propagation = Propagation(
        parameters,
        sigma_xy,
        sigma_luma,
        parameters.smoothness if smoothness is None else smoothness,
    )
    return _Video(propagation, reference_max).colorize(frames, scribbles)


@dataclass
class _Part:
    """Consecutive frames of a shot. Only the first and the last one may have strokes."""

    first: int
    """Number of the first frame."""
    frames: Spool
    left: Known | None = None
    right: Known | None = None
    written: int = 0
    """How many of the first frames the part before has returned already."""


class _Video:
    """Colours the parts of a video one after the other."""

    def __init__(self, propagation: Propagation, reference_max: float | None) -> None:
        self._propagation, self._reference_max = propagation, reference_max
        self._highest = 255.0
        self._first: tuple[tuple[int, ...], np.dtype[Any]] | None = None

    def colorize(
        self, frames: Iterable[ArrayLike], scribbles: Mapping[int, ArrayLike]
    ) -> Iterator[Array]:
        """Yield the frames in colour."""
        with ExitStack() as opened:  # closes the files of a part that is not finished

            def new_part(first: int, left: Known | None = None, written: int = 0) -> _Part:
                opened.close()
                return _Part(first, opened.enter_context(Spool()), left, written=written)

            part, cuts, count = new_part(0), CutFinder(), 0
            for number, frame in enumerate(frames):
                gray = self._checked(frame)
                if cuts.push(self._levels(gray.pixels)):
                    yield from self._coloured(part)
                    part = new_part(number)
                part.frames.append(gray.pixels)
                count += 1
                if number in scribbles:
                    strokes = Known(*find_strokes(gray, scribbles[number], None, stacklevel=4))
                    if len(part.frames) == 1:
                        part.left = strokes
                    else:
                        part.right = strokes
                        last = yield from self._coloured(part)
                        part = new_part(number, warm(last, strokes), written=1)
                        part.frames.append(gray.pixels)
            validation.frames_of_scribbles(sorted(scribbles), count)
            yield from self._coloured(part)

    def _checked(self, frame: ArrayLike) -> validation.Reference:
        gray = validation.reference(frame, self._reference_max, name="frames")
        validation.finite_values("frames", gray.pixels)
        kind = np.shape(frame), np.asarray(frame).dtype.newbyteorder("=")
        self._first = self._first or kind
        validation.same_frames(kind, self._first)
        self._highest = gray.highest
        return gray

    def _levels(self, pixels: Array) -> Array:
        """Return the luma in 8-bit grey levels."""
        luma = color.luma(pixels)
        return np.asarray(luma * luma.dtype.type(255 / self._highest))

    def _coloured(self, part: _Part) -> Generator[Array, None, Array]:
        """Yield the frames of a part in colour; return the chroma of the last one."""
        chroma = np.zeros((1, 1, 2), np.float32)
        for number, chroma in self._chroma(part):
            if number >= part.written:
                yield self._picture(part.frames[number], chroma)
        return chroma

    def _chroma(self, part: _Part) -> Iterator[tuple[int, Array]]:
        """Yield the chroma of each frame of a part, in order."""
        frames = range(len(part.frames))

        def levels(number: int) -> Array:
            return self._levels(part.frames[number])

        if part.right is None:
            if part.left is None:
                yield from _gray(part)
            else:
                yield from self._propagation.run(levels, frames, part.left)
            return
        with Spool() as backwards:
            for _, chroma in self._propagation.run(levels, frames[::-1], part.right):
                backwards.append(chroma.astype(np.float16))
            last = len(frames) - 1
            if part.left is None:
                for number in frames:
                    yield number, backwards[last - number].astype(np.float32)
                return
            for number, chroma in self._propagation.run(levels, frames, part.left):
                share = np.float32(number / last)
                yield number, chroma + share * (backwards[last - number] - chroma)

    def _picture(self, pixels: Array, chroma: Array) -> Array:
        assert self._first is not None
        luma = color.luma(pixels)
        cell = self._propagation.cell(luma.shape)
        sigmas = self._propagation.preset.filter(cell)
        chroma = domain_transform(chroma, luma, *sigmas, reference_max=self._highest)
        return color.colored(luma, chroma, self._highest, self._first[1])


def _gray(part: _Part) -> Iterator[tuple[int, Array]]:
    """Yield no colours for a shot without strokes, and warn of it."""
    count = len(part.frames)
    if not count:
        return
    first, last = part.first + 1, part.first + count
    warnings.warn(
        f"scribbles: no frame from {first} to {last}, between two cuts, has strokes: these frames "
        f"stay gray. Frames are counted from 1.",
        UserWarning,
        stacklevel=5,
    )
    height, width = part.frames[0].shape[:2]
    for number in range(count):
        yield number, np.zeros((height, width, 2), np.float32)
