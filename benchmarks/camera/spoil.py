"""Spoil good photographs and depth maps as cameras do."""

from collections.abc import Callable
from io import BytesIO
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter

from benchmarks.common import Array

# Noise of a structured-light camera in metres, a + b z^2, and the jump that counts as an edge.
NOISE = (0.0020, 0.0025)
JUMP_NOISES, JUMP = 4.0, 0.015
FLYING, REACH = 0.5, 7  # fraction of mixed pixels near edges, and side of the window they mix
BASELINE = 40.0  # metres x pixels: distance of projector and camera times focal length, a Kinect's
BLOBS, BLOB_RADIUS = 12, (0.01, 0.03)  # number, and radii over the longer side of the image
# Scattered pixels instead: wrong depths anywhere, noise that neighbours share, and more blobs.
SCATTERED, NOISE_WIDTH = 0.03, 0.6  # fraction of wrong pixels, and sigma of the noise in pixels
SCATTERED_BLOBS, SCATTERED_RADIUS = 40, (0.01, 0.04)

# Ragged edges instead: pixels near edges take the depth of a place beside them.
STRAY, STRAY_WIDTH = 1.5, 2.0  # standard deviation of the way, and sigma of its field, in pixels

SHIFT = 2


def shifted(photo: Array, columns: int = SHIFT) -> Array:
    """Move a photograph to the right; the first column repeats."""
    return np.pad(photo, ((0, 0), (columns, 0), (0, 0)), mode="edge")[:, :-columns]


def jpeg(photo: Array, quality: int = 30) -> Array:
    memory = BytesIO()
    Image.fromarray(photo).save(memory, "JPEG", quality=quality)
    return np.asarray(Image.open(memory))


def blurred(photo: Array, sigma: float = 3.0) -> Array:
    return np.asarray(
        np.rint(gaussian_filter(photo.astype(np.float32), (sigma, sigma, 0))), np.uint8
    )


def brighter(photo: Array, factor: float) -> Array:
    return np.asarray(np.clip(np.rint(photo * factor), 0, 255), np.uint8)


AS_IT_IS, FEATURELESS = "as it is", "featureless"
PHOTOS: dict[str, Callable[[Array], Array]] = {
    AS_IT_IS: lambda photo: photo,
    "twice as bright": lambda photo: brighter(photo, 2.0),
    "dark": lambda photo: brighter(photo, 0.2),
    "blurred": blurred,
    "JPEG 30": jpeg,
    f"shifted by {SHIFT} px": shifted,
    FEATURELESS: lambda photo: np.full_like(photo, 128),
}


def noise(z: Array) -> Array:
    """Return the standard deviation of a camera's noise at each depth."""
    return np.asarray(NOISE[0] + NOISE[1] * z**2)


def jump(z: Array) -> Array:
    """Return the difference of depth from which on two neighbours are two surfaces."""
    return np.asarray(JUMP_NOISES * noise(z) + JUMP * z)


def edges(truth: Array) -> Array:
    """Mark the pixels within 3 px of neighbours that differ by two jumps; slopes are no edges."""
    steps = np.zeros(truth.shape, bool)
    steps[1:] |= np.abs(np.diff(truth, axis=0)) > 2 * jump(np.minimum(truth[1:], truth[:-1]))
    steps[:, 1:] |= np.abs(np.diff(truth)) > 2 * jump(np.minimum(truth[:, 1:], truth[:, :-1]))
    # a step lies between its pixel and the one before
    return np.asarray(maximum_filter(steps, REACH - 1, origin=-1))


class Spoiled(NamedTuple):
    depth: Array  # 0 in holes
    flying: Array  # mask of the wrong pixels
    holes: Array


def spoil(truth: Array, seed: int = 0, noise_seed: int | None = None) -> Spoiled:
    """Add noise, flying pixels at depth edges, shadows beside objects, and blobs without data.

    Another `noise_seed` changes the noise alone, as in the next frame of a standing scene.
    """
    rng = np.random.default_rng(seed)
    fresh = np.random.default_rng([seed, 0 if noise_seed is None else noise_seed])
    low, high = minimum_filter(truth, REACH), maximum_filter(truth, REACH)
    holes = shadows(truth) | blobs(truth.shape, rng, BLOBS, BLOB_RADIUS)
    near_edge = edges(truth) & ~holes
    flying = near_edge & (rng.random(truth.shape) < FLYING)
    mixed = low + rng.random(truth.shape) * (high - low)
    z = np.where(flying, mixed, truth)
    z = z + noise(z) * fresh.normal(size=truth.shape)
    return Spoiled(np.where(holes, 0, z).astype(np.float32), flying, holes)


def scatter(truth: Array, seed: int = 0) -> Spoiled:
    """Add noise that neighbours share, wrong depths at scattered pixels, and blobs without data."""
    rng = np.random.default_rng(seed)
    holes = blobs(truth.shape, rng, SCATTERED_BLOBS, SCATTERED_RADIUS)
    shared = gaussian_filter(rng.normal(size=truth.shape), NOISE_WIDTH)
    z = truth + noise(truth) * shared / shared.std()
    wrong = rng.random(truth.shape) < SCATTERED
    z = np.where(wrong, rng.uniform(truth.min(), truth.max(), truth.shape), z)
    return Spoiled(np.where(holes, 0, z).astype(np.float32), wrong & ~holes, holes)


def ragged(truth: Array, seed: int = 0) -> Spoiled:
    """Let pixels near edges stray together with their neighbours, and add noise; no holes."""
    rng = np.random.default_rng(seed)
    ways = [gaussian_filter(rng.normal(size=truth.shape), STRAY_WIDTH) for _ in truth.shape]
    places = [
        np.rint(at + STRAY * way / way.std()).astype(int).clip(0, size - 1)
        for at, way, size in zip(np.indices(truth.shape), ways, truth.shape, strict=True)
    ]
    near_edge = maximum_filter(edges(truth), 5)
    z = np.where(near_edge, truth[tuple(places)], truth)
    strayed = np.abs(z - truth) > jump(truth)
    z = z + noise(z) * rng.normal(size=truth.shape)
    return Spoiled(z.astype(np.float32), strayed, np.zeros(truth.shape, bool))


def shadows(truth: Array) -> Array:
    """Mark the pixels that a projector to the left of the camera does not light."""
    lit = np.arange(truth.shape[1]) + BASELINE / truth
    # a nearer surface hides what lies behind it in the projector's picture
    hidden_from = np.maximum.accumulate(lit, axis=1)
    return np.asarray(lit < hidden_from - 1)


def blobs(
    shape: tuple[int, ...], rng: np.random.Generator, count: int, radius: tuple[float, float]
) -> Array:
    """Mark ellipses without data, as on dark or shiny surfaces."""
    y, x = np.ogrid[: shape[0], : shape[1]]
    holes = np.zeros(shape, bool)
    side = max(shape)
    for _ in range(count):
        centre, radii = rng.random(2) * shape, rng.uniform(*radius, 2) * side
        holes |= ((y - centre[0]) / radii[0]) ** 2 + ((x - centre[1]) / radii[1]) ** 2 < 1
    return holes
