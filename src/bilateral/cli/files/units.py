"""Convert the numbers in a file to units and back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation

Array = NDArray[Any]


@dataclass(frozen=True)
class Units:
    """Meaning of the numbers of a map in a file. Floating point numbers are in units already."""

    scale: float = 1.0
    """Units per integer step."""
    invalid: Sequence[float] = ()
    """Numbers in the file that mean unknown."""

    def from_file(self, raw: Array) -> Array:
        """Return the values in units, with NaN for unknown ones."""
        unknown = np.isin(raw, self.invalid)
        if raw.dtype.kind == "f":
            return np.where(unknown, np.nan, raw).astype(raw.dtype) if unknown.any() else raw
        exact = np.float32 if raw.dtype.itemsize <= 2 else np.float64
        values: Array = raw.astype(exact)
        if self.scale != 1:
            values = values * exact(self.scale)
        values[unknown] = np.nan
        return values

    def working_dtype(self, raw: Array) -> np.dtype[Any]:
        """Return the dtype for results, so that integers are rounded only in `to_file`."""
        return raw.dtype if raw.dtype.kind == "f" else np.dtype(np.float64)

    def to_file(self, values: Array, dtype: np.dtype[Any]) -> Array:
        """Convert values to the dtype of a file: integers count steps, NaN is the first `invalid`.

        Without a finite `invalid`, integers store NaN as 0.
        """
        if dtype.kind == "f":
            return values.astype(dtype, copy=False)
        steps = values / self.scale if self.scale != 1 else values
        unknown = next((number for number in self.invalid if math.isfinite(number)), 0)
        return validation.as_dtype(np.where(np.isnan(steps), unknown, steps), dtype)
