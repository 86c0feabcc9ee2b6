"""The tool Cut out: scribbles "this" and "not this" to a soft matte."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.cli.commands.cut import with_alpha
from bilateral.studio.display import with_opacity
from bilateral.studio.limits import Refused
from bilateral.studio.tools.base import Check, File
from bilateral.studio.workspace import View, Workspace
from bilateral.tasks import Cutter

Array = NDArray[Any]


class CutTool:
    """Cut the photograph by the layer of scribbles; exactly `tasks.cut_out` at full size."""

    def picture(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the photograph with the matte as its opacity."""
        layer, mask = workspace.layer("cut", view.factor), _mask(workspace, view, fields)
        if mask is None and not layer[..., 3].any():
            return view.display
        matte = self._matte(view, layer, mask, check)
        return with_opacity(view.display, np.rint(matte * 255).astype(np.uint8))

    def save(self, workspace: Workspace, what: str, fields: dict[str, Any], check: Check) -> File:
        """Return the cut-out, the matte, the mask or the strokes."""
        stem = PurePath(workspace.name).stem or "photo"
        layer, view = workspace.layer("cut"), workspace.opened()
        if what == "strokes":
            return File(f"{stem}.scribbles.png", io.encode(layer, "a.png"))
        matte = self._matte(view, layer, _mask(workspace, view, fields), check)
        if what == "matte":
            data = np.rint(matte * 65535).astype(np.uint16)
        elif what == "mask":
            data = np.where(matte > 0.5, 255, 0).astype(np.uint8)
        else:
            photo = view.photo if view.photo.dtype.kind == "u" else view.display
            return File(f"{stem}.cutout.png", io.encode(with_alpha(photo, matte), "a.png"))
        return File(f"{stem}.{what}.png", io.encode(data, "a.png"))

    def _matte(self, view: View, layer: Array, mask: Array | None, check: Check) -> Array:
        painted, green = layer[..., 3] > 0, layer[..., 1] > layer[..., 0]
        labels = np.where(painted, np.where(green, 1, -1), 0).astype(np.int8)
        for sign, text in ((1, "what belongs to the object"), (-1, "what does not belong to it")):
            if mask is None and not (labels == sign).any():
                raise Refused(f"Now mark {text}, too.")
        if "cut" not in view.kept:
            view.kept["cut"] = Cutter(view.photo)
        cutter: Cutter = view.kept["cut"]
        return cutter.cut_out(labels, mask, callback=check)


def _mask(workspace: Workspace, view: View, fields: dict[str, Any]) -> Array | None:
    return workspace.mask_of(view) if fields.get("mask") else None
