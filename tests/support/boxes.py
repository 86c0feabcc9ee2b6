"""Photograph and noisy depth map of overlapping boxes, with sparse confidences."""

import functools
from typing import NamedTuple

import numpy as np

from support.strategies import Array

SHAPE = (120, 160)


class Scene(NamedTuple):
    """Photograph of boxes with shading, texture and noise, and their noisy depth."""

    photo: Array
    depth: Array


@functools.cache
def scene(shape: tuple[int, int] = SHAPE, boxes: int = 30) -> Scene:
    """Return boxes in random places and colours; each is a plane in depth."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
    label = np.zeros(shape, int)
    for box in range(1, boxes):
        (left, top), (width, height) = rng.uniform(0, 1, 2), rng.uniform(0.05, 0.3, 2)
        inside = (x >= left) & (x < left + width) & (y >= top) & (y < top + height)
        label[inside] = box
    colour, shade = rng.uniform(30, 220, (boxes, 3)), rng.normal(0, 60, (boxes, 2))
    light = shade[label, 0] * x + shade[label, 1] * y
    texture = 12 * np.sin(90 * x + 5 * np.sin(40 * y)) * (label % 3 == 0)
    photo = colour[label] + (light + texture)[..., None] + rng.normal(0, 3, (*shape, 3))
    slope, distance = rng.normal(0, 3, (boxes, 2)), rng.uniform(1, 10, boxes)
    depth = distance[label] + slope[label, 0] * x + slope[label, 1] * y
    depth += rng.normal(0, 0.1, shape)
    return Scene(np.clip(np.rint(photo), 0, 255).astype(np.uint8), depth)


def confidence(known: float | str, shape: tuple[int, int] = SHAPE) -> Array:
    """Return 1 at a fraction of the pixels, or along a few strokes; 0 elsewhere."""
    rng = np.random.default_rng(1)
    if known != "scribbles":
        return (rng.uniform(size=shape) < known).astype(float)
    strokes = np.zeros(shape)
    along = np.linspace(0, 1, 4 * max(shape))
    for _ in range(6):
        (y0, x0), (y1, x1) = rng.uniform(0, 1, (2, 2))
        rows = ((y0 + (y1 - y0) * along) * (shape[0] - 1)).astype(int)
        columns = ((x0 + (x1 - x0) * along) * (shape[1] - 1)).astype(int)
        strokes[rows, columns] = 1
    return strokes
