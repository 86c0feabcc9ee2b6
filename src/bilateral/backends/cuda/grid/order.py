"""The order of vertices: by a code whose bits are those of all coordinates, level by level.

So the vertices below any one of the pyramid are consecutive, at every level, and neighbours lie
close together. Of the lowest bits a code has only their sum's: in what order the few vertices below
one of the first level are, does not matter.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from bilateral.backends.cuda.constants import hold
from bilateral.backends.cuda.grid.colours import Colours, Features, divide
from bilateral.backends.cuda.grid.layout import Layout
from bilateral.backends.cuda.kernel import kernel

WORD = 62
"""Bits of a code in one number."""
_SHORT = 32
"""And if there are no more than these: half as much to sort."""
_CHUNK = 5
"""Bits of a key that are looked up at once: so many numbers are in one line of the cache."""
_BLOCK = 256

Table = NDArray[np.int64]


class Order(NamedTuple):
    """The vertices' order among the colours of all tiles."""

    colour: Tensor
    """Of each vertex."""
    rank: Tensor
    """The vertex of each colour."""
    mass: Tensor
    """The number of pixels of each vertex."""
    codes: Tensor
    """(words, vertices), the lowest bits first, sorted.

    Vertices below the same one of the first level differ in the lowest bit alone, or not at all.
    """
    below: tuple[int, ...]
    """How many bits of a code are lost at each level, from 0 on."""

    @property
    def parity(self) -> Tensor:
        """Of the sum of each vertex's coordinates, that no two neighbours share; int8."""
        return (self.codes[0] & 1).to(torch.int8)


class _Tables(NamedTuple):
    """Of one word of codes: a vertex's is the exclusive or of what is looked up in all."""

    down: Tensor
    """By the row of tiles, counted through the batch."""
    across: Tensor
    """By the column."""
    key: Tensor
    """By each chunk of the key, one after the other."""


def sort_vertices(colours: Colours, tiles: Layout, features: Features, images: int) -> Order:
    """Put colours in order."""
    room, device = colours.keys.shape[0], colours.keys.device
    channels = features.affine.shape[0]
    tables, below = hold(_tables(tiles, channels, features.field, images))
    codes = torch.empty((len(tables), room), dtype=tables[0].key.dtype, device=device)
    for table, word in zip(tables, codes, strict=True):
        _find_codes[(triton.cdiv(room, _BLOCK),)](
            colours.keys,
            colours.tile,
            colours.total,
            *table,
            word,
            room,
            tiles.columns,
            CHUNK=_CHUNK,
            CHUNKS=table.key.shape[0],
            BLOCK=_BLOCK,
        )
    if len(tables) == 1:
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


@lru_cache(maxsize=32)
def _tables(
    tiles: Layout, channels: int, field: int, images: int
) -> tuple[list[_Tables], tuple[int, ...]]:
    """Tables for each word, and how many bits of a code are below each level."""
    (x, y, key), below = _places(*tiles.bits, channels, field)
    image = range(below[-1], below[-1] + (images - 1).bit_length())
    short = image.stop <= _SHORT
    columns, rows = tiles.column_cell.cpu().numpy(), tiles.row_cell.cpu().numpy()
    number = np.arange(1 << _CHUNK)

    def table(values: Table) -> Tensor:
        kept = values.astype(np.uint32).view(np.int32) if short else values
        return torch.from_numpy(np.ascontiguousarray(kept)).to(tiles.column_cell.device)

    found = []
    for word in range(-(-image.stop // WORD)):
        first = _spread(np.arange(images), image, word)
        down = first[:, np.newaxis] ^ _spread(rows, y, word)
        if short:
            down ^= 1 << 31  # fills the numbers below 0, too
        chunks = [_spread(number, key[k : k + _CHUNK], word) for k in range(0, len(key), _CHUNK)]
        across = _spread(columns, x, word)
        found.append(_Tables(table(down.ravel()), table(across), table(np.stack(chunks))))
    return found, below


def _places(
    across: int, down: int, channels: int, field: int
) -> tuple[tuple[list[int], list[int], list[int]], tuple[int, ...]]:
    """The places in a code of the bits of x, y and a key; and how many are below each level.

    The lowest bits of all coordinates share a place: by exclusive or, that of their sum is there.
    """
    x, y, key = [0] * across, [0] * down, [0] * (field * channels)
    below = [0]
    count = 1
    for level in range(1, max(across, down, field)):
        below.append(count)
        fields = [(key, field * k, field) for k in range(channels)]
        for places, first, size in [(x, 0, across), (y, 0, down), *fields]:
            if level < size:
                places[first + level] = count
                count += 1
    return (x, y, key), (*below, count)


def _spread(values: NDArray[Any], places: Sequence[int], word: int) -> Table:
    """Values with each bit at its place in a code, as far as that is in a word."""
    out = np.zeros(values.shape, np.int64)
    for bit, place in enumerate(places):
        if place // WORD == word:
            out ^= (values.astype(np.int64) >> bit & 1) << place % WORD
    return out


@kernel("tiles", "room", "columns")
def _find_codes(
    keys,
    tiles,
    total,
    by_row,
    by_column,
    by_key,
    codes,
    room,
    columns,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    there = mask & (i < tl.load(total))
    tile = tl.load(tiles + i, mask=there, other=0)
    key = tl.load(keys + i, mask=there, other=0)
    row, column = divide(tile, columns)
    code = tl.load(by_row + row, mask=there, other=0)
    code ^= tl.load(by_column + column, mask=there, other=0)
    for k in tl.static_range(CHUNKS):
        chunk = ((key >> (k * CHUNK)) & ((1 << CHUNK) - 1)).to(tl.int32)
        code ^= tl.load(by_key + (k << CHUNK) + chunk, mask=there, other=0)
    # What is not there comes last.
    last = (1 << 31) - 1 if codes.dtype.element_ty == tl.int32 else 1 << 62
    tl.store(codes + i, tl.where(there, code, last), mask=mask)


@kernel("room")
def _place(places, size, colour, rank, mass, room, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    own = tl.load(places + i, mask=mask, other=0)
    tl.store(colour + i, own.to(tl.int32), mask=mask)
    tl.store(rank + own, i, mask=mask)
    tl.store(mass + i, tl.load(size + own, mask=mask, other=0), mask=mask)
