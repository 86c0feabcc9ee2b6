"""Enlarge depth maps on a CUDA device, one after the other: `tasks.superres_depth` for tensors.

The host reads a few numbers: whether the input is valid, the noise of the map and of its half, and
the errors of the solves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.superres import policy
from bilateral.torch import autograd, inputs
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.tasks import photos
from bilateral.torch.cuda.tasks.superres.fit import LowResolution, Scene, fit_block_means
from bilateral.torch.cuda.tasks.superres.maps import bicubic, spread, support
from bilateral.torch.cuda.tasks.superres.noise import MapNoise
from bilateral.torch.cuda.tasks.superres.trust import blend_with_bicubic
from bilateral.torch.options import LayerOptions
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import SuperresBatch


@retry_without_recordings
def enlarge(batch: SuperresBatch) -> Tensor:
    """Return maps (B, H, W); an invalid one goes to the CPU, which says what is wrong."""
    large = []
    for i in range(len(batch.depth)):
        x = _enlarge(batch, i)
        large.append(batch.on_cpu(i).to(batch.depth.device) if x is None else x)
    return torch.stack(large)


def _enlarge(batch: SuperresBatch, i: int) -> Tensor | None:
    """Enlarge one map; None if it is not valid."""
    options = batch.options
    reference, depth = tensors.at(batch.reference, i), batch.depth[i]
    white = photos.white(reference, options["reference_max"])
    if white is None:
        return None
    wide = inputs.is_wide(depth.dtype) or inputs.is_wide(batch.dtype)
    low = depth.to(torch.float64 if wide else torch.float32)
    known = low.isfinite()
    for value in validation.number_list("invalid", options["invalid"]):
        known &= depth != value
    weights = torch.ones_like(low)
    if batch.confidence is not None:
        weights = tensors.at(batch.confidence, i).to(low.dtype)
    valid = weights.isfinite().all() & (weights >= 0).all()
    known &= weights > 0
    valid &= known.any() & photos.check(reference, options["reference_max"])
    zeros = (known & (low == 0)).any()
    is_valid, some_zeros, complete = torch.stack([valid, zeros, known.all()]).tolist()
    if not is_valid:
        return None
    if some_zeros:
        host = low.cpu().numpy()
        validation.warn_of_zeros("depth_lowres", host, known.cpu().numpy(), stacklevel=7)
    factor = options["factor"]
    size = reference.shape[1], reference.shape[2]
    padded = validation.enlarged_shape("factor", factor, tuple(low.shape), size)
    photo = _extended(photos.levels(reference), padded)
    weights = torch.where(known, weights / torch.where(known, weights, 0).amax(), 0)
    values = low if complete else _filled(low, known)
    preset = options["preset"]
    x = (
        _enlarge_best(values, weights, photo, white)
        if preset == "best"
        else _start(values, weights, Scene(photo, white), as_in_paper=preset == "paper")
    )
    x = x[: size[0], : size[1]]
    if options["keep_holes"]:
        x = _with_holes(x, low, known, padded, batch)
    return tensors.as_dtype(x, batch.dtype)


def _extended(photo: Tensor, shape: tuple[int, int]) -> Tensor:
    """Repeat the last row and column of a photograph (C, H, W) up to a larger shape."""
    for axis, size in zip((1, 2), shape, strict=True):
        missing = size - photo.shape[axis]
        if missing > 0:
            last = photo.narrow(axis, photo.shape[axis] - 1, 1)
            photo = torch.cat([photo, *[last] * missing], axis)
    return photo


def _filled(low: Tensor, known: Tensor) -> Tensor:
    """Fill holes smoothly, so that bicubic interpolation can cross them; their weight is 0."""
    plain = torch.zeros((1, 1, *low.shape), dtype=torch.uint8, device=low.device)
    # A gray picture has one feature, which is the same everywhere: the grid of pixels.
    options = LayerOptions(
        GridOptions(1.0, 8.0, 8.0, validation.blur("paper", 2), None), SolveOptions()
    )
    batch = inputs.batch(plain, torch.where(known, low, 0)[None], known[None].to(low.dtype))
    smooth, _ = autograd.solve(*batch, inputs.smoothness(policy.FILL_SMOOTHNESS), None, options)
    return torch.where(known, low, smooth[0, 0])


def _start(low: Tensor, weights: Tensor, scene: Scene, *, as_in_paper: bool) -> Tensor:
    """Enlarge by the paper's pipeline, with the paper's steps or solved to convergence."""
    target = bicubic(low, scene.shape)
    confidence = support(weights, scene.shape)
    return scene.smooth(scene.solve(target, confidence, policy.SMOOTHNESS, as_in_paper=as_in_paper))


def _enlarge_best(values: Tensor, weights: Tensor, photo: Tensor, white: float) -> Tensor:
    """Fit block means with the photograph, and fall back to bicubic where it does not help."""

    def guided(low: LowResolution, photo: Tensor) -> Tensor:
        scene = Scene(photo, white)
        start = _start(low.values, low.weights, scene, as_in_paper=False)
        return fit_block_means(start, low, scene)

    low = LowResolution(values, weights, MapNoise.of(values, weights > 0))
    return blend_with_bicubic(guided(low, photo), low, photo, guided)


def _with_holes(
    x: Tensor, low: Tensor, known: Tensor, padded: tuple[int, int], batch: SuperresBatch
) -> Tensor:
    """Keep the holes of the low-resolution map."""
    dtype = tensors.array(torch.empty(0, dtype=batch.dtype)).dtype
    hole = validation.hole_value(validation.number_list("invalid", batch.options["invalid"]), dtype)
    holes = spread((~known).to(low.dtype), padded)[: x.shape[0], : x.shape[1]] > 0
    return torch.where(holes, hole, x)
