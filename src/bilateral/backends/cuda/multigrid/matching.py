"""Match rows along strong edges: pair rows that are each other's nearest free neighbour.

The nearest neighbour is the one with the heaviest edge. An edge is strong for a row if its weight
is at least half of the row's heaviest. Weights are compared in float32 for every dtype. The rules
are those of core/multigrid/matching.hpp.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    edge_hash,
    image_start,
    lane_rows,
    link_number,
    max_links,
    read_link,
    read_rows,
)


def find_nearest(grid: Graph) -> None:
    """Write the grid's degrees, nearest neighbours and least weights of strong edges."""
    constants = grid.grid_constants()
    _find_nearest[(triton.cdiv(grid.room, constants["BLOCK"]),)](
        *(*grid.arguments, grid.starts, grid.nearest, grid.least, grid.degree, grid.images),
        **constants,
    )


def find_picks(graph: Graph) -> Tensor:
    """Return the free neighbour that each free row would match, or -1."""
    pick = torch.empty(graph.room, dtype=torch.int32, device=graph.to.device)
    constants = graph.constants()
    _find_picks[(triton.cdiv(graph.room, constants["BLOCK"]),)](
        *(*graph.arguments, graph.starts, graph.nearest, graph.least, pick, graph.images),
        **constants,
    )
    return pick


@triton.jit
def find_mate(nearest, pick, i, mask):
    """Return the row that each of rows i is matched with, or -1.

    Rows that are each other's nearest neighbour are matched first, then rows that pick each other.
    """
    first, second = _mutual_choice(nearest, i, mask), _mutual_choice(pick, i, mask)
    return tl.where(first >= 0, first, second)


@triton.jit
def no_choice(ROWS: tl.constexpr):
    """Return the weight, hash and neighbour of a choice among no links, for `choose_heavier`."""
    weight, rank = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.int32)
    return weight, rank, tl.full((ROWS,), -1, tl.int32)


@triton.jit
def choose_heavier(i, j, start, w, allowed, choice):
    """Return the choice, or the link from i to j if that is allowed and heavier.

    Of links with the same weight, the edge with the larger hash wins.
    """
    weight, rank, neighbour = choice
    hash_ij = edge_hash(i, j, start)
    heavier = allowed & (w > 0) & ((w > weight) | ((w == weight) & (hash_ij > rank)))
    return (
        tl.where(heavier, w, weight),
        tl.where(heavier, hash_ij, rank),
        tl.where(heavier, j, neighbour),
    )


@kernel()
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
    images,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i, mask = program_rows(total, room, BLOCK)
    graph = to, weight, n, factors, first, last
    links = read_rows(graph, i, mask, D)
    start = image_start(starts, i, images)
    choice = no_choice(BLOCK)
    sums = tl.zeros((BLOCK,), tl.float64)
    for at in range(0, max_links(links, D), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(graph, links, at + step, step)
            sums += w.to(tl.float64)
            choice = choose_heavier(i, j, start, w.to(tl.float32), j >= 0, choice)
    tl.store(nearest + i, choice[2], mask=i < room)
    tl.store(least + i, 0.5 * choice[0], mask=i < room)
    tl.store(degree + i, sums.to(degree.dtype.element_ty), mask=i < room)


@triton.jit
def _heavier_lane(weight, rank, neighbour, other_weight, other_rank, other_neighbour):
    heavier = (other_weight > weight) | ((other_weight == weight) & (other_rank > rank))
    return (
        tl.where(heavier, other_weight, weight),
        tl.where(heavier, other_rank, rank),
        tl.where(heavier, other_neighbour, neighbour),
    )


@triton.jit
def _choose_lane(choice, LANES: tl.constexpr):
    """Return the neighbour of the heaviest choice of each row's lanes, in all of these lanes."""
    weight, rank, neighbour = choice
    if LANES > 1:
        shape: tl.constexpr = (weight.shape[0] // LANES, LANES)
        lanes = tl.reshape(weight, shape), tl.reshape(rank, shape), tl.reshape(neighbour, shape)
        _, _, best = tl.reduce(lanes, 1, _heavier_lane, keep_dims=True)
        neighbour = tl.reshape(tl.broadcast_to(best, shape), neighbour.shape)
    return neighbour


@triton.jit
def _mutual_choice(chosen, i, mask):
    """Return the row that each of rows i has chosen if that row has chosen i, too; else -1."""
    j = tl.load(chosen + i, mask=mask, other=-1)
    back = tl.load(chosen + j, mask=j >= 0, other=-1)
    return tl.where(back == i, j, -1)


@kernel()
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
    images,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    """Find the nearest free neighbour of each free row along edges that are strong for both ends.

    A row is free if it is not the nearest neighbour of its own nearest neighbour.
    """
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, n, factors, first, last
    nearest_i = tl.load(nearest + i, mask=mask, other=-1)
    free = nearest_i >= 0
    free = free & (tl.load(nearest + nearest_i, mask=free, other=-1) != i)
    least_i = tl.load(least + i, mask=mask, other=0)
    links = read_rows(graph, i, free, D)
    start = image_start(starts, i, images)
    choice = no_choice(BLOCK * LANES)
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(graph, links, e, step)
            w = w.to(tl.float32)
            strong = (j >= 0) & (w >= least_i)
            strong = strong & (w >= tl.load(least + j, mask=strong, other=0))
            nearest_j = tl.load(nearest + j, mask=strong, other=-1)
            strong = strong & (nearest_j >= 0)
            strong = strong & (tl.load(nearest + nearest_j, mask=strong, other=-1) != j)
            choice = choose_heavier(i, j, start, w, strong, choice)
    tl.store(pick + i, _choose_lane(choice, LANES), mask=(i < room) & (lane == 0))
