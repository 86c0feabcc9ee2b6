"""Refine one frame of a depth camera: keep what agrees with itself, fill the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.surfaces import smooth_depth
from bilateral.tasks.depth.fill import Cells, PlaneUnit, fill
from bilateral.tasks.depth.fill_fast import fill_fast
from bilateral.tasks.depth.noise import Noise, estimate_noise
from bilateral.tasks.depth.polish_noise import MOST_MOVED, POLISH_SCALE, polish_noise
from bilateral.tasks.depth.snap import snap_edges
from bilateral.tasks.depth.surfaces import Surfaces, find_surfaces

Array = NDArray[Any]


class Frame(NamedTuple):
    """A refined frame, and what the recipe found out about its input."""

    x: NDArray[np.float32]
    """The refined depths; finite."""
    z: NDArray[np.float32]
    """The input; NaN where it is unknown or doubtful."""
    kept: NDArray[np.bool_]
    """Pixels that the result moves only within the noise."""
    noise: Noise
    """Of the input."""


def refine_frame(
    z: NDArray[np.float32],
    guide: validation.Reference,
    trust: NDArray[np.float32] | None = None,
    *,
    fast: bool = False,
    noise: Noise | None = None,
) -> Frame:
    """Refine a frame.

    Parameters
    ----------
    z : (H, W) float32 array
        Depths in any unit, larger for farther points; NaN where they are unknown.
    guide : Reference
        The photograph.
    trust : (H, W) float32 array, optional
        Weight of each pixel from 0 to 1. Default: 1.
    fast : bool
        Whether to save time, for a live camera.
    noise : Noise, optional
        Of the map. Default: estimated.
    """
    noise = estimate_noise(z) if noise is None else noise
    surfaces = find_surfaces(z, noise, trust)
    if not fast:
        return refine_surfaces(z, guide, trust, noise, surfaces, Cells())
    measured = z
    surfaces, z = _split(z, surfaces)
    x = z if surfaces.kept.all() else fill_fast(z, surfaces, measured, guide)
    polynomial = (noise.a, 0.0, noise.b)
    x = smooth_depth(x, surfaces.kept, polynomial, scale=POLISH_SCALE, limit=MOST_MOVED)
    return Frame(x, z, surfaces.kept, noise)


def refine_surfaces(
    z: Array,
    guide: validation.Reference,
    trust: Array | None,
    noise: Noise,
    surfaces: Surfaces,
    cells: Cells,
    *,
    snap: bool = False,
) -> Frame:
    """Refine a frame whose surfaces are known.

    With `snap`, ragged edges move to the photograph's. Each frame decides anew, so videos go
    without it.
    """
    measured = z
    surfaces, z = _split(z, surfaces)
    kept = surfaces.kept
    x = z if kept.all() else fill(z, surfaces, measured, guide, trust, cells)
    if snap:
        x, moved = snap_edges(x, surfaces, guide, PlaneUnit.of(z, kept))
        kept = kept & ~moved
    return Frame(polish_noise(x, guide, kept, noise), z, kept, noise)


def _split(z: Array, surfaces: Surfaces) -> tuple[Surfaces, Array]:
    """Return surfaces with at least a pixel, and the map without doubtful pixels."""
    if not surfaces.kept.any():
        surfaces = surfaces.all_known(z)
    return surfaces, np.where(surfaces.doubt, np.float32(np.nan), z)
