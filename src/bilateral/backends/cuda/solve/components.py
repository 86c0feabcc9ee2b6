"""Which parts of the grid are connected to data."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import Edges, read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


def with_data(grid: Grid, weight: Tensor) -> Tensor:
    """Whether each vertex is connected to one with a weight above 0."""
    label = _components(grid.edges)
    seen = torch.zeros_like(label)
    _mark[(triton.cdiv(label.shape[0], _BLOCK),)](label, weight, seen, label.shape[0], BLOCK=_BLOCK)
    return seen.index_select(0, label) > 0


def _components(edges: Edges) -> Tensor:
    """The lowest vertex of each one's component: hook roots to lower ones, then shorten paths."""
    count = edges.room
    label = torch.arange(count, dtype=torch.int32, device=edges.to.device)
    grid = (triton.cdiv(count, _BLOCK),)
    while True:
        before = label.clone()
        _hook[grid](before, *edges, label, count, D=edges.directions, BLOCK=_BLOCK)
        for _ in range(4):
            label = label.index_select(0, label)
        if torch.equal(before, label):
            return label


@kernel("count")
def _hook(before, words, to, label, count, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    own = tl.load(before + i, mask=mask, other=0)
    least = own
    near = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = near[e]
        other = tl.load(before + j, mask=there, other=2147483647)
        least = tl.minimum(least, other)
    # The own root goes to the lower one, too: with integers, in whatever order.
    tl.atomic_min(label + own, least, mask=mask & (least < own))
    tl.atomic_min(label + i, least, mask=mask & (least < own))


@kernel("count")
def _mark(label, weight, seen, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    known = mask & (tl.load(weight + i, mask=mask, other=0) > 0)
    root = tl.load(label + i, mask=mask, other=0)
    tl.atomic_max(seen + root, 1, mask=known)
