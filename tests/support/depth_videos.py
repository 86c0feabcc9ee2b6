"""Made depth videos: a textured room of known depth, seen by a noisy camera."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

Array = NDArray[Any]

NOISE = (0.002, 0.0025)


class DepthVideo(NamedTuple):
    depths: Array
    """(T, H, W) float32, measured; NaN where unknown."""
    photos: Array
    """(T, H, W, 3) uint8."""
    truth: Array
    """(T, H, W) float32."""


def noise_at(z: Array) -> Array:
    return NOISE[0] + NOISE[1] * np.square(z)


def room(shape: tuple[int, int], seed: int = 0) -> tuple[Array, Array]:
    """Photograph (float) and depth: a slanted wall and two boxes, all with texture."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    depth = 3 - 0.8 * x / shape[1] + 0.2 * y / shape[0]
    photo = np.empty((*shape, 3))
    photo[:] = (150, 140, 120)
    for k, colour in enumerate(((60, 90, 160), (200, 80, 60))):
        top, left = shape[0] // 4 + 10 * k, shape[1] // 8 + k * shape[1] // 2
        box = np.s_[top : top + shape[0] // 2, left : left + shape[1] // 4]
        depth[box], photo[box] = 1.6 + 0.3 * k, colour
    texture = sum(gaussian_filter(rng.normal(size=shape), s) * s for s in (1, 3, 8))
    return photo + 40 * (texture / np.abs(texture).max())[..., np.newaxis], depth


def filmed(photos: Array, truth: Array, seed: int = 0) -> DepthVideo:
    """Add noise to both, and holes to the depth."""
    rng = np.random.default_rng(seed)
    depths = truth + rng.normal(size=truth.shape) * noise_at(truth)
    depths[rng.uniform(size=truth.shape) < 0.02] = np.nan
    noisy = np.clip(photos + rng.normal(0, 1.5, photos.shape), 0, 255)
    return DepthVideo(depths.astype(np.float32), noisy.astype(np.uint8), truth.astype(np.float32))


def standing(frames: int = 8, shape: tuple[int, int] = (96, 128)) -> DepthVideo:
    photo, depth = room(shape)
    return filmed(np.stack([photo] * frames), np.stack([depth] * frames))


def pan(frames: int = 8, step: int = 2, shape: tuple[int, int] = (96, 128)) -> DepthVideo:
    """The camera shifts by `step` pixels per frame."""
    photo, depth = room((shape[0], shape[1] + step * frames))
    views = [np.s_[:, k * step : k * step + shape[1]] for k in range(frames)]
    return filmed(np.stack([photo[v] for v in views]), np.stack([depth[v] for v in views]))


def moving_box(frames: int = 8, step: int = 6, shape: tuple[int, int] = (96, 128)) -> DepthVideo:
    """A near box crosses the standing scene."""
    photo, depth = room(shape)
    texture = room((28, 40), 5)[0][..., ::-1]
    photos, truth = np.stack([photo] * frames), np.stack([depth] * frames)
    for k in range(frames):
        box = np.s_[k, 34:62, 10 + k * step : 50 + k * step]
        photos[box], truth[box] = texture, 1.0
    return filmed(photos, truth)


def second_difference(video: Array, where: Array) -> float:
    """Mean of the absolute second difference in time."""
    return float(np.abs(video[2:] - 2 * video[1:-1] + video[:-2])[:, where].mean())
