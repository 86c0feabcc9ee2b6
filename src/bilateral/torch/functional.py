"""The solver as a function of tensors."""

from torch import Tensor

from bilateral.torch import autograd as derivatives
from bilateral.torch import inputs as shapes
from bilateral.torch.cuda.fast_path import Call
from bilateral.torch.options import config


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
    reference_max: float | None = None,
) -> Tensor:
    """Smooth a target so that it follows the edges of a reference image, differentiably.

    Derivatives with respect to target, confidence and smoothness, of any order and in both modes,
    cost one more solve each and keep nothing but inputs and outputs. There are none with respect
    to the reference, whose grid is a step function of it.

    Parameters
    ----------
    reference : (B, 3 or 1, H, W) or (3 or 1, H, W) tensor
        RGB or gray: uint8, uint16 or floating point, with white at 255, 65535 or 1. One without B,
        or with B = 1, serves the whole batch; its grid is then built once.
    target : (B, C, H, W) or (C, H, W) tensor
        What to smooth. A pixel with a value that is not finite counts as unknown. For C > 1 the
        memory format `torch.channels_last` saves a copy.
    confidence : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor, optional
        How much to trust each pixel, 0 for unknown; 1 everywhere if left out. The channels of an
        image share it.
    sigma_xy : float
        Size of a grid cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    smoothness : float or tensor with one element
        The paper's lambda: larger is smoother.
    blur, reference_max
        As for `bilateral.BilateralGrid`.
    tolerance, max_iterations, preconditioner
        As for `bilateral.BilateralSolver`. Derivatives have about ten tolerances of relative error;
        where the confidence needs a gradient, the solution itself is closer.

    Returns
    -------
    tensor
        Of the target's shape and dtype. What is inside is computed in float64 for a float64
        target, else in float32, also under autocast.

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
    others = sigma_xy, sigma_luma, sigma_chroma, blur, tolerance, max_iterations, preconditioner
    call = Call.of(reference, target, confidence, smoothness, *others, reference_max)
    y = None if call is None else call.result()
    if y is not None:
        return y
    given = shapes.batch(reference, target, confidence)
    options = config(
        given.reference.shape[1],
        sigma_xy,
        sigma_luma,
        sigma_chroma,
        blur,
        tolerance,
        max_iterations,
        preconditioner,
        reference_max,
    )
    factor = shapes.smoothness(smoothness)
    if call is None or not call.is_known:
        y = derivatives.infer(*given, factor, options)
    if y is None:
        y, _ = derivatives.solve(*shapes.known_only(given), factor, None, options)
    elif call is not None:
        call.learn(given, factor, options)
    return shapes.like_target(y, target)
