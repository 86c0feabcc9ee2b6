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
            steps = (-3, -2, -1, 1, 2, 3)
            m3, m2, m1, p1, p2, p3 = (at(z, y + k * dy, x + k * dx) for k in steps)
            ahead, behind = p1 - centre, centre - m1
            if math.isfinite(p1) and math.isfinite(m1):
                steep = min(ahead, behind) > unit or max(ahead, behind) < -unit
                slack = 0.25 * abs(ahead + behind)
                slopes = [ahead - behind, p2 - p1 - ahead, m1 - m2 - behind]
                slanted = all(abs(s) < slack for s in slopes)
                for slope, *others in ((ahead, p2 - p1, p3 - p2), (behind, m1 - m2, m2 - m3)):
                    slack = 0.5 * unit + 0.15 * abs(slope)
                    bends = [abs(other - slope) < slack for other in others]
                    slanted |= abs(slope) < 3 * unit and all(bends)
                doubt |= steep and not slanted
            elif math.isfinite(p1) or math.isfinite(m1):
                doubt |= abs(ahead if math.isfinite(p1) else behind) > unit
            for difference in (ahead, -behind):
                if math.isfinite(difference):
                    near += 1
                    same += abs(difference) < max(dy, abs(dx)) * unit
                    nearer |= difference < -unit
                    farther |= difference > unit
        support = 0.4 if nearer and farther else 0.2
        out[y, x] = doubt or same < support * max(near, 6)
    return out


def keep_surfaces(z: Map, doubt: Mask, jump: Polynomial, least: int) -> Mask:
    """Mark connected surfaces of enough pixels, by flooding."""
    height, width = z.shape
    free = np.isfinite(z) & ~doubt
    out = np.zeros(z.shape, np.bool_)
    for start in np.argwhere(free).tolist():
        if not free[tuple(start)]:
            continue
        free[tuple(start)] = False
        surface = [tuple(start)]
        for y, x in surface:  # grows while it runs
            for v in range(max(y - 1, 0), min(y + 2, height)):
                for u in range(max(x - 1, 0), min(x + 2, width)):
                    a, b = float(z[y, x]), float(z[v, u])
                    if free[v, u] and abs(a - b) <= polynomial(jump, (a + b) / 2):
                        free[v, u] = False
                        surface.append((v, u))
        if len(surface) >= least:
            out[tuple(np.transpose(surface))] = True
    return out


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
