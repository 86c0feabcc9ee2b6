"""The photograph of one page with its strokes, at full size and as a preview."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.filters.surfaces import shrink_photo
from bilateral.io.options import Options
from bilateral.studio.display import eight_bits
from bilateral.studio.limits import Limits, Refused

Array = NDArray[Any]

TOOLS = ("colorize", "cut", "depth", "refocus")
_PREVIEW_PIXELS = 300_000
"""A preview has about so many pixels."""
_BYTES_PER_PIXEL = 16
"""Largest pixel of a photograph: four channels of four bytes."""


class View:
    """A photograph at one size, with its layers of strokes."""

    def __init__(self, photo: Array, factor: int) -> None:
        self.photo = photo
        self.factor = factor
        """Pixels of the full size per pixel of this view."""
        self.display = eight_bits(photo)
        self.kept: dict[str, Any] = {}
        """What tools keep for the next stroke, by tool."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.photo.shape[0], self.photo.shape[1]


class Workspace:
    """One page: photograph, layers of strokes, depth map."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.name = ""
        self.full: View | None = None
        self.preview: View | None = None
        self.depth: Array | None = None
        """The depth map as loaded, float32, NaN where unknown."""
        self.own_depth: Array | None = None
        """The depth map that came with an example, as loaded."""
        self.mask: NDArray[np.bool_] | None = None
        """A rough mask of the object to cut out."""
        self.depth_file_dtype: np.dtype[Any] = np.dtype(np.float32)
        self.depth_version = 0
        self._layers: dict[str, Array] = {}
        self._small_layers: dict[str, Array] = {}
        """The same at the size of the preview: each stroke renews its own part."""
        self._lock = threading.Lock()

    @property
    def pixels(self) -> int:
        """Number of pixels of the open photograph."""
        return 0 if self.full is None else math.prod(self.full.shape)

    def opened(self) -> View:
        """Return the full view; refuse if there is no photograph."""
        if self.full is None:
            raise Refused("Open a photograph first.")
        return self.full

    def open(self, name: str, data: bytes, others: int = 0) -> View:
        """Open a photograph from the bytes of its file."""
        limit = self.limits.pixels * _BYTES_PER_PIXEL
        return self.open_array(name, io.decode(data, Options(limit), name), others)

    def open_array(self, name: str, photo: Array, others: int = 0) -> View:
        """Open a photograph: gray or RGB, without its alpha channel."""
        if photo.ndim == 3 and photo.shape[2] in (2, 4):
            photo = photo[..., :-1]
        if photo.ndim == 3 and photo.shape[2] == 1:
            photo = photo[..., 0]
        if not (photo.ndim == 2 or (photo.ndim == 3 and photo.shape[2] == 3)):
            raise Refused(f"This is no photograph: its array has the shape {photo.shape}.")
        self.limits.check_photo(photo.shape, others)
        if photo.dtype not in (np.uint8, np.uint16):
            photo = photo.astype(np.float32)
        self.close()
        self.name = name
        self.full = View(np.ascontiguousarray(photo), 1)
        factor = math.ceil(math.sqrt(self.pixels / _PREVIEW_PIXELS))
        if factor > 1:
            channels = photo if photo.ndim == 3 else photo[..., np.newaxis]
            small = shrink_photo(np.ascontiguousarray(channels), factor)
            self.preview = View(small.reshape(*small.shape[:2], *photo.shape[2:]), factor)
        return self.full

    def close(self) -> None:
        """Forget the photograph and everything that belongs to it."""
        with self._lock:
            self.full = self.preview = None
            self.depth = self.mask = self.own_depth = None
            self.depth_version += 1
            self._layers, self._small_layers = {}, {}

    def paint(self, tool: str, x: int, y: int, width: int, height: int, pixels: memoryview) -> None:
        """Replace a rectangle of a layer of strokes by R, G, B, A pixels."""
        rows, columns = self.opened().shape
        if not (x + width <= columns and y + height <= rows):
            raise Refused("The stroke is outside of the photograph.")
        if len(pixels) != 4 * width * height:
            raise Refused("The stroke has the wrong number of pixels.")
        patch = np.frombuffer(pixels, np.uint8).reshape(height, width, 4)
        with self._lock:
            if tool not in self._layers:
                self._layers[tool] = np.zeros((rows, columns, 4), np.uint8)
                if self.preview is not None:
                    self._small_layers[tool] = np.zeros((*self.preview.shape, 4), np.uint8)
            layer = self._layers[tool]
            layer[y : y + height, x : x + width] = patch
            if self.preview is not None:
                factor = self.preview.factor
                top, left = y // factor, x // factor
                bottom, right = -(-(y + height) // factor), -(-(x + width) // factor)
                blocks = layer[top * factor : bottom * factor, left * factor : right * factor]
                small = self._small_layers[tool]
                small[top:bottom, left:right] = _shrink_layer(blocks, factor)

    def layer(self, tool: str, factor: int = 1) -> Array:
        """Return a copy of a layer of strokes; a block of pixels has the colour of its first one.

        Parameters
        ----------
        tool : str
        factor : int
            Size of a block: that of the view.
        """
        with self._lock:
            full = self._layers.get(tool)
            if full is None:
                rows, columns = self.opened().shape
                return np.zeros((-(-rows // factor), -(-columns // factor), 4), np.uint8)
            if self.preview is not None and factor == self.preview.factor:
                return self._small_layers[tool].copy()
            return full.copy() if factor == 1 else _shrink_layer(full, factor)

    def set_mask(self, picture: Array) -> None:
        """Set the rough mask: where a picture is bright, or not transparent if it has an alpha."""
        rows, columns = self.opened().shape
        if picture.shape[:2] != (rows, columns) or picture.ndim not in (2, 3):
            raise Refused(f"The mask must have {columns} x {rows} pixels, as the photograph.")
        if picture.ndim == 3:
            has_alpha = picture.shape[2] in (2, 4)
            picture = picture[..., -1] if has_alpha else picture.max(axis=2)
        self.mask = np.asarray(picture > picture.max() / 2)

    def mask_of(self, view: View) -> NDArray[np.bool_] | None:
        """Return the rough mask at the size of a view."""
        if self.mask is None:
            return None
        return self.mask[:: view.factor, :: view.factor][: view.shape[0], : view.shape[1]]

    def forget(self, what: str) -> None:
        """Forget the rough mask, or the depth map that was loaded: that of an example is back."""
        if what == "mask":
            self.mask = None
        elif self.own_depth is not None:
            self.set_depth(self.own_depth)
        else:
            self.depth = None
            self.depth_version += 1

    def set_depth(self, depth: Array, *, own: bool = False) -> None:
        """Set the depth map; 0 and non-finite values are unknown.

        Parameters
        ----------
        depth : (H, W) or (H, W, C) array
        own : bool
            It came with the photograph.
        """
        rows, columns = self.opened().shape
        if depth.ndim == 3 and depth.shape[2] in (2, 4):
            depth = depth[..., :-1]
        if depth.ndim == 3 and (depth == depth[..., :1]).all():
            depth = depth[..., 0]
        if depth.ndim != 2:
            raise Refused("This is no depth map: it has several different channels.")
        if depth.shape != (rows, columns):
            raise Refused(
                f"The depth map has {depth.shape[1]} x {depth.shape[0]} pixels, the photograph "
                f"{columns} x {rows}. Use bilateral superres to enlarge it first."
            )
        values = depth.astype(np.float32)
        values[~np.isfinite(values) | (values == 0)] = np.nan
        if np.isnan(values).all():
            raise Refused("The depth map has no known pixel.")
        if own:
            self.own_depth = depth
        self.depth_file_dtype = depth.dtype
        self.depth = values
        self.depth_version += 1


def _shrink_layer(layer: Array, factor: int) -> Array:
    """Give each block the colour of its first stroke along the rows, then along the columns."""
    for axis in (1, 0):
        slices = [layer[_every(factor, start, axis)] for start in range(factor)]
        out = slices[0].copy()
        for other in slices[1:]:
            part = out[: other.shape[0], : other.shape[1]]
            empty = (part[..., 3] == 0) & (other[..., 3] > 0)
            part[empty] = other[empty]
        layer = out
    return layer


def _every(factor: int, start: int, axis: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, None, factor),)
