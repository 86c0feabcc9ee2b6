"""Ever coarser versions of the grid, by halving all coordinates (section 4 of the paper).

Vertices are sorted so that those below a coarse vertex are consecutive. So a coarse vertex is a
range of vertices, and sums over all ranges come from one prefix sum.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.colours import Colours
from bilateral.backends.cuda.grid.order import WORD, Order
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


class Pyramid(NamedTuple):
    """All coarse vertices: those of the first level, then of all higher ones, as far as known."""

    parent: Tensor
    """The coarse vertex of each vertex, at the first level."""
    ancestors: Tensor
    """(levels - 1, room of the first level): what is above these, at each level."""
    begin: Tensor
    """The first vertex of each coarse one."""
    end: Tensor
    part_before: Tensor
    """In which program's part of an image the vertex before the first one is."""
    part_last: Tensor
    """And the last one."""
    push: Tensor
    """For the preconditioner: 2^-(5 + level) times the number of vertices, in float64.

    0 where the level below has one vertex already, and where there is no coarse vertex.
    """
    pull: Tensor
    """For the start: 4^-level over the number of vertices, likewise."""
    totals: tuple[Tensor, Tensor]
    """How many there are: at the first level, and at all others together; (1,) each."""
    rooms: tuple[int, int]
    """For how many of each there is room."""

    @property
    def ranges(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of the coarse vertices, as kernels take them."""
        return self.begin, self.end, self.part_before, self.part_last


def build_pyramid(
    order: Order,
    colours: Colours,
    first_vertex: Tensor,
    depth: int,
    programs: int,
    rooms: Sequence[int] | None,
) -> Pyramid:
    """The pyramid of sorted vertices; with `rooms` for its two parts, the host need not wait."""
    codes, device = order.codes, order.codes.device
    total = colours.total
    room, images = codes.shape[1], first_vertex.shape[0] - 1
    like: dict[str, Any] = {"dtype": torch.int32, "device": device}
    kept = constant(_kept(order, depth), codes.dtype, device)
    words = {"WORDS": codes.shape[0], "BLOCK": _BLOCK}
    weights = constant(
        tuple((2.0 ** -(5 + k), 4.0**-k) for k in range(depth + 1)), torch.float64, device
    )
    # Which levels are more than a copy of the one below, for each image.
    real = torch.empty((depth + 1, images), **like)
    _find_real[(depth, triton.cdiv(images, _BLOCK))](
        codes, first_vertex, kept, real, room, images, **words
    )
    new = torch.empty(room, **like)
    grid = (triton.cdiv(room, _BLOCK),)
    _mark_first[grid](codes, kept, total, new, room, **words)
    number = torch.cumsum(new, 0, dtype=torch.int32)
    lower = int(number[-1]) if rooms is None else rooms[0]
    parent = torch.empty(room, **like)
    first = torch.empty(lower + 1, **like)
    _gather_first[grid](new, number, total, parent, first, room, lower, BLOCK=_BLOCK)
    marks = torch.empty((max(depth - 1, 1), lower), **like)
    _mark_upper[(triton.cdiv(lower, _BLOCK), max(depth - 1, 1))](
        codes, kept, first, number, marks, room, lower, depth, **words
    )
    # Level after level, as they are numbered.
    numbers = torch.cumsum(marks.view(-1), 0, dtype=torch.int32)
    upper = int(numbers[-1]) if rooms is None else rooms[1]
    ancestors = torch.empty((depth - 1 if depth > 1 else 0, lower), **like)
    begin, end, part_before, part_last = (torch.empty(lower + upper, **like) for _ in range(4))
    push, pull = (torch.empty_like(begin, dtype=torch.float64) for _ in range(2))
    _gather_upper[(triton.cdiv(lower, _BLOCK), max(depth, 1))](
        marks,
        numbers,
        first,
        number,
        order.colour,
        colours.tile,
        real,
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
        colours.first.shape[0] // images,
        BLOCK=_BLOCK,
    )
    totals = number[-1:], numbers[-1:]
    _finish[(triton.cdiv(lower + upper, _BLOCK),)](
        begin,
        end,
        first_vertex,
        order.colour,
        colours.tile,
        part_before,
        part_last,
        push,
        pull,
        *totals,
        lower,
        upper,
        colours.first.shape[0] // images,
        programs,
        BLOCK=_BLOCK,
    )
    parts = part_before, part_last
    return Pyramid(parent, ancestors, begin, end, *parts, push, pull, totals, (lower, upper))


def _kept(order: Order, depth: int) -> tuple[tuple[int, ...], ...]:
    """The bits of each word of a code that are kept at each level, from 0 on."""

    def bits(lost: int) -> int:
        return -(1 << lost) if lost < 8 * order.codes.element_size() else 0

    words = range(order.codes.shape[0])
    return tuple(
        tuple(bits(min(max(lost - WORD * word, 0), WORD)) for word in words)
        for lost in order.below[: depth + 1]
    )


@triton.jit
def _differ(codes, a, b, mask, room, kept, WORDS: tl.constexpr):
    """Whether two codes do, in the bits kept at a level."""
    found = tl.load(codes + a, mask=mask, other=0) ^ tl.load(codes + b, mask=mask, other=0)
    found &= tl.load(kept)
    if WORDS == 2:
        codes += room.to(tl.int64)
        high = tl.load(codes + a, mask=mask, other=0) ^ tl.load(codes + b, mask=mask, other=0)
        found |= high & tl.load(kept + 1)
    return found != 0


@kernel("room", "images")
def _find_real(
    codes, first_vertex, kept, real, room, images, WORDS: tl.constexpr, BLOCK: tl.constexpr
):
    level = tl.program_id(0) + 1
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < images
    low = tl.load(first_vertex + i, mask=mask, other=0)
    high = tl.load(first_vertex + i + 1, mask=mask, other=1) - 1
    high = tl.maximum(tl.minimum(high, room - 1), low)  # should there be too little room
    kept += (level - 1) * WORDS
    differ = _differ(codes, low, high, mask & (low < room), room, kept, WORDS)
    several = (low < high) & (differ | (level == 1))
    tl.store(real + level * images + i, several.to(tl.int32), mask=mask)


@kernel("room")
def _mark_first(codes, kept, total, new, room, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    there = mask & (i < tl.load(total))
    differ = _differ(codes, i, tl.maximum(i - 1, 0), there, room, kept + WORDS, WORDS)
    tl.store(new + i, (there & (differ | (i == 0))).to(tl.int32), mask=mask)


@kernel("room", "lower")
def _gather_first(new, number, total, parent, first, room, lower, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    own = tl.load(number + i, mask=mask, other=1) - 1
    tl.store(parent + i, tl.minimum(own, lower - 1), mask=mask)
    starts = mask & (tl.load(new + i, mask=mask, other=0) != 0)
    tl.store(first + own, i, mask=starts & (own < lower))
    there = tl.minimum(tl.load(total), room)
    tl.store(first + tl.minimum(own + 1, lower), there, mask=i == there - 1)


@kernel("room", "lower", "depth")
def _mark_upper(
    codes,
    kept,
    first,
    number,
    marks,
    room,
    lower,
    depth,
    WORDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Which vertices of the first level begin one of a higher level."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1) + 2
    there = j < tl.minimum(tl.load(number + room - 1), lower)
    v = tl.load(first + j, mask=there, other=1)
    kept += tl.minimum(level, depth) * WORDS
    differ = _differ(codes, v, tl.maximum(v - 1, 0), there, room, kept, WORDS)
    mark = there & (differ | (j == 0)) & (j * 0 + level <= depth)
    to = marks + (level - 2) * lower.to(tl.int64) + j
    tl.store(to, mark.to(tl.int32), mask=j < lower)


@kernel("room", "lower", "upper", "images", "tiles")
def _gather_upper(
    marks,
    numbers,
    first,
    number,
    colour,
    tile,
    real,
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
    """Ranges and weights of all coarse vertices of a level, and what is above the first's."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1) + 1
    count = tl.minimum(tl.load(number + room - 1), lower)
    there = j < count
    v = tl.load(first + j, mask=there, other=0)
    last = tl.load(first + j + 1, mask=there, other=0)
    starting, ending = there, there
    own = j
    if level > 1:
        row = (level - 2) * lower.to(tl.int64)
        starting = there & (tl.load(marks + row + j, mask=there, other=0) != 0)
        after = tl.load(marks + row + j + 1, mask=there & (j + 1 < count), other=1)
        ending = there & (after != 0)
        own = lower + tl.load(numbers + row + j, mask=there, other=1) - 1
        own = tl.minimum(own, lower + tl.maximum(upper - 1, 0))
        starting = starting & (own < lower + upper)
        ending = ending & (own < lower + upper)
        tl.store(ancestors + row + j, own, mask=there)
    tl.store(begin + own, v, mask=starting)
    tl.store(end + own, last, mask=ending)
    colour_v = tl.load(colour + v, mask=starting, other=0)
    image = tl.load(tile + colour_v, mask=starting, other=0) // tiles
    counts = tl.load(real + level * images + image, mask=starting, other=0).to(tl.float64)
    tl.store(push + own, counts * tl.load(weights + 2 * level), mask=starting)
    tl.store(pull + own, counts * tl.load(weights + 2 * level + 1), mask=starting)


@triton.jit
def _part(v, on, first_vertex, colour, tile, tiles, programs):
    own = tl.load(colour + v, mask=on, other=0)
    image = tl.load(tile + own, mask=on, other=0) // tiles
    first = tl.load(first_vertex + image, mask=on, other=0)
    after = tl.load(first_vertex + image + 1, mask=on, other=1)
    size = (after - first + programs - 1) // programs  # as sums.part_of_image
    return image * programs + (v - first) // tl.maximum(size, 1)


@kernel("lower", "upper", "tiles", "programs")
def _finish(
    begin,
    end,
    first_vertex,
    colour,
    tile,
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
    """Parts of coarse vertices, and what their sizes do to their weights; 0 where there is none."""
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = g < lower + upper
    first = g < lower
    there = first & (g < tl.load(lower_total))
    there = there | (mask & (first == 0) & (g - lower < tl.load(upper_total)))
    from_ = tl.load(begin + g, mask=there, other=0)
    to = tl.load(end + g, mask=there, other=0)
    tl.store(begin + g, from_, mask=mask)
    tl.store(end + g, to, mask=mask)
    on_low, on_high = there & (from_ > 0), there & (to > 0)
    before = _part(from_ - 1, on_low, first_vertex, colour, tile, tiles, programs)
    last = _part(to - 1, on_high, first_vertex, colour, tile, tiles, programs)
    tl.store(part_before + g, tl.where(on_low, before, 0), mask=mask)
    tl.store(part_last + g, tl.where(on_high, last, 0), mask=mask)
    size = (to - from_).to(tl.float64)
    up = tl.load(push + g, mask=there, other=0) * size
    down = tl.load(pull + g, mask=there, other=0) / tl.maximum(size, 1.0)
    tl.store(push + g, up, mask=mask)
    tl.store(pull + g, down, mask=mask)
