"""Refine all frames of a depth video: averages over past and future, then calming."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.filters import video
from bilateral.tasks.depth.depth_input import DepthInput, depth_input
from bilateral.tasks.depth.fill import Cells
from bilateral.tasks.depth.frame import Frame, refine_surfaces
from bilateral.tasks.depth.noise import Noise
from bilateral.tasks.depth.surfaces import find_surfaces
from bilateral.tasks.depth.video.averaging import DEPTH_TOLERANCE, SAME, Averaged, TemporalAverage
from bilateral.tasks.depth.video.calming import FAST, MOVED
from bilateral.tasks.depth.video.camera_noise import joint_noise

Array = NDArray[Any]

_PASSES = 2
"""Passes of calming: more raise the error in fast pans above that of single frames."""
_FARTHER_VOTES = 2.0
"""Weight of a frame whose filling is farther."""
_MOST = 1.0
"""Units of noise by which calming moves a pixel, at most."""


class VideoInput(NamedTuple):
    """Arguments of a call with one item per frame."""

    depth: ArrayLike
    reference: ArrayLike
    confidence: ArrayLike | None
    mask: ArrayLike | None


def refine_video(
    given: VideoInput,
    invalid: tuple[float, ...],
    cells: Cells,
    reference_max: float | None,
    dtype: DTypeLike | None,
) -> Array:
    """Refine a depth video (T, H, W) with its photographs (T, H, W) or (T, H, W, 3)."""
    photos = validation.video_reference(given.reference, reference_max)
    guides = [validation.Reference(pixels, photos.highest) for pixels in photos.pixels]
    maps = validation.per_frame("depth", given.depth, len(guides))
    weights = _per_frame("confidence", given.confidence, len(guides))
    masks = _per_frame("mask", given.mask, len(guides))
    inputs = [
        depth_input(z, guide.pixels.shape[:2], weight, known, invalid, dtype)
        for z, guide, weight, known in zip(maps, guides, weights, masks, strict=True)
    ]
    validation.some_known("depth", np.array([frame.has_data for frame in inputs]))
    validation.warn_of_zeros("depth", *_first_values(inputs), stacklevel=4)
    noise = joint_noise([frame.noise() for frame in inputs if frame.has_data])
    frames = [
        _refined(frame, guide, noise, cells) if frame.has_data else None
        for frame, guide in zip(inputs, guides, strict=True)
    ]
    x = steady_video(_without_gaps(frames), [frame.z for frame in inputs], guides)
    return validation.as_dtype(np.stack(x), inputs[0].dtype)


def _refined(given: DepthInput, guide: validation.Reference, noise: Noise, cells: Cells) -> Frame:
    """Refine a frame by itself."""
    surfaces = find_surfaces(given.z, noise, given.trust)
    return refine_surfaces(given.z, guide, given.trust, noise, surfaces, cells)


def _first_values(inputs: Sequence[DepthInput]) -> tuple[Array, Array]:
    """The first map with data, and where it is known."""
    z = next(frame.z for frame in inputs if frame.has_data)
    return z, np.isfinite(z)


def _per_frame(name: str, value: ArrayLike | None, frames: int) -> Sequence[Array | None]:
    return [None] * frames if value is None else validation.per_frame(name, value, frames)


def _without_gaps(frames: Sequence[Frame | None]) -> list[Frame]:
    """Let frames without data repeat the frame before, or the first one with data."""
    first = next(frame for frame in frames if frame is not None)
    last = first._replace(z=np.full_like(first.z, np.nan), kept=np.zeros_like(first.kept))
    filled = []
    for frame in frames:
        filled.append(last if frame is None else frame)
        last = filled[-1]._replace(z=last.z, kept=last.kept)
    return filled


def steady_video(
    frames: Sequence[Frame], measured: Sequence[Array], guides: Sequence[validation.Reference]
) -> list[Array]:
    """Steady refined frames in time.

    Each pixel becomes the mean over the frames before and after that show the same point. Then
    calming reduces its second difference in time, within the noise.

    Parameters
    ----------
    frames : sequence of Frame
        Of one size.
    measured : sequence of (H, W) float32 arrays
        Their data, doubtful ones too; NaN where unknown.
    guides : sequence of Reference
        Their photographs.
    """
    parts = list(zip(frames, measured, guides, strict=True))
    forward, backward = _averages(parts), _averages(parts[::-1])[::-1]
    x = [_join(*three) for three in zip(frames, forward, backward, strict=True)]
    x = _restored(x, frames, measured, list(zip(forward, backward, strict=True)))
    noises = [_noise(*three) for three in zip(x, forward, backward, strict=True)]
    limits = [_limit(*three) for three in zip(noises, forward, backward, strict=True)]
    return _calm(x, noises, limits)


def _averages(parts: Iterable[tuple[Frame, Array, validation.Reference]]) -> list[Averaged]:
    """Average each frame with those before."""
    average = TemporalAverage()
    return [average.push(frame, z, video.photo(*guide)) for frame, z, guide in parts]


def _join(frame: Frame, forward: Averaged, backward: Averaged) -> Array:
    """Join the averages over past and future, which both contain the frame.

    Where they disagree, data stay as they are and fillings come from the longer average. The
    frames of the farther one count twice: most holes are shadows of near things.
    """
    n = _noise(frame.x, forward, backward)
    past, future = (side.frames().astype(np.float32) for side in (forward, backward))
    middle = (forward.x + backward.x) / 2
    twice = np.where(np.abs(frame.x - forward.x) < SAME * n, frame.x, middle)
    mean = (past * forward.x + future * backward.x - twice) / (past + future - 1)
    past_is_farther = forward.x > backward.x
    past_votes = np.where(past_is_farther, _FARTHER_VOTES * past, past)
    future_votes = np.where(past_is_farther, future, _FARTHER_VOTES * future)
    longer = np.where(past_votes >= future_votes, forward.x, backward.x)
    agree = np.abs(forward.x - backward.x) < SAME * n
    return np.where(agree, mean, np.where(frame.kept, frame.x, longer)).astype(np.float32)


def _restored(
    x: Sequence[Array],
    frames: Sequence[Frame],
    measured: Sequence[Array],
    sides: Sequence[tuple[Averaged, Averaged]],
) -> list[Array]:
    """Replace fillings where a doubtful measurement agrees with the frames before and after."""
    out = list(x)
    for t in range(1, len(x) - 1):
        z = measured[t]
        limit = DEPTH_TOLERANCE * _noise(z, *sides[t])
        with np.errstate(invalid="ignore"):
            before, now, after = (np.abs(z - other) < limit for other in x[t - 1 : t + 2])
        right = ~frames[t].kept & before & after & ~now
        out[t] = np.where(right, (x[t - 1] + z + x[t + 1]) / 3, x[t])
    return out


def _noise(x: Array, forward: Averaged, backward: Averaged) -> Array:
    """Noise in time at each pixel; the larger of both directions."""
    return np.maximum(forward.noise(x), backward.noise(x))


def _limit(noise: Array, forward: Averaged, backward: Averaged) -> Array:
    """How far calming may move each pixel: less where the image moves."""
    limit = _MOST * noise
    for speed in (forward.speed, backward.speed):
        if speed is not None:
            limit = np.minimum(limit, _MOST * noise / (1 + (speed / FAST) ** 2))
    return limit.astype(np.float32)


def _calm(x: list[Array], noises: Sequence[Array], limits: Sequence[Array]) -> list[Array]:
    """Move pixels half-way to the mean of the frames before and after, several times."""
    first = list(x)
    for _ in range(_PASSES):
        before = x[0]
        for t in range(1, len(x) - 1):
            now = x[t]
            bend = 2 * (_between(before, x[t + 1]) - now)
            calmed = np.clip(now + bend / 4, first[t] - limits[t], first[t] + limits[t])
            before, x[t] = now, np.where(np.abs(bend) > MOVED * noises[t], now, calmed)
    return x


def _between(before: Array, after: Array) -> Array:
    """Return the harmonic mean: a plane that passes a pixel changes inverse depth evenly."""
    mean, product = (before + after) / 2, before * after
    return np.asarray(np.divide(product, mean, out=mean, where=product > 0))
