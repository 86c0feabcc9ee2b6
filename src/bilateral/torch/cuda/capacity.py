"""Choose the capacity of a recording: room for more vertices than the recorded images have."""

from __future__ import annotations

import math
from itertools import zip_longest

import torch
from torch import Tensor

from bilateral.torch.cuda.batch_grid import HierarchyCapacity, build_batch_grid
from bilateral.torch.options import LayerOptions

_MIN_ROOM = 256
_MORE_LEVELS = 1
"""Levels of the hierarchy beyond those of the recorded images."""


class Capacity:
    """Room in the memory of a recording."""

    def __init__(
        self, reference: Tensor, options: LayerOptions, kind: str, pixels: int | None = None
    ) -> None:
        """Choose by a reference, for images of up to so many pixels; default: of its size."""
        batch_grid = build_batch_grid(reference, options)
        here = reference.shape[2] * reference.shape[3]
        share = 1.0 if pixels is None else pixels / here
        self.grid = [_with_reserve(room, share) for room in batch_grid.grid.rooms]
        """As `Grid.rooms`."""
        self.hierarchy: HierarchyCapacity | None = None
        if kind == "multigrid":
            hierarchy = batch_grid.hierarchy(torch.float32)
            levels = [
                (_with_reserve(rows, share), _with_reserve(links, share))
                for rows, links in hierarchy.rooms
            ]
            levels += [(_MIN_ROOM, _MIN_ROOM)] * _MORE_LEVELS
            self.hierarchy = HierarchyCapacity(levels, hierarchy.first_small)

    def grow(self, other: Capacity) -> None:
        """Grow to the larger of both capacities."""
        self.grid = [max(rooms) for rooms in zip(self.grid, other.grid, strict=True)]
        if self.hierarchy is not None and other.hierarchy is not None:
            pairs = zip_longest(
                self.hierarchy.levels or (), other.hierarchy.levels or (), fillvalue=(0, 0)
            )
            levels = [(max(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
            self.hierarchy = self.hierarchy._replace(levels=levels)


def _with_reserve(room: int, share: float) -> int:
    room = math.ceil(room * share)
    return room + room // 4 + _MIN_ROOM
