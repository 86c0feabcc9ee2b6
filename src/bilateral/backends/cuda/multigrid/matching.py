"""Aggregates by matching along strong edges, as core/aggregation.hpp.

Pairs of rows that are each other's strongest free neighbour, and what clings to them, at most two
edges away. Decided in float32, whatever the weights' type.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    image_start,
    link_number,
    mix,
    most_links,
    read_link,
    read_rows,
    share_rows,
)
from bilateral.backends.cuda.prefix import prefix_sums

_BLOCK = 256


def find_roots(graph: Graph, room: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first row of each row's aggregate, or -1; how many roots there are up to each row; zeros.

    The latter are as many as the graph has room for rows, or `room`, and one more.
    """
    pick, root, is_root = torch.empty((3, graph.room), dtype=torch.int32, device=graph.to.device)
    count = max(graph.room, room) + 1
    zeros = torch.empty(count, dtype=torch.int64, device=pick.device)
    around = graph.nearest, graph.least
    sizes = {**graph.shares(), "IMAGES": graph.images}
    _find_picks[(triton.cdiv(graph.room, sizes["BLOCK"]),)](
        *graph.arguments, graph.total, graph.starts, *around, pick, **sizes
    )
    _find_roots[(triton.cdiv(count, _BLOCK),)](
        *around, pick, root, is_root, zeros, graph.total, graph.room, count, BLOCK=_BLOCK
    )
    return root, prefix_sums(is_root), zeros


def find_nearest(grid: Graph) -> None:
    """Write a grid's degrees, nearest neighbours and least weights of strong edges."""
    sizes = {**grid.sizes(), "IMAGES": grid.images}
    _find_nearest[(triton.cdiv(grid.room, sizes["BLOCK"]),)](
        *grid.arguments, grid.total, grid.starts, grid.nearest, grid.least, grid.degree, **sizes
    )


@triton.jit
def better(i, j, start, w, allowed, best, rank, choice):
    """The heavier of two links."""
    mixed = mix(i, j, start)
    better = allowed & (w > 0) & ((w > best) | ((w == best) & (mixed > rank)))
    return (
        tl.where(better, w, best),
        tl.where(better, mixed, rank),
        tl.where(better, j, choice),
    )


@kernel("room")
def _find_nearest(
    to,
    weight,
    n,
    factors,
    first,
    last,
    room,
    total,
    starts,
    nearest,
    least,
    degree,
    D: tl.constexpr,
    STEP: tl.constexpr,
    IMAGES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    begin, count, own = read_rows(to, n, first, last, i, mask, D)
    start = image_start(starts, i, IMAGES)
    best, rank = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.int32)
    choice = tl.full((BLOCK,), -1, tl.int32)
    sums = tl.zeros((BLOCK,), tl.float64)
    for at in range(0, most_links(count, D), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(to, weight, n, factors, begin, count, own, at + step, step)
            sums += w.to(tl.float64)
            best, rank, choice = better(i, j, start, w.to(tl.float32), j >= 0, best, rank, choice)
    tl.store(nearest + i, choice, mask=i < room)
    tl.store(least + i, 0.5 * best, mask=i < room)
    tl.store(degree + i, sums.to(degree.dtype.element_ty), mask=i < room)


@triton.jit
def _better_lane(best, rank, choice, other_best, other_rank, other_choice):
    better = (other_best > best) | ((other_best == best) & (other_rank > rank))
    return (
        tl.where(better, other_best, best),
        tl.where(better, other_rank, rank),
        tl.where(better, other_choice, choice),
    )


@triton.jit
def _best_lane(best, rank, choice, LANES: tl.constexpr):
    """Each row's choice, in all of its lanes."""
    if LANES > 1:
        both: tl.constexpr = (best.shape[0] // LANES, LANES)
        lanes = tl.reshape(best, both), tl.reshape(rank, both), tl.reshape(choice, both)
        _, _, found = tl.reduce(lanes, 1, _better_lane, keep_dims=True)
        choice = tl.reshape(tl.broadcast_to(found, both), choice.shape)
    return choice


@kernel("room")
def _find_picks(
    to,
    weight,
    n,
    factors,
    first,
    last,
    room,
    total,
    starts,
    nearest,
    least,
    pick,
    D: tl.constexpr,
    STEP: tl.constexpr,
    IMAGES: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    """The nearest free neighbour along edges that are strong from both ends.

    Free are those that are not their nearest neighbour's nearest.
    """
    i, lane = share_rows(BLOCK, LANES)
    mask = i < tl.minimum(tl.load(total), room)
    near = tl.load(nearest + i, mask=mask, other=-1)
    free = (near >= 0) & (tl.load(nearest + near, mask=near >= 0, other=-1) != i)
    mine = tl.load(least + i, mask=mask, other=0)
    begin, count, own = read_rows(to, n, first, last, i, free, D)
    start = image_start(starts, i, IMAGES)
    best, rank = tl.zeros((BLOCK * LANES,), tl.float32), tl.zeros((BLOCK * LANES,), tl.int32)
    choice = tl.full((BLOCK * LANES,), -1, tl.int32)
    for at in range(0, most_links(count, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(to, weight, n, factors, begin, count, own, e, step)
            w = w.to(tl.float32)
            strong = (j >= 0) & (w >= mine)
            strong = strong & (w >= tl.load(least + j, mask=strong, other=0))
            other = tl.load(nearest + j, mask=strong, other=-1)
            strong = strong & (other >= 0)
            strong = strong & (tl.load(nearest + other, mask=strong, other=-1) != j)
            best, rank, choice = better(i, j, start, w, strong, best, rank, choice)
    choice = _best_lane(best, rank, choice, LANES)
    tl.store(pick + i, choice, mask=(i < room) & (lane == 0))


@triton.jit
def _mutual(picks, i, on):
    """Whom rows i pick, if the same is true the other way round; or -1."""
    j = tl.load(picks + i, mask=on, other=-1)
    back = tl.load(picks + j, mask=j >= 0, other=-1)
    return tl.where(back == i, j, -1)


@triton.jit
def _mate(nearest, pick, i, on):
    early, late = _mutual(nearest, i, on), _mutual(pick, i, on)
    return tl.where(early >= 0, early, late)


@kernel("room", "count")
def _find_roots(
    nearest, least, pick, root, is_root, zeros, total, room, count, BLOCK: tl.constexpr
):
    """The first row of each aggregate.

    A row without a mate clings to the nearest one's pair; if that has none either, to the pair
    which that one clings to, unless their edge is weak for it.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    near = tl.load(nearest + i, mask=mask, other=-1)
    on = near >= 0
    close = tl.where(_mate(nearest, pick, i, on) >= 0, i, near)
    mine = tl.load(least + i, mask=on, other=0)
    farther = on & (_mate(nearest, pick, close, on) < 0)
    farther = farther & (8 * mine >= tl.load(least + close, mask=on, other=0))
    member = tl.where(farther, tl.load(nearest + close, mask=on, other=-1), close)
    # Where links were left out for lack of room, the nearest one may have none.
    mate = _mate(nearest, pick, member, on & (member >= 0))
    found = tl.where(mate < 0, i, tl.minimum(mate, member))
    found = tl.where(on, found, -1)
    tl.store(root + i, found, mask=i < room)
    tl.store(is_root + i, (found == i).to(tl.int32), mask=i < room)
    tl.store(zeros + i, 0, mask=i < count)
