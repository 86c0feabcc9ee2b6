"""Snap: move ragged edges of a depth map to the edges of its photograph.

Near a jump between two surfaces, a pixel belongs to the one whose colour it has. This is only done
where it is certain to help: the colours of both surfaces differ clearly, the edges of the map lie
on both sides of the photograph's by turns, and no shift of the photograph explains it. A clean map,
a shifted photograph and colours that tell something else fail these tests, and nothing moves. A
shift by one pixel is found and allowed for: the edges of the map stay where they are on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.surfaces import Growth, grow_surfaces
from bilateral.tasks.depth.fill import PlaneUnit
from bilateral.tasks.depth.surfaces import Surfaces
from bilateral.tasks.depth.windows import extreme, sums_at

Array = NDArray[Any]

REACH = 2
"""Edges move by at most so many pixels."""
STEEP_JUMPS, LEAST_JUMPS = 5.0, 2.0
"""Depths within reach of an edge differ by more than this many jumps of the nearer and the farther
surface. Slanted surfaces differ by less."""
COLOUR_REACH, COLOUR_STRIDE = 5, 2
"""A surface has the mean colour of its pixels so far around, of every other one."""
LEAST_PIXELS, MOST_OTHERS = 3, 0.2
"""Fewest pixels of each surface, and largest part of third surfaces among them."""
LEAST_CONTRAST, LEAST_RATIO = 24.0, 2.0
"""Colours of surfaces differ by so many 8-bit levels, and so many times their own deviations."""
MARGIN, MOST_OFF = 0.4, 0.5
"""A pixel has the colour of a surface if it is at most this part of the way to the other's, and at
most this part of the difference beside the way."""
SHIFT, _SHIFT_COST = 2, 0.002
"""Largest shift of the photograph in pixels that is tried, and what each pixel costs, as a part of
wrong pixels. A photograph that fits best with the largest shift is not used."""
SHIFTS = [(dy, dx) for dy in range(-SHIFT, SHIFT + 1) for dx in range(-SHIFT, SHIFT + 1)]
_LEAST_WRONG = 0.15
"""A map has ragged edges if at least this part of its pixels near them would move. It is at most
0.12 in true maps, where some colours mislead."""
_MOST_SHIFT, _MOST_COHERENT = 0.5, 0.3
"""The photograph is not used if the pixels that would move agree on another shift: its size in
pixels, and the length of the mean of their directions."""
_AROUND, _LEAST_MOVING, _LEAST_PART, _MOST_ONE_SIDED = 30, 6, 0.08, 0.5
"""Within so many pixels, edges are ragged if at least so many pixels, and such a part, would move,
and the mean of their directions is no longer than this."""
_LEAST_SAME = 3
"""A pixel moves if so many of its eight neighbours are on the surface that it joins."""
_MOST_LEFT = 2
"""Tips of an edge that has moved, with so few neighbours on their surface, join the other one."""
_GROWTH = Growth(bias=0.0, drift=0.01, slope_reach=256.0)


class _Sides(NamedTuple):
    """Pixels near jumps, between two surfaces of different colours."""

    y: NDArray[np.intp]
    x: NDArray[np.intp]
    near: Array
    """Depth of the nearer surface."""
    far: Array
    normal: Array
    """(N, 2) unit vectors (x, y) from the nearer surface to the farther one."""
    is_far: NDArray[np.bool_]
    """Whether the map has the farther surface there."""
    colour: Array
    """(N, C) mean colours of the nearer surface."""
    way: Array
    """(N, C) colour differences of the farther surface from the nearer one."""

    def of(self, where: NDArray[Any]) -> _Sides:
        """Return some of the pixels."""
        return _Sides(*(part[where] for part in self))


def snap_edges(
    x: Array, surfaces: Surfaces, guide: validation.Reference, unit: PlaneUnit
) -> tuple[Array, NDArray[np.bool_]]:
    """Move ragged edges of a map to the photograph's.

    Parameters
    ----------
    x : (H, W) float32 array
        Depths; finite.
    surfaces : Surfaces
        Of the map.
    guide : Reference
    unit : PlaneUnit
        Of the map.

    Returns
    -------
    x : (H, W) float32 array
    moved : (H, W) bool array
        Pixels that joined another surface.
    """
    moved = np.zeros(x.shape, np.bool_)
    sides = _find_sides(x, surfaces, guide, unit)
    if sides.y.size == 0:
        return x, moved
    by_colour = _aligned_sides(sides, guide)
    if by_colour is None:
        return x, moved
    certain = by_colour >= 0
    sides, joins = sides.of(certain), by_colour[certain] > 0
    moving = joins != sides.is_far
    if not _only_ragged(sides, joins, moving):
        return x, moved
    moving &= _ragged_around(sides, joins, moving, x.shape)
    target = x.copy()
    target[sides.y[moving], sides.x[moving]] = np.where(joins, sides.far, sides.near)[moving]
    moved[sides.y[moving], sides.x[moving]] = True
    moved &= _same_around(target, surfaces) >= _LEAST_SAME
    if not moved.any():
        return x, moved
    target = np.where(moved, target, x)
    beside = extreme(moved.astype(np.uint8), REACH, np.fmax) > 0
    moved |= beside & (_same_around(target, surfaces) <= _MOST_LEFT)
    unknown = np.full(x.shape, np.float32(np.nan))
    grown = grow_surfaces(
        target, ~moved, unknown, surfaces.jump, inverse=unit.inverse, growth=_GROWTH
    )
    return grown, moved


def _find_sides(
    x: Array, surfaces: Surfaces, guide: validation.Reference, unit: PlaneUnit
) -> _Sides:
    """Find the kept pixels near jumps where both surfaces have clear colours."""
    low, high = (extreme(x, REACH, choose) for choose in (np.fmin, np.fmax))
    beside_jump = high - low > np.maximum(
        STEEP_JUMPS * surfaces.jump_at(low), LEAST_JUMPS * surfaces.jump_at(high)
    )
    # Fillings follow the photograph already.
    at_y, at_x = np.nonzero(beside_jump & surfaces.kept)
    near, far = low[at_y, at_x], high[at_y, at_x]
    counts, colours, squares, places, others = _surface_colours(
        x, ~beside_jump, guide, at_y, at_x, (near, far), surfaces
    )
    channels = guide.pixels.shape[2]
    sizes = np.maximum(counts, 1)
    means = colours / sizes[..., np.newaxis]
    variances = np.maximum(squares / sizes - np.square(means).sum(axis=2), 0) / channels
    way = means[1] - means[0]
    difference = np.sqrt(np.square(way).mean(axis=1))
    level = np.float32(guide.highest / 255)
    clear = (
        (counts.min(axis=0) >= LEAST_PIXELS)
        & (others <= MOST_OTHERS * (counts.sum(axis=0) + others))
        & (difference > LEAST_CONTRAST * level)
        & (difference > LEAST_RATIO * np.sqrt(variances).sum(axis=0))
    )
    normal = places[1] / sizes[1][:, np.newaxis] - places[0] / sizes[0][:, np.newaxis]
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-6)[:, np.newaxis]
    middle = (unit.to(near) + unit.to(far)) / 2
    is_far = (unit.to(x[at_y, at_x]) > middle) != unit.inverse
    return _Sides(at_y, at_x, near, far, normal, is_far, means[0], way).of(clear)


def _surface_colours(
    x: Array,
    inner: NDArray[np.bool_],
    guide: validation.Reference,
    at_y: NDArray[np.intp],
    at_x: NDArray[np.intp],
    depths: tuple[Array, Array],
    surfaces: Surfaces,
) -> tuple[Array, Array, Array, Array, Array]:
    """Sum over the pixels of both surfaces around each pixel, far from jumps.

    Returns their (2, N) numbers, (2, N, C) colours, (2, N) squared colours, (2, N, 2) places, and
    the (N,) numbers of pixels of other surfaces.
    """
    height, width = x.shape
    count, channels = at_y.size, guide.pixels.shape[2]
    numbers, squares = np.zeros((2, 2, count), np.float32)
    colours = np.zeros((2, count, channels), np.float32)
    places = np.zeros((2, count, 2), np.float32)
    others = np.zeros(count, np.float32)
    jumps = [surfaces.jump_at(depth) for depth in depths]
    offsets = range(-COLOUR_REACH, COLOUR_REACH + 1, COLOUR_STRIDE)
    for dy, dx in ((dy, dx) for dy in offsets for dx in offsets):
        v, u = at_y + dy, at_x + dx
        inside = (v >= 0) & (v < height) & (u >= 0) & (u < width)
        v, u = np.clip(v, 0, height - 1), np.clip(u, 0, width - 1)
        known = inside & inner[v, u]
        z, colour = x[v, u], guide.pixels[v, u].astype(np.float32)
        steps = 1 + 0.5 * max(abs(dy), abs(dx))
        for k, (depth, jump) in enumerate(zip(depths, jumps, strict=True)):
            member = known & (np.abs(z - depth) <= steps * jump)
            known &= ~member
            weight = member.astype(np.float32)
            numbers[k] += weight
            colours[k] += weight[:, np.newaxis] * colour
            squares[k] += weight * np.square(colour).sum(axis=1)
            places[k] += weight[:, np.newaxis] * np.array([dx, dy], np.float32)
        others += known
    return numbers, colours, squares, places, others


def _aligned_sides(sides: _Sides, guide: validation.Reference) -> NDArray[np.int8] | None:
    """Return the surface of each pixel by its colour, with the photograph shifted to fit the map.

    1 is the farther surface, 0 the nearer one, -1 neither. None if no small shift fits best.
    """
    each = [_sides_by_colour(sides, guide, dy, dx) for dy, dx in SHIFTS]
    counts = [int(np.count_nonzero(joins >= 0)) for joins in each]
    wrong = [int(np.count_nonzero((joins >= 0) & ((joins > 0) != sides.is_far))) for joins in each]
    best = best_shift(counts, wrong)
    return None if best is None else each[best]


def best_shift(counts: Sequence[int], wrong: Sequence[int]) -> int | None:
    """Return the number of the shift with the fewest contradictions; None if it is the largest.

    Parameters
    ----------
    counts, wrong : sequence of int
        For each of `SHIFTS`, the pixels whose colour is that of a surface, and those of them whose
        depth is that of the other one.
    """
    costs = [
        bad / max(count, 1) + _SHIFT_COST * (abs(dy) + abs(dx))
        for (dy, dx), count, bad in zip(SHIFTS, counts, wrong, strict=True)
    ]
    best = int(np.argmin(costs))
    return best if max(map(abs, SHIFTS[best])) < SHIFT else None


def _sides_by_colour(
    sides: _Sides, guide: validation.Reference, dy: int, dx: int
) -> NDArray[np.int8]:
    """Return the surface whose colour the photograph has beside each pixel, as `_aligned_sides`."""
    height, width = guide.pixels.shape[:2]
    v, u = np.clip(sides.y + dy, 0, height - 1), np.clip(sides.x + dx, 0, width - 1)
    from_near = guide.pixels[v, u].astype(np.float32) - sides.colour
    length = np.square(sides.way).sum(axis=1)
    part = (from_near * sides.way).sum(axis=1) / length
    beside = np.square(from_near - part[:, np.newaxis] * sides.way).sum(axis=1)
    joins = np.where(part < MARGIN, 0, np.where(part > 1 - MARGIN, 1, -1))
    return np.where(beside < MOST_OFF**2 * length, joins, -1).astype(np.int8)


def _directions(sides: _Sides, joins: NDArray[np.bool_]) -> Array:
    """Return the (N, 2) directions in which the edge moves if the pixels join the given surface."""
    return np.where(joins[:, np.newaxis], -sides.normal, sides.normal)


def _only_ragged(sides: _Sides, joins: NDArray[np.bool_], moving: NDArray[np.bool_]) -> bool:
    """Whether many pixels would move, and they do not agree on a shift of the photograph."""
    total = _directions(sides, joins)[moving].sum(axis=0)
    squares = sides.normal.T @ sides.normal
    return is_ragged(moving.size, int(np.count_nonzero(moving)), total, squares)


def is_ragged(pixels: int, moving: int, total: Array, squares: Array) -> bool:
    """Whether many pixels would move, and they do not agree on a shift of the photograph.

    Parameters
    ----------
    pixels, moving : int
        Pixels whose colour is that of a surface, and those of them that would move.
    total : (2,) array
        Sum of the directions in which the edge would move.
    squares : (2, 2) array
        N^T N of the normals N of all pixels.
    """
    if moving == 0 or moving < _LEAST_WRONG * pixels:
        return False
    if np.hypot(*total) > _MOST_COHERENT * moving:
        return False
    # A shift by a pixel moves one of the 2 REACH pixels across each edge.
    moments = squares / pixels + 0.05 * np.eye(2)
    shift = np.linalg.solve(moments, 2 * REACH * total / pixels)
    return bool(np.hypot(*shift) <= _MOST_SHIFT)


def _ragged_around(
    sides: _Sides, joins: NDArray[np.bool_], moving: NDArray[np.bool_], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    """Mark the pixels around which edges are ragged."""
    values = np.column_stack(
        [np.ones(moving.size), moving, moving[:, np.newaxis] * _directions(sides, joins)]
    )
    near, count, along_x, along_y = sums_at(sides.y, sides.x, values, shape, _AROUND).T
    return np.asarray(
        (count >= _LEAST_MOVING)
        & (count >= _LEAST_PART * near)
        & (np.hypot(along_x, along_y) <= _MOST_ONE_SIDED * count)
    )


def _same_around(x: Array, surfaces: Surfaces) -> Array:
    """Count the neighbours of each pixel that are on its surface."""
    height, width = x.shape
    padded = np.pad(x, 1, "edge")
    close = LEAST_JUMPS * surfaces.jump_at(x)
    same = np.zeros(x.shape, np.int8)
    for dy, dx in ((dy, dx) for dy in range(3) for dx in range(3) if (dy, dx) != (1, 1)):
        same += np.abs(padded[dy : dy + height, dx : dx + width] - x) <= close
    return same
