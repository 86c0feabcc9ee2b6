"""Ray-cast depth videos: a furnished room with a doorway, things that move, and a moving camera."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates, maximum_filter, minimum_filter

from support.depth_videos import DepthVideo, noise_at

Array = NDArray[Any]

_ROOM = np.array([[-3.0, -1.3, -1.5], [3.0, 1.3, 7.5]])
_WALL = 4.5  # depth of the wall with the doorway


class Block(NamedTuple):
    """A box with axes along the room's, and its velocity per frame."""

    low: Array
    high: Array
    colour: Array
    velocity: Array = np.zeros(3)


class Camera(NamedTuple):
    """Position, and angles of turning right and of looking down."""

    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    yaw: float = 0.0
    pitch: float = 0.0


class Room:
    """A room of one seed: its colours, textures, furniture and the place of its doorway differ."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._noise = rng.uniform(-1, 1, (3, 16, 16, 16))
        self._walls = rng.uniform(70, 200, (3, 2, 3))
        self._contrast = rng.uniform(8, 45, 3)
        door = rng.uniform(-1.4, 0.2)
        wall, (left, top, _), (right, bottom, _) = rng.uniform(80, 210, 3), *_ROOM
        self._still = [
            Block(np.array([left, top, _WALL]), np.array([door, bottom, _WALL + 0.15]), wall),
            Block(np.array([door + 1, top, _WALL]), np.array([right, bottom, _WALL + 0.15]), wall),
            Block(np.array([door, top, _WALL]), np.array([door + 1, -0.75, _WALL + 0.15]), wall),
        ]
        for _ in range(7):
            size = rng.uniform((0.15, 0.2, 0.15), (0.7, 1.2, 0.7))
            x, z = rng.uniform(-1.9, 1.9 - size[0]), rng.uniform(1.5, 4.2 - size[2])
            floor = bottom if rng.random() < 0.7 else rng.uniform(-0.2, 0.6)
            low = np.array([x, floor - size[1], z])
            self._still.append(Block(low, low + size, rng.uniform(30, 230, 3)))

    def view(
        self, camera: Camera, shape: tuple[int, int], moving: tuple[Block, ...] = (), time: int = 0
    ) -> tuple[Array, Array]:
        """Return the photograph (float, mean of two rays per pixel) and the depth."""
        moved = [
            block._replace(
                low=block.low + time * block.velocity, high=block.high + time * block.velocity
            )
            for block in moving
        ]
        offsets = [np.zeros(3)] * len(self._still) + [time * block.velocity for block in moving]
        blocks = [*self._still, *moved]
        depth = self._cast(camera, shape, (0.0, 0.0), blocks, offsets)[1]
        corners = ((-0.25, -0.25), (0.25, 0.25))
        photos = [self._cast(camera, shape, at, blocks, offsets)[0] for at in corners]
        return np.mean(photos, axis=0), depth

    def _cast(
        self,
        camera: Camera,
        shape: tuple[int, int],
        shift: tuple[float, float],
        blocks: list[Block],
        offsets: list[Array],
    ) -> tuple[Array, Array]:
        height, width = shape
        y, x = np.mgrid[:height, :width].astype(np.float64)
        focal = 0.85 * width
        rays = np.stack(
            [
                (x + shift[1] - (width - 1) / 2) / focal,
                (y + shift[0] - (height - 1) / 2) / focal,
                np.ones(shape),
            ],
            axis=-1,
        )
        rays = rays @ _turned(camera).T + 1e-9  # no division by 0
        origin = np.array(camera.position)
        far = np.where(rays > 0, _ROOM[1] - origin, _ROOM[0] - origin) / rays
        axis = np.argmin(far, axis=-1)
        depth = np.min(far, axis=-1)
        side = (np.take_along_axis(rays, axis[..., np.newaxis], -1)[..., 0] > 0).astype(int)
        colour = self._walls[axis, side]
        texture_of = np.zeros((*shape, 3))
        for block, offset in zip(blocks, offsets, strict=True):
            a, b = (block.low - origin) / rays, (block.high - origin) / rays
            near = np.minimum(a, b)
            entry, leave = near.max(axis=-1), np.maximum(a, b).min(axis=-1)
            hit = (entry < leave) & (entry > 0) & (entry < depth)
            shade = np.array([0.8, 1.1, 1.0])[np.argmax(near, axis=-1)]
            depth = np.where(hit, entry, depth)
            colour = np.where(hit[..., np.newaxis], block.colour * shade[..., np.newaxis], colour)
            texture_of = np.where(hit[..., np.newaxis], offset + block.low / 7, texture_of)
        points = origin + rays * depth[..., np.newaxis] - texture_of
        return colour + self._texture(points)[..., np.newaxis], depth

    def _texture(self, points: Array) -> Array:
        """Smooth noise at three scales, and boards with dark joints."""
        total = np.zeros(points.shape[:2])
        scales = (2.0, 9.0, 30.0)
        for table, contrast, scale in zip(self._noise, self._contrast, scales, strict=True):
            at = np.moveaxis(points * scale, -1, 0)
            total += contrast * map_coordinates(table, at, order=1, mode="grid-wrap")
        joints = (np.abs((points[..., 0] * 2.3) % 1 - 0.5) > 0.48).astype(np.float64)
        return total - 25 * joints


def passing_boxes(seed: int, pixels: float, shape: tuple[int, int]) -> tuple[Block, ...]:
    """Two boxes that cross the view of a standing camera at so many pixels per frame."""
    rng = np.random.default_rng([77, seed])
    boxes = []
    for sign in (1, -1):
        size, z = rng.uniform((0.15, 0.15, 0.05), (0.5, 0.5, 0.3)), rng.uniform(0.8, 2.8)
        low = z * np.array([rng.uniform(-0.5, 0.1), rng.uniform(-0.4, 0.1), 1])
        velocity = np.array([sign * pixels * z / (0.85 * shape[1]), 0, 0])
        boxes.append(Block(low, low + size, rng.uniform(30, 230, 3), velocity))
    return tuple(boxes)


def ray_cast(
    seed: int,
    cameras: Sequence[Camera],
    shape: tuple[int, int],
    moving: tuple[Block, ...] = (),
) -> DepthVideo:
    """Film a room: noise, mixed pixels at depth edges, and holes, fresh in each frame."""
    room, rng = Room(seed), np.random.default_rng(seed)
    frames = [_spoiled(*room.view(c, shape, moving, t), rng) for t, c in enumerate(cameras)]
    depths, photos, truth = (np.stack(part) for part in zip(*frames, strict=True))
    return DepthVideo(depths, photos, truth)


def _spoiled(photo: Array, truth: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return the measured depth, the photograph as bytes, and the true depth."""
    low, high = minimum_filter(truth, 5), maximum_filter(truth, 5)
    flying = (high - low > 0.05 * low) & (rng.random(truth.shape) < 0.5)
    z = np.where(flying, low + rng.random(truth.shape) * (high - low), truth)
    z += rng.normal(size=z.shape) * noise_at(z)
    y, x = np.mgrid[: truth.shape[0], : truth.shape[1]]
    for _ in range(6):
        centre, radius = rng.random(2) * truth.shape, rng.uniform(2, 5)
        z[(y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2] = np.nan
    noisy = np.clip(photo + rng.normal(0, 1.5, photo.shape), 0, 255).astype(np.uint8)
    return z.astype(np.float32), noisy, truth.astype(np.float32)


def _turned(camera: Camera) -> Array:
    c, s = np.cos(camera.yaw), np.sin(camera.yaw)
    d, t = np.cos(camera.pitch), np.sin(camera.pitch)
    yaw = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    pitch = np.array([[1, 0, 0], [0, d, t], [0, -t, d]])
    return np.asarray(yaw @ pitch)
