"""The tool Refocus: click what should be sharp, and open the aperture."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.studio.display import eight_bits
from bilateral.studio.limits import Refused
from bilateral.studio.tools.base import Check, File
from bilateral.studio.tools.depth import DepthTool, scaled
from bilateral.studio.workspace import View, Workspace
from bilateral.tasks import defocus

Array = NDArray[Any]

_LARGEST_RADIUS = 1 / 25
"""Radius of the blur between the nearest and the farthest point, per side of the image."""


class RefocusTool:
    """Blur the photograph by the map of the tool Depth."""

    def __init__(self, depth: DepthTool) -> None:
        self._depth = depth

    def picture(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the photograph, sharp at the clicked point."""
        return eight_bits(self._result(workspace, view, fields, check))

    def save(self, workspace: Workspace, what: str, fields: dict[str, Any], check: Check) -> File:
        """Return the picture in the bits of the photograph."""
        stem = PurePath(workspace.name).stem or "photo"
        result = self._result(workspace, workspace.opened(), fields, check)
        if result.dtype.kind == "f":
            result = np.rint(np.clip(result, 0, 1) * 65535).astype(np.uint16)
        return File(f"{stem}.refocused.png", io.encode(result, "a.png"))

    def _result(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        x, y, aperture = (_number(fields, name) for name in ("x", "y", "aperture"))
        nearness = scaled(workspace, fields).nearness(
            self._depth.result(workspace, view, {**fields, "refine": True}, check)
        )
        nearness = np.clip(nearness, 0, 1)
        row = min(max(int(y / view.factor), 0), view.shape[0] - 1)
        column = min(max(int(x / view.factor), 0), view.shape[1] - 1)
        radius = aperture * _LARGEST_RADIUS * math.sqrt(nearness.size)
        focus = float(nearness[row, column])
        check(0, 0.0)
        out = defocus(view.photo, nearness, focus, radius, kind="disparity")
        check(0, 0.0)
        return out


def _number(fields: dict[str, Any], name: str) -> float:
    value = fields.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"{name}: expected a number.")
    return float(np.clip(value, 0, 1)) if name == "aperture" else float(value)
