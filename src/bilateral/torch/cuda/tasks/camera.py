"""Refine maps of depth cameras on a CUDA device: the recipe of `tasks/depth/frame.py`.

The stages have the constants of the recipe. The host reads a few numbers in between, and snaps the
edges of maps that have ragged ones. Maps that go another way than most (maps of matching, enlarged
ones, all that raises an error or a warning) are refined by the task for arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from bilateral import validation
from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.doubt import find_doubt
from bilateral.backends.cuda.depth.growth import grow_surfaces
from bilateral.backends.cuda.depth.sides import SideOptions, count_contradictions, find_sides
from bilateral.backends.cuda.depth.surface_sizes import surface_sizes
from bilateral.tasks.depth import enlarged, fill, snap
from bilateral.tasks.depth import surfaces as recipe
from bilateral.tasks.depth.depth_input import LEAST_WEIGHT
from bilateral.tasks.depth.fill import Cells, PlaneUnit
from bilateral.tasks.depth.matching.matched import is_disordered
from bilateral.tasks.depth.noise import Noise, Samples, noise_of
from bilateral.tasks.depth.polish_noise import FILLED_WEIGHT, MOST_MOVED, polish_options
from bilateral.tasks.depth.refine import MOST_SIZES
from bilateral.tasks.depth.shadows import behind_shadows
from bilateral.tasks.depth.surfaces import Surfaces, jump_of, least_pixels
from bilateral.torch.cuda.device_memory import can_record
from bilateral.torch.cuda.graphs import record_briefly
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.functional import solve
from bilateral.torch.inputs import as_array, is_wide
from bilateral.torch.tasks.polish import polish
from bilateral.validation.depth_maps import SUSPICIOUS_ZEROS


class CameraMap(NamedTuple):
    """A depth map with its photograph, on one device."""

    values: Tensor
    """(H, W), real."""
    image: Tensor
    """(3 or 1, H, W)"""
    confidence: Tensor | None
    """(H, W)"""
    mask: Tensor | None
    """(H, W)"""


class Input(NamedTuple):
    """A valid map in units of its median size."""

    z: Tensor
    """(H, W) float32; NaN where it is unknown."""
    trust: Tensor
    """(H, W) float32: at most 1, and 0 where the map is unknown."""
    size: float


class DeviceSurfaces(NamedTuple):
    """The fields of `Surfaces` as (H, W) tensors, and numbers of them."""

    kept: Tensor
    small: Tensor
    doubt: Tensor
    sizes: Tensor
    jump: Polynomial
    unit: PlaneUnit
    all_kept: bool

    def jump_at(self, z: Any) -> Any:
        """Return the smallest difference between surfaces at depths, a tensor or an array."""
        size = abs(z)
        return self.jump[0] + size * (self.jump[1] + size * self.jump[2])

    def confirmed(self, x: Tensor, z: Tensor) -> Tensor:
        """Return the kept pixels, and those of small surfaces that are close to a solution `x`."""
        close: Tensor = (x - z).abs() <= self.jump_at(z)
        return self.kept | (self.small & close)

    def on_host(self) -> Surfaces:
        """Copy all to the host."""
        kept, small, doubt, sizes = (as_array(part) for part in self[:4])
        return Surfaces(kept, small, doubt, sizes, self.jump)


def refine(
    given: CameraMap, unknown: tuple[float, ...], cells: Cells, reference_max: float | None
) -> Tensor | None:
    """Return an (H, W) float64 map; None if the task for arrays has to refine it."""
    checked = _check(given, unknown, reference_max)
    if checked is None:
        return None
    z, trust, size = checked
    noise = _noise(z)
    if noise is None:
        return None
    surfaces = _find_surfaces(z, noise, trust)
    if surfaces is None:
        return None
    unit = surfaces.unit
    measured, z = z, torch.where(surfaces.doubt, torch.nan, z)
    x = z
    if not surfaces.all_kept:
        solution = _solve_planes(given, z, surfaces, trust, cells, reference_max)
        confirmed = surfaces.confirmed(solution, z)
        x = torch.where(confirmed, z, solution)
        if unit.inverse:
            x = _behind_shadows(x, confirmed, measured, surfaces)
        rule = surfaces.jump, unit.inverse, fill.GROWTH
        record = record_briefly if can_record(x) else None
        x = grow_surfaces(x, confirmed, measured, *rule, record=record)
    x, moved = _snap(x, surfaces, given.image, reference_max)
    kept = surfaces.kept & ~moved
    return size * _polish(x, given.image, kept, noise, reference_max).double()


def _check(
    given: CameraMap, unknown: tuple[float, ...], reference_max: float | None
) -> Input | None:
    """Bring a map to units of its median size; None if it is invalid or of size 0."""
    if given.mask is not None and given.mask.is_floating_point():
        return None
    known, trust, numbers = _read(given, unknown, reference_max)
    ok, number, empty, low, high = numbers.tolist()
    if not ok or number == 0 or empty >= SUSPICIOUS_ZEROS * number or low + high == 0:
        return None
    size = (low + high) / 2
    z = (known / size).clamp(-MOST_SIZES, MOST_SIZES).float()
    return Input(z, trust, size)


@recorded
def _read(
    given: CameraMap, unknown: tuple[float, ...], reference_max: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return float64 values, NaN where they do not count, their trust, and numbers for the host.

    The numbers: whether all is valid, known values, zeros, and the two values in the middle.
    """
    image, mask = given.image, given.mask
    valid = torch.ones((), dtype=torch.bool, device=given.values.device)
    if image.is_floating_point():
        limited = reference_max is None
        low = validation.LOWEST if limited else -torch.inf
        high = validation.HIGHEST if limited else torch.inf
        valid = valid & (image.isfinite() & (image >= low) & (image <= high)).all()
    values = given.values.to(torch.float64 if is_wide(given.values.dtype) else torch.float32)
    known = values.isfinite()
    for value in unknown:
        known = known & (values != value)
    if mask is not None:
        known = known & (mask != 0)
    trust = known.float()
    if given.confidence is not None:
        weights = given.confidence.double()
        valid = valid & (weights.isfinite() & (weights >= 0)).all()
        largest = weights.amax()
        weights = (weights / torch.where(largest > 0, largest, 1.0)).float()
        known = known & (weights > LEAST_WEIGHT)
        trust = torch.where(known, weights, 0.0)
    sizes = torch.where(known, values.abs(), torch.inf).view(-1).sort().values
    count = known.sum()
    middle = torch.stack([(count - 1).clamp(min=0) // 2, count // 2]).clamp(max=sizes.numel() - 1)
    zeros = (known & (values == 0)).sum()
    numbers = torch.stack([valid.double(), count.double(), zeros.double()])
    numbers = torch.cat([numbers, sizes[middle].double()])
    return torch.where(trust > 0, values.double(), torch.nan), trust, numbers


def _noise(z: Tensor) -> Noise | None:
    """Estimate the noise by samples; None if they do not suffice or the map was enlarged."""
    samples, parts = _samples(z)
    on_host = torch.cat(parts).cpu().numpy()
    sizes = np.cumsum([part.numel() for part in parts])[:-1]
    depths, columns, rows, changed_rows, changed_columns, known = np.split(on_host, sizes)
    if known[0] >= enlarged.LEAST_KNOWN * z.numel():
        blocks = enlarged.Blocks.beginning_at(changed_rows > 0, changed_columns > 0)
        if blocks is not None:
            return None
    there = Samples(
        depths, columns.reshape(samples.columns.shape), rows.reshape(samples.rows.shape)
    )
    return noise_of(there) if there.suffice() else None


@recorded
def _samples(z: Tensor) -> tuple[Samples, tuple[Tensor, ...]]:
    """Return samples of a map, and all parts of what the host reads, flat."""
    samples = Samples.of(z)
    parts = [*samples, _changes(z), _changes(z.T), z.isfinite().sum()]
    return samples, tuple(part.reshape(-1).float() for part in parts)


def _changes(z: Tensor) -> Tensor:
    """Whether each row of a map differs from the row above; True for the first."""
    above, below = z[:-1], z[1:]
    same = (above == below) | (above.isnan() & below.isnan())
    return torch.cat([same.new_ones(1), ~same.all(1)])


def _find_surfaces(z: Tensor, noise: Noise, trust: Tensor) -> DeviceSurfaces | None:
    """Find the surfaces; None if there are none, or for a map that looks like one of matching."""
    jump = jump_of(noise)
    doubt = find_doubt(z, jump)
    sizes = surface_sizes(z, doubt | (trust < recipe.LEAST_TRUST), jump)
    pixels = z.numel()
    kept = sizes >= least_pixels(pixels, recipe.LEAST_PART)
    low = torch.where(kept, z, torch.inf).amin()
    high = torch.where(kept, z, -torch.inf).amax()
    small = (sizes >= recipe.SMALL_PIXELS) & ~kept & (z >= low) & (z <= high)
    large = sizes >= least_pixels(pixels, recipe.LARGE_PART)
    counts = torch.stack([mask.sum() for mask in (z.isfinite(), doubt, large, kept)])
    *numbers, lowest, highest = torch.cat([counts.double(), low[None], high[None]]).tolist()
    known, doubtful, in_large, in_kept = map(int, numbers)
    if in_kept == 0 or is_disordered(pixels, known, doubtful, in_large):
        return None
    unit = PlaneUnit.of_range(lowest, highest)
    return DeviceSurfaces(kept, small, doubt, sizes, jump, unit, in_kept == pixels)


def _solve_planes(
    given: CameraMap,
    z: Tensor,
    surfaces: DeviceSurfaces,
    trust: Tensor,
    cells: Cells,
    reference_max: float | None,
) -> Tensor:
    """Solve for planes in the holes."""
    unit = surfaces.unit
    target = torch.where(surfaces.kept | surfaces.small, z, torch.nan)
    target = 1 / target if unit.inverse else target
    weights = torch.where(surfaces.small, fill.SMALL_TRUST, 1.0).float() * trust
    sizes: dict[str, Any] = cells.sizes(z.shape)
    u = solve(
        given.image,
        target[None],
        weights[None],
        **sizes,
        **fill.PLANES,
        reference_max=reference_max,
    )[0]
    return 1 / u.clamp(min=unit.least) if unit.inverse else u


def _behind_shadows(x: Tensor, kept: Tensor, measured: Tensor, surfaces: DeviceSurfaces) -> Tensor:
    """Give shadows of a projector the depth behind; the host knows the rule of rows."""
    on_host = as_array(x)
    found = behind_shadows(on_host, as_array(kept), as_array(measured), surfaces.jump_at)
    return x if found is on_host else torch.from_numpy(found).to(x.device)


def _snap(
    x: Tensor, surfaces: DeviceSurfaces, image: Tensor, reference_max: float | None
) -> tuple[Tensor, Tensor]:
    """Move ragged edges to the photograph's; the device finds out whether there are any."""
    if not _is_ragged(x, surfaces, image, reference_max):
        return x, torch.zeros_like(surfaces.kept)
    guide = validation.reference(np.moveaxis(as_array(image), 0, -1), reference_max)
    snapped, moved = snap.snap_edges(as_array(x), surfaces.on_host(), guide, surfaces.unit)
    return torch.from_numpy(snapped).to(x.device), torch.from_numpy(moved).to(x.device)


def _is_ragged(
    x: Tensor, surfaces: DeviceSurfaces, image: Tensor, reference_max: float | None
) -> bool:
    """Whether the tests of `snap_edges` for the map as a whole let edges move."""
    side = 2 * snap.REACH + 1
    high, low = (
        sign * max_pool2d(sign * x[None], side, stride=1, padding=snap.REACH)[0] for sign in (1, -1)
    )
    jumps = snap.STEEP_JUMPS * surfaces.jump_at(low), snap.LEAST_JUMPS * surfaces.jump_at(high)
    beside_jump = high - low > torch.maximum(*jumps)
    pixel = (beside_jump & surfaces.kept).view(-1).nonzero().view(-1).int()
    levels = image.to(torch.float32)
    options = SideOptions(
        snap.COLOUR_REACH,
        snap.COLOUR_STRIDE,
        snap.LEAST_PIXELS,
        snap.MOST_OTHERS,
        snap.LEAST_CONTRAST * _white(image, reference_max) / 255,
        snap.LEAST_RATIO,
    )
    inverse = surfaces.unit.inverse
    found = find_sides(
        x, low, high, ~beside_jump, pixel, levels, surfaces.jump, inverse, options
    ).clear_ones()
    joins, counts = count_contradictions(found, levels, snap.SHIFT, snap.MARGIN, snap.MOST_OFF)
    best = snap.best_shift(*counts.tolist())
    if best is None:
        return False
    certain, far = joins[best] >= 0, joins[best] > 0
    moving = certain & (far != found.is_far)
    directions = torch.where(far, -found.normal, found.normal)
    total = torch.where(moving, directions, 0).sum(1)
    normal = torch.where(certain, found.normal, 0)
    squares = normal @ normal.T
    numbers = torch.cat([certain.sum()[None], moving.sum()[None], total, squares.view(-1)])
    pixels, count, *sums = numbers.tolist()
    parts = np.array(sums[:2]), np.array(sums[2:]).reshape(2, 2)
    return snap.is_ragged(int(pixels), int(count), *parts)


def _white(image: Tensor, reference_max: float | None) -> float:
    if reference_max is not None:
        return float(reference_max)
    return 1.0 if image.is_floating_point() else float(torch.iinfo(image.dtype).max)


def _polish(
    x: Tensor, image: Tensor, kept: Tensor, noise: Noise, reference_max: float | None
) -> Tensor:
    """Reduce noise, as `polish_noise` does."""
    ratio = math.sqrt(noise.b / noise.a)
    w = (torch.arctan(x * ratio) / (noise.a * ratio) if ratio > 0 else x / noise.a)[None]
    weights = torch.where(kept, 1.0, FILLED_WEIGHT)
    options = polish_options(len(image))
    smooth = polish(w, image, w, weights[None], reference_max=reference_max, **options)
    moved = (smooth - w)[0].clamp(-MOST_MOVED, MOST_MOVED)
    return x + (noise.a + noise.b * x.square()) * moved
