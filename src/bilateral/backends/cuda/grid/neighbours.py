"""Find the edges of the grid: the neighbours of each vertex in its own tile and adjacent tiles."""

import torch
import triton
import triton.language as tl

from bilateral.backends.cuda.grid.edges import Edges, new_table, pack_edges, place_in_table
from bilateral.backends.cuda.grid.keys import TileKeys
from bilateral.backends.cuda.grid.order import Order
from bilateral.backends.cuda.grid.reference import Binning
from bilateral.backends.cuda.grid.tiles import TileLayout, divide
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128


def find_neighbours(tile_keys: TileKeys, order: Order, tiles: TileLayout, bins: Binning) -> Edges:
    """Return the next and the previous vertex along x, y and the features."""
    room, channels = tile_keys.keys.shape[0], bins.affine.shape[0]
    table = new_table(room, 2 * (2 + channels), tile_keys.keys.device)
    _find_neighbours[(triton.cdiv(room, _BLOCK),)](
        tile_keys.keys,
        tile_keys.first_of_tile,
        tile_keys.tile,
        tile_keys.total,
        order.key_of_vertex,
        order.vertex_of_key,
        tiles.row_cell,
        tiles.column_cell,
        table,
        room,
        tiles.rows,
        tiles.columns,
        C=channels,
        FIELD=bins.field,
        BLOCK=_BLOCK,
        # With fewer registers, the searches along the axes would not overlap.
        maxnreg=40 if bins.dtype == torch.int32 else 64,
    )
    return pack_edges(table, tile_keys.total, room)


@kernel()
def _find_neighbours(
    keys,
    first_of_tile,
    tile_of_key,
    total,
    key_of_vertex,
    vertex_of_key,
    row_cell,
    column_cell,
    table,
    room,
    rows,
    columns,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find the next vertex along each axis by binary search; store both directions of the edge.

    `number` is the place of a vertex's key among all keys, `key` its value.
    """
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = v < tl.minimum(tl.load(total), room)
    number = tl.load(key_of_vertex + v, mask=there, other=0)
    tile = tl.load(tile_of_key + number, mask=there, other=0)
    key = tl.load(keys + number, mask=there, other=0)
    row, column = divide(tile, columns)
    _, row = divide(row, rows)  # row of its image
    end = tl.load(first_of_tile + tile + 1, mask=there, other=0)
    right = _next_is_adjacent(column_cell, column, columns, there)
    end_right = tl.load(first_of_tile + tile + 2, mask=right, other=0)
    down = _next_is_adjacent(row_cell, row, rows, there)
    begin_down = tl.load(first_of_tile + tile + columns, mask=down, other=0)
    end_down = tl.load(first_of_tile + tile + columns + 1, mask=down, other=0)

    # Each search: begin and end of the range that may hold the last key not above the target; the
    # target; the largest such key so far, or one that differs from the target.
    searches = (end, end_right, key, ~key), (begin_down, end_down, key, ~key)
    longest = tl.maximum(end_right - end, end_down - begin_down)
    for k in tl.static_range(1, C):
        target, exists = _next_key(key, k * FIELD, FIELD)
        searches += ((number + 1, tl.where(exists, end, 0), target, key),)  # type: ignore[assignment]
        longest = tl.maximum(longest, end - number - 1)
    most = tl.max(longest, 0)
    while most > 0:
        searches = _halve_ranges(searches, keys, (most + 1) // 2)
        most = most // 2
    # Along the first feature, only the next key of the tile can be the neighbour.
    target, exists = _next_key(key, 0, FIELD)
    exists = exists & (number + 1 < end)
    exists = exists & (tl.load(keys + number + 1, mask=exists, other=0) == target)
    first_feature = tl.load(vertex_of_key + number + 1, mask=exists, other=-1)
    neighbours = ()
    for k in tl.static_range(C + 1):
        at, _, target, largest = searches[k]
        j = tl.load(vertex_of_key + at - 1, mask=largest == target, other=-1)
        neighbours += (j,)  # type: ignore[assignment]
    _store_edges(table, 2, v, first_feature, room, 4 + 2 * C)
    for k in tl.static_range(C + 1):
        _store_edges(table, k + (k > 1), v, neighbours[k], room, 4 + 2 * C)


@triton.jit
def _halve_ranges(searches, keys, step):
    """Continue each search in one half of its range; all loads come first, so that they overlap."""
    values, halved = (), ()
    for k in tl.static_range(len(searches)):
        at, end, _, _ = searches[k]
        values += (tl.load(keys + at + step - 1, mask=at + step <= end, other=0),)  # type: ignore[assignment]
    for k in tl.static_range(len(searches)):
        at, end, target, largest = searches[k]
        upper = (at + step <= end) & (values[k] <= target)
        at, largest = tl.where(upper, at + step, at), tl.where(upper, values[k], largest)
        halved += ((at, end, target, largest),)  # type: ignore[assignment]
    return halved


@triton.jit
def _next_is_adjacent(cells, i, count, mask):
    """Return whether there is a row or column of tiles after i, and its cell is the next one."""
    mask = mask & (i + 1 < count)
    cell = tl.load(cells + i, mask=mask, other=0)
    return mask & (tl.load(cells + i + 1, mask=mask, other=0) == cell + 1)


@triton.jit
def _next_key(key, shift: tl.constexpr, FIELD: tl.constexpr):
    """Return the key of the next cell along a feature, and whether that cell exists."""
    last = (key * 0 + ((1 << FIELD) - 1)) << shift
    return key + ((key * 0 + 1) << shift), (key & last) != last


@triton.jit
def _store_edges(table, axis, v, to, room, D: tl.constexpr):
    """Store the edges between v and the next vertex along an axis, in both directions."""
    tl.store(table + place_in_table(v, 2 * axis, D), to, mask=v < room)
    tl.store(table + place_in_table(to, 2 * axis + 1, D), v, mask=to >= 0)
