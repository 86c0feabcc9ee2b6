"""Make scenes for depth refinement: a photograph, its true map, and degraded maps."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Array


class Scene(NamedTuple):
    photo: Array
    truth: Array


def _start(seed: int, shape: tuple[int, int], colour: tuple[float, ...]) -> tuple[Any, ...]:
    grid = np.mgrid[: shape[0], : shape[1]].astype(float)
    return np.random.default_rng(seed), *grid, np.full((*shape, 3), colour)


def _scene(photo: Array, truth: Array, rng: np.random.Generator) -> Scene:
    y, x = np.mgrid[: truth.shape[0], : truth.shape[1]]
    shade = 12 * np.sin(x / 23 + 1) + 9 * np.cos(y / 17) + 5 * np.sin((x + y) / 5)
    texture = shade[..., np.newaxis] + rng.normal(0, 3, photo.shape)
    return Scene(np.clip(photo + texture, 0, 255).astype(np.uint8), truth)


def thin(
    seed: int = 0, shape: tuple[int, int] = (160, 224), widths: tuple[float, ...] = (1, 2, 3, 5)
) -> Scene:
    """Vertical, horizontal and slanted poles of a few pixels in front of a far wall."""
    rng, y, x, photo = _start(seed, shape, (150.0, 140.0, 120.0))
    truth = 8 + 0.01 * x
    for i in range(14):
        angle = (0.0, np.pi / 2, rng.uniform(-1, 1))[i % 3]
        across = (x - rng.uniform(0, shape[1])) * np.cos(angle)
        across = across - (y - rng.uniform(0, shape[0])) * np.sin(angle)
        pole = np.abs(across) < widths[i % len(widths)] / 2
        photo[pole] = rng.uniform(10, 245, 3)
        truth[pole] = rng.uniform(25, 45)
    return _scene(photo, truth, rng)


def small(seed: int = 0, shape: tuple[int, int] = (160, 224)) -> Scene:
    """Many leaves in front of a far slope."""
    rng, y, x, photo = _start(seed, shape, (60.0, 70.0, 60.0))
    truth = 10 + 0.02 * y
    for _ in range(60):
        angle, radius = rng.uniform(0, np.pi), rng.uniform(3, 10)
        u, v = x - rng.uniform(0, shape[1]), y - rng.uniform(0, shape[0])
        along, across = u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)
        leaf = (along / radius) ** 2 + (across / radius / 0.5) ** 2 < 1
        photo[leaf] = rng.uniform((30, 90, 20), (140, 220, 90))
        truth[leaf] = rng.uniform(15, 45)
    return _scene(photo, truth, rng)


def boxes(seed: int = 0, shape: tuple[int, int] = (160, 224)) -> Scene:
    """Slanted planes in front of each other."""
    rng, y, x, photo = _start(seed, shape, (120.0, 120.0, 140.0))
    truth = 8 + 0.01 * x + 0.02 * y
    for _ in range(6):
        w, h = rng.uniform(10, 45, 2)
        u, v = x - rng.uniform(0, shape[1]), y - rng.uniform(0, shape[0])
        box = (np.abs(u) < w) & (np.abs(v) < h)
        photo[box] = rng.uniform(10, 245, 3)
        truth[box] = (rng.uniform(15, 35) + 0.03 * u)[box]
    return _scene(photo, truth, rng)


def seen_by_both(truth: Array) -> Array:
    """Mask of the left view's pixels that the right view sees: draw the right view to find out."""
    height, width = truth.shape
    nearest = np.full((height, width + 1), -np.inf)
    columns = np.arange(width) - truth
    inside = columns >= 0
    rows = np.broadcast_to(np.arange(height)[:, np.newaxis], truth.shape)
    for shift in (0, 1):
        at = np.where(inside, columns, 0).astype(int) + shift
        np.maximum.at(nearest, (rows[inside], at[inside]), truth[inside])
    at = np.rint(np.where(inside, columns, 0)).astype(int)
    return inside & (nearest[rows, at] <= truth + 1)


def noisy(truth: Array, seed: int = 0, outliers: float = 0.05, noise: float = 0.3) -> Array:
    """Add moderate noise and some random values to a map."""
    rng = np.random.default_rng(seed)
    depth = truth + rng.normal(0, noise, truth.shape)
    wrong = rng.uniform(size=truth.shape) < outliers
    depth[wrong] = rng.uniform(1, truth.max() * 1.5, int(wrong.sum()))
    return np.maximum(depth, 0.1).astype(np.float32)


def matched(truth: Array, seed: int = 0) -> Array:
    """Imitate block matching: objects too large, occlusions and the left margin wrong."""
    rng = np.random.default_rng(seed)
    fat = np.maximum.reduce([np.roll(truth, shift, axis=1) for shift in (-2, -1, 0, 1)])
    fat = fat + rng.normal(0, 0.2, truth.shape)
    for _ in range(40):  # patches of one wrong value
        top, left = rng.integers(0, truth.shape[0] - 8), rng.integers(0, truth.shape[1] - 12)
        fat[top : top + 5, left : left + 9] = rng.uniform(1, truth.max() * 1.3)
    hidden = ~seen_by_both(truth)
    fat[hidden] = rng.uniform(0.5, truth.max(), int(hidden.sum()))
    return np.maximum(fat, 0.1).astype(np.float32)
