"""Aggregate rows by matching: an aggregate is a matched pair, and the unmatched rows that join it.

Rows join a pair at most two edges away, as in core/multigrid/aggregation.hpp.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.matching import find_mate, find_picks
from bilateral.backends.cuda.prefix import prefix_sums

_BLOCK = 256


def find_roots(graph: Graph, room: int) -> tuple[Tensor, Tensor, Tensor]:
    """Find the root of each row's aggregate, which is the first row of its pair.

    Returns
    -------
    root : Tensor
        Root of each row, or -1 for rows without neighbours.
    roots : Tensor
        Number of roots up to each row.
    zeros : Tensor
        Zeros, int64, one more than the room of the graph or `room`, whichever is larger. The same
        kernel writes them, which saves a launch.
    """
    pick = find_picks(graph)
    root, is_root = torch.empty((2, graph.room), dtype=torch.int32, device=pick.device)
    count = max(graph.room, room) + 1
    zeros = torch.empty(count, dtype=torch.int64, device=pick.device)
    _find_roots[(triton.cdiv(count, _BLOCK),)](
        graph.nearest,
        graph.least,
        pick,
        root,
        is_root,
        zeros,
        graph.total,
        graph.room,
        count,
        BLOCK=_BLOCK,
    )
    return root, prefix_sums(is_root), zeros


@kernel()
def _find_roots(
    nearest, least, pick, root, is_root, zeros, total, room, count, BLOCK: tl.constexpr
):
    """Find the root of each row.

    An unmatched row joins the pair of its nearest neighbour. If that neighbour is unmatched, too,
    the row joins the pair that the neighbour joins, unless their edge is weak for the neighbour.
    """
    i, mask = program_rows(total, room, BLOCK)
    nearest_i = tl.load(nearest + i, mask=mask, other=-1)
    has_neighbour = nearest_i >= 0
    close = tl.where(find_mate(nearest, pick, i, has_neighbour) >= 0, i, nearest_i)
    least_i = tl.load(least + i, mask=has_neighbour, other=0)
    farther = has_neighbour & (find_mate(nearest, pick, close, has_neighbour) < 0)
    least_close = tl.load(least + close, mask=has_neighbour, other=0)
    farther = farther & (8 * least_i >= least_close)
    nearest_close = tl.load(nearest + close, mask=has_neighbour, other=-1)
    member = tl.where(farther, nearest_close, close)
    # If links were left out for lack of room, the nearest neighbour may have no neighbours.
    mate = find_mate(nearest, pick, member, has_neighbour & (member >= 0))
    root_i = tl.where(mate < 0, i, tl.minimum(mate, member))
    root_i = tl.where(has_neighbour, root_i, -1)
    tl.store(root + i, root_i, mask=i < room)
    tl.store(is_root + i, (root_i == i).to(tl.int32), mask=i < room)
    tl.store(zeros + i, 0, mask=i < count)
