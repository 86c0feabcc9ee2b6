"""Remove outliers, fill holes and align the edges of a depth map with its photograph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.tasks.depth.annealed import edge_size, refine_whole
from bilateral.tasks.depth.depth_input import check_depth
from bilateral.tasks.depth.enlarged import refine_enlarged
from bilateral.tasks.depth.fill import SMALL_TRUST, Cells
from bilateral.tasks.depth.frame import refine_surfaces
from bilateral.tasks.depth.matching.agreement import edges_agree, log_contrast, shows_edges
from bilateral.tasks.depth.matching.matched import is_matched
from bilateral.tasks.depth.noise import Noise, estimate_noise
from bilateral.tasks.depth.surfaces import find_surfaces
from bilateral.tasks.depth.video.whole import VideoInput, refine_video

Array = NDArray[Any]

MOST_SIZES = 1e6
"""Values beyond this many times the median size are clipped, so that float32 can square them."""
_NORMAL_MEDIAN = 0.6745
"""Median of |N(0, 1)|."""
_LOOSE_TRUST = 0.5
"""Trust in disparities outside of large surfaces."""


@dataclass(frozen=True)
class Preset:
    """Properties of a kind of map."""

    camera: bool = False
    """Whether what agrees with itself stays."""
    stereo: bool = False
    """Whether values are disparities in pixels, of the left view of a rectified pair."""
    zero_is_unknown: bool = False
    least_unit: float = 0.0
    """Smallest difference that can be an edge, in the map's unit."""
    cell: float = 8.0
    """Size of a grid cell in pixels, for an image of 0.35 megapixels."""


PRESETS = {
    "sensor": Preset(camera=True),
    "stereo": Preset(stereo=True, zero_is_unknown=True, least_unit=0.5),
    "sparse": Preset(zero_is_unknown=True, cell=4.0),
}


@validation.keywords(photo="reference", target="depth")
def refine_depth(
    depth: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    preset: str = "sensor",
    invalid: float | Sequence[float] | None = None,
    mask: ArrayLike | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 8.0,
    sigma_chroma: float = 8.0,
    scale: float | None = None,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Refine a depth or disparity map with the photograph it belongs to.

    For maps of depth cameras, stereo matching, a network, or a LiDAR projected into the image. The
    result has no outliers and no holes. Values keep their unit, thin structures stay.

    With "sensor", what agrees with itself stays: surfaces of the map move only within its noise,
    whatever the photograph shows or fails to show. Flying pixels at edges go to one side, holes
    continue the surfaces around them as planes, in inverse depth if all values are positive. Ragged
    edges move by up to two pixels to the photograph's, if both surfaces have clear colours and no
    shift of the photograph explains the difference; not in videos, where that would flicker. A map
    that looks like one of stereo matching, with many regions whose edges are not the photograph's,
    may be corrected anywhere, as with "sparse". The edges of a map that was enlarged by
    repeating pixels move by up to four pixels.

    With "stereo", a map may be corrected anywhere, unless its edges are those of the photograph:
    then it is right already, and its surfaces stay. If the photograph shows no edges, surfaces stay
    as with "sensor".

    Parameters
    ----------
    depth : (H, W) array, or (T, H, W) for a video
        Depth or disparity, in any unit and real dtype. A value that is not finite is unknown.
        The frames of a video are averaged over time where nothing moves; this takes some 45 bytes
        per pixel of all frames. `DepthStream` refines live videos.
    reference : (H, W) or (H, W, 3) array, or (T, H, W) or (T, H, W, 3) for a video
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : array like `depth`, optional
        Weight of each pixel's value relative to the others, on any scale; 0 for unknown. Default:
        1 everywhere.
    preset : {"sensor", "stereo", "sparse"}
        Kind of map. "sensor": any dense map, depths above all; noise may grow with the square of
        the depth. "stereo": disparities in pixels, larger for nearer
        points, of the left view of a rectified pair; pixels that the right view cannot see become
        background. "sparse": few known pixels, such as a LiDAR's. For "stereo" and "sparse", the
        value 0 is unknown. Videos need "sensor".
    invalid : float or floats, optional
        Values that mean "unknown", such as 0 in many 16-bit files. Without it, a map whose zeros
        are far from all other values causes a warning.
    mask : array like `depth` of bool or integers, optional
        0 where the map is unknown, such as the result of a left-right check.
    sigma_xy : float, optional
        Size of a grid cell in pixels. Default: 8 for 0.35 megapixels (4 for "sparse"), and in
        proportion to the side of the image, from 4 to 64.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    scale : float, optional
        Smallest error of an outlier, in the map's unit; smaller errors are noise. With it, any
        map may be corrected anywhere. Default, where it counts: 3 % of
        the map's range (5th to 95th percentile, without noise and outliers), or twice its noise if
        that is larger, and for "stereo" at least half a pixel.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the map. Integer results are rounded.

    Returns
    -------
    array like `depth`
        Finite everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.full((40, 60), 40, np.uint8)
    >>> photo[:, 30:] = 200
    >>> depth = np.where(photo > 100, 1500, 3000).astype(np.uint16)  # millimetres
    >>> depth[10:20, 20:28] = 0  # no data
    >>> depth[::7, ::5] = 9999  # wrong
    >>> refined = bilateral.tasks.refine_depth(depth, photo, invalid=0)
    >>> refined.dtype, np.unique(refined).tolist()
    (dtype('uint16'), [1500, 3000])
    """
    kind = PRESETS[validation.choice("preset", preset, PRESETS)]
    unknown = validation.number_list("invalid", invalid)
    if kind.zero_is_unknown:
        unknown = (*unknown, 0.0)
    unit = None if scale is None else validation.positive("scale", scale)
    cells = Cells.checked(sigma_xy, sigma_luma, sigma_chroma)
    if validation.is_video(depth, reference):
        validation.options_of_video(preset, scale)
        frames = VideoInput(depth, reference, confidence, mask)
        return refine_video(frames, unknown, cells, reference_max, dtype)
    validation.depth_not_swapped("refine_depth", "depth", depth, reference)
    guide = validation.reference(reference, reference_max)
    checked = check_depth(depth, guide.pixels.shape[:2], confidence, mask, unknown, dtype)
    values, trust = checked.values.astype(np.float64), checked.trust()
    validation.some_known("depth", checked.known)
    validation.warn_of_zeros("depth", values, checked.known, stacklevel=3)
    x = None
    if kind.camera and unit is None:
        x, trust = _camera(values, trust, guide, cells)
    if kind.stereo:
        x = _disparities(values, trust, guide, cells, kind, unit)
    if x is None:
        x = _whole(values, trust, guide, cells, kind, unit)
    return validation.as_dtype(x.reshape(checked.shape), checked.dtype)


def _camera(
    values: Array, trust: Array, guide: validation.Reference, cells: Cells
) -> tuple[Array | None, Array]:
    """Refine a map of a depth camera; for another map return None and the trust in its pixels."""
    size = float(np.median(np.abs(values[trust > 0])))
    if size == 0:
        return None, trust
    z = _in_sizes(values, trust, size)
    noise = estimate_noise(z)
    x = refine_enlarged(z, guide, noise, cells)
    if x is not None:
        return size * x, trust
    surfaces = find_surfaces(z, noise, trust)
    if surfaces.kept.any() and not is_matched(z, guide, surfaces):
        frame = refine_surfaces(z, guide, trust, noise, surfaces, cells, snap=True)
        return size * frame.x.astype(np.float64), trust
    less = trust * np.where(surfaces.kept, 1, np.where(surfaces.doubt, 0, SMALL_TRUST))
    return None, less.astype(np.float32) if less.any() else trust


def _disparities(
    values: Array,
    trust: Array,
    guide: validation.Reference,
    cells: Cells,
    kind: Preset,
    unit: float | None,
) -> Array:
    """Refine a map of stereo matching; the surfaces of one that is right already stay."""
    size = float(np.median(np.abs(values[trust > 0]))) or 1.0
    z = _in_sizes(values, trust, size)
    noise = _noise_of_disparities(z)
    surfaces = find_surfaces(z, noise, trust)
    contrast = log_contrast(guide)
    guarded = unit is None and bool(surfaces.kept.any())
    if guarded and not shows_edges(contrast):
        return size * refine_surfaces(z, guide, trust, noise, surfaces, cells).x.astype(np.float64)
    less = trust * np.where(surfaces.kept, np.float32(1), np.float32(_LOOSE_TRUST))
    x = _whole(values, less, guide, cells, kind, unit)
    if guarded and edges_agree(z, contrast, surfaces, 1 / size):
        overruled = np.abs(x / size - z) > surfaces.jump_at(z)
        x = np.where(surfaces.kept & overruled, values, x)
    return x


def _noise_of_disparities(z: Array) -> Noise:
    """Estimate the noise of a map in units of its median: it does not grow with the disparity.

    Thin structures that are all near look like noise there, but not in the median.
    """
    a, b = estimate_noise(z)
    sizes = [np.abs(z[2:] - 2 * z[1:-1] + z[:-2]), np.abs(z[:, 2:] - 2 * z[:, 1:-1] + z[:, :-2])]
    medians = [float(np.median(s[np.isfinite(s)])) for s in sizes if np.isfinite(s).any()]
    typical = min(medians, default=0.0) / (_NORMAL_MEDIAN * np.sqrt(6))
    return Noise(max(a, min(a + b, typical)), 0.0)


def _in_sizes(values: Array, trust: Array, size: float) -> Array:
    """Return a map in units of its median size, in float32, NaN where it is unknown."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.clip(values / size, -MOST_SIZES, MOST_SIZES)
    return np.where(trust > 0, z, np.nan).astype(np.float32)


def _whole(
    values: Array,
    trust: Array,
    guide: validation.Reference,
    cells: Cells,
    kind: Preset,
    unit: float | None,
) -> Array:
    """Refine a map that may be wrong anywhere."""
    known = trust > 0
    unit = edge_size(values, known, kind.least_unit) if unit is None else unit
    grid = cells.grid(guide, kind.cell)
    if unit == 0:  # all values are equal
        return np.full(values.shape, float(np.median(values[known])))
    return refine_whole(values, trust, guide, grid, unit, stereo=kind.stereo)
