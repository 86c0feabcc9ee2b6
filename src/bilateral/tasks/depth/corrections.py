"""Apply the corrections that a person painted on a depth map, then refine it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import find_regions
from bilateral.tasks.depth.refine import refine_depth

Array = NDArray[Any]


class Corrections(NamedTuple):
    """Strokes on a depth map."""

    values: Array
    """(H, W): the depth of painted pixels, NaN elsewhere."""
    wrong: NDArray[np.bool_]
    """(H, W): pixels whose depth is unknown."""
    flat: NDArray[np.bool_]
    """(H, W): each connected region becomes one plane."""


def correct_depth(
    depth: Array,
    photo: Array,
    corrections: Corrections,
    *,
    refine: bool = True,
    disparity: bool = False,
) -> Array:
    """Return the map with its corrections, float32; painted depths stay exactly.

    Parameters
    ----------
    depth : (H, W) float32 array
        NaN where unknown.
    photo : (H, W) or (H, W, 3) array
    corrections : Corrections
    refine : bool
        Refine by `refine_depth`, which fills what is unknown. Otherwise it stays NaN.
    disparity : bool
        The map is one of disparities: planes are linear in its values, not in their inverse.
    """
    out = np.where(corrections.wrong, np.float32(np.nan), depth)
    out = _flatten(out, corrections.flat, disparity)
    painted = np.isfinite(corrections.values)
    out = np.where(painted, corrections.values, out).astype(np.float32)
    if not refine:
        return out
    exact = painted | (corrections.flat & np.isfinite(out))
    # No more trust in strokes than in the map: beside much trust, the map counts as unknown.
    refined = refine_depth(out, photo)
    return np.where(exact, out, refined).astype(np.float32)


def _flatten(depth: Array, flat: NDArray[np.bool_], disparity: bool) -> Array:
    """Replace each region by the plane that fits it best; positive depths by their inverse."""
    out = depth.copy()
    regions, count = find_regions(np.zeros(flat.shape, np.float32), flat, 0.5)
    for region in range(1, count + 1):
        inside = regions == region
        known = inside & np.isfinite(depth)
        if known.sum() < 3:
            continue
        values = depth[known].astype(np.float64)
        inverse = not disparity and bool((values > 0).all())
        target = 1 / values if inverse else values
        coefficients, *_ = np.linalg.lstsq(_plane(known), target, rcond=None)
        plane = _plane(inside) @ coefficients
        if inverse:
            plane = 1 / np.clip(plane, target.min(), target.max())
        out[inside] = plane
    return out


def _plane(mask: NDArray[np.bool_]) -> Array:
    y, x = np.nonzero(mask)
    return np.stack([x, y, np.ones_like(x)], axis=1).astype(np.float64)
