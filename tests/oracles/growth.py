"""Oracle of the growth of surfaces into holes: in rounds, with all pixels of a round at once.

In a round, the pixels of the front take their best offer if it is good enough. Then each of them
offers its surface to its neighbours. No pixel sees what another one does in the same round, so the
order of pixels does not matter; of equal offers, the plane of the first pixel of the image counts.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends.cpu import Growth, Polynomial

Array = NDArray[Any]
F = np.float32

LIMITS = [1, 4, 16, 64, np.inf]
NEIGHBOURS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
BEYOND = F(0.05)
FREE, FRONT, DEFERRED = -1, -2, -3


class Planes(NamedTuple):
    """Planes at pixels: value and slopes in the planes' unit."""

    value: Array
    slope_x: Array
    slope_y: Array


class Grown(NamedTuple):
    x: Array
    rounds: int


def jump_at(jump: Polynomial, z: Array) -> Array:
    c0, c1, c2 = map(F, jump)
    size = np.abs(z)
    return c0 + size * (c1 + size * c2)


def windows(z: Array, kept: Array, at: Array, stride: int) -> Array:
    """Return the kept depths of 9 x 9 pixels around each pixel, `stride` apart; else NaN."""
    reach = 4 * stride
    padded = np.pad(np.where(kept, z, F(np.nan)), reach, constant_values=np.nan)
    k = np.arange(9) * stride
    y, x = np.divmod(at, z.shape[1])
    return padded[y[:, None, None] + k[:, None], x[:, None, None] + k].reshape(-1, 81)


DY, DX = (part.reshape(-1).astype(F) for part in np.mgrid[-4:5, -4:5])
STEPS = np.maximum(np.maximum(np.abs(DX), np.abs(DY)), 1)
HALF = np.maximum(STEPS / 2, 1)
MIDDLE = (np.trunc(DY / 2) + 4) * 9 + np.trunc(DX / 2) + 4


def fit(value: Array, same: Array, ridge: float) -> tuple[Planes, Array]:
    """Fit planes to the samples that are on the surface."""
    w, v = same.astype(F), np.where(same, value, F(0))
    n, x, y, xx, xy, yy = (
        w @ c.astype(F) for c in (np.ones(81), DX, DY, DX * DX, DX * DY, DY * DY)
    )
    s, xs, ys = v.sum(1), v @ DX, v @ DY
    with np.errstate(all="ignore"):
        a, b, d = xx - x * x / n + F(ridge), xy - x * y / n, yy - y * y / n + F(ridge)
        det, p, q = a * d - b * b, xs - x * s / n, ys - y * s / n
        slope_x, slope_y = (p * d - q * b) / det, (q * a - p * b) / det
        return Planes((s - slope_x * x - slope_y * y) / n, slope_x, slope_y), n


def fit_planes(z: Array, kept: Array, at: Array, jump: Polynomial, inverse: bool) -> Planes:
    """Fit the plane around each pixel: first to those near it, then to a larger window."""
    centre = z.ravel()[at]
    step = jump_at(jump, centre)
    origin = 1 / centre if inverse else centre
    depth = windows(z, kept, at, 1)
    with np.errstate(invalid="ignore"):
        jumps = np.abs(depth - centre[:, None]) / step[:, None]
        same = (jumps <= STEPS) & (jumps[:, MIDDLE.astype(int)] <= HALF)
    near, _ = fit((1 / depth if inverse else depth) - origin[:, None], same, 30)
    tolerance = step / (centre * centre) if inverse else step
    depth = windows(z, kept, at, 2)
    found = (1 / depth if inverse else depth) - origin[:, None]
    expected = near.value[:, None] + 2 * (near.slope_x[:, None] * DX + near.slope_y[:, None] * DY)
    with np.errstate(invalid="ignore"):
        same = np.abs(found - expected) <= tolerance[:, None]
    wide, count = fit(found, same, 2.5)
    wide = wide._replace(slope_x=wide.slope_x / 2, slope_y=wide.slope_y / 2)
    planes = [np.where(count >= 9, w, n) for w, n in zip(wide, near, strict=True)]
    return Planes(planes[0] + origin, planes[1], planes[2])


def grow_surfaces(
    x: Array, kept: Array, measured: Array, jump: Polynomial, inverse: bool, growth: Growth
) -> Grown:
    """Bring the fillings of holes to the surfaces around them."""
    height, width = x.shape
    out, own, inside = x.copy().ravel(), measured.ravel(), kept.ravel()
    low, high = np.min(x[kept], initial=F(np.inf)), np.max(x[kept], initial=F(-np.inf))
    margin = BEYOND * (high - low)
    low, high = max(low - margin, low / (1 + BEYOND)) if inverse else low - margin, high + margin
    beside = np.zeros(x.shape, bool)
    for dy, dx in NEIGHBOURS:
        beside |= shifted(~kept, dy, dx)
    border = np.flatnonzero(kept & beside)
    planes = np.zeros((3, x.size), F)
    planes[:, border] = fit_planes(x, kept, border, jump, inverse)
    base = planes[0].copy()
    state = np.where(inside, -4, FREE)
    state[border] = border
    cost, agrees = np.full(x.size, F(np.inf)), np.zeros(x.size, bool)
    value, best = np.zeros(x.size, F), np.full(x.size, -1)

    def offer(decided: Array, limit: float) -> Array:
        """Offer the surfaces of pixels to their neighbours; return those that join the front."""
        entered = []
        for dy, dx in NEIGHBOURS:
            y, u = decided // width + dy, decided % width + dx
            there = (y >= 0) & (y < height) & (u >= 0) & (u < width)
            p, q = decided[there], (y * width + u)[there]
            free = (state[q] < 0) & (state[q] != -4)
            p, q = p[free], q[free]
            k = state[p]
            away_x, away_y = p % width - k % width, p // width - k // width
            far = np.maximum(np.abs(away_x + dx), np.abs(away_y + dy)).astype(F)
            fade = np.maximum(F(0), 1 - far * F(1 / growth.slope_reach))
            v = base[p] + fade * (planes[1, k] * F(dx) + planes[2, k] * F(dy))
            if inverse:
                v = 1 / np.maximum(v, F(0.5) * base[p])
            v = np.minimum(np.maximum(v, low), high)
            step, d = 1 / jump_at(jump, v), v - out[q]
            misfit = np.abs(v - own[q]) * step
            good = misfit <= F(0.5)
            nearer = np.where(np.isnan(own[q]), F(1 + growth.bias), F(1))
            c = np.where(good, misfit, np.where(d < 0, -d * nearer, d) * step)
            first = (c == cost[q]) & (best[q] >= 0) & (k < best[q])
            better = (good & ~agrees[q]) | ((good == agrees[q]) & ((c < cost[q]) | first))
            q, v, c, good, k = q[better], v[better], c[better], good[better], k[better]
            best[q], value[q], cost[q], agrees[q] = k, v, c, good
            entered.append(q[(state[q] == FREE) | ((state[q] == DEFERRED) & (c <= limit))])
        return np.unique(np.concatenate(entered))

    front, rounds = offer(border, 0), 0
    agreeing = []
    for limit in LIMITS:
        while front.size:
            rounds += 1
            good = cost[front] <= limit
            state[front[~good]] = DEFERRED
            p = front[good]
            state[p] = best[p]
            agreeing.append(p[agrees[p]])
            slack = F(growth.drift) * jump_at(jump, value[p])
            near = np.minimum(np.maximum(out[p], value[p] - slack), value[p] + slack)
            out[p] = np.minimum(np.maximum(near, low), high)
            base[p] = 1 / out[p] if inverse else out[p]
            front = offer(p, limit)
            state[front] = FRONT
        front = np.flatnonzero(state == DEFERRED)
    agreeing = np.concatenate([*agreeing, np.zeros(0, int)]).astype(int)
    out[agreeing] = own[agreeing]
    return Grown(out.reshape(x.shape), rounds)


def shifted(mask: Array, dy: int, dx: int) -> Array:
    """Return at each pixel the value of its neighbour; False beyond the border."""
    height, width = mask.shape
    padded = np.pad(mask, 1)
    return padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
