"""Draw a room with slanted surfaces: its photograph and its true disparity."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHAPE = 500, 750
_FOCAL_LENGTH, _YAW, _PITCH = 580.0, 0.55, 0.25  # in pixels, and in radians
_SCALE = 120.0  # focal length times baseline, in pixels times metres

# Metres from the camera, as (x, y, z) with y downwards: the room, and the boxes in it.
_ROOM = np.array([[-2.2, -1.6, -1.0], [3.0, 1.3, 4.6]])
_BOXES = np.array(
    [
        [[0.1, 0.55, 2.5], [1.0, 1.3, 3.3]],
        [[1.7, -0.5, 3.9], [2.7, 1.3, 4.6]],
    ]
)
# Colours of the faces across x, y and z: of the room, and of each box.
_WALLS = np.array([[196, 188, 170], [150, 112, 78], [172, 190, 200]], float)
_FACES = np.array(
    [
        [[120, 44, 38], [206, 96, 76], [168, 66, 54]],
        [[54, 70, 62], [116, 140, 120], [84, 106, 92]],
    ],
    float,
)


def room(shape: tuple[int, int] = SHAPE) -> tuple[Array, Array]:
    """Return the photograph (H, W, 3) of a room as uint8, and its disparity as float32.

    Floor and walls are slanted towards the camera. Their disparities are affine functions of the
    pixel's position, as those of all planes.
    """
    directions = _directions(shape)
    with np.errstate(divide="ignore"):
        inverse = 1 / directions
    ends = np.maximum(_ROOM[0] * inverse, _ROOM[1] * inverse)  # (H, W, 3)
    face, depth = ends.argmin(axis=2), ends.min(axis=2)
    photo = _texture(depth[..., np.newaxis] * directions, face)
    for box, colours in zip(_BOXES, _FACES, strict=True):
        begins = np.minimum(box[0] * inverse, box[1] * inverse)
        enter = begins.max(axis=2)
        leave = np.maximum(box[0] * inverse, box[1] * inverse).min(axis=2)
        hit = (enter > 0) & (enter < leave) & (enter < depth)
        depth = np.where(hit, enter, depth)
        photo[hit] = colours[begins.argmax(axis=2)[hit]]
    photo *= (1.25 - 0.1 * depth)[..., np.newaxis]  # darker in the distance
    photo += np.random.default_rng(0).normal(0, 2, photo.shape)
    return np.clip(np.rint(photo), 0, 255).astype(np.uint8), (_SCALE / depth).astype(np.float32)


def _directions(shape: tuple[int, int]) -> Array:
    """Return the direction of each pixel's ray, with a length of 1 along the optical axis."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    focal_length = _FOCAL_LENGTH * shape[1] / SHAPE[1]
    across, down = (x - shape[1] / 2) / focal_length, (y - shape[0] / 2) / focal_length
    forward = np.cos(_PITCH) - down * np.sin(_PITCH)
    down = down * np.cos(_PITCH) + np.sin(_PITCH)
    right = across * np.cos(_YAW) + forward * np.sin(_YAW)
    return np.stack([right, down, forward * np.cos(_YAW) - across * np.sin(_YAW)], axis=2)


def _texture(points: Array, face: Array) -> Array:
    """Return the colours of the room's faces: floor boards, and stripes on the walls."""
    x, y, z = np.moveaxis(points, 2, 0)
    boards = 14 * np.sin(5 * np.floor(x / 0.35)) + 5 * np.sin(3 * z + 2 * np.floor(x / 0.35))
    stripes = 6 * np.sign(np.sin(9 * np.where(face == 0, z, x)))
    colours: Array = _WALLS[face] + np.where(face == 1, boards, stripes)[..., np.newaxis]
    ceiling = (face == 1) & (y < 0)
    colours[ceiling] = (225, 225, 220)
    return colours
