"""Save a grid of the core as plain arrays, and build the same grid from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import _core, validation
from bilateral.backends.cpu.grid import Grid
from bilateral.threads import get_num_threads

VERSION = 1
"""Changes whenever an entry of the state changes its meaning."""

_CELLS = ("x_cell", "y_cell", "t_cell")
_ENTRIES = ("space_dimensions", "blur", "key_bits", *_CELLS, "last_rank", "rank", "keys")
_INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def grid_state(grid: Grid) -> dict[str, Any]:
    """Return the state of a grid: the vertices and the vertex of each pixel, in small dtypes.

    Its entries are ``version``; ``space_dimensions``, 2 or 3; ``blur``, the weights of B-bar;
    ``key_bits``, the bits of each feature in a key; ``x_cell``, ``y_cell`` and ``t_cell``, the cell
    of each column, line and frame of pixels; ``rank``, the number of each pixel's vertex within its
    tile; ``last_rank``, the largest rank of each tile; and ``keys``, the features of each vertex.
    A photograph takes little more than 1 byte per pixel and 4 bytes per vertex.
    """
    state: dict[str, Any] = dict(zip(_ENTRIES, grid.core.state(get_num_threads()), strict=True))
    for name in _CELLS:
        cells = state[name]
        state[name] = cells.astype(np.min_scalar_type(cells[-1]))
    return {"version": VERSION, **state}


def grid_from_state(
    state: Mapping[str, Any],
    *,
    lowest_eigenvalue: float,
    level_stiffness: float,
    faint_epsilons: float,
) -> Grid:
    """Build a grid from its state. For the other arguments see `build_grid`.

    Edges, pyramid and bistochastization are computed again, with the same bits on the same machine.
    A damaged state raises ValueError.
    """
    name = "grid state"
    entries = validation.state(name, state, VERSION, _ENTRIES)
    x_cell, y_cell, t_cell = (_integers(f"{name}, {axis}", entries[axis]) for axis in _CELLS)
    last_rank, rank = (
        validation.state_array(f"{name}, {entry}", entries[entry], ("u1", "u2", "u4"), axes=1)
        for entry in ("last_rank", "rank")
    )
    try:
        keys_axes = np.ndim(entries["keys"])
        keys = validation.state_array(f"{name}, keys", entries["keys"], ("i4", "u8"), keys_axes)
        centre, space, range_ = entries["blur"]
        return Grid(
            *_core.grid_from_state(
                entries["space_dimensions"],
                validation.blur((centre, space, range_), dimensions=0),
                list(entries["key_bits"]),
                x_cell,
                y_cell,
                t_cell,
                last_rank,
                rank,
                keys,
                lowest_eigenvalue,
                level_stiffness,
                faint_epsilons,
                get_num_threads(),
            )
        )
    except TypeError:
        raise validation.damaged_state(name, "an entry has an unexpected type") from None
    except ValueError as error:
        raise validation.damaged_state(name, str(error).rstrip(".")) from None


def _integers(name: str, value: object) -> list[int]:
    integers: NDArray[Any] = validation.state_array(name, value, _INTEGERS, axes=1)
    cells: list[int] = integers.astype(np.int64).tolist()
    return cells
