"""Example pictures, drawn by code, so that the first click works with no file at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.demo.room import room
from bilateral.studio.limits import Refused
from bilateral.studio.still_life import still_life

Array = NDArray[Any]

_HOLES = 0.08


class Picture(NamedTuple):
    """A photograph and, maybe, its depth map."""

    title: str
    photo: Array
    depth: Array | None


class Example(NamedTuple):
    """An example that the page offers."""

    name: str
    title: str
    draw: Callable[[], Picture]


def load_example(name: str) -> Picture:
    """Draw an example by its name."""
    for example in EXAMPLES:
        if example.name == name:
            return _drawn(name)
    raise Refused("The studio has no such example.")


@cache
def _drawn(name: str) -> Picture:
    return next(example.draw() for example in EXAMPLES if example.name == name)


def _still_life() -> Picture:
    photo, depth = still_life()
    return Picture("Still life.png", photo, _spoiled(depth))


def _gray_still_life() -> Picture:
    photo, depth = still_life()
    gray = np.rint(photo @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    return Picture("Gray still life.png", gray, _spoiled(depth))


def _room() -> Picture:
    photo, disparity = room((667, 1000))
    return Picture("Room.png", photo, _spoiled(120 / disparity))


def _spoiled(depth: Array) -> Array:
    """Return a depth map as of a camera: noise, and holes along the edges; 0 is unknown."""
    rng = np.random.default_rng(3)
    noisy = depth * (1 + 0.01 * rng.standard_normal(depth.shape))
    jump = np.zeros(depth.shape, bool)
    for axis in (0, 1):
        step = np.abs(np.diff(depth, axis=axis, append=np.take(depth, [-1], axis)))
        jump |= step > 0.05 * depth
    for _ in range(4):
        jump = jump | np.roll(jump, 1, 0) | np.roll(jump, 1, 1) | np.roll(jump, -1, 1)
    blobs = rng.random((depth.shape[0] // 20 + 1, depth.shape[1] // 20 + 1)) < _HOLES / 4
    holes = np.repeat(np.repeat(blobs, 20, 0), 20, 1)[: depth.shape[0], : depth.shape[1]]
    return np.where(jump | holes, 0, noisy).astype(np.float32)


EXAMPLES = (
    Example("still-life", "Still life", _still_life),
    Example("gray", "Gray still life", _gray_still_life),
    Example("room", "Room", _room),
)
