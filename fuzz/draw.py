"""Draw inputs from one seed: numbers, photographs, maps, confidences, odd layouts of memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WHITE = {"uint8": 255.0, "uint16": 65535.0, "float16": 1.0, "float32": 1.0, "float64": 1.0}
BLURS = ("paper", "uniform", (3.0, 0.5, 0.25), (2.0, 1.0, 0.0), (2.0, 0.0, 1.0), (1.5, 0.7, 1.3))
PHOTO_DTYPES = ("uint8", "uint8", "uint16", "float32", "float64", "float16")
MAP_DTYPES = ("float32", "float32", "float64", "float64", "uint8", "uint16", "int32", "float16")


class Draw(random.Random):
    """Random numbers for one case. Scalars are drawn without NumPy, which takes longer for them."""

    def __new__(cls) -> Draw:
        """Make a generator."""
        return super().__new__(cls, 0)

    def __init__(self) -> None:
        super().__init__(0)
        self._bits = np.random.PCG64(0)
        self._state: Any = self._bits.state
        self.numpy = np.random.Generator(self._bits)

    def restart(self, seed: int) -> None:
        """Begin the case of a seed."""
        self.seed(seed)
        self._state["state"]["state"] = self.getrandbits(128)
        self._state["has_uint32"] = 0
        self._bits.state = self._state

    def chance(self, p: float) -> bool:
        """Return True in a part `p` of all cases."""
        return self.random() < p

    def decades(self, low: float, high: float) -> float:
        """Return a positive number between two powers of ten."""
        return float(10.0 ** self.uniform(low, high))

    def shape(self, largest: int = 40) -> tuple[int, int]:
        """Height and width: mostly small, sometimes one row or one column."""
        h, w = (1 + int(largest * self.random() ** 2.5) for _ in range(2))
        kind = self.random()
        if kind < 0.05:
            h = 1
        elif kind < 0.1:
            w = 1
        return h, w

    def levels(self, shape: Sequence[int]) -> Array:
        """Numbers from 0 to 1 that look like a part of a picture."""
        rng, kind = self.numpy, self.random()
        if kind < 0.3:
            return rng.random(shape)
        if kind < 0.4:
            return np.full(shape, self.random())
        low, high = self.random(), self.random()
        if kind < 0.7:  # two regions
            y, x = np.ogrid[: shape[0], : shape[1]]
            side = y * self.gauss(0, 1) + x * self.gauss(0, 1) > self.gauss(0, 3)
            values = np.where(side, low, high)
        else:  # few levels, in blocks
            values = rng.random((shape[0] // 3 + 1, shape[1] // 3 + 1)).round(1)
            values = values.repeat(3, 0).repeat(3, 1)[: shape[0], : shape[1]]
        if len(shape) == 3:
            return values[:, :, np.newaxis] * rng.random(shape[2])
        return values

    def photo(
        self,
        shape: tuple[int, int],
        channels: Sequence[int] = (0, 1, 3, 3),
        dtypes: Sequence[str] = PHOTO_DTYPES,
    ) -> Array:
        """A gray or RGB photograph of any dtype and layout."""
        count = self.choice(channels)
        dtype = self.choice(dtypes)
        values = self.levels((*shape, count) if count else shape)
        if dtype[0] == "u":
            values = (values * WHITE[dtype]).round()
        return self.layout(values.astype(dtype))

    def layout(self, array: Array) -> Array:
        """Give an array other strides or byte order, or make it read-only, without new values."""
        kind = self.random()
        if kind < 0.65 or array.ndim == 0:
            return array
        if array.ndim == 1:
            return np.repeat(array, 2)[::2]
        if kind < 0.72:
            return np.asfortranarray(array)
        if kind < 0.79:
            flipped = np.ascontiguousarray(array[::-1, ::-1])
            return flipped[::-1, ::-1]
        if kind < 0.86:
            wide = np.empty((array.shape[0], 2 * array.shape[1], *array.shape[2:]), array.dtype)
            wide[:, ::2] = array
            return wide[:, ::2]
        if kind < 0.91:
            return array.astype(array.dtype.newbyteorder(">"))
        if kind < 0.95:  # an address that is no multiple of the size of a number
            memory = np.empty(array.nbytes + 1, np.uint8)[1:]
            odd = memory.view(array.dtype).reshape(array.shape)
            odd[...] = array
            return odd
        array = array.copy()
        array.setflags(write=False)
        return array

    def map(
        self,
        shape: tuple[int, ...],
        channels: Sequence[int] = (0, 0, 0, 1, 2, 3, 9),
        dtypes: Sequence[str] = MAP_DTYPES,
        holes: float = 0.5,
        positive: bool = False,
    ) -> Array:
        """A map to smooth. At least one pixel is known."""
        count = self.choice(channels)
        full = (*shape, count) if count else shape
        dtype = np.dtype(self.choice(dtypes))
        values = self.levels(full) + 0.1 * self.numpy.random(full)
        if not positive and self.chance(0.5):
            values = values - 0.5
        if dtype.kind in "iu":
            values = values * (250 if dtype.itemsize == 1 else 30_000)
            return self.layout(np.abs(values).astype(dtype))
        values *= self.decades(-3, 3) if dtype.itemsize > 2 else self.decades(-1, 1)
        if self.chance(holes):
            part = self.random() ** 2
            unknown = self.numpy.random(shape) < (part if self.chance(0.8) else 0.99)
            unknown[self.pixel(shape)] = False
            values[unknown] = self.choice((np.nan, np.nan, np.inf, -np.inf))
        return self.layout(values.astype(dtype))

    def pixel(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The index of a pixel."""
        return tuple(self.randrange(n) for n in shape)

    def confidence(self, target: Array, decades: float = 3) -> Array | None:
        """A confidence or None. At least one known pixel of the target has a confidence."""
        shape = target.shape[:2]
        kind = self.random()
        if kind < 0.35:
            return None
        if kind < 0.5:
            values = self.numpy.random(shape)
        elif kind < 0.7:
            values = (self.numpy.random(shape) < self.random()) * self.numpy.random(shape)
        elif kind < 0.85:
            values = 10.0 ** self.numpy.uniform(-decades, decades, shape)
        else:
            values = np.full(shape, self.decades(-decades, decades))
        known = np.isfinite(target).reshape(*shape, -1).all(axis=2)
        places = np.flatnonzero(known)
        values.ravel()[places[self.randrange(len(places))]] = 1.0
        return self.layout(values.astype(self.choice(("float32", "float64"))))

    def sigma(self) -> float:
        """Size of a cell."""
        return self.choice((1.0, 2.0, 4.0, 8.0, 8, 16)) if self.chance(0.6) else self.decades(-1, 2)

    def grid_options(self) -> dict[str, Any]:
        """Some sigmas and a blur; each may keep its default."""
        options: dict[str, Any] = {}
        for name in ("sigma_xy", "sigma_luma", "sigma_chroma"):
            if self.chance(0.6):
                options[name] = self.sigma()
        if self.chance(0.2):
            options["blur"] = self.choice(BLURS)
        return options

    def some(self, **choices: Sequence[Any]) -> dict[str, Any]:
        """Some of the options, each with one of its values."""
        return {name: self.choice(values) for name, values in choices.items() if self.chance(0.4)}

    def spoil(self, options: dict[str, Any], wrong: dict[str, Sequence[Any]]) -> str:
        """Give one option a wrong value; return the option's name."""
        name = self.choice(tuple(wrong))
        options[name] = self.choice(wrong[name])
        return name


POSITIVE = (0, 0.0, -1.5, float("nan"), float("inf"), "8", None, [1.0, 2.0], 1j, object())
"""Wrong values of a number above 0."""
NOT_NEGATIVE = (-1e-9, float("nan"), float("inf"), "8", [1.0], 1j, object())
"""Wrong values of a number of at least 0."""
COUNT = (-1, 1.5, "3", [1], float("nan"), object())
"""Wrong values of a whole number."""
CHOICE = ("", "planarr", 1, b"planar", ["planar"], object())
"""Wrong values of a name."""
FLAG = ("yes", "", b"1", np.zeros(2))
"""Wrong values of True or False."""
