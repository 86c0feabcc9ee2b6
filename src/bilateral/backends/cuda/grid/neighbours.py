"""The edges of the grid: a vertex's neighbours in its own tile and in those beside it."""

import torch
import triton
import triton.language as tl

from bilateral.backends.cuda.grid.colours import Colours, Features, divide
from bilateral.backends.cuda.grid.edges import Edges, new_table, pack_edges, place_in_table
from bilateral.backends.cuda.grid.layout import Layout
from bilateral.backends.cuda.grid.order import Order
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128


def find_neighbours(colours: Colours, order: Order, tiles: Layout, features: Features) -> Edges:
    """To the next and the previous vertex along x, y and the features."""
    room, channels = colours.keys.shape[0], features.affine.shape[0]
    out = new_table(room, 2 * (2 + channels), colours.keys.device)
    _find[(triton.cdiv(room, _BLOCK),)](
        colours.keys,
        colours.first,
        colours.tile,
        colours.total,
        order.colour,
        order.rank,
        tiles.row_cell,
        tiles.column_cell,
        out,
        room,
        tiles.rows,
        tiles.columns,
        C=channels,
        FIELD=features.field,
        BLOCK=_BLOCK,
        # With fewer registers, it would search along one axis after the other.
        maxnreg=40 if features.dtype == torch.int32 else 64,
    )
    return pack_edges(out, colours.total, room)


@kernel("tiles", "room", "rows", "columns")
def _find(
    keys,
    first,
    tiles,
    total,
    colour,
    rank,
    row_cell,
    column_cell,
    out,
    room,
    rows,
    columns,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The next vertex along each axis, and for that one the previous."""
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = v < tl.minimum(tl.load(total), room)
    own = tl.load(colour + v, mask=there, other=0)
    tile = tl.load(tiles + own, mask=there, other=0)
    key = tl.load(keys + own, mask=there, other=0)
    row, column = divide(tile, columns)
    _, row = divide(row, rows)  # of its image
    end = tl.load(first + tile + 1, mask=there, other=0)
    right = _next_is_beside(column_cell, column, columns, there)
    end_right = tl.load(first + tile + 2, mask=right, other=0)
    down = _next_is_beside(row_cell, row, rows, there)
    begin_down = tl.load(first + tile + columns, mask=down, other=0)
    end_down = tl.load(first + tile + columns + 1, mask=down, other=0)

    # Where the last key may be that is not above the wanted one; what is wanted; what was seen.
    searches = (end, end_right, key, ~key), (begin_down, end_down, key, ~key)
    longest = tl.maximum(end_right - end, end_down - begin_down)
    for k in tl.static_range(1, C):
        upper, inside = _upper(key, k * FIELD, FIELD)
        searches += ((own + 1, tl.where(inside, end, 0), upper, key),)  # type: ignore[assignment]
        longest = tl.maximum(longest, end - own - 1)
    most = tl.max(longest, 0)
    while most > 0:
        searches = _halve(searches, keys, (most + 1) // 2)
        most = most // 2
    # Along the first feature, the next one can only be the next colour.
    upper, inside = _upper(key, 0, FIELD)
    inside = inside & (own + 1 < end)
    inside = inside & (tl.load(keys + own + 1, mask=inside, other=0) == upper)
    feature = tl.load(rank + own + 1, mask=inside, other=-1)
    found = ()
    for k in tl.static_range(C + 1):
        at, _, wanted, seen = searches[k]
        found += (tl.load(rank + at - 1, mask=seen == wanted, other=-1),)  # type: ignore[assignment]
    _store(out, 2, v, feature, room, 4 + 2 * C)
    for k in tl.static_range(C + 1):
        _store(out, k + (k > 1), v, found[k], room, 4 + 2 * C)


@triton.jit
def _halve(searches, keys, step):
    """Search on in one half of each range; all loads come first, so that they overlap."""
    values, out = (), ()
    for k in tl.static_range(len(searches)):
        at, end, _, _ = searches[k]
        values += (tl.load(keys + at + step - 1, mask=at + step <= end, other=0),)  # type: ignore[assignment]
    for k in tl.static_range(len(searches)):
        at, end, wanted, seen = searches[k]
        upper = (at + step <= end) & (values[k] <= wanted)
        at, seen = tl.where(upper, at + step, at), tl.where(upper, values[k], seen)
        out += ((at, end, wanted, seen),)  # type: ignore[assignment]
    return out


@triton.jit
def _next_is_beside(cells, i, count, mask):
    """Whether there is a next row or column of tiles, whose cell is the next, too."""
    mask = mask & (i + 1 < count)
    here = tl.load(cells + i, mask=mask, other=0)
    return mask & (tl.load(cells + i + 1, mask=mask, other=0) == here + 1)


@triton.jit
def _upper(key, shift: tl.constexpr, FIELD: tl.constexpr):
    """The key of the next cell of a feature, and whether it has one."""
    highest = (key * 0 + ((1 << FIELD) - 1)) << shift
    return key + ((key * 0 + 1) << shift), (key & highest) != highest


@triton.jit
def _store(out, axis, v, to, room, D: tl.constexpr):
    """Edges along an axis in both directions."""
    tl.store(out + place_in_table(v, 2 * axis, D), to, mask=v < room)
    tl.store(out + place_in_table(to, 2 * axis + 1, D), v, mask=to >= 0)
