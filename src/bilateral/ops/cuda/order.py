"""The order of vertices: by a code whose bits are those of all coordinates, level by level.

So the vertices below any one of the pyramid are consecutive, at every level, and neighbours lie
close together.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.colours import Colours, Features
from bilateral.ops.cuda.constants import constant
from bilateral.ops.cuda.kernel import after_previous, kernel
from bilateral.ops.cuda.layout import Layout

_WORD = 62
"""Bits of a code in one number."""
_BLOCK = 256


class Order(NamedTuple):
    """The vertices' order among the colours of all tiles."""

    colour: Tensor
    """Of each vertex."""
    rank: Tensor
    """The vertex of each colour."""
    mass: Tensor
    """The number of pixels of each vertex."""
    codes: Tensor
    """(words, vertices), the lowest bits first, sorted."""
    below: tuple[int, ...]
    """How many bits of a code are lost at each level, from 0 on."""

    @property
    def parity(self) -> Tensor:
        """Of the sum of each vertex's coordinates, that no two neighbours share; int8."""
        lowest = self.codes[0]
        total = torch.zeros_like(lowest)
        for bit in range(self.below[1]):  # the coordinates' lowest ones
            total ^= lowest >> bit
        return (total & 1).to(torch.int8)


def sort_vertices(colours: Colours, tiles: Layout, features: Features, images: int) -> Order:
    """Put colours in order."""
    room = colours.keys.shape[0]
    table, below = _bits(tiles, features, images)
    words = -(-len(table) // _WORD)
    short = len(table) <= 32  # a quarter less to sort
    like: dict[str, Any] = {
        "dtype": torch.int32 if short else torch.int64,
        "device": colours.keys.device,
    }
    codes = torch.empty((words, room), **like)
    for word in range(words):
        bits = table[word * _WORD : (word + 1) * _WORD]
        _find_codes[(triton.cdiv(room, _BLOCK),)](
            colours.keys,
            colours.tile,
            colours.total,
            tiles.row_cell,
            tiles.column_cell,
            constant(bits, torch.int32, colours.keys.device),
            codes[word],
            room,
            tiles.rows,
            tiles.columns,
            len(bits),
            SHORT=short,
            BLOCK=_BLOCK,
        )
    if words == 1:
        ordered, places = torch.sort(codes[0], stable=True)
        codes = ordered[None]
    else:
        places = torch.argsort(codes[0], stable=True)
        for word in codes[1:]:
            places = places[torch.argsort(word[places], stable=True)]
        codes = codes[:, places].contiguous()
    colour, rank, mass = (torch.empty_like(places, dtype=torch.int32) for _ in range(3))
    _place[(triton.cdiv(room, _BLOCK),)](
        places, colours.size, colour, rank, mass, room, BLOCK=_BLOCK
    )
    return Order(colour, rank, mass, codes, below)


def _bits(
    tiles: Layout, features: Features, images: int
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Which bit of what each bit of a code is; and how many there are below each level.

    0 is x, 1 is y, 2 the key, 3 the image.
    """
    across, down = tiles.bits
    channels, field = features.affine.shape[0], features.field
    table: list[tuple[int, int]] = []
    below = []
    for level in range(max(across, down, field, 1)):
        below.append(len(table))
        table += [(0, level)] * (level < across) + [(1, level)] * (level < down)
        table += [(2, field * k + level) for k in range(channels) if level < field]
    below.append(len(table))
    table += [(3, bit) for bit in range((images - 1).bit_length())]
    return tuple(table or [(0, 0)]), tuple(below)


@kernel
def _find_codes(
    keys,
    tiles,
    total,
    row_cell,
    column_cell,
    bits,
    codes,
    room,
    rows,
    columns,
    count,
    SHORT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    after_previous()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    there = mask & (i < tl.load(total))
    tile = tl.load(tiles + i, mask=there, other=0)
    key = tl.load(keys + i, mask=there, other=0)
    image, within = tile // (rows * columns), tile % (rows * columns)
    y = tl.load(row_cell + within // columns, mask=there, other=0)
    x = tl.load(column_cell + within % columns, mask=there, other=0)
    code = tl.zeros((BLOCK,), tl.int64)
    for k in range(0, count):
        what, bit = tl.load(bits + 2 * k), tl.load(bits + 2 * k + 1)
        place = tl.where(what == 0, x, tl.where(what == 1, y, image))
        source = tl.where(what == 2, key.to(tl.int64), place.to(tl.int64))
        code |= ((source >> bit) & 1) << k
    # What is not there comes last; short codes fill the numbers below 0, too.
    last = (1 << 32) - 1 if SHORT else 1 << 62
    code = tl.where(there, code, last)
    if SHORT:
        code = code - (1 << 31)
    tl.store(codes + i, code.to(codes.dtype.element_ty), mask=mask)


@kernel
def _place(places, size, colour, rank, mass, room, BLOCK: tl.constexpr):
    after_previous()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    own = tl.load(places + i, mask=mask, other=0)
    tl.store(colour + i, own.to(tl.int32), mask=mask)
    tl.store(rank + own, i, mask=mask)
    tl.store(mass + i, tl.load(size + own, mask=mask, other=0), mask=mask)
