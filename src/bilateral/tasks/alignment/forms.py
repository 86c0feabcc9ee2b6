"""The forms in which a relative map may fit metric depth: affine in depth or in inverse depth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = ("auto", "depth", "inverse depth")
"""Values of the argument `kind`: what a relative map holds."""
_LEAST_RATIO = 1e-4
"""A relative map has an inverse if its least value is at least this part of its median."""


class Form(NamedTuple):
    """One form: ``unit = scale * relative + shift``."""

    inverse: bool
    """Whether the unit is inverse depth."""
    reciprocal: bool
    """Whether the form takes 1 / relative in place of the relative map."""

    @property
    def unit(self) -> str:
        """Name of the unit of the fit."""
        return "inverse depth" if self.inverse else "depth"

    def from_relative(self, relative: Array) -> Array:
        """Return the map that scale and shift apply to."""
        return 1 / relative if self.reciprocal else relative

    def from_depth(self, depth: Array) -> Array:
        """Convert depths to the unit; a conversion back is the same."""
        return 1 / depth if self.inverse else depth

    def sign(self, kind: str) -> int:
        """Return the sign that the scale must have for a kind of map; 0: any."""
        if kind == "auto":
            return int(self.reciprocal)
        rises_with_depth = (kind == "depth") != self.reciprocal
        return 1 if rises_with_depth != self.inverse else -1

    def kind(self, scale: float) -> str:
        """Return what the relative map holds if it has this scale."""
        rises_with_depth = ((scale >= 0) != self.inverse) != self.reciprocal
        return "depth" if rises_with_depth else "inverse depth"


def possible_forms(relative: Array, kind: str) -> list[Form]:
    """List the forms to try; the first is the one for data that fit all forms alike."""
    direct = [Form(False, False), Form(True, False)]
    if kind == "inverse depth":
        direct.reverse()
    least = float(relative.min())
    if least <= 0 or least < _LEAST_RATIO * float(np.median(relative)):
        return direct
    return [*direct, Form(True, True)]
