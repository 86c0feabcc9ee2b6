"""Smooth the grid by Gauss-Seidel over its two colours, one colour at a time.

Neighbours have different colours, so that all rows of one colour can be solved at once.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows, row_channels
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import max_links, read_link, read_rows
from bilateral.backends.cuda.multigrid.levels import Iterate, Level, read_iterate


def solve_colour(
    level: Level, r: Tensor, x: Iterate, colours: Tensor, colour: int, out: Tensor
) -> None:
    """Solve the grid's rows of one colour, with x at the other colour, and write them to `out`."""
    _launch_relax(level, r, x, colours, colour, out, False)


def find_colour_residual(
    level: Level, r: Tensor, x: Iterate, colours: Tensor, colour: int, out: Tensor
) -> None:
    """Write the residual of rows of one colour that were solved for 0 at the other colour.

    `out` is 0 at rows of the other colour, which were solved last.
    """
    _launch_relax(level, r, x, colours, colour, out, True)


def _launch_relax(
    level: Level,
    r: Tensor,
    x: Iterate,
    colours: Tensor,
    colour: int,
    out: Tensor,
    residual: bool,
) -> None:
    graph, constants = level.graph, level.graph.grid_constants(r.shape[1])
    modes: dict[str, Any] = {"START": x.omega, "COLOUR": colour, "RESIDUAL": residual}
    _relax_colour[(triton.cdiv(graph.room, constants["BLOCK"]),)](
        *graph.arguments,
        *(r, x.x, level.inverse, x.above, x.parent),
        *(colours, level.smoothness, out, r.shape[1]),
        **modes,
        KP=triton.next_power_of_2(r.shape[1]),
        **constants,
    )


@kernel(ones=("channels",))
def _relax_colour(
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
    colours,
    smoothness,
    out,
    channels,
    START: tl.constexpr,
    COLOUR: tl.constexpr,
    RESIDUAL: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the residual lambda sum_j w_ij x_j, or x_i = (r_i + lambda sum_j w_ij x_j) / A_ii."""
    i, exists = program_rows(total, room, BLOCK)
    graph = to, weight, n, factors, first, last
    iterate = r, x, inverse, above, parent, None
    mask = exists & (tl.load(colours + i, mask=exists, other=0) == COLOUR)
    links = read_rows(graph, i, mask, D)
    k = tl.arange(0, KP)
    pull = tl.zeros((BLOCK, KP), out.dtype.element_ty)
    for at in range(0, max_links(links, D), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(graph, links, at + step, step)
            neighbour = read_iterate(iterate, j, j >= 0, channels, START, KP)
            pull += w[:, None] * neighbour
    pull = pull * tl.load(smoothness)
    if RESIDUAL:
        at_out, both = row_channels(i, exists, channels, k)
        tl.store(out + at_out, pull, mask=both)
    else:
        at_out, both = row_channels(i, mask, channels, k)
        pull += tl.load(r + at_out, mask=both, other=0)
        value = pull * tl.load(inverse + i, mask=mask, other=0)[:, None]
        tl.store(out + at_out, value, mask=both)
