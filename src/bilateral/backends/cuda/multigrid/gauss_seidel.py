"""Gauss-Seidel over the two colours of a grid, half a sweep at a time."""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import most_links, read_link, read_rows
from bilateral.backends.cuda.multigrid.levels import Iterate, Level, iterate, places


def sweep(level: Level, r: Tensor, x: Iterate, colour: Tensor, of: int, out: Tensor) -> None:
    """Solve the grid's rows of one colour for the others, and write them to `out`."""
    _launch_sweep(level, r, x, colour, of, out, False)


def unsolved(level: Level, r: Tensor, x: Iterate, colour: Tensor, of: int, out: Tensor) -> None:
    """The residual of the grid's rows of one colour that were solved for 0 at the others; else 0.

    The rows of the other colour are those that were solved last.
    """
    _launch_sweep(level, r, x, colour, of, out, True)


def _launch_sweep(
    level: Level, r: Tensor, x: Iterate, colour: Tensor, of: int, out: Tensor, left: bool
) -> None:
    graph, sizes = level.graph, level.graph.sizes(r.shape[1])
    constants: dict[str, Any] = {"START": x.omega, "COLOUR": of, "LEFT": left}
    _sweep[(triton.cdiv(graph.room, sizes["BLOCK"]),)](
        *graph.arguments,
        graph.total,
        r,
        x.x,
        level.inverse,
        x.above,
        x.parent,
        colour,
        level.factor,
        out,
        r.shape[1],
        **constants,
        KP=triton.next_power_of_2(r.shape[1]),
        **sizes,
    )


@kernel("room")
def _sweep(
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
    colour,
    factor,
    out,
    channels,
    START: tl.constexpr,
    COLOUR: tl.constexpr,
    LEFT: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """From lambda sum_j w_ij x_j, the residual of rows that were solved without it, or x_i."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < tl.minimum(tl.load(total), room)
    mask = inside & (tl.load(colour + i, mask=inside, other=0) == COLOUR)
    begin, count, own_n = read_rows(to, n, first, last, i, mask, D)
    pull = tl.zeros((BLOCK, KP), out.dtype.element_ty)
    for at in range(0, most_links(count, D), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(to, weight, n, factors, begin, count, own_n, at + step, step)
            other = iterate(r, x, inverse, above, parent, j, j >= 0, channels, START, KP)
            pull += w[:, None] * other
    pull = pull * tl.load(factor)
    if LEFT:
        at_out, both = places(i, inside, channels, KP)
        tl.store(out + at_out, pull, mask=both)
    else:
        at_out, both = places(i, mask, channels, KP)
        pull += tl.load(r + at_out, mask=both, other=0)
        pull = pull * tl.load(inverse + i, mask=mask, other=0)[:, None]
        tl.store(out + at_out, pull, mask=both)
