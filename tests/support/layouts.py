"""Memory layouts that an input array may have."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


def within_a_larger_array(array: Array) -> Array:
    larger = np.zeros([2 * n + 3 for n in array.shape], array.dtype)
    inner = larger[tuple(slice(1, 2 * n + 1, 2) for n in array.shape)]
    inner[...] = array
    return inner


def unaligned(array: Array) -> Array:
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
    view = np.frombuffer(raw, array.dtype, array.size).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "Fortran order": np.asfortranarray,
    "transposed": lambda a: a.swapaxes(0, 1).copy().swapaxes(0, 1),
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "within a larger array": within_a_larger_array,
    "channels first": lambda a: np.moveaxis(np.moveaxis(a, -1, 0).copy(), 0, -1),
    "read-only": read_only,
    "unaligned": unaligned,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "subclass": lambda a: a.view(np.recarray),
}
