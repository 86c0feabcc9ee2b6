"""Find the connected components of the grid: those that have data, and their constants."""

import math

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


def with_data(grid: Grid, weight: Tensor, root: Tensor | None = None) -> Tensor:
    """Return whether each vertex is connected to a vertex with a weight above 0.

    `root` has the components, if they were found already.
    """
    root = find_components(grid.edges) if root is None else root
    marks = torch.zeros_like(root)
    count = root.shape[0]
    _mark_roots[(triton.cdiv(count, _BLOCK),)](root, weight, marks, count, BLOCK=_BLOCK)
    return marks.index_select(0, root) > 0


class Components:
    """The components of a grid, with their vertices one after another."""

    def __init__(self, grid: Grid) -> None:
        root = find_components(grid.edges)
        self._grid = grid
        self._order = torch.argsort(root, stable=True)
        _, self._of, self._sizes = torch.unique_consecutive(
            root[self._order], return_inverse=True, return_counts=True
        )

    def shift(self, weight: Tensor, b: Tensor, x: Tensor, scale: Tensor | None) -> float:
        """Shift each component of x so that its residuals sum to 0, as core/solve/components.hpp.

        Since L 1 = 0, that sum is sum c (t - x) exactly. The shift removes the one error that a
        large smoothness hides from conjugate gradients. Components without weight stay.

        Parameters
        ----------
        weight, b, x : Tensor
            (n_vertices,), (n_vertices, K) and (n_vertices, K). x is changed in place.
        scale : Tensor, optional
            (B, K), as for `Iteration`.

        Returns
        -------
        float
            The shift of the worst channel, RMS over its image and relative to `scale`, or 0 if it
            is a rounding error.
        """
        wide = weight.double()[:, None]
        residual = (b.double() - wide * x.double())[self._order]
        # Sums of segments have a fixed order, unlike atomic sums.
        total = _sum_segments(wide[self._order], self._sizes)
        shift = _sum_segments(residual, self._sizes) / torch.where(total > 0, total, torch.inf)
        of_vertex = torch.empty_like(residual)
        of_vertex[self._order] = shift[self._of]
        value = x.double() + of_vertex
        x.copy_(value)
        size = value.abs().amax(0)
        if scale is None:
            scale = self._rms(value)
            scale = torch.where(scale > 0, scale, 1)
        rms = self._rms(of_vertex)
        visible = rms > 8 * torch.finfo(x.dtype).eps * (size + scale)
        return float(torch.where(visible, rms / scale, 0).amax())

    def _rms(self, v: Tensor) -> Tensor:
        """Return the root mean square over the pixels of each image: (B, K)."""
        squares = self._grid.mass[:, None] * v * v
        pixels = math.prod(self._grid.shape[1:])
        return (_sum_segments(squares, self._grid.first_vertex.diff()) / pixels).sqrt()


def _sum_segments(rows: Tensor, sizes: Tensor) -> Tensor:
    """Sum so many rows after another."""
    return torch.segment_reduce(rows, "sum", lengths=sizes.long(), axis=0)


def find_components(edges: Edges, *, space: bool = True, features: bool = True) -> Tensor:
    """Return the lowest vertex of each vertex's component.

    Each round hooks roots to lower roots, then shortens the paths to the roots. `space` and
    `features` tell whether edges along x and y, and along the features, connect.
    """
    directions = edges.directions
    used = {"FIRST": 0 if space else 4, "END": directions if features else 4}
    count = edges.room
    root = torch.arange(count, dtype=torch.int32, device=edges.to.device)
    programs = (triton.cdiv(count, _BLOCK),)
    while True:
        before = root.clone()
        _hook_roots[programs](before, *edges, root, count, **used, D=directions, BLOCK=_BLOCK)
        for _ in range(_SHORTCUTS):
            root = root.index_select(0, root)
        if torch.equal(before, root):
            return root


@kernel()
def _hook_roots(
    before,
    words,
    to,
    root,
    count,
    FIRST: tl.constexpr,
    END: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    root_i = tl.load(before + i, mask=mask, other=0)
    lowest = root_i
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(FIRST, END):
        exists, j = neighbours[e]
        root_j = tl.load(before + j, mask=exists, other=2147483647)
        lowest = tl.minimum(lowest, root_j)
    # Both the root and the vertex get the lower root. Integers: the order does not matter.
    tl.atomic_min(root + root_i, lowest, mask=mask & (lowest < root_i))
    tl.atomic_min(root + i, lowest, mask=mask & (lowest < root_i))


@kernel()
def _mark_roots(root, weight, marks, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    has_weight = mask & (tl.load(weight + i, mask=mask, other=0) > 0)
    root_i = tl.load(root + i, mask=mask, other=0)
    tl.atomic_max(marks + root_i, 1, mask=has_weight)
