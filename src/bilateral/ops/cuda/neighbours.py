"""The edges of the grid: a vertex's neighbours in its own tile and in those beside it."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.colours import Colours, Features
from bilateral.ops.cuda.kernel import after_previous, kernel
from bilateral.ops.cuda.layout import Layout
from bilateral.ops.cuda.order import Order

_BLOCK = 128


def find_neighbours(colours: Colours, order: Order, tiles: Layout, features: Features) -> Tensor:
    """(2 d, vertices): the next and the previous one along x, y and the features; -1 for none."""
    room, channels = colours.keys.shape[0], features.affine.shape[0]
    axes = 2 + channels
    out = torch.full((2 * axes, room), -1, dtype=torch.int32, device=colours.keys.device)
    _find[(triton.cdiv(room, _BLOCK), axes)](
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
        FIELD=features.field,
        BLOCK=_BLOCK,
    )
    return out


@kernel
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
    FIELD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The next vertex along one axis, and for that one the previous."""
    after_previous()
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    axis = tl.program_id(1)
    on = v < tl.minimum(tl.load(total), room)
    own = tl.load(colour + v, mask=on, other=0)
    tile = tl.load(tiles + own, mask=on, other=0)
    key = tl.load(keys + own, mask=on, other=0)
    if axis < 2:
        within = tile % (rows * columns)
        row, column = within // columns, within % columns
        if axis == 0:
            on = on & (column + 1 < columns)
            here = tl.load(column_cell + column, mask=on, other=0)
            on = on & (tl.load(column_cell + column + 1, mask=on, other=0) == here + 1)
            tile += 1
        else:
            on = on & (row + 1 < rows)
            here = tl.load(row_cell + row, mask=on, other=0)
            on = on & (tl.load(row_cell + row + 1, mask=on, other=0) == here + 1)
            tile += columns
    else:
        shift = ((axis - 2) * FIELD).to(key.dtype)
        unit = (key * 0 + 1) << shift
        highest = (key * 0 + ((1 << FIELD) - 1)) << shift
        on = on & ((key & highest) != highest)
        key += unit
    low = tl.load(first + tile, mask=on, other=0)
    end = tl.load(first + tile + 1, mask=on, other=0)
    high = end
    longest = tl.max(high - low, 0)
    while longest > 0:
        middle = (low + high) // 2
        less = tl.load(keys + middle, mask=on & (low < high), other=0) < key
        go = low < high
        low = tl.where(go & less, middle + 1, low)
        high = tl.where(go & (less == 0), middle, high)
        longest = longest // 2
    found = on & (low < end)
    found = found & (tl.load(keys + low, mask=found, other=0) == key)
    to = tl.load(rank + low, mask=found, other=0)
    row_of = 2 * axis * room.to(tl.int64)
    tl.store(out + row_of + v, to, mask=found)
    tl.store(out + row_of + room + to, v, mask=found)
