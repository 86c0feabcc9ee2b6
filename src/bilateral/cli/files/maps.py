"""A map with its photograph and confidence: read, refined, and in its file's dtype again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.commands.command import Files, Result
from bilateral.cli.files.inputs import Reader, Unit
from bilateral.cli.files.outputs import dtype_for

Array = NDArray[Any]
Refine = Callable[[Array, Array, Array | None, Any], Array]
"""Of values, photograph, confidence, and the dtype to return."""


@dataclass(frozen=True)
class Maps:
    """How the maps of one command are read and written."""

    read: Reader
    unit: Unit
    dtype: str | None
    """What was asked for."""

    def refined(self, files: Files, raw: Array, refine: Refine, *, pages: bool = False) -> Result:
        """The result of a task for one map; with `pages`, for the frames of a video."""
        photo = self.read.photo(files.paths["reference"])
        trust = self.read.optional_plane(files.paths.get("confidence"))
        values = self.unit.values(raw)
        x = refine(values, photo, trust, self.unit.exact(raw))
        output = self.stored(x, raw.dtype, files)
        if pages:
            return Result(output, x[0], photo[0], values[0], pages=True)
        return Result(output, x, photo, values, trust)

    def stored(self, x: Array, given: np.dtype[Any], files: Files) -> Array:
        """A map as its file shall have it."""
        return self.unit.stored(x, dtype_for(given, self.dtype, files.suffix))

    def truth(self, path: Path) -> Array:
        """What is right, in the same unit."""
        return self.unit.values(self.read.plane(path))
