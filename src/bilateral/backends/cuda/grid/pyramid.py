"""Build the pyramid: ever coarser grids, by halving all coordinates (section 4 of the paper).

Vertices are sorted so that those below a coarse vertex are consecutive. So a coarse vertex is a
range of vertices, and the sums over all ranges come from one prefix sum.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.image_parts import part_size
from bilateral.backends.cuda.grid.keys import TileKeys
from bilateral.backends.cuda.grid.order import Order
from bilateral.backends.cuda.grid.pyramid_levels import (
    find_first_level,
    find_reducing_levels,
    find_upper_levels,
    level_masks,
)
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


class Pyramid(NamedTuple):
    """All coarse vertices: those of the first level, then those of all higher levels.

    The two groups have rooms of their own. A coarse vertex that does not exist is an empty range.
    """

    parent: Tensor
    """(room,) int32: coarse vertex of each vertex at the first level."""
    ancestors: Tensor
    """(levels - 1, room of the first level) int32: their coarse vertices at each higher level."""
    begin: Tensor
    """(coarse,) int32: first vertex of each coarse vertex."""
    end: Tensor
    """(coarse,) int32: the vertex after its last."""
    part_before: Tensor
    """(coarse,) int32: part of an image, as in `image_parts`, of the vertex before the first."""
    part_last: Tensor
    """(coarse,) int32: part of the last vertex."""
    push: Tensor
    """(coarse,) float64, for the preconditioner: 2^-(5 + level) times the number of vertices.

    0 where the level below has one vertex only, and where the coarse vertex does not exist.
    """
    pull: Tensor
    """(coarse,) float64, for the start: 4^-level over the number of vertices, or 0 likewise."""
    totals: tuple[Tensor, Tensor]
    """Number of coarse vertices of the first level and of all higher ones, (1,) int32 each."""
    rooms: tuple[int, int]
    """Room for each of them."""

    @property
    def ranges(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The ranges of coarse vertices, as `pyramid_transfer.range_sums` takes them."""
        return self.begin, self.end, self.part_before, self.part_last


def build_pyramid(
    order: Order,
    tile_keys: TileKeys,
    first_vertex: Tensor,
    depth: int,
    programs: int,
    rooms: Sequence[int] | None,
) -> Pyramid:
    """Build the pyramid of sorted vertices.

    Parameters
    ----------
    order, tile_keys, first_vertex
        As of the `Grid`.
    depth : int
        Number of levels above the grid.
    programs : int
        Number of parts of each image, as `Grid.programs`.
    rooms : sequence of int, optional
        As `Pyramid.rooms`. Without them, the host waits for the device to learn the sizes.
    """
    codes, device = order.codes, order.codes.device
    images = first_vertex.shape[0] - 1
    tiles = tile_keys.first_of_tile.shape[0] // images
    kept = level_masks(order, depth)
    reduces = find_reducing_levels(codes, kept, first_vertex, depth)
    first_level = find_first_level(
        codes, kept, tile_keys.total, None if rooms is None else rooms[0]
    )
    parent, first, number, lower = first_level
    marks, numbers, upper = find_upper_levels(
        codes, kept, first_level, depth, None if rooms is None else rooms[1]
    )
    weights = constant(
        tuple((2.0 ** -(5 + k), 4.0**-k) for k in range(depth + 1)), torch.float64, device
    )
    like: dict[str, Any] = {"dtype": torch.int32, "device": device}
    ancestors = torch.empty((depth - 1 if depth > 1 else 0, lower), **like)
    begin, end, part_before, part_last = (torch.empty(lower + upper, **like) for _ in range(4))
    push, pull = (torch.empty_like(begin, dtype=torch.float64) for _ in range(2))
    _gather_levels[(triton.cdiv(lower, _BLOCK), max(depth, 1))](
        marks,
        numbers,
        first,
        number,
        order.key_of_vertex,
        tile_keys.tile,
        reduces,
        weights,
        ancestors,
        begin,
        end,
        push,
        pull,
        codes.shape[1],
        lower,
        upper,
        images,
        tiles,
        BLOCK=_BLOCK,
    )
    totals = number[-1:], numbers[-1:]
    _finish_ranges[(triton.cdiv(lower + upper, _BLOCK),)](
        begin,
        end,
        first_vertex,
        order.key_of_vertex,
        tile_keys.tile,
        part_before,
        part_last,
        push,
        pull,
        *totals,
        lower,
        upper,
        tiles,
        programs,
        BLOCK=_BLOCK,
    )
    parts = part_before, part_last
    return Pyramid(parent, ancestors, begin, end, *parts, push, pull, totals, (lower, upper))


@kernel()
def _gather_levels(
    marks,
    numbers,
    first,
    number,
    key_of_vertex,
    tile_of_key,
    reduces,
    weights,
    ancestors,
    begin,
    end,
    push,
    pull,
    room,
    lower,
    upper,
    images,
    tiles,
    BLOCK: tl.constexpr,
):
    """Store the ranges and weights of the coarse vertices of a level, and the ancestors.

    One program handles vertices j of the first level. A vertex of a higher level is stored by the
    programs of the first and of the last vertex j below it.
    """
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1) + 1
    count = tl.minimum(tl.load(number + room - 1), lower)
    there = j < count
    v = tl.load(first + j, mask=there, other=0)
    after_last = tl.load(first + j + 1, mask=there, other=0)
    starting, ending = there, there
    coarse = j
    if level > 1:
        row = (level - 2) * lower.to(tl.int64)
        starting = there & (tl.load(marks + row + j, mask=there, other=0) != 0)
        next_mark = tl.load(marks + row + j + 1, mask=there & (j + 1 < count), other=1)
        ending = there & (next_mark != 0)
        coarse = lower + tl.load(numbers + row + j, mask=there, other=1) - 1
        coarse = tl.minimum(coarse, lower + tl.maximum(upper - 1, 0))
        starting = starting & (coarse < lower + upper)
        ending = ending & (coarse < lower + upper)
        tl.store(ancestors + row + j, coarse, mask=there)
    tl.store(begin + coarse, v, mask=starting)
    tl.store(end + coarse, after_last, mask=ending)
    key = tl.load(key_of_vertex + v, mask=starting, other=0)
    image = tl.load(tile_of_key + key, mask=starting, other=0) // tiles
    counts = tl.load(reduces + level * images + image, mask=starting, other=0).to(tl.float64)
    tl.store(push + coarse, counts * tl.load(weights + 2 * level), mask=starting)
    tl.store(pull + coarse, counts * tl.load(weights + 2 * level + 1), mask=starting)


@triton.jit
def _part_of_vertex(v, on, first_vertex, key_of_vertex, tile_of_key, tiles, programs):
    """Return the part of vertices v, counted through the batch."""
    key = tl.load(key_of_vertex + v, mask=on, other=0)
    image = tl.load(tile_of_key + key, mask=on, other=0) // tiles
    first = tl.load(first_vertex + image, mask=on, other=0)
    end = tl.load(first_vertex + image + 1, mask=on, other=1)
    size = part_size(first, end, programs)
    return image * programs + (v - first) // tl.maximum(size, 1)


@kernel()
def _finish_ranges(
    begin,
    end,
    first_vertex,
    key_of_vertex,
    tile_of_key,
    part_before,
    part_last,
    push,
    pull,
    lower_total,
    upper_total,
    lower,
    upper,
    tiles,
    programs,
    BLOCK: tl.constexpr,
):
    """Store the parts at both ends of each range, and scale its weights by its size.

    Everything is 0 where a coarse vertex does not exist.
    """
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = g < lower + upper
    first = g < lower
    there = first & (g < tl.load(lower_total))
    there = there | (mask & (first == 0) & (g - lower < tl.load(upper_total)))
    low = tl.load(begin + g, mask=there, other=0)
    high = tl.load(end + g, mask=there, other=0)
    tl.store(begin + g, low, mask=mask)
    tl.store(end + g, high, mask=mask)
    on_low, on_high = there & (low > 0), there & (high > 0)
    before = _part_of_vertex(
        low - 1, on_low, first_vertex, key_of_vertex, tile_of_key, tiles, programs
    )
    last = _part_of_vertex(
        high - 1, on_high, first_vertex, key_of_vertex, tile_of_key, tiles, programs
    )
    tl.store(part_before + g, tl.where(on_low, before, 0), mask=mask)
    tl.store(part_last + g, tl.where(on_high, last, 0), mask=mask)
    size = (high - low).to(tl.float64)
    up = tl.load(push + g, mask=there, other=0) * size
    down = tl.load(pull + g, mask=there, other=0) / tl.maximum(size, 1.0)
    tl.store(push + g, up, mask=mask)
    tl.store(pull + g, down, mask=mask)
