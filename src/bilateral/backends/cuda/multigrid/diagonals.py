"""Compute the diagonals of a hierarchy's matrices A_k = lambda_k L_k + diag(c_k).

The diagonals are the only part of the matrices that depends on smoothness and confidence.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import low_word
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy

_BLOCK = 256
_SMALL_LEVELS_BLOCK = 512


class Diagonals:
    """Diagonals of all levels. The last tensors hold all small levels, one after another.

    c_k sums the confidences below each row. lambda_k is lambda level_stiffness^-k: without this
    factor, aggregation would make L_k too stiff for the smooth errors that level k must represent.

    Parameters
    ----------
    hierarchy : Hierarchy
    weight : Tensor
        Confidence of each vertex, c_0.
    smoothness : Tensor
        lambda, () in float64.
    level_stiffness : float
    faint_epsilons : float
        A component is faint if its confidence is below this many machine epsilons, relative to
        lambda times the sum of its degrees: rounding errors hide its mean.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        weight: Tensor,
        smoothness: Tensor,
        level_stiffness: float,
        faint_epsilons: float,
    ) -> None:
        self._hierarchy = hierarchy
        graphs, first_small = hierarchy.graphs, max(1, hierarchy.first_small)
        like: dict[str, Any] = {"dtype": weight.dtype, "device": weight.device}
        least = faint_epsilons * torch.finfo(weight.dtype).eps
        table = (*(level_stiffness**-k for k in range(len(graphs))), least)
        factors = constant(table, torch.float64, weight.device)
        self.smoothness = torch.mul(smoothness, factors, out=weight.new_empty(len(table)))
        """lambda_k of all levels; then the least confidence of a component per sum of degrees."""
        rooms = [graph.room for graph in graphs[:first_small]]
        if hierarchy.depth > 0:
            rooms.append(hierarchy.small_levels.rows)
        self.weights = [weight, *(torch.empty(room, **like) for room in rooms[1:])]
        """c_k."""
        self.inverses = [torch.empty(room, **like) for room in rooms]
        """1 / diag(A_k), or 0 for rows without data and neighbours, and for faint components."""
        # Sums of the grid's degrees below each row.
        degree_sums = [graphs[0].degree, *(torch.empty(room, **like) for room in rooms[1:])]
        self.has_faint_component = torch.zeros(1, dtype=torch.int32, device=weight.device)
        """(1,): not 0 if some component has data, but is faint."""
        for k in range(len(rooms)):
            self._find_level(k, degree_sums)
        if hierarchy.depth > hierarchy.first_small:
            self._find_small_levels(degree_sums[-1])

    @property
    def with_data(self) -> Tensor:
        """Whether each vertex is connected to a vertex with a confidence above 0."""
        hierarchy = self._hierarchy
        marks = hierarchy.small_levels.with_data(self.weights[-1]) if hierarchy.depth > 0 else None
        for k in range(hierarchy.first_small - 1, -1, -1):
            graph, above = hierarchy.graphs[k], marks
            marks = torch.empty(graph.room, dtype=torch.int32, device=graph.to.device)
            _mark_below[(triton.cdiv(graph.room, _BLOCK),)](
                self.weights[k],
                hierarchy.transfers[k].parent,
                above,
                marks,
                graph.total,
                graph.room,
                BLOCK=_BLOCK,
            )
        with_data: Tensor = (self.inverses[0] if marks is None else marks) > 0
        return with_data

    def _find_level(self, k: int, degree_sums: list[Tensor]) -> None:
        graph = self._hierarchy.graphs[k]
        below: tuple[Tensor | None, ...] = (None,) * 4
        if k > 0:
            transfer = self._hierarchy.transfers[k - 1]
            below = self.weights[k - 1], degree_sums[k - 1], transfer.bounds, transfer.members
        _find_diagonals[(triton.cdiv(graph.room, _BLOCK),)](
            *below,
            graph.degree,
            self.smoothness[k:],
            self.smoothness[-1:],
            self.weights[k],
            degree_sums[k],
            self.inverses[k],
            self.has_faint_component,
            graph.total,
            graph.room,
            BLOCK=_BLOCK,
        )

    def _find_small_levels(self, degree_sums: Tensor) -> None:
        small = self._hierarchy.small_levels
        _find_small_diagonals[(self._hierarchy.images,)](
            self.weights[-1],
            degree_sums,
            self.inverses[-1],
            small.degree,
            small.bounds,
            small.members,
            small.offsets,
            small.starts,
            self.smoothness[self._hierarchy.first_small :],
            self.smoothness[-1:],
            self.has_faint_component,
            small.count,
            BLOCK=_SMALL_LEVELS_BLOCK,
            num_warps=16,
        )


@triton.jit
def _sum_below(c, degree_sums, bounds, members, i, mask, BLOCK: tl.constexpr):
    """Return the sums of c and of `degree_sums` over the members of aggregates i."""
    begin = low_word(tl.load(bounds + i, mask=mask, other=0))
    end = low_word(tl.load(bounds + i + 1, mask=mask, other=0))
    c_sum = tl.zeros((BLOCK,), c.dtype.element_ty)
    degree_sum = tl.zeros((BLOCK,), c.dtype.element_ty)
    for at in range(0, tl.max(end - begin, 0)):
        exists = begin + at < end
        row = tl.load(members + begin + at, mask=exists, other=0)
        c_sum += tl.load(c + row, mask=exists, other=0)
        degree_sum += tl.load(degree_sums + row, mask=exists, other=0)
    return c_sum, degree_sum


@triton.jit
def _store_inverse(c, degree_sum, degree, smoothness, least, inverse, has_faint, i, mask, store):
    """Store 1 / diag(A), but 0 for faint components; `has_faint` is None for the grid.

    A row without links stands for a whole component.
    """
    links = tl.load(degree + i, mask=mask, other=0)
    d = smoothness * links + c
    faint = (links == 0) & (c < least * degree_sum)
    invertible = mask & (d > 0)
    if has_faint is not None:
        invertible = invertible & (faint == 0)
        tl.atomic_max(has_faint + i * 0, 1, mask=mask & faint & (c > 0))
    value = tl.where(invertible, 1 / tl.where(invertible, d, 1), 0)
    tl.store(inverse + i, value, mask=store)


@triton.jit
def _find_coarse_rows(below, lists, level, numbers, has_faint, i, mask, BLOCK: tl.constexpr):
    """Store c, the sums of degrees and 1 / diag(A) of rows i of a coarse level.

    `below` is (c, degree_sums) of the finer level, `lists` is (bounds, members), `level` is
    (c, degree_sums, degree, inverse), and `numbers` is lambda_k and the least confidence of a
    component per sum of degrees.
    """
    c, degree_sums, degree, inverse = level
    c_i, degree_sum = _sum_below(*below, *lists, i, mask, BLOCK)
    tl.store(c + i, c_i, mask=mask)
    tl.store(degree_sums + i, degree_sum, mask=mask)
    rows = i, mask, mask
    _store_inverse(c_i, degree_sum, degree, *numbers, inverse, has_faint, *rows)


@kernel()
def _find_diagonals(
    c_below,
    degree_sums_below,
    bounds,
    members,
    degree,
    smoothness,
    least,
    c,
    degree_sums,
    inverse,
    has_faint,
    total,
    room,
    BLOCK: tl.constexpr,
):
    i, mask = program_rows(total, room, BLOCK)
    lambda_k, least_weight = tl.load(smoothness), tl.load(least)
    if bounds is None:
        c_i = tl.load(c + i, mask=mask, other=0)
        rows = i, mask, i < room
        _store_inverse(c_i, c_i, degree, lambda_k, least_weight, inverse, None, *rows)
    else:
        below, lists = (c_below, degree_sums_below), (bounds, members)
        level = c, degree_sums, degree, inverse
        numbers = lambda_k, least_weight
        _find_coarse_rows(below, lists, level, numbers, has_faint, i, mask, BLOCK)


@kernel()
def _find_small_diagonals(
    c,
    degree_sums,
    inverse,
    degree,
    bounds,
    members,
    offsets,
    starts,
    smoothness,
    least,
    has_faint,
    count,
    BLOCK: tl.constexpr,
):
    """Find the diagonals of all small levels but the first, with one program per image."""
    image, images = tl.program_id(0), tl.num_programs(0)
    least_weight = tl.load(least)
    for k in range(1, count):
        fine, coarse = tl.load(offsets + k - 1), tl.load(offsets + k)
        begin = tl.load(starts + k * (images + 1) + image)
        end = tl.load(starts + k * (images + 1) + image + 1)
        below = c + fine, degree_sums + fine
        # Each level but the first has one bound more than rows.
        lists = bounds + (coarse - tl.load(offsets + 1) + k - 1), members + fine
        level = c + coarse, degree_sums + coarse, degree + coarse, inverse + coarse
        numbers = tl.load(smoothness + k), least_weight
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            _find_coarse_rows(below, lists, level, numbers, has_faint, i, i < end, BLOCK)
        tl.debug_barrier()


@kernel()
def _mark_below(c, parent, above, marks, total, room, BLOCK: tl.constexpr):
    """Mark rows below marked ones, and rows without a parent that have confidence."""
    i, mask = program_rows(total, room, BLOCK)
    p = tl.load(parent + i, mask=mask, other=-1)
    parent_mark = tl.load(above + p, mask=p >= 0, other=0)
    has_weight = (tl.load(c + i, mask=mask, other=0) > 0).to(tl.int32)
    tl.store(marks + i, tl.where(p >= 0, parent_mark, has_weight), mask=i < room)
