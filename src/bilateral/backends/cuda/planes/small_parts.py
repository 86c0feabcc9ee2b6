"""Solve the small components of a planar system directly, as core/planes/small_parts.hpp.

A component of a few vertices with a few known pixels may have a plane that its data hardly
determine. Conjugate gradients would spend steps on each such plane, for a handful of pixels.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.planes.blocks import LEAST_PIVOT, read_matrix
from bilateral.backends.cuda.planes.graph import read_links, read_meeting
from bilateral.backends.cuda.planes.levels import Level

_MOST_VERTICES = 16
_SIZES = ((1, 5, 16), (6, _MOST_VERTICES, 64))
"""Fewest and most vertices of a component, and rows of the matrix in registers."""


class SmallParts:
    """The components of a grid with at most 16 vertices.

    Parameters
    ----------
    root : Tensor
        Lowest vertex of each vertex's component, as from `find_components`.
    total : int
        Number of vertices.
    """

    def __init__(self, root: Tensor, total: int) -> None:
        order = torch.argsort(root[:total], stable=True)
        _, sizes = torch.unique_consecutive(root[:total][order], return_counts=True)
        first = torch.cumsum(sizes, 0) - sizes
        self._members = order.to(torch.int32)
        self._lists: list[tuple[Tensor, Tensor, int]] = []
        place = torch.full_like(root, -1)
        position = torch.arange(total, device=root.device)
        place[order] = (position - first.repeat_interleave(sizes, output_size=total)).to(root.dtype)
        self._place = place
        for least, most, rows in _SIZES:
            chosen = ((sizes >= least) & (sizes <= most)).nonzero()[:, 0]
            if len(chosen) > 0:
                firsts, counts = first[chosen].to(torch.int32), sizes[chosen].to(torch.int32)
                self._lists.append((firsts, counts, rows))

    def solve(self, level: Level, b: Tensor, x: Tensor, active: Tensor) -> Tensor:
        """Solve small components for all channels, in place; return who else is active.

        A component whose matrix is singular, up to rounding, stays active, and x as it is.

        Parameters
        ----------
        level : Level
            The grid.
        b, x : Tensor
            (room, K, 3).
        active : Tensor
            (room,) bool: only components of active vertices are solved.
        """
        left = active.to(torch.int32)
        channels = b.shape[1]
        constants: dict[str, Any] = level.graph.constants(channels)
        for first, sizes, rows in self._lists:
            matrices = torch.empty((len(first), rows, rows), dtype=torch.float64, device=b.device)
            _solve_parts[(len(first),)](
                *level.graph.arguments[:-2],
                *(level.smoothness, level.turn, level.data),
                *(self._members, self._place, first, sizes, active, left, b, x),
                *(matrices, channels),
                D=constants["D"],
                STEP=constants["STEP"],
                KP=triton.next_power_of_2(channels),
                ROWS=rows,
                num_warps=1 if rows == 16 else 4,
            )
        return left != 0


@triton.jit
def _unknown(u, value, along_x, along_y):
    """Return one of three numbers per row, by its unknown u."""
    return tl.where(u == 0, value, tl.where(u == 1, along_x, along_y))


@kernel(ones=("channels",))
def _solve_parts(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    smoothness,
    turns,
    data,
    members,
    place_in_part,
    parts,
    sizes,
    active,
    left,
    b,
    x,
    matrices,
    channels,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Assemble and solve the matrix of one component, by elimination without pivots in float64.

    Row 3 v + u of its matrix in `matrices` belongs to the unknown u of its vertex v.
    """
    part = tl.program_id(0)
    begin, size = tl.load(parts + part), tl.load(sizes + part)
    row = tl.arange(0, ROWS)
    vertex, u = row // 3, row % 3
    exists = vertex < size
    i = tl.load(members + begin + vertex, mask=exists, other=0)
    if tl.load(active + tl.load(members + begin)) != 0:
        matrix = matrices + part.to(tl.int64) * (ROWS * ROWS)
        tile = matrix + row[:, None] * ROWS + row[None, :]
        tl.store(tile, tl.zeros((ROWS, ROWS), tl.float64))
        tl.debug_barrier()  # all of the matrix is 0 before entries are stored
        graph = to, weight, meet, place, factors, first, last
        m = read_matrix(data, i, exists)
        own_a = _unknown(u, m[0], m[1], m[3]).to(tl.float64)
        own_x = _unknown(u, m[1], m[2], m[4]).to(tl.float64)
        own_y = _unknown(u, m[3], m[4], m[5]).to(tl.float64)
        factor = tl.load(smoothness).to(tl.float64)
        turn = tl.load(turns + i, mask=exists, other=0).to(tl.float64)
        turn_x, turn_y = tl.where(u == 1, turn, 0.0), tl.where(u == 2, turn, 0.0)
        links = read_links(graph, i, exists, D)
        for step in tl.static_range(STEP):
            j, w, near, _ = read_meeting(graph, links, step, step)
            there = j >= 0
            force = tl.where(there, factor * w.to(tl.float64), 0.0)
            near_x, near_y = near[0].to(tl.float64), near[1].to(tl.float64)
            near_u = _unknown(u, 1.0, near_x, near_y)
            own_a += force * near_u
            own_x += force * (near_u * near_x + turn_x)
            own_y += force * (near_u * near_y + turn_y)
            column = 3 * tl.load(place_in_part + j, mask=there, other=0)
            entry = matrix + row * ROWS + column
            tl.store(entry, -force * near_u, mask=there)
            tl.store(entry + 1, force * (near_u * near_x - turn_x), mask=there)
            tl.store(entry + 2, force * (near_u * near_y - turn_y), mask=there)
        entry = matrix + row * ROWS + 3 * vertex
        tl.store(entry, own_a, mask=exists)
        tl.store(entry + 1, own_x, mask=exists)
        tl.store(entry + 2, own_y, mask=exists)
        tl.debug_barrier()
        A = tl.load(tile)
        k = tl.arange(0, KP)
        at = (i.to(tl.int64)[:, None] * channels + k[None, :]) * 3 + u[:, None]
        both = exists[:, None] & (k[None, :] < channels)
        rest = tl.load(b + at, mask=both, other=0).to(tl.float64)
        is_diagonal = row[:, None] == row[None, :]
        diagonal = tl.sum(tl.where(is_diagonal, A, 0.0), 1)
        regular = tl.zeros((), tl.int32) + 1
        for n in range(0, 3 * size):
            line = tl.sum(tl.where(row[:, None] == n, A, 0.0), 0)
            column_n = tl.sum(tl.where(row[None, :] == n, A, 0.0), 1)
            pivot = tl.sum(tl.where(row == n, column_n, 0.0), 0)
            before = tl.sum(tl.where(row == n, diagonal, 0.0), 0)
            counts = pivot > LEAST_PIVOT * before
            regular = regular & counts.to(tl.int32)
            inverse_pivot = tl.where(counts, 1 / tl.where(counts, pivot, 1.0), 0.0)
            ratio = tl.where(row == n, 0.0, column_n * inverse_pivot)
            rest_n = tl.sum(tl.where(row[:, None] == n, rest, 0.0), 0)
            A -= ratio[:, None] * line[None, :]
            rest -= ratio[:, None] * rest_n[None, :]
        pivots = tl.sum(tl.where(is_diagonal, A, 0.0), 1)
        solution = rest / tl.where(pivots > 0, pivots, 1.0)[:, None]
        is_regular = (row * 0 + regular) != 0
        tl.store(x + at, solution.to(x.dtype.element_ty), mask=both & is_regular[:, None])
        tl.store(left + i, row * 0, mask=exists & (u == 0) & is_regular)
