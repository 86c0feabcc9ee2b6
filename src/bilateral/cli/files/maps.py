"""Read a map with its photograph and confidence, refine it, and convert it for its file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.command import FileSet, Result
from bilateral.cli.display.warning_log import discard_warnings
from bilateral.cli.files.inputs import Reader
from bilateral.cli.files.outputs import output_dtype
from bilateral.cli.files.units import Units
from bilateral.cli.files.video_maps import MapFrame, map_frame
from bilateral.validation import ZeroDepthWarning

Array = NDArray[Any]
Refine = Callable[..., Array]
"""Function of values, photograph and confidence, with the keyword `dtype` of the result."""


@dataclass(frozen=True)
class MapFiles:
    """Reads the maps of one command and converts its results for their files."""

    reader: Reader
    units: Units
    dtype: str | None
    """Name of the output dtype that the user asked for."""

    def refine(self, files: FileSet, raw: Array, refine: Refine, *, pages: bool = False) -> Result:
        """Apply `refine` to one map, or with `pages` to the frames of a video."""
        photo = self.reader.photo(files.paths["reference"])
        confidence = self.reader.optional_single_channel(files.paths.get("confidence"))
        values = self.units.from_file(raw)
        # Whoever names the unknown numbers has decided about 0.
        discarded = (ZeroDepthWarning,) if self.units.invalid else ()
        with discard_warnings(discarded):
            x = refine(values, photo, confidence, dtype=self.units.working_dtype(raw))
        output = self.to_file(x, raw.dtype, files)
        if pages:
            return Result(output, x[0], photo[0], values[0], pages=True)
        return Result(output, x, photo, values, confidence)

    def to_file(self, x: Array, raw_dtype: np.dtype[Any], files: FileSet) -> Array:
        """Convert a map in units to the numbers and the dtype of its file."""
        return self.units.to_file(x, output_dtype(raw_dtype, self.dtype, files.suffix))

    def video_frame(self, arrays: Mapping[str, Array]) -> MapFrame:
        """Convert the arrays of one frame of a video."""
        return map_frame(arrays, self.units)

    def frame_to_file(self, x: Array, frame: MapFrame, suffix: str) -> Array:
        """Convert a refined frame to the numbers and the dtype of its file."""
        return self.units.to_file(x, output_dtype(frame.raw_dtype, self.dtype, suffix))

    def read_truth(self, path: Path) -> Array:
        """Read the true map in the same units."""
        return self.units.from_file(self.reader.single_channel(path))
