"""Sort vertices by a code that interleaves the bits of their coordinates, level by level.

So the vertices below one vertex of the pyramid are consecutive at every level, and neighbours lie
close together. The lowest bits of all coordinates share one bit of the code, that of their sum: the
order of the few vertices below one vertex of the first level does not matter.
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
from bilateral.backends.cuda.grid.keys import TileKeys
from bilateral.backends.cuda.grid.reference import Binning
from bilateral.backends.cuda.grid.tiles import TileLayout, divide
from bilateral.backends.cuda.kernel import kernel

WORD = 62
"""Bits of a code in one word of 64 bits."""
_SHORT = 32
"""Codes of at most this many bits are one word of 32 bits, which sorts in half the time."""
_CHUNK = 5
"""Bits of a key that one table look-up translates: 32 numbers fit in one line of the cache."""
_BLOCK = 256

Table = NDArray[np.int64]


class Order(NamedTuple):
    """The order of the vertices. Keys are numbered as in `TileKeys`."""

    key_of_vertex: Tensor
    """(room,) int32: number of each vertex's key."""
    vertex_of_key: Tensor
    """(room,) int32: the inverse permutation."""
    mass: Tensor
    """(room,) int32: number of pixels of each vertex."""
    codes: Tensor
    """(words, room) int32 or int64: sorted codes, the word of the lowest bits first.

    Vertices below the same vertex of the first level differ at most in the lowest bit.
    """
    lost_bits: tuple[int, ...]
    """Number of a code's bits that each level of the pyramid, from 0 on, ignores."""

    @property
    def parity(self) -> Tensor:
        """(room,) int8: parity of the sum of each vertex's coordinates; neighbours differ."""
        return (self.codes[0] & 1).to(torch.int8)


class _CodeTables(NamedTuple):
    """Look-up tables for one word of codes: a code is the exclusive or of all entries found."""

    by_row: Tensor
    """(images * rows,): entry of each row of tiles, counted through the batch."""
    by_column: Tensor
    """(columns,): entry of each column of tiles."""
    by_key: Tensor
    """(chunks, 2^_CHUNK): entry of each value of each chunk of a key."""


def sort_vertices(tile_keys: TileKeys, tiles: TileLayout, bins: Binning, images: int) -> Order:
    """Number the vertices in the order of their codes."""
    room, device = tile_keys.keys.shape[0], tile_keys.keys.device
    channels = bins.affine.shape[0]
    tables, lost_bits = hold(_code_tables(tiles, channels, bins.field, bins.bits, images))
    codes = torch.empty((len(tables), room), dtype=tables[0].by_key.dtype, device=device)
    for table, word in zip(tables, codes, strict=True):
        _find_codes[(triton.cdiv(room, _BLOCK),)](
            tile_keys.keys,
            tile_keys.tile,
            tile_keys.total,
            *table,
            word,
            room,
            tiles.columns,
            CHUNK=_CHUNK,
            CHUNKS=table.by_key.shape[0],
            BLOCK=_BLOCK,
        )
    if len(tables) == 1:
        ordered, key_numbers = torch.sort(codes[0], stable=True)
        codes = ordered[None]
    else:
        key_numbers = torch.argsort(codes[0], stable=True)
        for word in codes[1:]:
            key_numbers = key_numbers[torch.argsort(word[key_numbers], stable=True)]
        codes = codes[:, key_numbers].contiguous()
    key_of_vertex, vertex_of_key, mass = (
        torch.empty_like(key_numbers, dtype=torch.int32) for _ in range(3)
    )
    _store_order[(triton.cdiv(room, _BLOCK),)](
        key_numbers,
        tile_keys.pixel_count,
        key_of_vertex,
        vertex_of_key,
        mass,
        room,
        BLOCK=_BLOCK,
    )
    return Order(key_of_vertex, vertex_of_key, mass, codes, lost_bits)


@lru_cache(maxsize=32)
def _code_tables(
    tiles: TileLayout, channels: int, field: int, bits: int, images: int
) -> tuple[list[_CodeTables], tuple[int, ...]]:
    """Return the tables of each word, and the number of bits that each level ignores."""
    (x, y, key), lost_bits = _bit_places(*tiles.bits, channels, field, bits)
    image = range(lost_bits[-1], lost_bits[-1] + (images - 1).bit_length())
    short = image.stop <= _SHORT
    columns, rows = tiles.column_cell.cpu().numpy(), tiles.row_cell.cpu().numpy()
    number = np.arange(1 << _CHUNK)

    def table(values: Table) -> Tensor:
        stored = values.astype(np.uint32).view(np.int32) if short else values
        return torch.from_numpy(np.ascontiguousarray(stored)).to(tiles.column_cell.device)

    tables = []
    for word in range(-(-image.stop // WORD)):
        of_image = _spread_bits(np.arange(images), image, word)
        by_row = of_image[:, np.newaxis] ^ _spread_bits(rows, y, word)
        if short:
            by_row ^= 1 << 31  # signed integers sort as unsigned ones
        by_key = [
            _spread_bits(number, key[k : k + _CHUNK], word) for k in range(0, len(key), _CHUNK)
        ]
        by_column = _spread_bits(columns, x, word)
        tables.append(_CodeTables(table(by_row.ravel()), table(by_column), table(np.stack(by_key))))
    return tables, lost_bits


def _bit_places(
    x_bits: int, y_bits: int, channels: int, field: int, bits: int
) -> tuple[tuple[list[int], list[int], list[int]], tuple[int, ...]]:
    """Return the places in a code of the bits of x, y and a key, and each level's lost bits.

    The lowest bits of all coordinates share place 0, where the exclusive or leaves their sum's.
    """
    x, y, key = [0] * x_bits, [0] * y_bits, [0] * (field * channels)
    lost_bits = [0]
    count = 1
    for level in range(1, max(x_bits, y_bits, bits)):
        lost_bits.append(count)
        features = [(key, field * k, bits) for k in range(channels)]
        for places, first, size in [(x, 0, x_bits), (y, 0, y_bits), *features]:
            if level < size:
                places[first + level] = count
                count += 1
    return (x, y, key), (*lost_bits, count)


def _spread_bits(values: NDArray[Any], places: Sequence[int], word: int) -> Table:
    """Move each bit of the values to its place in a code, if that place lies in the word."""
    out = np.zeros(values.shape, np.int64)
    for bit, place in enumerate(places):
        if place // WORD == word:
            out ^= (values.astype(np.int64) >> bit & 1) << place % WORD
    return out


@kernel()
def _find_codes(
    keys,
    tile_of_key,
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
    """Store one word of each key's code."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < room
    there = mask & (i < tl.load(total))
    tile = tl.load(tile_of_key + i, mask=there, other=0)
    key = tl.load(keys + i, mask=there, other=0)
    row, column = divide(tile, columns)
    code = tl.load(by_row + row, mask=there, other=0)
    code ^= tl.load(by_column + column, mask=there, other=0)
    for k in tl.static_range(CHUNKS):
        chunk = ((key >> (k * CHUNK)) & ((1 << CHUNK) - 1)).to(tl.int32)
        code ^= tl.load(by_key + (k << CHUNK) + chunk, mask=there, other=0)
    # Entries after the last key come last.
    last = (1 << 31) - 1 if codes.dtype.element_ty == tl.int32 else 1 << 62
    tl.store(codes + i, tl.where(there, code, last), mask=mask)


@kernel()
def _store_order(
    key_numbers, pixel_count, key_of_vertex, vertex_of_key, mass, room, BLOCK: tl.constexpr
):
    """Store both permutations, and the pixel counts in the order of vertices."""
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = v < room
    key = tl.load(key_numbers + v, mask=mask, other=0)
    tl.store(key_of_vertex + v, key.to(tl.int32), mask=mask)
    tl.store(vertex_of_key + key, v, mask=mask)
    tl.store(mass + v, tl.load(pixel_count + key, mask=mask, other=0), mask=mask)
