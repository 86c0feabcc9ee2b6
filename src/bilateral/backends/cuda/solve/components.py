"""Find the connected components of the grid that have data."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import Edges, read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256
_SHORTCUTS = 4
"""Times that paths are halved after each hooking of roots."""


def with_data(grid: Grid, weight: Tensor) -> Tensor:
    """Return whether each vertex is connected to a vertex with a weight above 0."""
    root = _find_components(grid.edges)
    marks = torch.zeros_like(root)
    count = root.shape[0]
    _mark_roots[(triton.cdiv(count, _BLOCK),)](root, weight, marks, count, BLOCK=_BLOCK)
    return marks.index_select(0, root) > 0


def _find_components(edges: Edges) -> Tensor:
    """Return the lowest vertex of each vertex's component.

    Each round hooks roots to lower roots, then shortens the paths to the roots.
    """
    count = edges.room
    root = torch.arange(count, dtype=torch.int32, device=edges.to.device)
    programs = (triton.cdiv(count, _BLOCK),)
    while True:
        before = root.clone()
        _hook_roots[programs](before, *edges, root, count, D=edges.directions, BLOCK=_BLOCK)
        for _ in range(_SHORTCUTS):
            root = root.index_select(0, root)
        if torch.equal(before, root):
            return root


@kernel("count")
def _hook_roots(before, words, to, root, count, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    root_i = tl.load(before + i, mask=mask, other=0)
    lowest = root_i
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        exists, j = neighbours[e]
        root_j = tl.load(before + j, mask=exists, other=2147483647)
        lowest = tl.minimum(lowest, root_j)
    # Both the root and the vertex get the lower root. Integers: the order does not matter.
    tl.atomic_min(root + root_i, lowest, mask=mask & (lowest < root_i))
    tl.atomic_min(root + i, lowest, mask=mask & (lowest < root_i))


@kernel("count")
def _mark_roots(root, weight, marks, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    has_weight = mask & (tl.load(weight + i, mask=mask, other=0) > 0)
    root_i = tl.load(root + i, mask=mask, other=0)
    tl.atomic_max(marks + root_i, 1, mask=has_weight)
