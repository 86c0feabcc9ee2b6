"""Solve tensors robustly: a fixed number of reweighted rounds, unrolled."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bilateral import losses, validation
from bilateral.numerics import policy
from bilateral.torch import autograd, inputs, planar
from bilateral.torch.options import LayerOptions


@validation.keywords(photo="reference", depth="target")
def solve_robust(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None = None,
    loss: losses.Loss | Any = losses.GemanMcClure(1.0),  # noqa: B008
    iterations: int = 8,
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
    """Smooth a target that has outliers, differentiably (supplement, Algorithm 3).

    The first round solves with `confidence`, each later round with the confidences
    ``loss.weight(x - target)`` of the last solution x. All rounds share one grid.

    Derivatives are those of exactly these rounds, unrolled, rather than of the fixed point that
    they approach. Derivatives of the fixed point would differ from those of the result for two
    reasons: no affordable number of rounds reaches the fixed point, and with a loss such as
    Geman-McClure's the second derivative of the objective there need not be positive, so that the
    implicit equations may have no sensible solution. Unrolled derivatives are right for every loss
    and number of rounds. A backward pass costs as many solves as there are rounds, and each round
    keeps its solution and its weights.

    Parameters
    ----------
    reference, target, confidence
        As for `solve`. Later rounds ignore `confidence`, but a pixel with a non-finite target
        stays unknown in all rounds.
    loss : Loss
        One of `bilateral.GemanMcClure`, `Charbonnier`, `Cauchy`, `Welsch`, `Huber`, `Barron`, or
        any object whose ``weight(e)`` takes and returns tensors. Its scale is in the target's
        unit. With several channels e is the distance over all of them.
    iterations : int
        Number of rounds. Each round solves to the tolerance and fills parts without data again.
        The shorter rounds of `bilateral.BilateralSolver.solve_robust` do neither, and more of them
        are needed.
    sigma_xy, sigma_luma, sigma_chroma, smoothness, blur, tolerance, max_iterations, \
preconditioner, reference_max
        As for `solve`.
    model, slope_smoothness, slope_ridge, clamp
        As for `solve`, but `slope_ridge` must be a number. With "planar", a quarter of the rounds
        is constant, because planes would follow regions of outliers. The clamp keeps the result
        within the range of the values that the last round trusts, and 5 % of it on both sides.

    Returns
    -------
    tensor
        The smooth map, in the target's shape and dtype.

    Examples
    --------
    >>> import torch
    >>> import bilateral
    >>> import bilateral.torch
    >>> target = torch.full((1, 16, 16), 3.0)
    >>> target[:, ::4, ::2] = 90  # one pixel in eight is wrong
    >>> photo, loss = torch.zeros(1, 16, 16), bilateral.GemanMcClure(2.0)
    >>> round(bilateral.torch.solve(photo, target).max().item(), 2)
    13.88
    >>> round(bilateral.torch.solve_robust(photo, target, loss=loss).max().item(), 2)
    3.0
    """
    arguments = locals()
    validation.loss(loss)
    validation.count("iterations", iterations, 1)
    batch = inputs.batch(reference, target, confidence)
    options = LayerOptions.checked(arguments, batch.reference.shape[1])
    lam = inputs.smoothness(smoothness)
    stages = planar.stages(options, iterations)
    known = torch.isfinite(batch.target).all(1, keepdim=True)
    images, values, weights = inputs.zero_unknown(batch)
    y, grid = autograd.solve(images, values, weights, lam, None, stages[0])
    for stage in stages[1:]:
        weights = torch.where(known, weight(loss, y - values), 0)
        y, grid = autograd.solve(images, values, weights, lam, grid, stage)
    if options.solve.planar and options.solve.clamp:
        y = planar.clamp(y, values, planar.trusted(weights))
    return inputs.like_target(y, target)


def weight(loss: losses.Loss | Any, e: Tensor) -> Tensor:
    """Compute the weights (B, 1, H, W) of errors (B, C, H, W) by their size over the channels.

    All losses of this package are written as smooth functions of the squared size, because the
    size itself has no derivative at 0.
    """
    square = e.square().sum(1, keepdim=True)
    kind = type(loss)  # a subclass may have overridden anything
    if not isinstance(loss, losses.Scaled) or kind.__module__ != losses.__name__:
        size = torch.where(square > 0, square, 1).sqrt()
        theirs: Any = loss
        found: Tensor = theirs.weight(torch.where(square > 0, size, 0))
        return found
    gain = 1 / loss.scale**2
    u = square * gain
    if isinstance(loss, losses.GemanMcClure):
        return 2 * gain / (1 + u).square()
    if isinstance(loss, losses.Charbonnier):
        return gain * (1 + u).rsqrt()
    if isinstance(loss, losses.Cauchy):
        return gain / (1 + 0.5 * u)
    if isinstance(loss, losses.Welsch):
        return gain * torch.exp(-0.5 * u)
    if isinstance(loss, losses.Huber):
        return gain * torch.where(u > 1, u, 1).rsqrt()
    assert isinstance(loss, losses.Barron)
    if abs(loss.alpha) > losses.NEAR_INFINITY:
        return gain * torch.exp((0.5 if loss.alpha > 0 else -0.5) * u)
    spread = abs(loss.alpha - 2) or 1.0
    return gain * (1 + u / spread) ** (0.5 * loss.alpha - 1)
