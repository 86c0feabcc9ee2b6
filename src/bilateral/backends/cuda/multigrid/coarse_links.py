"""Merge the links of coarse rows: all links from a row to the same neighbour become one."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import Graph, high_word, image_start
from bilateral.backends.cuda.multigrid.matching import choose_heavier, no_choice

_SHORT = 32
_LONG = 128
"""Links of a row that are compared with all others at once: one or four per thread of a warp."""
_LINKS_AT_ONCE: tl.constexpr = tl.constexpr(4)
"""Links read at a time."""
_MAX_PROGRAMS = 8192
"""Most programs of the kernel. Each goes from row to row, since starting a program takes longer
than most rows."""


def merge_links(
    bounds: Tensor, to: Tensor, weight: Tensor, starts: Tensor, total: Tensor, rows: int
) -> Graph:
    """Return the coarse graph of the given links, merged.

    Parameters
    ----------
    bounds : Tensor
        Of each row, in its upper 32 bits: its first link.
    to, weight : Tensor
        Neighbour and weight of each link.
    starts, total : Tensor
        First row of each image, and number of rows, for the graph.
    rows : int
        Room of the graph.
    """
    like: dict[str, Any] = {"dtype": torch.int32, "device": to.device}
    merged_to, merged_weight = torch.empty_like(to), torch.empty_like(weight)
    first, last, nearest = torch.empty((3, rows), **like)
    least = torch.empty(rows, dtype=torch.float32, device=to.device)
    degree = weight.new_empty(rows)
    tables = first, last, degree, nearest, least
    _merge_links[(min(rows, _MAX_PROGRAMS),)](
        *(bounds, to, weight, merged_to, merged_weight),
        *tables,
        *(starts, total, rows, to.shape[0], starts.shape[0] - 1),
        SHORT=_SHORT,
        LONG=_LONG,
        num_warps=1,
    )
    return Graph(rows, total, starts, merged_to, None, None, merged_weight, *tables)


@kernel()
def _merge_links(
    bounds,
    to,
    weight,
    merged_to,
    merged_weight,
    first,
    last,
    degree,
    nearest,
    least,
    starts,
    total,
    rows,
    entries,
    images,
    SHORT: tl.constexpr,
    LONG: tl.constexpr,
):
    """Merge the links of each row that have the same target, and find the heaviest."""
    links = to, weight, merged_to, merged_weight
    for row in range(tl.program_id(0), tl.minimum(tl.load(total), rows), tl.num_programs(0)):
        begin = tl.minimum(high_word(tl.load(bounds + row)), entries)
        end = tl.minimum(high_word(tl.load(bounds + row + 1)), entries)
        start = image_start(starts, row, images)
        if end - begin <= SHORT:
            merged_end, sums, heaviest, neighbour = _merge_row(links, begin, end, row, start, SHORT)
        else:
            merged_end, sums, heaviest, neighbour = _merge_row(links, begin, end, row, start, LONG)
        tl.store(nearest + row, neighbour)
        tl.store(least + row, 0.5 * heaviest)
        tl.store(first + row, begin)
        tl.store(last + row, merged_end)
        tl.store(degree + row, sums.to(degree.dtype.element_ty))


@triton.jit
def _merge_row(links, begin, end, row, start, BLOCK: tl.constexpr):
    """Merge the links of one row, in the order of the first link to each target, by one warp.

    Returns the end of the merged links, the sum of their weights, the largest weight, and the
    neighbour at the link with that weight.
    """
    to, weight, merged_to, merged_weight = links
    merged_end = begin
    sums = tl.zeros((BLOCK,), tl.float64)
    choice = no_choice(BLOCK)
    for at in range(begin, end, BLOCK):
        place = at + tl.arange(0, BLOCK)
        target = tl.load(to + place, mask=place < end, other=-1)
        link_weight = tl.load(weight + place, mask=place < end, other=0)
        first_place = tl.full((BLOCK,), -1, tl.int32)
        total = tl.zeros((BLOCK,), tl.float64)
        # From the last link to the first, so that the first link to each target remains.
        for back in range(0, end - begin, _LINKS_AT_ONCE):
            other = end - 1 - back
            for step in tl.static_range(_LINKS_AT_ONCE):
                exists = other - step >= begin
                j = tl.load(to + other - step, mask=exists, other=-2)
                w = tl.load(weight + other - step, mask=exists).to(tl.float64)
                total += tl.where(target == j, w, 0.0)
                first_place = tl.where(target == j, other - step, first_place)
        is_new = (first_place == place) & (target >= 0)
        merged_place = merged_end + tl.cumsum(is_new.to(tl.int32), 0) - 1
        w = total.to(merged_weight.dtype.element_ty)
        tl.store(merged_to + merged_place, target, mask=is_new)
        tl.store(merged_weight + merged_place, w, mask=is_new)
        merged_end += tl.sum(is_new.to(tl.int32), 0)
        sums += tl.where(target >= 0, link_weight, 0).to(tl.float64)
        choice = choose_heavier(row, target, start, w.to(tl.float32), is_new, choice)
    best, rank, neighbour = choice
    # The bits of floats that are not negative have the same order, and are faster to compare.
    heaviest = tl.max(best.to(tl.int32, bitcast=True), 0).to(tl.float32, bitcast=True)
    rank = tl.where((best == heaviest) & (neighbour >= 0), rank, -2147483648)
    neighbour = tl.max(tl.where(rank == tl.max(rank, 0), neighbour, -1), 0)
    return merged_end, tl.sum(sums, 0), heaviest, neighbour
