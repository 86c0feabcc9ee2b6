"""Find where the coarse vertices of each level of the pyramid begin.

Vertices are sorted by their codes, and a level ignores the lowest bits of a code. So a coarse
vertex begins wherever the bits that its level keeps differ from those of the vertex before.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.order import WORD, Order
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


class FirstLevel(NamedTuple):
    """The coarse vertices of the first level; `lower` is the room for them."""

    parent: Tensor
    """(room,) int32: coarse vertex of each vertex."""
    first: Tensor
    """(lower + 1,) int32: first vertex of each coarse vertex, then the number of vertices."""
    number: Tensor
    """(room,) int32: number of coarse vertices up to each vertex, included."""
    lower: int


class UpperLevels(NamedTuple):
    """The coarse vertices of levels 2 to depth; `upper` is the room for all of them."""

    marks: Tensor
    """(levels, lower) int32: 1 where a vertex of the first level begins one of a higher level."""
    numbers: Tensor
    """(levels * lower,) int32: prefix sums of the marks, which number them level by level."""
    upper: int


def level_masks(order: Order, depth: int) -> Tensor:
    """Return the bits of each word of a code that each level, from 0 on, keeps: (levels, words)."""

    def bits(lost: int) -> int:
        return -(1 << lost) if lost < 8 * order.codes.element_size() else 0

    words = range(order.codes.shape[0])
    masks = tuple(
        tuple(bits(min(max(lost - WORD * word, 0), WORD)) for word in words)
        for lost in order.lost_bits[: depth + 1]
    )
    return constant(masks, order.codes.dtype, order.codes.device)


def find_reducing_levels(codes: Tensor, kept: Tensor, first_vertex: Tensor, depth: int) -> Tensor:
    """Return which levels of each image have fewer vertices than the level below.

    (depth + 1, images) int32; row 0 is not used.
    """
    images = first_vertex.shape[0] - 1
    reduces = torch.empty((depth + 1, images), dtype=torch.int32, device=codes.device)
    _find_reducing_levels[(depth, triton.cdiv(images, _BLOCK))](
        codes,
        first_vertex,
        kept,
        reduces,
        codes.shape[1],
        images,
        WORDS=codes.shape[0],
        BLOCK=_BLOCK,
    )
    return reduces


def find_first_level(codes: Tensor, kept: Tensor, total: Tensor, lower: int | None) -> FirstLevel:
    """Find the first level; without `lower` the host reads its size from the device."""
    room = codes.shape[1]
    like: dict[str, Any] = {"dtype": torch.int32, "device": codes.device}
    begins = torch.empty(room, **like)
    launch = (triton.cdiv(room, _BLOCK),)
    _mark_first_level[launch](codes, kept, total, begins, room, WORDS=codes.shape[0], BLOCK=_BLOCK)
    number = torch.cumsum(begins, 0, dtype=torch.int32)
    lower = int(number[-1]) if lower is None else lower
    parent = torch.empty(room, **like)
    first = torch.empty(lower + 1, **like)
    _gather_first_level[launch](begins, number, total, parent, first, room, lower, BLOCK=_BLOCK)
    return FirstLevel(parent, first, number, lower)


def find_upper_levels(
    codes: Tensor, kept: Tensor, level: FirstLevel, depth: int, upper: int | None
) -> UpperLevels:
    """Find all other levels; without `upper` the host reads their size from the device."""
    levels = max(depth - 1, 1)
    marks = torch.empty((levels, level.lower), dtype=torch.int32, device=codes.device)
    _mark_upper_levels[(triton.cdiv(level.lower, _BLOCK), levels)](
        codes,
        kept,
        level.first,
        level.number,
        marks,
        codes.shape[1],
        level.lower,
        depth,
        WORDS=codes.shape[0],
        BLOCK=_BLOCK,
    )
    numbers = torch.cumsum(marks.view(-1), 0, dtype=torch.int32)
    return UpperLevels(marks, numbers, int(numbers[-1]) if upper is None else upper)


@triton.jit
def _differ(codes, a, b, mask, room, kept, WORDS: tl.constexpr):
    """Return whether the codes of vertices a and b differ in the bits that a level keeps."""
    changed = tl.load(codes + a, mask=mask, other=0) ^ tl.load(codes + b, mask=mask, other=0)
    changed &= tl.load(kept)
    if WORDS == 2:
        codes += room.to(tl.int64)
        high = tl.load(codes + a, mask=mask, other=0) ^ tl.load(codes + b, mask=mask, other=0)
        changed |= high & tl.load(kept + 1)
    return changed != 0


@kernel()
def _find_reducing_levels(
    codes, first_vertex, kept, reduces, room, images, WORDS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compare the first and the last vertex of each image at the level below."""
    level = tl.program_id(0) + 1
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < images
    low = tl.load(first_vertex + i, mask=mask, other=0)
    high = tl.load(first_vertex + i + 1, mask=mask, other=1) - 1
    high = tl.maximum(tl.minimum(high, room - 1), low)  # in case the room is too small
    kept += (level - 1) * WORDS
    differ = _differ(codes, low, high, mask & (low < room), room, kept, WORDS)
    several = (low < high) & (differ | (level == 1))
    tl.store(reduces + level * images + i, several.to(tl.int32), mask=mask)


@kernel()
def _mark_first_level(codes, kept, total, begins, room, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    """Store 1 where a vertex begins a coarse vertex of the first level, else 0."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    there = mask & (i < tl.load(total))
    differ = _differ(codes, i, tl.maximum(i - 1, 0), there, room, kept + WORDS, WORDS)
    tl.store(begins + i, (there & (differ | (i == 0))).to(tl.int32), mask=mask)


@kernel()
def _gather_first_level(begins, number, total, parent, first, room, lower, BLOCK: tl.constexpr):
    """Store the coarse vertex of each vertex, and the first vertex of each coarse vertex."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    coarse = tl.load(number + i, mask=mask, other=1) - 1
    tl.store(parent + i, tl.minimum(coarse, lower - 1), mask=mask)
    starts = mask & (tl.load(begins + i, mask=mask, other=0) != 0)
    tl.store(first + coarse, i, mask=starts & (coarse < lower))
    there = tl.minimum(tl.load(total), room)
    tl.store(first + tl.minimum(coarse + 1, lower), there, mask=i == there - 1)


@kernel()
def _mark_upper_levels(
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
    """Store 1 where a vertex of the first level begins a vertex of a higher level, else 0."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    level = tl.program_id(1) + 2
    there = j < tl.minimum(tl.load(number + room - 1), lower)
    v = tl.load(first + j, mask=there, other=1)
    kept += tl.minimum(level, depth) * WORDS
    differ = _differ(codes, v, tl.maximum(v - 1, 0), there, room, kept, WORDS)
    mark = there & (differ | (j == 0)) & (j * 0 + level <= depth)
    to = marks + (level - 2) * lower.to(tl.int64) + j
    tl.store(to, mark.to(tl.int32), mask=j < lower)
