"""What happens on each level of a V-cycle: smoothing, residuals, and the ways between levels.

Vectors are (rows, K). A x is computed from differences: lambda sum_j w_ij (x_i - x_j) + c_i x_i.
"""

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    add_lanes,
    link_number,
    low,
    most_links,
    read_link,
    read_rows,
    share_rows,
)

_MEMBERS: tl.constexpr = tl.constexpr(4)
"""Read at a time."""


@dataclass(frozen=True)
class Level:
    """A = lambda L + diag(c)."""

    graph: Graph
    factor: Tensor
    """Lambda."""
    weight: Tensor
    """c."""
    inverse: Tensor
    """1 / diag(A), or 0 where it must."""


@dataclass(frozen=True)
class Iterate:
    """x, or without it the product of `omega`, 1 / diag(A) and r; and P `above`, if that is given.

    It is never stored: whoever reads a neighbour's value computes it.
    """

    x: Tensor | None
    omega: float = 0.0
    above: Tensor | None = None
    parent: Tensor | None = None


def shape(channels: int, size: int = 256) -> dict[str, Any]:
    """Of blocks of rows and channels."""
    padded = triton.next_power_of_2(channels)
    return {"KP": padded, "BLOCK": max(16, size // padded)}


def relax(level: Level, r: Tensor, x: Iterate, omega: float | None, out: Tensor) -> None:
    """Jacobi's step x + omega (r - A x) / diag(A), or without omega the residual r - A x.

    Rows without neighbours are solved.
    """
    graph, sizes = level.graph, level.graph.shares(r.shape[1])
    _relax[(triton.cdiv(graph.room, sizes["BLOCK"]),)](
        *graph.arguments,
        graph.total,
        r,
        x.x,
        level.inverse,
        x.above,
        x.parent,
        level.weight,
        level.factor,
        out,
        r.shape[1],
        START=x.omega,
        OMEGA=0.0 if omega is None else omega,
        RESIDUAL=omega is None,
        KP=triton.next_power_of_2(r.shape[1]),
        **sizes,
    )


def restrict(way: Transfer, coarse: Graph, values: Tensor, out: Tensor) -> None:
    """P^T values: sums over the members of each aggregate."""
    sizes = shape(values.shape[1])
    _restrict[(triton.cdiv(coarse.room, sizes["BLOCK"]),)](
        values,
        way.bounds,
        way.members,
        out,
        coarse.total,
        coarse.room,
        values.shape[1],
        **sizes,
    )


def spread(level: Level, b: Tensor, above: Tensor, parent: Tensor, out: Tensor) -> None:
    """P above; rows without neighbours are solved."""
    sizes = shape(b.shape[1])
    _spread[(triton.cdiv(level.graph.room, sizes["BLOCK"]),)](
        b,
        level.inverse,
        above,
        parent,
        out,
        level.graph.total,
        level.graph.room,
        b.shape[1],
        **sizes,
    )


@triton.jit
def places(i, mask, channels, KP: tl.constexpr):
    """Of all channels of rows i."""
    k = tl.arange(0, KP)
    both = mask[:, None] & (k[None, :] < channels)
    return i.to(tl.int64)[:, None] * channels + k[None, :], both


@triton.jit
def iterate(r, x, inverse, above, parent, i, mask, channels, START: tl.constexpr, KP: tl.constexpr):
    """An `Iterate` at rows i."""
    k = tl.arange(0, KP)[None, :]
    at, both = i.to(tl.int64)[:, None] * channels + k, mask[:, None] & (k < channels)
    value = 0.0
    if x is not None:
        value = tl.load(x + at, mask=both, other=0)
    elif START > 0:
        value = tl.load(r + at, mask=both, other=0) * START
        value = value * tl.load(inverse + i, mask=mask, other=0)[:, None]
    if above is not None:
        p = tl.load(parent + i, mask=mask, other=-1)
        at, both = p.to(tl.int64)[:, None] * channels + k, (p >= 0)[:, None] & (k < channels)
        value = tl.load(above + at, mask=both, other=0) + value
    return value


@triton.jit
def residual(
    to,
    weight,
    n,
    factors,
    first,
    last,
    r,
    x,
    inverse,
    above,
    parent,
    c,
    factor,
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
    """An `Iterate` at rows i, what r - A x is there, and the numbers of links.

    Each row may be there several times, in so many lanes, which share its links.
    """
    own = iterate(r, x, inverse, above, parent, i, mask, channels, START, KP)
    begin, count, own_n = read_rows(to, n, first, last, i, mask, D)
    flow = own * 0
    for at in range(0, most_links(count, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(to, weight, n, factors, begin, count, own_n, e, step)
            other = iterate(r, x, inverse, above, parent, j, j >= 0, channels, START, KP)
            flow += w[:, None] * (own - other)
    flow = add_lanes(flow, LANES)
    at_r, both = places(i, mask, channels, KP)
    left = tl.load(r + at_r, mask=both, other=0) - factor * flow
    left -= tl.load(c + i, mask=mask, other=0)[:, None] * own
    return own, left, count


@triton.jit
def damped(own, left, count, inverse, i, mask, OMEGA: tl.constexpr):
    """Jacobi's step from `own`; the whole of it where there are no neighbours."""
    step = tl.load(inverse + i, mask=mask, other=0)
    step = tl.where(count > 0, step * OMEGA, step)
    return own + step[:, None] * left


@triton.jit
def sum_members(values, bounds, members, i, mask, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    """Of aggregates i, in the members' order."""
    begin = low(tl.load(bounds + i, mask=mask, other=0))
    end = low(tl.load(bounds + i + 1, mask=mask, other=0))
    total = tl.zeros((BLOCK, KP), values.dtype.element_ty)
    for at in range(0, tl.max(end - begin, 0), _MEMBERS):
        for step in tl.static_range(_MEMBERS):
            e = begin + at + step
            row = tl.load(members + e, mask=e < end, other=0)
            from_, both = places(row, e < end, channels, KP)
            total += tl.load(values + from_, mask=both, other=0)
    return total


@kernel("room")
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
    factor,
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
    i, lane = share_rows(BLOCK, LANES)
    mask = i < tl.minimum(tl.load(total), room)
    own, left, count = residual(
        to,
        weight,
        n,
        factors,
        first,
        last,
        r,
        x,
        inverse,
        above,
        parent,
        c,
        tl.load(factor),
        i,
        mask,
        channels,
        START,
        D,
        STEP,
        KP,
        lane,
        LANES,
    )
    at, both = places(i, mask & (lane == 0), channels, KP)
    if RESIDUAL:
        tl.store(out + at, left, mask=both)
    else:
        tl.store(out + at, damped(own, left, count, inverse, i, mask, OMEGA), mask=both)


@kernel("room")
def _restrict(
    values, bounds, members, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    sums = sum_members(values, bounds, members, i, mask, channels, KP, BLOCK)
    at, both = places(i, mask, channels, KP)
    tl.store(out + at, sums, mask=both)


@kernel("room")
def _spread(
    b, inverse, above, parent, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    p = tl.load(parent + i, mask=mask, other=-1)
    alone = mask & (p < 0)
    at, both = places(i, alone, channels, KP)
    value = tl.load(b + at, mask=both, other=0)
    value = value * tl.load(inverse + i, mask=alone, other=0)[:, None]
    from_, both = places(p, p >= 0, channels, KP)
    value += tl.load(above + from_, mask=both, other=0)
    at, both = places(i, mask, channels, KP)
    tl.store(out + at, value, mask=both)
