"""Draw a still life: fruit on a table before a wall, with soft light, and its true depth."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHAPE = 640, 960
_FOCAL = 1.35
"""Focal length, per width of the picture."""
_LIGHT = np.array([-0.5, -0.75, -0.43])
_CAMERA_HEIGHT, _PITCH, _WALL = 0.62, 0.2, 4.2
_SUPERSAMPLE = 2


class Fruit(NamedTuple):
    """A ball on the table, in metres from the camera, stretched along the vertical."""

    x: float
    z: float
    radius: float
    stretch: float
    color: tuple[float, float, float]
    spots: float


_FRUIT = (
    Fruit(-0.42, 1.75, 0.21, 1.0, (0.93, 0.47, 0.08), 0.05),
    Fruit(0.12, 1.45, 0.17, 0.94, (0.70, 0.10, 0.09), 0.14),
    Fruit(0.5, 2.05, 0.22, 1.25, (0.62, 0.70, 0.20), 0.10),
    Fruit(-0.05, 2.5, 0.24, 0.95, (0.32, 0.16, 0.34), 0.06),
    Fruit(0.62, 1.35, 0.085, 0.9, (0.90, 0.78, 0.15), 0.05),
    Fruit(-0.78, 2.7, 0.2, 1.0, (0.85, 0.30, 0.22), 0.10),
)


@cache
def still_life(shape: tuple[int, int] = SHAPE) -> tuple[Array, Array]:
    """Return the photograph (H, W, 3) as uint8, and the depth in metres as float32."""
    fine = (shape[0] * _SUPERSAMPLE, shape[1] * _SUPERSAMPLE)
    rays = _rays(fine)
    color, depth = _table_and_wall(rays)
    for fruit in _FRUIT:
        _draw(fruit, rays, color, depth)
    light = np.clip(color, 0, 1).astype(np.float32) ** np.float32(1 / 2.2)
    blocks = (shape[0], _SUPERSAMPLE, shape[1], _SUPERSAMPLE)
    photo = light.reshape(*blocks, 3).mean(axis=(1, 3))
    photo += np.random.default_rng(1).normal(0, 0.006, photo.shape)
    middle = depth[::_SUPERSAMPLE, ::_SUPERSAMPLE]
    return np.rint(np.clip(photo, 0, 1) * 255).astype(np.uint8), middle.astype(np.float32)


def _rays(shape: tuple[int, int]) -> Array:
    """Directions of the pixels' rays with z forward, y downwards, looking slightly down."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    across = (x - shape[1] / 2) / (_FOCAL * shape[1])
    down = (y - shape[0] / 2) / (_FOCAL * shape[1])
    forward = np.cos(_PITCH) - down * np.sin(_PITCH)
    below = np.sin(_PITCH) + down * np.cos(_PITCH)
    return np.stack([across, below, forward], axis=2).astype(np.float32)


def _table_and_wall(rays: Array) -> tuple[Array, Array]:
    down, forward = rays[..., 1], rays[..., 2]
    with np.errstate(divide="ignore"):
        to_table = np.where(down > 0, _CAMERA_HEIGHT / np.maximum(down, 1e-6), np.inf)
    to_wall = _WALL / forward
    depth = np.minimum(to_table, to_wall)
    points = rays * depth[..., np.newaxis]
    x, z = points[..., 0], points[..., 2]
    grain = np.sin(38 * x + 2.2 * np.sin(3 * z) + 1.5 * np.sin(9 * z + x))
    planks = np.floor(x / 0.34)
    tone = 0.22 + 0.025 * grain + 0.035 * np.sin(planks * 12.9)
    table = tone[..., np.newaxis] * np.array([1.35, 0.88, 0.55], np.float32)
    table *= (1 - 0.55 * _shadow(points))[..., np.newaxis]
    glow = np.exp(-((x + 0.9) ** 2 + (points[..., 1] + 0.2) ** 2) / 1.6)
    wall = (0.06 + 0.26 * glow)[..., np.newaxis] * np.array([0.62, 0.88, 1.0], np.float32)
    return np.where((to_table < to_wall)[..., np.newaxis], table, wall), depth


def _shadow(points: Array) -> Array:
    """Darkness of the table beside and below the fruit."""
    dark = np.zeros(points.shape[:2], np.float32)
    for fruit in _FRUIT:
        for shift, width, strength in ((0.0, 0.75, 0.8), (0.55, 1.15, 0.75)):
            x = points[..., 0] - fruit.x - shift * fruit.radius
            z = points[..., 2] - fruit.z - 0.35 * shift * fruit.radius
            distance = (x * x + z * z) / (width * fruit.radius) ** 2
            dark = np.maximum(dark, strength * np.exp(-(distance**2)))
    return dark


def _draw(fruit: Fruit, rays: Array, color: Array, depth: Array) -> None:
    """Draw one fruit in place, where it is nearer than what is there."""
    centre = np.array([fruit.x, _CAMERA_HEIGHT - fruit.radius * fruit.stretch, fruit.z])
    axes = fruit.radius * np.array([1, fruit.stretch, 1])
    axes, centre = axes.astype(np.float32), centre.astype(np.float32)
    directions, origin = rays / axes, -centre / axes
    a = np.einsum("yxk,yxk->yx", directions, directions)
    b = directions @ origin
    inside = b * b - a * (origin @ origin - 1)
    distance = (-b - np.sqrt(np.maximum(inside, 0))) / a
    hit = (inside > 0) & (distance < depth)
    points = rays[hit] * distance[hit][:, np.newaxis] - centre
    normal = points / axes**2
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    color[hit] = _shade(fruit, points / axes, normal, rays[hit])
    depth[hit] = distance[hit]


def _shade(fruit: Fruit, points: Array, normal: Array, rays: Array) -> Array:
    light = _LIGHT / np.linalg.norm(_LIGHT)
    view = -rays / np.linalg.norm(rays, axis=1, keepdims=True)
    half = light + view
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    diffuse = np.maximum(normal @ light, 0)
    shine = np.maximum(np.sum(normal * half, axis=1), 0) ** 60
    angle = np.arctan2(points[:, 2], points[:, 0])
    streaks = np.sin(9 * angle + 4 * np.sin(3 * points[:, 1])) * np.sin(7 * points[:, 1] + angle)
    tone = 1 + fruit.spots * streaks + 0.04 * np.sin(60 * angle) * np.sin(50 * points[:, 1])
    # The table below reflects warm light; the crease at the table is dark.
    bounce = 0.10 * np.maximum(normal[:, 1], 0)
    occlusion = np.clip(1.25 - 0.9 * np.maximum(points[:, 1], 0) ** 2, 0.25, 1)
    base = np.array(fruit.color) * tone[:, np.newaxis]
    lit = base * ((0.16 + 0.95 * diffuse) * occlusion)[:, np.newaxis]
    lit += base * bounce[:, np.newaxis] * np.array([1.4, 0.8, 0.4])
    stem = np.hypot(points[:, 0], points[:, 2]) < 0.09
    lit[stem & (points[:, 1] < 0)] = (0.05, 0.035, 0.02)
    return np.asarray(lit + 0.35 * shine[:, np.newaxis])
