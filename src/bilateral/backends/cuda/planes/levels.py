"""Work on one level of planes: products with A, Jacobi steps, half-sweeps, and transfers.

Vectors are (rows, K, 3). Products with A are sums of differences at the points where planes meet,
so that they are exact for planes that go on across edges.
"""

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    lane_rows,
    link_number,
    max_links,
    sum_lanes,
)
from bilateral.backends.cuda.multigrid.levels import restrict_to
from bilateral.backends.cuda.planes.blocks import (
    evaluate,
    read_matrix,
    read_plane,
    times,
    write_plane,
)
from bilateral.backends.cuda.planes.graph import (
    PlaneGraph,
    add_force,
    lowered,
    raised,
    read_links,
    read_meeting,
)

_BLOCK = 256


@dataclass(frozen=True)
class Level:
    """The matrix A = lambda L + data of a level."""

    graph: PlaneGraph
    smoothness: Tensor
    """lambda, the first number of this tensor."""
    turn: Tensor
    data: Tensor
    inverse: Tensor
    lift: Tensor | None
    """As `Geometry.lifts`; None on the coarsest level."""


def jacobi_step(level: Level, r: Tensor, x: Tensor, omega: float, out: Tensor) -> None:
    """Write x + omega D^-1 (r - A x) for the diagonal blocks D; rows without links are solved."""
    _launch_relax(level, r, x, None, omega, out, "step")


def find_residual(level: Level, r: Tensor, x: Tensor, out: Tensor, *, as_parent: bool) -> None:
    """Write r - A x; `as_parent`: for the restriction to parents."""
    lift = level.lift if as_parent else None
    _launch_relax(level, r, x, lift, 1.0, out, "residual")


def _launch_relax(
    level: Level, r: Tensor, x: Tensor, lift: Tensor | None, omega: float, out: Tensor, mode: str
) -> None:
    channels = r.shape[1]
    constants = level.graph.constants(channels)
    _relax[(triton.cdiv(level.graph.graph.room, constants["BLOCK"]),)](
        *level.graph.arguments,
        *(level.smoothness, level.turn, level.data, level.inverse),
        *(r, x, lift, out, omega, channels),
        RESIDUAL=mode == "residual",
        KP=triton.next_power_of_2(channels),
        **constants,
    )


def solve_blocks(level: Level, r: Tensor, omega: float, out: Tensor) -> None:
    """Write omega D^-1 r."""
    _launch_rows(_solve_blocks, level, r.shape[1], level.inverse, r, out, omega)


def add_from_parents(
    level: Level, above: Tensor, transfer: Transfer, x: Tensor | None, b: Tensor | None, out: Tensor
) -> None:
    """Write x plus the planes of parents. Rows without a parent keep x, or are solved for b."""
    tensors = level.inverse, level.lift, above, transfer.parent, x, b, out
    _launch_rows(_add_from_parents, level, above.shape[1], *tensors)


def raise_rows(level: Level, b: Tensor, out: Tensor) -> None:
    """Write b for the restriction to parents."""
    _launch_rows(_raise_rows, level, b.shape[1], level.lift, b, out)


def restrict(transfer: Transfer, coarse: Graph, values: Tensor, out: Tensor) -> None:
    """Write the sums of raised values over the members of each aggregate."""
    columns = 3 * values.shape[1]
    restrict_to(transfer, coarse, values.view(-1, columns), out.view(-1, columns))


def _launch_rows(program: Any, level: Level, channels: int, *arguments: Any) -> None:
    padded = triton.next_power_of_2(channels)
    graph, block = level.graph.graph, max(16, _BLOCK // padded)
    program[(triton.cdiv(graph.room, block),)](
        *(*arguments, graph.total, graph.room, channels), KP=padded, BLOCK=block
    )


def solve_colour(
    level: Level,
    r: Tensor | None,
    colours: Tensor,
    colour: int,
    x: Tensor,
    out: Tensor | None = None,
) -> None:
    """Solve the grid's rows of one colour, with x at the other colour, and write them to `out`.

    r: None for 0. Without `out`, to x.
    """
    _launch_colour(level, r, colours, colour, x, x if out is None else out, None, (0.0, 0.0))


def find_colour_residual(
    level: Level, colours: Tensor, colour: int, x: Tensor, out: Tensor
) -> None:
    """Write the residual of rows of one colour that were solved for 0 at the other, raised.

    `out` is 0 at the other colour, which was solved last.
    """
    _launch_colour(level, None, colours, colour, x, out, None, None)


def sweep_colour(
    level: Level,
    r: Tensor,
    colours: Tensor,
    colour: int,
    x: Tensor,
    move: Tensor,
    step: float,
    keep: float,
) -> None:
    """Move rows of one colour by `step` times the change of a half-sweep, and `keep` times `move`.

    `move` takes the new move.
    """
    _launch_colour(level, r, colours, colour, x, x, move, (step, keep))


def _launch_colour(
    level: Level,
    r: Tensor | None,
    colours: Tensor,
    colour: int,
    x: Tensor,
    out: Tensor,
    move: Tensor | None,
    factors: tuple[float, float] | None,
) -> None:
    channels = x.shape[1]
    constants = {**level.graph.constants(channels)}
    del constants["LANES"]
    step, keep = factors or (0.0, 0.0)
    _relax_colour[(triton.cdiv(level.graph.graph.room, constants["BLOCK"]),)](
        *level.graph.arguments,
        *(level.smoothness, level.turn, level.inverse),
        *(r, colours, x, out, level.lift, move, colour, step, keep, channels),
        RESIDUAL=factors is None,
        KP=triton.next_power_of_2(channels),
        **constants,
    )


@triton.jit
def row_residual(
    graph,
    x,
    matrix,
    r,
    i,
    mask,
    lambda_k,
    channels,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    lane=0,
    LANES: tl.constexpr = 1,
):
    """Return x at rows i, the residual r - A x there, and the numbers of links.

    `matrix` is (turns, data). Each row may occur in LANES lanes, which share its links.
    """
    turns, data = matrix
    k = tl.arange(0, KP)
    own = read_plane(x, i, mask, channels, k)
    links = read_links(graph, i, mask, D)
    turn = tl.load(turns + i, mask=mask, other=0)
    flow = (own[0] * 0, own[0] * 0, own[0] * 0)
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w, near, far = read_meeting(graph, links, e, step)
            there = read_plane(x, j, j >= 0, channels, k)
            gap = evaluate(own, near) - evaluate(there, far)
            flow = add_force(flow, w, turn, near, gap, own[1] - there[1], own[2] - there[2])
    product = times(read_matrix(data, i, mask), own)
    given = read_plane(r, i, mask, channels, k)
    return (
        own,
        (
            given[0] - product[0] - lambda_k * sum_lanes(flow[0], LANES),
            given[1] - product[1] - lambda_k * sum_lanes(flow[1], LANES),
            given[2] - product[2] - lambda_k * sum_lanes(flow[2], LANES),
        ),
        links[1],
    )


@triton.jit
def jacobi_update(own, residual, count, inverse, i, mask, omega):
    """Return a damped Jacobi step from `own`; undamped for rows with a `count` of 0 links."""
    change = times(read_matrix(inverse, i, mask), residual)
    damped = (count + i * 0 > 0).to(change[0].dtype)[:, None]
    factor = 1 + damped * (omega - 1)
    return (
        own[0] + factor * change[0],
        own[1] + factor * change[1],
        own[2] + factor * change[2],
    )


@kernel(ones=("channels",))
def _relax(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    room,
    total,
    smoothness,
    turns,
    data,
    inverse,
    r,
    x,
    lift,
    out,
    omega,
    channels,
    RESIDUAL: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, meet, place, factors, first, last
    own, residual, count = row_residual(
        graph,
        x,
        (turns, data),
        r,
        i,
        mask,
        tl.load(smoothness),
        channels,
        D,
        STEP,
        KP,
        lane,
        LANES,
    )
    k = tl.arange(0, KP)
    store = mask & (lane == 0)
    if RESIDUAL:
        if lift is not None:
            residual = raised(lift, i, mask, residual)
        write_plane(out, i, store, channels, k, residual)
    else:
        moved = jacobi_update(own, residual, count, inverse, i, mask, omega)
        write_plane(out, i, store, channels, k, moved)


@kernel(ones=("channels",))
def _relax_colour(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    room,
    total,
    smoothness,
    turns,
    inverse,
    r,
    colours,
    x,
    out,
    lift,
    move,
    colour,
    move_step,
    keep,
    channels,
    RESIDUAL: tl.constexpr,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write what neighbours pull, times lambda and raised; or D^-1 of it and r; or a move to it."""
    i, exists = program_rows(total, room, BLOCK)
    graph = to, weight, meet, place, factors, first, last
    mask = exists & (tl.load(colours + i, mask=exists, other=0) == colour)
    k = tl.arange(0, KP)
    links = read_links(graph, i, mask, D)
    turn = tl.load(turns + i, mask=mask, other=0)
    zero = tl.zeros((BLOCK, KP), out.dtype.element_ty)
    pull = (zero, zero, zero)
    for step in tl.static_range(STEP):
        j, w, near, far = read_meeting(graph, links, step, step)
        there = read_plane(x, j, j >= 0, channels, k)
        pull = add_force(pull, w, turn, near, evaluate(there, far), there[1], there[2])
    factor = tl.load(smoothness)
    pull = (factor * pull[0], factor * pull[1], factor * pull[2])
    if RESIDUAL:
        if lift is not None:
            pull = raised(lift, i, mask, pull)
        write_plane(out, i, exists, channels, k, pull)
    else:
        if r is not None:
            given = read_plane(r, i, mask, channels, k)
            pull = (pull[0] + given[0], pull[1] + given[1], pull[2] + given[2])
        solved = times(read_matrix(inverse, i, mask), pull)
        if move is not None:
            own = read_plane(x, i, mask, channels, k)
            kept = mask & (i * 0 + keep > 0)  # `move` holds no numbers before the first move
            last_move = read_plane(move, i, kept, channels, k)
            change = (
                move_step * (solved[0] - own[0]) + keep * last_move[0],
                move_step * (solved[1] - own[1]) + keep * last_move[1],
                move_step * (solved[2] - own[2]) + keep * last_move[2],
            )
            write_plane(move, i, mask, channels, k, change)
            solved = (own[0] + change[0], own[1] + change[1], own[2] + change[2])
        write_plane(out, i, mask, channels, k, solved)


@kernel(ones=("channels",))
def _solve_blocks(
    inverse,
    r,
    out,
    omega,
    total,
    room,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i, mask = program_rows(total, room, BLOCK)
    k = tl.arange(0, KP)
    solved = times(read_matrix(inverse, i, mask), read_plane(r, i, mask, channels, k))
    write_plane(
        out, i, mask, channels, k, (omega * solved[0], omega * solved[1], omega * solved[2])
    )


@kernel(ones=("channels",))
def _add_from_parents(
    inverse,
    lift,
    above,
    parent,
    x,
    b,
    out,
    total,
    room,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i, mask = program_rows(total, room, BLOCK)
    k = tl.arange(0, KP)
    p = tl.load(parent + i, mask=mask, other=-1)
    below = lowered(lift, i, mask, read_plane(above, p, p >= 0, channels, k))
    if x is not None:
        own = read_plane(x, i, mask, channels, k)
        below = (below[0] + own[0], below[1] + own[1], below[2] + own[2])
    if b is not None:
        alone = mask & (p < 0)
        solved = times(read_matrix(inverse, i, alone), read_plane(b, i, alone, channels, k))
        below = (below[0] + solved[0], below[1] + solved[1], below[2] + solved[2])
    write_plane(out, i, mask, channels, k, below)


@kernel(ones=("channels",))
def _raise_rows(lift, b, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    i, mask = program_rows(total, room, BLOCK)
    k = tl.arange(0, KP)
    plane = raised(lift, i, mask, read_plane(b, i, mask, channels, k))
    write_plane(out, i, mask, channels, k, plane)
