"""Colorize photographs on a CUDA device, one after the other: `tasks.colorize` for tensors.

The host reads a few numbers: how strokes are marked, whether the input is valid, the error of the
solve and how many specks are left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral import color, validation
from bilateral.backends.cuda.colorize import strokes as kernels
from bilateral.backends.cuda.colorize.colors import colored
from bilateral.backends.cuda.colorize.strokes import Facts, Strokes
from bilateral.backends.cuda.filters.domain_transform import domain_transform
from bilateral.backends.cuda.labels.regions import Regions, find_regions
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.colorize import policy
from bilateral.tasks.colorize.presets import PRESETS, Preset
from bilateral.tasks.colorize.strokes import warn_of_compression
from bilateral.tasks.colorize.texture import WINDOW
from bilateral.torch.cpu_filters import FilterOptions
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks import photos
from bilateral.torch.cuda.tasks.colorize.specks import recolor
from bilateral.torch.cuda.tasks.solves import PhotoSolver
from bilateral.torch.options import LayerOptions
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import ColorizeBatch

_LEVELS = 255.0
"""Features are in 8-bit grey levels."""


class _Picture(NamedTuple):
    """One photograph with its strokes, as given."""

    gray: Tensor
    """(1 or 3, H, W)"""
    white: float
    scribbles: Tensor
    """(3 or 4, H, W)"""
    stroke_white: float
    mask: Tensor | None
    """(H, W)"""
    limits: tuple[float, float]
    """Of valid values of the photograph."""
    stroke_limits: tuple[float, float]


@retry_without_recordings
def colorize(batch: ColorizeBatch) -> Tensor:
    """Return RGB (B, 3, H, W); an invalid photograph goes to the CPU, which says what is wrong."""
    coloured = []
    for i in range(len(batch.gray)):
        rgb = _colorize(batch, i)
        coloured.append(batch.on_cpu(i).to(batch.gray.device) if rgb is None else rgb)
    return torch.stack(coloured)


def _colorize(batch: ColorizeBatch, i: int) -> Tensor | None:
    """Colorize one photograph; None if it is not valid."""
    options = batch.options
    picture = _picture(batch, i)
    if picture is None:
        return None
    preset = PRESETS[options["preset"]]
    found = _strokes(picture, preset)
    if found is None:
        return None
    strokes, clipped, regions = found
    height, width = strokes.luma.shape
    sigma_luma = preset.sigma_luma
    if options["sigma_luma"] is not None:
        sigma_luma = validation.positive("sigma_luma", options["sigma_luma"])
    cell = preset.cell_of((height, width), options["sigma_xy"])
    smoothness = preset.smoothness if options["smoothness"] is None else options["smoothness"]
    grid = GridOptions(
        cell,
        sigma_luma,
        preset.sigma_texture or sigma_luma,
        validation.blur("paper", 2 + len(strokes.features)),
        _LEVELS,
    )
    layer = LayerOptions(grid, _solve_options(preset))
    solver = PhotoSolver(strokes.features)
    lam = validation.fixed_smoothness(smoothness)
    chroma = solver.solve(strokes.chroma.permute(2, 0, 1), strokes.weights, lam, layer)
    if preset.recolor_specks:
        chroma = recolor(chroma, solver, clipped, regions, grid.blur, cell)
    filter_options = FilterOptions(*preset.filter(cell), 3, picture.white, picture.white)
    return _filtered(strokes.luma, chroma, filter_options, batch.gray.dtype)


@recorded
def _filtered(luma: Tensor, chroma: Tensor, options: FilterOptions, dtype: torch.dtype) -> Tensor:
    """Filter the chroma along the luma, and combine both."""
    chroma = domain_transform(
        chroma[None],
        None,
        luma[None, None],
        options.scale,
        options.passes,
        options.limits,
        False,
    )[0][0]
    return _colored(luma, chroma, options.highest, dtype)


def _picture(batch: ColorizeBatch, i: int) -> _Picture | None:
    """Return a photograph and its strokes; None if a dtype is not valid."""
    given, reference_max = batch.gray[i], batch.options["reference_max"]
    scribbles, mask = tensors.at(batch.scribbles, i), tensors.at(batch.mask, i)
    white = photos.white(given, reference_max)
    same = scribbles.dtype == given.dtype
    stroke_white = photos.white(scribbles, reference_max if same else None)
    if white is None or stroke_white is None:
        return None
    if mask is not None and mask.dtype.is_floating_point:
        return None
    checked = given.dtype.is_floating_point and reference_max is None
    checked_strokes = scribbles.dtype.is_floating_point and stroke_white == 1
    real = torch.float64 if given.dtype == torch.float64 else torch.float32
    return _Picture(
        given,
        white,
        scribbles,
        stroke_white,
        mask,
        _limits(real, checked),
        _limits(torch.float32, checked_strokes),
    )


def _limits(dtype: torch.dtype, checked: bool) -> tuple[float, float]:
    """Return the limits of valid values: those of a white of 1, or all finite numbers."""
    if checked:
        return validation.LOWEST, validation.HIGHEST
    return torch.finfo(dtype).min, torch.finfo(dtype).max


def _strokes(picture: _Picture, preset: Preset) -> tuple[Strokes, Tensor, Regions] | None:
    """Find the strokes, the clipped luma and its regions.

    None if there are no strokes, or if the picture or they are not valid.
    """
    mode = kernels.DIFFERENCE
    if picture.mask is not None:
        mode = kernels.MASK
    elif len(picture.scribbles) == 4:
        alpha = picture.scribbles[3]
        if not bool((alpha == alpha[0, 0]).all()):
            mode = kernels.ALPHA
    found = _read(picture, mode, 1 if preset.sigma_texture is None else 2)
    strokes = found[0]
    facts = Facts(*strokes.counts.tolist())
    swapped = facts.coloured > 0 and facts.coloured_strokes == 0
    if facts.strokes == 0 or facts.invalid or facts.invalid_strokes or swapped:
        return None
    if mode == kernels.DIFFERENCE:
        warn_of_compression(facts.strokes / strokes.luma.numel(), stacklevel=8)
    return found


@recorded
def _read(picture: _Picture, mode: int, features: int) -> tuple[Strokes, Tensor, Regions]:
    """Find the strokes, the texture as a second feature, the clipped luma and its regions."""
    numbers = kernels.Numbers(
        picture.white,
        picture.stroke_white,
        *picture.limits,
        *picture.stroke_limits,
        policy.STROKE_DIFFERENCE,
        policy.MAX_GRAY_CHROMA,
        tuple(color.RGB_TO_YUV.ravel().tolist()),
    )
    real = torch.float64 if picture.gray.dtype == torch.float64 else torch.float32
    mask = None if picture.mask is None else (picture.mask != 0).to(torch.uint8).contiguous()
    found = kernels.find_strokes(
        picture.gray.to(real).contiguous(),
        picture.scribbles.float().contiguous(),
        mask,
        mode,
        features,
        numbers,
    )
    if features > 1:
        mean = found.features[0].mean(dtype=torch.float64)
        kernels.add_texture(found.features, mean, WINDOW)
    clipped = found.features[0].clamp(0, policy.MAX_LEVEL).float()
    return found, clipped, find_regions(clipped, policy.SAME_LUMA)


def _solve_options(preset: Preset) -> SolveOptions:
    """Return the options of the preset's method."""
    if preset.method is None:
        return SolveOptions()
    defaults: dict[str, Any] = {"tolerance": 1e-3, "max_iterations": None, "model": "constant"}
    return SolveOptions.checked_with_method(
        {"method": preset.method, "preconditioner": "multigrid", "initial": None, **defaults}
    )


def _colored(luma: Tensor, chroma: Tensor, white: float, dtype: torch.dtype) -> Tensor:
    """Return RGB pixels in a dtype."""
    integer = not dtype.is_floating_point
    to_rgb = color.CHROMA_TO_RGB * (white / _LEVELS)
    rgb = colored(
        luma,
        chroma,
        white,
        white * color.FAINT,
        tuple(to_rgb.ravel().tolist()),
        tuple(color.RGB_TO_YUV[0].tolist()),
        integer,
    )
    return rgb.to(dtype)
