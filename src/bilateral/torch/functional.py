"""Solve tensors in one call, differentiably."""

from __future__ import annotations

from torch import Tensor

from bilateral import validation
from bilateral.numerics import policy
from bilateral.torch import autograd, inputs, planar
from bilateral.torch.fast_path import Call
from bilateral.torch.options import LayerOptions


@validation.keywords(photo="reference", depth="target")
def solve(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None = None,
    *,
    sigma_xy: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    smoothness: float | Tensor = 4.0,
    blur: str | tuple[float, float, float] = "paper",
    tolerance: float = 1e-3,
    max_iterations: int | None = None,
    preconditioner: str = "multigrid",
    model: str = "constant",
    slope_smoothness: float = policy.SLOPE_SMOOTHNESS,
    slope_ridge: float | None = policy.SLOPE_RIDGE,
    clamp: bool = True,
    reference_max: float | None = None,
) -> Tensor:
    """Smooth a target so that it follows the edges of a reference image, differentiably.

    Target, confidence and smoothness have derivatives of any order, in forward and reverse mode.
    Each derivative costs one more solve and keeps only inputs and outputs. The reference has no
    derivative, because the grid is a step function of it.

    Parameters
    ----------
    reference : (B, 3 or 1, H, W) or (3 or 1, H, W) tensor
        RGB or gray: uint8, uint16 or floating point, with white at 255, 65535 or 1. A reference
        without B, or with B = 1, serves the whole batch; its grid is built once.
    target : (B, C, H, W) or (C, H, W) tensor
        The map to smooth. A pixel with a non-finite value counts as unknown. For C > 1 the memory
        format `torch.channels_last` saves a copy.
    confidence : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor, optional
        Trust in each pixel, 0 for unknown; 1 everywhere by default. The channels of an image share
        it.
    sigma_xy : float
        Size of a grid cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    smoothness : float or tensor with one element
        The paper's lambda: larger is smoother. With few known pixels use 0.01 to 0.1.
    blur, reference_max
        As for `bilateral.BilateralGrid`.
    tolerance, max_iterations, preconditioner
        As for `bilateral.BilateralSolver`. Derivatives have a relative error of about ten
        tolerances. If the confidence needs a gradient, the solution itself is more exact.
    model, slope_smoothness, slope_ridge, clamp
        As for `bilateral.BilateralSolver`. The clamp is part of the derivatives: a clamped pixel
        follows the lowest or highest known value. With ``slope_ridge=None``, each image has its own
        penalties, which are constants for derivatives. With ``slope_ridge=0``, slopes that the data
        of a part do not determine are constants, too. On a CUDA device, "planar" runs there like
        "constant", forward and backward, but only its steps are recorded, anew in each call.

    Returns
    -------
    tensor
        The smooth map, in the target's shape and dtype. The computation runs in float64 for a
        float64 target, else in float32, also under autocast.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.zeros(1, 32, 32)
    >>> photo[..., 16:] = 1
    >>> depth = torch.full((1, 32, 32), torch.nan)
    >>> depth[0, 4, 4], depth[0, 4, 28] = 1, 2
    >>> bilateral.torch.solve(photo, depth)[0, 20, [0, 15, 16, 31]].round(decimals=2).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    arguments = locals()
    call = Call.of(*arguments.values())
    y = None if call is None else call.replay()
    if y is not None:
        return y
    batch = inputs.batch(reference, target, confidence)
    options = LayerOptions.checked(arguments, batch.reference.shape[1])
    lam = inputs.smoothness(smoothness)
    if options.solve.planar:
        return inputs.like_target(planar.solve(batch, lam, options), target)
    if call is None or not call.is_known:
        y = autograd.infer(*batch, lam, options)
    if y is None:
        y, _ = autograd.solve(*inputs.zero_unknown(batch), lam, None, options)
    elif call is not None:
        call.remember(batch, lam, options)
    return inputs.like_target(y, target)
