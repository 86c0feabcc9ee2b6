"""Continue the surfaces around a hole into it: `core/depth/grow.hpp`.

The core grows in rounds, too: the pixels of the front take their best offer, then offer their
surface to their neighbours. Here a round is one kernel, in which each pixel without a surface looks
which neighbours have taken one in the round before. So it needs no front, and no order of pixels:
of equal offers, the plane of the first pixel of the image counts, as in the core.

Pixels whose best offer costs more than a limit wait until a round in which nobody takes one; then
the limit rises. The kernels find that out by themselves, and the host asks after many rounds
whether all is done.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Growth, Polynomial
from bilateral.backends.cuda.depth.jump import jump_at
from bilateral.backends.cuda.depth.landing import land
from bilateral.backends.cuda.depth.local_planes import fit_planes, in_unit
from bilateral.backends.cuda.kernel import kernel

ROUNDS = 64
"""Rounds between two looks at whether all is done."""
_TILE = tl.constexpr(32)
"""Side of the tiles of pixels: a tile rests until a pixel in or beside it takes a surface."""
_LIMITS = tl.constexpr(5)
"""Limits are 1, 4, 16, 64 jumps and none."""
_BEYOND = 0.05
"""Fillings leave the range of the kept depths by at most this part of it."""
_AGREEMENT = tl.constexpr(0.5)
"""A doubtful pixel whose own depth is within this part of a jump of a plane lies on its surface."""
# Rounds in which pixels took a surface; these never did.
_FREE, _INNER = tl.constexpr(-1), tl.constexpr(-2)
_SLOTS = tl.constexpr(4)
"""Slots of the counts and limits of the last rounds."""


class State(NamedTuple):
    """What the rounds read and write."""

    x: Tensor
    """(H, W) float32: the fillings."""
    taken: Tensor
    """(H, W) int32: the round in which each pixel took its surface."""
    plane: Tensor
    """(H, W) int32: pixel whose plane it continues; of the best offer before. -1: none."""
    base: Tensor
    """(H, W) float32: value there in the planes' unit; depth of the best offer before."""
    cost: Tensor
    """(H, W) float32: of the best offer."""
    active: Tensor
    """(2, tiles) int32: last even and odd round in which a pixel in or beside a tile took one."""
    control: Tensor
    """(1 + 2 _SLOTS,) int32: the rounds done, and of the last rounds the pixels that took a surface
    and the limit."""


def grow_surfaces(
    x: Tensor,
    kept: Tensor,
    measured: Tensor,
    jump: Polynomial,
    inverse: bool,
    growth: Growth,
    record: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
) -> Tensor:
    """Return (H, W) float32 depths with the fillings brought to the surfaces that they continue.

    Parameters
    ----------
    x : Tensor
        (H, W) float32, finite.
    kept : Tensor
        (H, W) bool: where x is data.
    measured : Tensor
        (H, W) float32: depths of doubtful pixels, NaN in holes.
    jump : (float, float, float)
    inverse : bool
        Whether planes are affine in 1 / x; x is then positive.
    growth : Growth
    record : function, optional
        Returns a function that launches again what another function launches, in less time.
    """
    height, width = x.shape
    border = kept & (_minimum_around(kept) == 0)
    at = border.view(-1).nonzero().view(-1).int()
    if at.numel() == 0:
        return x.clone()
    planes = fit_planes(x, kept, at, jump, inverse)
    state = _start(x, kept, border, planes, at)
    limits = _limits(x, kept, inverse)
    tiles = triton.cdiv(width, _TILE.value), triton.cdiv(height, _TILE.value)
    own = measured.contiguous()
    options = *jump, growth.bias, growth.drift, 1 / growth.slope_reach

    def launch() -> None:
        for k in range(1, ROUNDS + 1):
            _round[tiles](
                *state, own, planes, limits, height, width, k, int(inverse), *options, num_warps=8
            )
        state.control[0] += ROUNDS

    launch()
    again = launch
    while int(state.control[1 + _SLOTS.value :].amax()) < _LIMITS.value:
        if again is launch and record is not None:
            again = record(launch)
        again()
    land(state.x, kept, own, (state.plane, state.base, planes), limits, jump, inverse)
    return state.x


def _minimum_around(mask: Tensor) -> Tensor:
    """Return the least value of 3 x 3 pixels; nothing is beyond the border."""
    values = -mask.to(torch.float32)[None, None]
    return -torch.nn.functional.max_pool2d(values, 3, stride=1, padding=1)[0, 0]


def _start(x: Tensor, kept: Tensor, border: Tensor, planes: Tensor, at: Tensor) -> State:
    height, width = x.shape
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    tiles = triton.cdiv(width, _TILE.value) * triton.cdiv(height, _TILE.value)
    base = torch.empty_like(x)
    base.view(-1)[at.long()] = planes[at.long(), 0]
    taken = torch.where(border, 0, torch.where(kept, _INNER.value, _FREE.value)).int()
    return State(
        x.clone(memory_format=torch.contiguous_format),
        taken,
        torch.where(border, index, -1),
        base,
        torch.empty_like(x),
        torch.zeros((2, tiles), dtype=torch.int32, device=x.device),
        torch.zeros(1 + 2 * _SLOTS.value, dtype=torch.int32, device=x.device),
    )


def _limits(x: Tensor, kept: Tensor, inverse: bool) -> Tensor:
    """Return the least and the largest depth of fillings."""
    low = torch.where(kept, x, torch.inf).amin()
    high = torch.where(kept, x, -torch.inf).amax()
    margin = _BEYOND * (high - low)
    least = torch.maximum(low - margin, low / (1 + _BEYOND)) if inverse else low - margin
    return torch.stack([least, high + margin])


@kernel()
def _round(
    x, taken, plane, base, cost, active, control, own, planes, limits,
    height, width, k, inverse, c0, c1, c2, bias, drift, fading,
):  # fmt: skip
    """Let the pixels of a tile without a surface look at their neighbours, and take one."""
    now = tl.load(control) + k
    slot, last = now % _SLOTS, (now - 1) % _SLOTS
    count = tl.load(control + 1 + last)
    level = tl.load(control + 1 + _SLOTS + last)
    rises = (count == 0) & (now > 1)
    level = tl.where(rises, level + 1, level)
    tile_x, tile_y = tl.program_id(0), tl.program_id(1)
    tiles_x, tiles_y = tl.num_programs(0), tl.num_programs(1)
    tile = tile_y * tiles_x + tile_x
    if tile == 0:
        tl.store(control + 1 + _SLOTS + slot, level)
        tl.store(control + 1 + (now + 1) % _SLOTS, 0)
    tiles = tiles_x * tiles_y
    seen = tl.load(active + ((now - 1) % 2) * tiles + tile)
    if (level < _LIMITS) & (rises | (seen == now - 1)):
        t = tl.arange(0, _TILE * _TILE)
        y, u = tile_y * _TILE + t // _TILE, tile_x * _TILE + t % _TILE
        inside = (y < height) & (u < width)
        q = y * width + u
        free = inside & (tl.load(taken + q, mask=inside, other=_INNER) == _FREE)
        filling = tl.load(x + q, mask=free, other=1.0)
        best_plane = tl.load(plane + q, mask=free, other=-1)
        best_cost = tl.load(cost + q, mask=free & (best_plane >= 0), other=float("inf"))
        best = tl.load(base + q, mask=free & (best_plane >= 0), other=0.0)
        measured = tl.load(own + q, mask=free, other=float("nan"))
        low, high = tl.load(limits), tl.load(limits + 1)
        nearer = tl.where(measured == measured, 1.0, 1.0 + bias)
        agrees = t < 0  # False; who agrees takes the surface in the same round
        offering = tl.zeros_like(q)
        for n in tl.static_range(9):  # all loads at once; the pixel itself has taken none
            above = free & (y + n // 3 >= 1) & (y + n // 3 <= height)
            there = above & (u + n % 3 >= 1) & (u + n % 3 <= width)
            p = q + (n // 3 - 1) * width + n % 3 - 1
            when = tl.load(taken + p, mask=there, other=_FREE)
            offering |= tl.where(there & (when == now - 1), 1 << n, 0)
        for m in range(9):
            offers = (offering >> m) & 1 > 0
            if tl.max(offers.to(tl.int32), 0) > 0:
                dy, dx = m // 3 - 1, m % 3 - 1
                from_p = q + dy * width + dx
                o = tl.load(plane + from_p, mask=offers, other=0)
                value = tl.load(base + from_p, mask=offers, other=1.0)
                slope_x = tl.load(planes + 3 * o + 1, mask=offers, other=0.0)
                slope_y = tl.load(planes + 3 * o + 2, mask=offers, other=0.0)
                far_x, far_y = tl.abs(u - o % width), tl.abs(y - o // width)
                far = tl.maximum(far_x, far_y).to(tl.float32)
                fade = tl.maximum(0.0, 1 - far * fading)
                # The step leads from the neighbour to this pixel.
                moved = value - fade * (slope_x * dx + slope_y * dy)
                moved = tl.where(inverse > 0, tl.maximum(moved, 0.5 * value), moved)
                depth = in_unit(moved, inverse)
                depth = tl.minimum(tl.maximum(depth, low), high)
                step, d = 1 / jump_at(depth, c0, c1, c2), depth - filling
                misfit = tl.abs(depth - measured) * step
                good = misfit <= _AGREEMENT
                price = tl.where(good, misfit, tl.where(d < 0, -d * nearer, d) * step)
                first = (price == best_cost) & (o < best_plane)
                better = (good & ~agrees) | ((good == agrees) & ((price < best_cost) | first))
                better &= offers
                best_plane = tl.where(better, o, best_plane)
                best_cost = tl.where(better, price, best_cost)
                best = tl.where(better, depth, best)
                agrees = agrees | (better & good)
        quarter = tl.where(level == 0, 1.0, tl.where(level == 1, 4.0, 16.0))
        limit = tl.where(level < 3, quarter, tl.where(level == 3, 64.0, float("inf")))
        takes = free & (best_plane >= 0) & (best_cost <= limit)
        waits = free & ~takes
        tl.store(plane + q, best_plane, mask=free)
        tl.store(cost + q, best_cost, mask=waits)
        slack = drift * jump_at(best, c0, c1, c2)
        drifted = tl.minimum(tl.maximum(filling, best - slack), best + slack)
        drifted = tl.minimum(tl.maximum(drifted, low), high)
        tl.store(x + q, tl.where(agrees, measured, drifted), mask=takes)
        filled = tl.where(takes, drifted, 1.0)
        tl.store(base + q, tl.where(takes, in_unit(filled, inverse), best), mask=free)
        tl.store(taken + q, tl.zeros_like(q) + now, mask=takes)
        number = tl.sum(takes.to(tl.int32), 0)
        if number > 0:
            tl.atomic_add(control + 1 + slot, number)
            i = tl.arange(0, 16)
            v, w = tile_y + i // 3 - 1, tile_x + i % 3 - 1
            around = (i < 9) & (v >= 0) & (v < tiles_y) & (w >= 0) & (w < tiles_x)
            tl.store(active + (now % 2) * tiles + v * tiles_x + w, i * 0 + now, mask=around)
