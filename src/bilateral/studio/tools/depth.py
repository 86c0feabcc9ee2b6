"""The tool Depth: show, correct and refine a depth map."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.studio.display import depth_colors, depth_palette, relief
from bilateral.studio.limits import Refused
from bilateral.studio.tools.base import Check, File
from bilateral.studio.workspace import View, Workspace
from bilateral.tasks.depth.corrections import Corrections, correct_depth

Array = NDArray[Any]

WRONG, FLAT = (255, 0, 0), (0, 0, 255)
"""Colours of strokes that say "this is wrong" and "make this plane flat"."""
_RELIEF = 0.25
"""Height of a relief, as a fraction of the image's side."""


class Scaled(NamedTuple):
    """A depth map and its range."""

    depth: Array
    low: float
    high: float
    far_is_large: bool

    def nearness(self, depth: Array) -> Array:
        """Return 0 for the farthest, 1 for the nearest: linear in the inverse of distance."""
        if self.far_is_large:
            top, bottom = 1 / self.low, 1 / self.high
            return np.asarray((1 / depth - bottom) / max(top - bottom, 1e-12))
        return np.asarray((depth - self.low) / max(self.high - self.low, 1e-12))

    def depth_of(self, nearness: Array) -> Array:
        """Return the depths of nearness from 0 to 1."""
        if self.far_is_large:
            top, bottom = 1 / self.low, 1 / self.high
            return np.asarray(1 / (bottom + nearness * (top - bottom)))
        return np.asarray(self.low + nearness * (self.high - self.low))


def scaled(workspace: Workspace, fields: dict[str, Any]) -> Scaled:
    """Return the depth map as loaded, with its range of values."""
    if workspace.depth is None:
        raise Refused("There is no depth map yet: drop one on the page, or open an example.")
    far_is_large = fields.get("values") != "disparity"
    known = workspace.depth[np.isfinite(workspace.depth)]
    if far_is_large and known.min() <= 0:
        raise Refused("Depths must be above 0. Choose that large values are near instead.")
    low, high = (float(v) for v in np.percentile(known, (1, 99)))
    return Scaled(workspace.depth, low, high, far_is_large)


class DepthTool:
    """Refine the depth map with the strokes that correct it."""

    def picture(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the map in colours or as a relief."""
        scale = scaled(workspace, fields)
        nearness = scale.nearness(self.result(workspace, view, fields, check))
        if fields.get("look") == "relief":
            return relief(nearness, _RELIEF * float(np.sqrt(nearness.size)))
        return depth_colors(nearness)

    def result(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the corrected and, if asked for, refined map of a view."""
        scale = scaled(workspace, fields)
        layer = workspace.layer("depth", view.factor)
        refined = bool(fields.get("refine"))
        key = (workspace.depth_version, scale.far_is_large, refined, layer.tobytes())
        if "depth" in view.kept and view.kept["depth"][0] == key:
            return np.asarray(view.kept["depth"][1])
        check(0, 0.0)
        depth = scale.depth[:: view.factor, :: view.factor]
        depth = depth[: view.shape[0], : view.shape[1]]
        if refined or layer.any():
            corrections = _corrections(layer, scale)
            depth = correct_depth(
                depth,
                view.photo,
                corrections,
                refine=refined,
                disparity=not scale.far_is_large,
            )
        check(0, 0.0)
        view.kept["depth"] = (key, depth)
        return depth

    def save(self, workspace: Workspace, what: str, fields: dict[str, Any], check: Check) -> File:
        """Return the map as PNG with 16 bits, or the strokes."""
        stem = PurePath(workspace.name).stem or "photo"
        if what == "strokes":
            return File(f"{stem}.corrections.png", io.encode(workspace.layer("depth"), "a.png"))
        depth = self.result(workspace, workspace.opened(), fields, check)
        depth = np.nan_to_num(depth, nan=0.0)
        if what == "float":
            return File(f"{stem}.depth.pfm", io.encode(depth.astype(np.float32), "a.pfm"))
        if workspace.depth_file_dtype.kind == "f":
            depth = depth * (65535 / max(float(depth.max()), 1e-30))
        levels = np.rint(np.clip(depth, 0, 65535)).astype(np.uint16)
        return File(f"{stem}.depth.png", io.encode(levels, "a.png"))


def _corrections(layer: Array, scale: Scaled) -> Corrections:
    """Read strokes: red is wrong, blue is flat, a colour of the map is its depth."""
    painted = layer[..., 3] > 0
    rgb = layer[..., :3]
    wrong = painted & (rgb == WRONG).all(axis=2)
    flat = painted & (rgb == FLAT).all(axis=2)
    values = np.full(painted.shape, np.nan, np.float32)
    strokes = painted & ~wrong & ~flat
    if strokes.any():
        palette = depth_palette().astype(np.int32)
        colors, index = np.unique(rgb[strokes], axis=0, return_inverse=True)
        distance = ((colors[:, np.newaxis].astype(np.int32) - palette) ** 2).sum(axis=2)
        levels = distance.argmin(axis=1)[index.reshape(-1)]
        values[strokes] = scale.depth_of(levels / 255)
    return Corrections(values, wrong, flat)
