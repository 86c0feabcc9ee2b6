"""Continue the surfaces around a hole into it: `core/depth/grow.hpp`.

The core grows in rounds, too: the pixels of the front take their best offer, then offer their
surface to their neighbours. Here, each pixel without a surface looks in each round which neighbours
have taken one in the round before. So it needs no front, and no order of pixels: of equal offers,
the plane of the first pixel of the image counts, as in the core.

A launch makes several rounds. A program computes a square of pixels, of which those that are fewer
rounds from its border than that may be wrong afterwards; it stores the others, its tile. So the
pixels around tiles are computed several times. Launches read one of two states and write the other.

Pixels whose best offer costs more than a limit wait until a launch in which nobody takes one; then
the limit rises. The kernels find that out by themselves, and the host asks after many launches
whether all is done.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Growth, Polynomial
from bilateral.backends.cuda.depth.jump import jump_at
from bilateral.backends.cuda.depth.landing import land
from bilateral.backends.cuda.depth.local_planes import fit_planes, in_unit
from bilateral.backends.cuda.kernel import kernel

LAUNCHES = 8
"""Launches between two looks at whether all is done."""
_ROUNDS = tl.constexpr(8)
"""Rounds of a launch."""
_SQUARE = tl.constexpr(32)
"""Side of the square of pixels of a program."""
_TILE = tl.constexpr(_SQUARE.value - 2 * _ROUNDS.value)
"""Side of its tile: a tile rests until a pixel in or beside it takes a surface."""
_LIMITS = tl.constexpr(5)
"""Limits are 1, 4, 16, 64 jumps and none."""
_BEYOND = 0.05
"""Fillings leave the range of the kept depths by at most this part of it."""
_AGREEMENT = tl.constexpr(0.5)
"""A doubtful pixel whose own depth is within this part of a jump of a plane lies on its surface."""
# Rounds in which pixels took a surface; these never did.
_FREE, _INNER = tl.constexpr(-1), tl.constexpr(-2)
_SLOTS = tl.constexpr(4)
"""Slots of the counts and limits of the last launches."""


class State(NamedTuple):
    """What launches read and write: what the even launches write, then what the odd ones write."""

    x: Tensor
    """(2, H, W) float32: the fillings."""
    taken: Tensor
    """(2, H, W) int32: the round in which each pixel took its surface."""
    plane: Tensor
    """(2, H, W) int32: pixel whose plane it continues; of the best offer before. -1: none."""
    base: Tensor
    """(2, H, W) float32: value there in the planes' unit; depth of the best offer before."""
    cost: Tensor
    """(2, H, W) float32: of the best offer."""
    active: Tensor
    """(2, tiles) int32: last even and odd launch in which a pixel in a tile changed, or in which
    one beside it took a surface."""
    control: Tensor
    """(1 + 2 _SLOTS,) int32: the launches done, and of the last launches the pixels that took a
    surface and the limit."""
    front: Tensor
    """(tiles, 2, _SQUARE^2) int32: `taken` and `plane` of the pixels of each program."""
    front_base: Tensor
    """(tiles, _SQUARE^2) float32: their `base`."""


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
        for k in range(1, LAUNCHES + 1):
            _grow[tiles](
                *state, own, planes, limits, height, width, k, int(inverse), *options, num_warps=8
            )
        state.control[0] += LAUNCHES

    launch()
    again, launches = launch, LAUNCHES
    while int(state.control[1 + _SLOTS.value :].amax()) < _LIMITS.value:
        if again is launch and record is not None:
            again = record(launch)
        again()
        launches += LAUNCHES
    last = launches % 2
    grown = state.x[last].contiguous()
    land(grown, kept, own, (state.plane[last], state.base[last], planes), limits, jump, inverse)
    return grown


def _minimum_around(mask: Tensor) -> Tensor:
    """Return the least value of 3 x 3 pixels; nothing is beyond the border."""
    values = -mask.to(torch.float32)[None, None]
    return -torch.nn.functional.max_pool2d(values, 3, stride=1, padding=1)[0, 0]


def _start(x: Tensor, kept: Tensor, border: Tensor, planes: Tensor, at: Tensor) -> State:
    height, width = x.shape
    index = torch.arange(x.numel(), dtype=torch.int32, device=x.device).view(x.shape)
    tiles = triton.cdiv(width, _TILE.value) * triton.cdiv(height, _TILE.value)
    base = torch.ones_like(x)
    base.view(-1)[at.long()] = planes[at.long(), 0]
    taken = torch.where(border, 0, torch.where(kept, _INNER.value, _FREE.value)).int()
    plane = torch.where(border, index, -1)
    integers: dict[str, Any] = {"dtype": torch.int32, "device": x.device}
    square = _SQUARE.value**2
    return State(
        torch.stack([x, x]),
        torch.stack([taken, taken]),
        torch.stack([plane, plane]),
        torch.stack([base, base]),
        x.new_empty((2, height, width)),
        torch.zeros((2, tiles), **integers),
        torch.zeros(1 + 2 * _SLOTS.value, **integers),
        torch.empty((tiles, 2, square), **integers),
        x.new_empty((tiles, square)),
    )


def _limits(x: Tensor, kept: Tensor, inverse: bool) -> Tensor:
    """Return the least and the largest depth of fillings."""
    low = torch.where(kept, x, torch.inf).amin()
    high = torch.where(kept, x, -torch.inf).amax()
    margin = _BEYOND * (high - low)
    least = torch.maximum(low - margin, low / (1 + _BEYOND)) if inverse else low - margin
    return torch.stack([least, high + margin])


@kernel()
def _grow(
    x, taken, plane, base, cost, active, control, front, front_base, own, planes, limits,
    height, width, k, inverse, c0, c1, c2, bias, drift, fading,
):  # fmt: skip
    """Make the rounds of a launch in a tile and the pixels around it.

    In a round, the pixels without a surface look at their neighbours, and take one.
    """
    launch = tl.load(control) + k
    slot, last = launch % _SLOTS, (launch - 1) % _SLOTS
    count = tl.load(control + 1 + last)
    level = tl.load(control + 1 + _SLOTS + last)
    rises = (count == 0) & (launch > 1)
    level = tl.where(rises, level + 1, level)
    tile_x, tile_y = tl.program_id(0), tl.program_id(1)
    tiles_x, tiles_y = tl.num_programs(0), tl.num_programs(1)
    tile = tile_y * tiles_x + tile_x
    if tile == 0:
        tl.store(control + 1 + _SLOTS + slot, level)
        tl.store(control + 1 + (launch + 1) % _SLOTS, 0)
    tiles = tiles_x * tiles_y
    seen = tl.load(active + ((launch - 1) % 2) * tiles + tile)
    if (level < _LIMITS) & (rises | (seen == launch - 1)):
        t = tl.arange(0, _SQUARE * _SQUARE)
        row, column = t // _SQUARE, t % _SQUARE
        y, u = tile_y * _TILE + row - _ROUNDS, tile_x * _TILE + column - _ROUNDS
        inside = (y >= 0) & (y < height) & (u >= 0) & (u < width)
        of_tile = (row >= _ROUNDS) & (row < _ROUNDS + _TILE) & inside
        of_tile = of_tile & (column >= _ROUNDS) & (column < _ROUNDS + _TILE)
        q = y * width + u
        pixels = (height * width).to(tl.int64)
        before, after = q + (launch - 1) % 2 * pixels, q + launch % 2 * pixels
        when = tl.load(taken + before, mask=inside, other=_INNER)
        best_plane = tl.load(plane + before, mask=inside, other=-1)
        best = tl.load(base + before, mask=inside, other=1.0)
        filling = tl.load(x + before, mask=inside, other=1.0)
        waits = (when == _FREE) & (best_plane >= 0)
        best_cost = tl.load(cost + before, mask=waits, other=float("inf"))
        measured = tl.load(own + q, mask=inside, other=float("nan"))
        low, high = tl.load(limits), tl.load(limits + 1)
        quarter = tl.where(level == 0, 1.0, tl.where(level == 1, 4.0, 16.0))
        limit = tl.where(level < 3, quarter, tl.where(level == 3, 64.0, float("inf")))
        nearer = tl.where(measured == measured, 1.0, 1.0 + bias)
        # What neighbours look at, in memory of this program.
        taken_at = front + tile.to(tl.int64) * 2 * _SQUARE * _SQUARE + t
        plane_at = taken_at + _SQUARE * _SQUARE
        base_at = front_base + tile.to(tl.int64) * _SQUARE * _SQUARE + t
        tl.store(taken_at, when)
        tl.store(plane_at, best_plane)
        tl.store(base_at, best)
        tl.debug_barrier()
        changed = t < 0
        number = t * 0
        first = (launch - 1) * _ROUNDS + 1
        for round_ in range(0, _ROUNDS):
            now = first + round_
            free = when == _FREE
            offering = tl.zeros_like(q)
            for n in tl.static_range(9):  # all loads at once; the pixel itself has taken none
                there = free & (row + n // 3 >= 1) & (row + n // 3 <= _SQUARE)
                there = there & (column + n % 3 >= 1) & (column + n % 3 <= _SQUARE)
                of_neighbour = taken_at + ((n // 3 - 1) * _SQUARE + n % 3 - 1)
                then = tl.load(of_neighbour, mask=there, other=_FREE)
                offering |= tl.where(there & (then == now - 1), 1 << n, 0)
            agrees = t < 0  # False; who agrees takes the surface in the same round
            for m in range(9):
                offers = (offering >> m) & 1 > 0
                if tl.max(offers.to(tl.int32), 0) > 0:
                    dy, dx = m // 3 - 1, m % 3 - 1
                    o = tl.load(plane_at + (dy * _SQUARE + dx), mask=offers, other=0)
                    value = tl.load(base_at + (dy * _SQUARE + dx), mask=offers, other=1.0)
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
                    lower = (price == best_cost) & (o < best_plane)
                    better = (good & ~agrees) | ((good == agrees) & ((price < best_cost) | lower))
                    better &= offers
                    best_plane = tl.where(better, o, best_plane)
                    best_cost = tl.where(better, price, best_cost)
                    best = tl.where(better, depth, best)
                    agrees = agrees | (better & good)
            takes = free & (best_plane >= 0) & (best_cost <= limit)
            slack = drift * jump_at(best, c0, c1, c2)
            drifted = tl.minimum(tl.maximum(filling, best - slack), best + slack)
            drifted = tl.minimum(tl.maximum(drifted, low), high)
            filling = tl.where(takes, tl.where(agrees, measured, drifted), filling)
            best = tl.where(takes, in_unit(tl.where(takes, drifted, 1.0), inverse), best)
            when = tl.where(takes, now, when)
            tl.store(taken_at, when, mask=takes)
            tl.store(plane_at, best_plane, mask=takes)
            tl.store(base_at, best, mask=takes)
            number += (takes & of_tile).to(tl.int32)
            changed = changed | (of_tile & (takes | (offering != 0)))
            tl.debug_barrier()
        tl.store(x + after, filling, mask=of_tile)
        tl.store(taken + after, when, mask=of_tile)
        tl.store(plane + after, best_plane, mask=of_tile)
        tl.store(base + after, best, mask=of_tile)
        tl.store(cost + after, best_cost, mask=of_tile)
        total = tl.sum(number, 0)
        i = tl.arange(0, 16)
        v, w = tile_y + i // 3 - 1, tile_x + i % 3 - 1
        around = (i < 9) & (v >= 0) & (v < tiles_y) & (w >= 0) & (w < tiles_x)
        # This tile is written once more: the other state has what it was before.
        around = around & ((i == 4) | (i * 0 + total > 0))
        if tl.max(changed.to(tl.int32), 0) > 0:
            mark = active + (launch % 2) * tiles + v * tiles_x + w
            tl.store(mark, i * 0 + launch, mask=around)
        if total > 0:
            tl.atomic_add(control + 1 + slot, total)
