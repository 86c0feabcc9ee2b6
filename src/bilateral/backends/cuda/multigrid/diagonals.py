"""What smoothness and confidence add to a hierarchy: the diagonals of A_k = lambda_k L_k + C_k."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import low
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy

_BLOCK = 256
_ALONE = 512


class Diagonals:
    """Of all levels; those from `hierarchy.alone` on lie one after another, in the last tensors.

    C_k is the sum of the confidences below each row. lambda_k is lambda 1.3^-k: without that,
    aggregates would make L_k too stiff for the errors it stands for.
    """

    def __init__(self, hierarchy: Hierarchy, weight: Tensor, smoothness: Tensor) -> None:
        self._hierarchy = hierarchy
        graphs, last = hierarchy.graphs, max(1, hierarchy.alone)
        like: dict[str, Any] = {"dtype": weight.dtype, "device": weight.device}
        # The last one: below so much times the degrees under it, a component's weight drowns.
        least = 100 * torch.finfo(weight.dtype).eps
        table = (*(1.3**-k for k in range(len(graphs))), least)
        powers = constant(table, torch.float64, weight.device)
        self.factors = torch.mul(smoothness, powers, out=weight.new_empty(len(table)))
        rooms = [graph.room for graph in graphs[:last]]
        if hierarchy.depth > 0:
            rooms.append(hierarchy.tail.rows)
        self.weights = [weight, *(torch.empty(room, **like) for room in rooms[1:])]
        self.inverses = [torch.empty(room, **like) for room in rooms]
        within = [graphs[0].degree, *(torch.empty(room, **like) for room in rooms[1:])]
        self.faint = torch.zeros(1, dtype=torch.int32, device=weight.device)
        for k in range(len(rooms)):
            self._find(k, within)
        if hierarchy.depth > hierarchy.alone:
            self._find_rest(within[-1])

    @property
    def with_data(self) -> Tensor:
        """Whether each vertex is connected to one with a weight above 0."""
        hierarchy = self._hierarchy
        above = hierarchy.tail.with_data(self.weights[-1]) if hierarchy.depth > 0 else None
        for k in range(hierarchy.alone - 1, -1, -1):
            graph = hierarchy.graphs[k]
            marks = torch.empty(graph.room, dtype=torch.int32, device=self.faint.device)
            _mark[(triton.cdiv(graph.room, _BLOCK),)](
                self.weights[k],
                hierarchy.transfers[k].parent,
                above,
                marks,
                graph.total,
                graph.room,
                BLOCK=_BLOCK,
            )
            above = marks
        if above is None:
            above = self.inverses[0]
        out: Tensor = above > 0
        return out

    def _find(self, k: int, within: list[Tensor]) -> None:
        graph = self._hierarchy.graphs[k]
        way = self._hierarchy.transfers[k - 1] if k > 0 else None
        _find_diagonals[(triton.cdiv(graph.room, _BLOCK),)](
            self.weights[k - 1] if way else None,
            within[k - 1] if way else None,
            way.bounds if way else None,
            way.members if way else None,
            graph.degree,
            self.factors[k:],
            self.factors[-1:],
            self.weights[k],
            within[k],
            self.inverses[k],
            self.faint,
            graph.total,
            graph.room,
            BLOCK=_BLOCK,
        )

    def _find_rest(self, within: Tensor) -> None:
        tail = self._hierarchy.tail
        _find_all_diagonals[(self._hierarchy.images,)](
            self.weights[-1],
            within,
            self.inverses[-1],
            tail.degree,
            tail.bounds,
            tail.members,
            tail.offsets,
            tail.starts,
            self.factors[self._hierarchy.alone :],
            self.factors[-1:],
            self.faint,
            tail.count,
            BLOCK=_ALONE,
            num_warps=16,
        )


@triton.jit
def _sum_two(a, b, bounds, members, i, mask, BLOCK: tl.constexpr):
    """Over the members of aggregates i."""
    begin = low(tl.load(bounds + i, mask=mask, other=0))
    end = low(tl.load(bounds + i + 1, mask=mask, other=0))
    one = tl.zeros((BLOCK,), a.dtype.element_ty)
    two = tl.zeros((BLOCK,), a.dtype.element_ty)
    for at in range(0, tl.max(end - begin, 0)):
        on = begin + at < end
        row = tl.load(members + begin + at, mask=on, other=0)
        one += tl.load(a + row, mask=on, other=0)
        two += tl.load(b + row, mask=on, other=0)
    return one, two


@triton.jit
def _invert(c, within, degree, factor, least, inverse, faint, i, mask, write):
    """1 / diag(A); 0 for components whose mean would drown in rounding."""
    links = tl.load(degree + i, mask=mask, other=0)
    d = factor * links + c
    drowned = (links == 0) & (c < least * within)
    good = mask & (d > 0)
    if faint is not None:
        good = good & (drowned == 0)
        tl.atomic_max(faint + i * 0, 1, mask=mask & drowned & (c > 0))
    tl.store(inverse + i, tl.where(good, 1 / tl.where(good, d, 1), 0), mask=write)


@kernel("room")
def _find_diagonals(
    c_below,
    within_below,
    bounds,
    members,
    degree,
    factor,
    least,
    c,
    within,
    inverse,
    faint,
    total,
    room,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    if bounds is None:
        mine = tl.load(c + i, mask=mask, other=0)
        _invert(
            mine, mine, degree, tl.load(factor), tl.load(least), inverse, None, i, mask, i < room
        )
    else:
        mine, degrees = _sum_two(c_below, within_below, bounds, members, i, mask, BLOCK)
        tl.store(c + i, mine, mask=mask)
        tl.store(within + i, degrees, mask=mask)
        _invert(
            mine, degrees, degree, tl.load(factor), tl.load(least), inverse, faint, i, mask, mask
        )


@kernel("count")
def _find_all_diagonals(
    c,
    within,
    inverse,
    degree,
    bounds,
    members,
    offsets,
    starts,
    factors,
    least,
    faint,
    count,
    BLOCK: tl.constexpr,
):
    """Level by level; one program per image."""
    image, images = tl.program_id(0), tl.num_programs(0)
    for level in range(1, count):
        below, own = tl.load(offsets + level - 1), tl.load(offsets + level)
        lists = bounds + (own - tl.load(offsets + 1) + level - 1)
        begin = tl.load(starts + level * (images + 1) + image)
        end = tl.load(starts + level * (images + 1) + image + 1)
        factor = tl.load(factors + level)
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            mine, degrees = _sum_two(
                c + below, within + below, lists, members + below, i, mask, BLOCK
            )
            tl.store(c + own + i, mine, mask=mask)
            tl.store(within + own + i, degrees, mask=mask)
            _invert(
                mine,
                degrees,
                degree + own,
                factor,
                tl.load(least),
                inverse + own,
                faint,
                i,
                mask,
                mask,
            )
        tl.debug_barrier()


@kernel("room")
def _mark(c, parent, above, marks, total, room, BLOCK: tl.constexpr):
    """Rows below marked ones, and those without a parent that have weights."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    p = tl.load(parent + i, mask=mask, other=-1)
    higher = tl.load(above + p, mask=p >= 0, other=0)
    own = (tl.load(c + i, mask=mask, other=0) > 0).to(tl.int32)
    tl.store(marks + i, tl.where(p >= 0, higher, own), mask=i < room)
