"""Bokeh: the blur kernel of a point out of focus, as core/defocus/bokeh.hpp makes it."""

import math
from functools import lru_cache
from typing import NamedTuple

_LINES = 16
"""Samples in each row of pixels."""
_CORNER = 1.6
"""The corners of a triangle are 1.56 radii from the centre."""


class Bokeh(NamedTuple):
    """The kernel by rows of pixels, relative to its centre.

    In each row it is the interval from `first` + `first_part` to `last` + `last_part`.
    """

    rows: tuple[int, ...]
    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    first_parts: tuple[float, ...]
    last_parts: tuple[float, ...]
    reach: int
    """Largest distance of a pixel from the centre, along rows or columns."""
    area: float


@lru_cache(maxsize=1024)
def make_bokeh(blades: int, rotation: float, radius: float, in_front: bool) -> Bokeh:
    """Make the kernel that gathers light: a disc for 0 blades, else a polygon of its area.

    Before the focus it is upside down; gathering mirrors it once more.
    """
    reach = math.ceil(_CORNER * radius + 0.5)
    sign = 1.0 if in_front else -1.0
    spans: list[tuple[int, int, int, float, float]] = []
    area = 0.0
    most = 0
    for row in range(-reach, reach + 1):
        length = moment = 0.0
        for line in range(_LINES):
            y = row - 0.5 + (line + 0.5) / _LINES
            begin, end = _chord(blades, rotation, radius, sign * y)
            if end <= begin or abs(y) > _CORNER * radius:
                continue
            length += (end - begin) / _LINES
            moment += (end - begin) / _LINES * sign * (begin + end) / 2
        if length <= 0:
            continue
        begin = moment / length - length / 2 + 0.5
        end = begin + length
        first, last = math.floor(begin), math.floor(end)
        spans.append((row, first, last, begin - first, end - last))
        most = max(most, abs(first), abs(last), abs(row))
        area += length
    if not spans:
        spans, most, area = [(0, 0, 1, 0.0, 0.0)], 1, 1.0
    rows, firsts, lasts, first_parts, last_parts = zip(*spans, strict=True)
    return Bokeh(rows, firsts, lasts, first_parts, last_parts, most, area)


def _chord(blades: int, rotation: float, radius: float, y: float) -> tuple[float, float]:
    """Return the intersection of the aperture with the horizontal line at y, which points down."""
    if blades == 0:
        half = math.sqrt(max(radius * radius - y * y, 0.0))
        return -half, half
    sector = 2 * math.pi / blades
    inradius = radius * math.sqrt(sector / 2 / math.tan(sector / 2))
    begin, end = -2 * radius, 2 * radius
    for edge in range(blades):
        angle = rotation + (edge + 0.5) * sector - math.pi / 2
        slope, distance = math.cos(angle), inradius - y * math.sin(angle)
        if abs(slope) < 1e-9:
            if distance < 0:
                return 0.0, 0.0
        elif slope > 0:
            end = min(end, distance / slope)
        else:
            begin = max(begin, distance / slope)
    return begin, end
