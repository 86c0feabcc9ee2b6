"""The tool Colorize: strokes of colour on a gray photograph."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import color, io
from bilateral.studio.display import eight_bits
from bilateral.studio.limits import Refused
from bilateral.studio.tools.base import Check, File
from bilateral.studio.workspace import View, Workspace
from bilateral.tasks import Colorizer

Array = NDArray[Any]


class ColorizeTool:
    """Colorize the photograph by the layer of strokes; exactly `tasks.colorize` at full size."""

    def picture(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the photograph in colour, or in gray without a stroke."""
        return eight_bits(self._result(workspace, view, check))

    def save(self, workspace: Workspace, what: str, fields: dict[str, Any], check: Check) -> File:
        """Return the picture in the bits of the photograph, or the layer of strokes."""
        stem = PurePath(workspace.name).stem or "photo"
        if what == "strokes":
            return File(f"{stem}.strokes.png", io.encode(workspace.layer("colorize"), "a.png"))
        result = self._result(workspace, workspace.opened(), check)
        if result.dtype.kind == "f":
            result = np.rint(np.clip(result, 0, 1) * 65535).astype(np.uint16)
        return File(f"{stem}.colour.png", io.encode(result, "a.png"))

    def _result(self, workspace: Workspace, view: View, check: Check) -> Array:
        strokes = workspace.layer("colorize", view.factor)
        if not strokes[..., 3].any():
            return _gray(view.photo)
        if "colorize" not in view.kept:
            view.kept["colorize"] = Colorizer(view.photo)
        colorizer: Colorizer = view.kept["colorize"]
        try:
            return colorizer.colorize(strokes, warm_start=False, callback=check)
        except ValueError as error:
            if "gray ones on a coloured picture" in str(error):
                raise Refused("All strokes are gray. Paint one with a colour.") from None
            raise


def _gray(photo: Array) -> Array:
    channels = photo if photo.ndim == 3 else photo[..., np.newaxis]
    luma = color.luma(channels)
    luma = np.rint(luma) if photo.dtype.kind == "u" else luma
    return np.repeat(luma.astype(photo.dtype)[..., np.newaxis], 3, axis=2)
