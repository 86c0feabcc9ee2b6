"""Oracle of the kernels of depth maps: plain loops in float64."""

import math

import numpy as np
from numpy.typing import NDArray

from bilateral.backends.cpu import Polynomial

Map = NDArray[np.float64]
Mask = NDArray[np.bool_]

LINES = [(0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0), (2, 2), (2, -2)]


def polynomial(coefficients: Polynomial, z: float) -> float:
    """Evaluate c0 + c1 |z| + c2 z^2."""
    c0, c1, c2 = coefficients
    return c0 + c1 * abs(z) + c2 * z * z


def at(z: Map, y: int, x: int) -> float:
    """Return a value; beyond the border that of the border."""
    height, width = z.shape
    return float(z[min(max(y, 0), height - 1), min(max(x, 0), width - 1)])


def find_doubt(z: Map, jump: Polynomial) -> Mask:
    """Mark flying pixels, slivers between a jump and a hole, and lone pixels."""
    out = np.zeros(z.shape, np.bool_)
    for y, x in np.argwhere(np.isfinite(z)).tolist():
        centre, unit = float(z[y, x]), polynomial(jump, float(z[y, x]))
        doubt = nearer = farther = False
        same = near = 0
        for dy, dx in LINES:
            m2, m1, p1, p2 = (at(z, y + k * dy, x + k * dx) for k in (-2, -1, 1, 2))
            ahead, behind = p1 - centre, centre - m1
            if math.isfinite(p1) and math.isfinite(m1):
                steep = min(ahead, behind) > unit or max(ahead, behind) < -unit
                slack = 0.25 * abs(ahead + behind)
                slopes = [ahead - behind, p2 - p1 - ahead, m1 - m2 - behind]
                doubt |= steep and not all(abs(s) < slack for s in slopes)
            elif math.isfinite(p1) or math.isfinite(m1):
                doubt |= abs(ahead if math.isfinite(p1) else behind) > unit
            for difference in (ahead, -behind):
                if math.isfinite(difference):
                    near += 1
                    same += abs(difference) < max(dy, abs(dx)) * unit
                    nearer |= difference < -unit
                    farther |= difference > unit
        support = 0.4 if nearer and farther else 0.2
        doubt |= same < support * max(near, 6)
        least = 0.5 if same < 0.4 * max(near, 6) else 0.0
        out[y, x] = doubt and not on_even_line(z, y, x, jump, least)
    return out


def on_even_line(z: Map, y: int, x: int, jump: Polynomial, least: float) -> bool:
    """Whether a pixel lies on a line of seven pixels with even slopes."""
    height, width = z.shape
    for dy, dx in LINES[:4]:
        for first in range(-6, 1):
            line = [(y + k * dy, x + k * dx) for k in range(first, first + 7)]
            if not all(0 <= v < height and 0 <= u < width for v, u in line):
                continue
            values = [float(z[at]) for at in line]
            if all(
                is_even(*values[k : k + 3], polynomial(jump, values[k + 1]), least)
                for k in range(5)
            ):
                return True
    return False


def is_even(a: float, b: float, c: float, unit: float, least: float) -> bool:
    """Whether the slope hardly changes from a, b to b, c."""
    slope = min(abs(b - a), abs(c - b))
    return slope >= least * unit and abs(c - 2 * b + a) < max(0.3 * slope, 0.25 * unit)


def surface_sizes(z: Map, doubt: Mask, jump: Polynomial) -> NDArray[np.int32]:
    """Count the pixels of connected surfaces, by flooding."""
    height, width = z.shape
    free = np.isfinite(z) & ~doubt
    known = np.pad(np.where(free, z, np.nan), 2, constant_values=np.nan)
    out = np.zeros(z.shape, np.int32)
    for start in np.argwhere(free).tolist():
        if not free[tuple(start)]:
            continue
        free[tuple(start)] = False
        surface = [tuple(start)]
        for y, x in surface:  # grows while it runs
            for v in range(max(y - 1, 0), min(y + 2, height)):
                for u in range(max(x - 1, 0), min(x + 2, width)):
                    if free[v, u] and joins(known, y, x, v - y, u - x, jump):
                        free[v, u] = False
                        surface.append((v, u))
        out[tuple(np.transpose(surface))] = len(surface)
    return out


def joins(known: Map, y: int, x: int, dy: int, dx: int, jump: Polynomial) -> bool:
    """Whether neighbours belong to one surface; `known` has a margin of two pixels."""
    line = [float(known[y + 2 + k * dy, x + 2 + k * dx]) for k in (-1, 0, 1, 2)]
    _, a, b, _ = line
    near = abs(a - b) <= polynomial(jump, (a + b) / 2)
    return near or any(
        is_even(*line[k : k + 3], polynomial(jump, line[k + 1]), 0.0) for k in (0, 1)
    )


def smooth_depth(x: Map, kept: Mask, noise: Polynomial, scale: float, limit: float) -> Map:
    """Average twice over nine pixels, the second time at twice the distance."""
    z = x
    for step, width in ((1, scale), (2, scale / 2)):
        out = np.empty_like(z)
        for (v, u), centre in np.ndenumerate(z):
            unit = width * polynomial(noise, float(centre))
            total, mass = 0.0, 0.0
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    d = at(z, v + dy * step, u + dx * step) - centre
                    weight = (2 - abs(dy)) * (2 - abs(dx)) / (1 + (d / unit) ** 2) ** 2
                    total, mass = total + weight * d, mass + weight
            out[v, u] = centre + total / mass
        z = out
    most = limit * np.vectorize(lambda value: polynomial(noise, value))(x)
    return np.where(kept, np.clip(z, x - most, x + most), z)


def shrink_photo(photo: Map, factor: int) -> Map:
    """Average over blocks."""
    height, width = photo.shape[:2]
    rows, columns = range(0, height, factor), range(0, width, factor)
    means = [[photo[r : r + factor, c : c + factor].mean((0, 1)) for c in columns] for r in rows]
    return np.array(means)
