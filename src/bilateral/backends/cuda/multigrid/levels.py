"""Work on one level of a V-cycle: Jacobi steps, residuals, restriction and prolongation.

Vectors are (rows, K). Products with A are sums of differences, lambda sum_j w_ij (x_i - x_j) +
c_i x_i, so that they are exact for constants.
"""

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows, row_channels
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    lane_rows,
    link_number,
    low_word,
    max_links,
    read_link,
    read_rows,
    sum_lanes,
)

_MEMBERS_AT_ONCE: tl.constexpr = tl.constexpr(4)
"""Members of an aggregate read at a time."""


@dataclass(frozen=True)
class Level:
    """The matrix A = lambda L + diag(c) of a level."""

    graph: Graph
    """L."""
    smoothness: Tensor
    """lambda, the first number of this tensor."""
    weight: Tensor
    """c."""
    inverse: Tensor
    """1 / diag(A), or 0 for rows that no step may change."""


@dataclass(frozen=True)
class Iterate:
    """An iterate: x, or omega r / diag(A) without x; plus P above, the coarser level's correction.

    Kernels compute the iterate of each neighbour that they read, and never store it.
    """

    x: Tensor | None
    omega: float = 0.0
    above: Tensor | None = None
    parent: Tensor | None = None


def block_constants(channels: int, size: int = 256) -> dict[str, Any]:
    """Compile-time constants of kernels that process blocks of rows and channels."""
    padded = triton.next_power_of_2(channels)
    return {"KP": padded, "BLOCK": max(16, size // padded)}


def jacobi_step(level: Level, r: Tensor, x: Iterate, omega: float, out: Tensor) -> None:
    """Write x + omega (r - A x) / diag(A); rows without neighbours are solved."""
    _launch_relax(level, r, x, omega, out)


def find_residual(level: Level, r: Tensor, x: Iterate, out: Tensor) -> None:
    """Write r - A x."""
    _launch_relax(level, r, x, None, out)


def _launch_relax(level: Level, r: Tensor, x: Iterate, omega: float | None, out: Tensor) -> None:
    graph, constants = level.graph, level.graph.constants(r.shape[1])
    _relax[(triton.cdiv(graph.room, constants["BLOCK"]),)](
        *graph.arguments,
        *(r, x.x, level.inverse, x.above, x.parent),
        *(level.weight, level.smoothness, out, r.shape[1]),
        START=x.omega,
        OMEGA=0.0 if omega is None else omega,
        RESIDUAL=omega is None,
        KP=triton.next_power_of_2(r.shape[1]),
        **constants,
    )


def restrict_to(transfer: Transfer, coarse: Graph, values: Tensor, out: Tensor) -> None:
    """Write P^T values: sums over the members of each aggregate."""
    channels = values.shape[1]
    constants = block_constants(channels)
    tensors = values, transfer.bounds, transfer.members, out, coarse.total
    programs = (triton.cdiv(coarse.room, constants["BLOCK"]),)
    _restrict[programs](*tensors, coarse.room, channels, **constants)


def prolong(level: Level, b: Tensor, above: Tensor, parent: Tensor, out: Tensor) -> None:
    """Write P above; rows without neighbours are solved for b."""
    graph, channels = level.graph, b.shape[1]
    constants = block_constants(channels)
    tensors = b, level.inverse, above, parent, out, graph.total
    programs = (triton.cdiv(graph.room, constants["BLOCK"]),)
    _prolong[programs](*tensors, graph.room, channels, **constants)


@triton.jit
def read_iterate(iterate, i, mask, channels, START: tl.constexpr, KP: tl.constexpr):
    """Return an `Iterate` at rows i; `iterate` is (r, x, inverse, above, parent, corrected).

    The correction from `above` counts unless `corrected` is there and negative.
    """
    r, x, inverse, above, parent, corrected = iterate
    k = tl.arange(0, KP)
    at, both = row_channels(i, mask, channels, k)
    value = 0.0
    if x is not None:
        value = tl.load(x + at, mask=both, other=0)
    elif START > 0:
        value = tl.load(r + at, mask=both, other=0) * START
        value = value * tl.load(inverse + i, mask=mask, other=0)[:, None]
    if above is not None:
        if corrected is not None:
            mask = mask & (i * 0 + corrected >= 0)
        p = tl.load(parent + i, mask=mask, other=-1)
        at, both = row_channels(p, p >= 0, channels, k)
        value = tl.load(above + at, mask=both, other=0) + value
    return value


@triton.jit
def row_residual(
    graph,
    iterate,
    c,
    smoothness,
    i,
    mask,
    channels,
    START: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    lane=0,
    LANES: tl.constexpr = 1,
):
    """Return an `Iterate` at rows i, its residual r - A x there, and the numbers of links.

    Each row may occur in LANES lanes, which share its links.
    """
    value = read_iterate(iterate, i, mask, channels, START, KP)
    links = read_rows(graph, i, mask, D)
    flow = value * 0
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(graph, links, e, step)
            neighbour = read_iterate(iterate, j, j >= 0, channels, START, KP)
            flow += w[:, None] * (value - neighbour)
    flow = sum_lanes(flow, LANES)
    at_r, both = row_channels(i, mask, channels, tl.arange(0, KP))
    residual = tl.load(iterate[0] + at_r, mask=both, other=0) - smoothness * flow
    residual -= tl.load(c + i, mask=mask, other=0)[:, None] * value
    return value, residual, links[1]


@triton.jit
def jacobi_update(value, residual, count, inverse, i, mask, OMEGA: tl.constexpr):
    """Return a damped Jacobi step from `value`; undamped for rows with a `count` of 0 links."""
    factor = tl.load(inverse + i, mask=mask, other=0)
    factor = tl.where(count > 0, factor * OMEGA, factor)
    return value + factor[:, None] * residual


@triton.jit
def sum_members(values, bounds, members, i, mask, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    """Return the sums of values over the members of aggregates i, in the members' order."""
    begin = low_word(tl.load(bounds + i, mask=mask, other=0))
    end = low_word(tl.load(bounds + i + 1, mask=mask, other=0))
    k = tl.arange(0, KP)
    total = tl.zeros((BLOCK, KP), values.dtype.element_ty)
    for at in range(0, tl.max(end - begin, 0), _MEMBERS_AT_ONCE):
        for step in tl.static_range(_MEMBERS_AT_ONCE):
            e = begin + at + step
            row = tl.load(members + e, mask=e < end, other=0)
            at_row, both = row_channels(row, e < end, channels, k)
            total += tl.load(values + at_row, mask=both, other=0)
    return total


@kernel(ones=("channels",))
def _relax(
    to,
    weight,
    n,
    factors,
    first,
    last,
    room,
    total,
    r,
    x,
    inverse,
    above,
    parent,
    c,
    smoothness,
    out,
    channels,
    START: tl.constexpr,
    OMEGA: tl.constexpr,
    RESIDUAL: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, n, factors, first, last
    iterate = r, x, inverse, above, parent, None
    lambda_k = tl.load(smoothness)
    value, residual, count = row_residual(
        graph, iterate, c, lambda_k, i, mask, channels, START, D, STEP, KP, lane, LANES
    )
    at, both = row_channels(i, mask & (lane == 0), channels, tl.arange(0, KP))
    if RESIDUAL:
        tl.store(out + at, residual, mask=both)
    else:
        value = jacobi_update(value, residual, count, inverse, i, mask, OMEGA)
        tl.store(out + at, value, mask=both)


@kernel(ones=("channels",))
def _restrict(
    values, bounds, members, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    i, mask = program_rows(total, room, BLOCK)
    sums = sum_members(values, bounds, members, i, mask, channels, KP, BLOCK)
    at, both = row_channels(i, mask, channels, tl.arange(0, KP))
    tl.store(out + at, sums, mask=both)


@kernel(ones=("channels",))
def _prolong(
    b, inverse, above, parent, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    i, mask = program_rows(total, room, BLOCK)
    k = tl.arange(0, KP)
    p = tl.load(parent + i, mask=mask, other=-1)
    isolated = mask & (p < 0)
    at, both = row_channels(i, isolated, channels, k)
    value = tl.load(b + at, mask=both, other=0)
    value = value * tl.load(inverse + i, mask=isolated, other=0)[:, None]
    at, both = row_channels(p, p >= 0, channels, k)
    value += tl.load(above + at, mask=both, other=0)
    at, both = row_channels(i, mask, channels, k)
    tl.store(out + at, value, mask=both)
