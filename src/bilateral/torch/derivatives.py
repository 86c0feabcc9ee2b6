"""Derive a solve: the formulas of gradients and tangents, as linear maps of pixels.

Let A = lambda L + diag(S c) (Eq. 6), M = S^T A^-1 S, and y = M g with g = c t. S is a partition of
the pixels, so A' = lambda' L + S diag(c') S^T, and lambda L x = S (g - c y) for y = S^T x. From
A x' + A' x = S g' follows

    y' = M (g' - c' y - lambda' / lambda (g - c y)),        g' = c' t + c t'.

M is symmetric. A loss with the gradient h in y needs one solve, z = M h (section 3 of the paper).
Its gradients are

    dg = z,    dc = -z y,    dlambda = -<z, g - c y> / lambda,
    and through g:    dt = c z,    dc += t z.

Channels share c and lambda, so their contributions are summed. Every term consists of M and
products of pixels again, so higher derivatives need no formulas of their own. Only inputs and
outputs are kept.

A part of the grid without data has y = P (c t) / q with q = P c. P = E U (1 - E) takes values from
all other parts. E is the projection on the parts without data; U = S^T H S is symmetric and
constant:

    y' = (P (c' t + c t') - y P c') / q,
    with a = E h / q:    dt = c P^T a,    dc = t P^T a - P^T (a y).

Both gradients are 0 inside these parts: they have no confidence, and the first confidence there
would make the solution jump.

Planes (``model="planar"``) have S^T evaluate planes at pixels, A = lambda L + S diag(c) S^T, and a
linear, constant map F that fills parts without data from the planes of all others. So y = M g with
M = S^T (I + F) A^-1 S, where A^-1 is 0 in parts without data. M is not symmetric there, but all
formulas above hold with z = M^T h, without P: z is 0 in parts without data. They also hold for M^T
in place of M, because c z has no part that M would fill.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

Grads = tuple[Tensor | None, ...]


class Maps(Protocol):
    """The matrix of one solve as differentiable maps of pixels."""

    smoothness: Tensor

    @property
    def may_have_gaps(self) -> bool:
        """Whether parts of the grid may have no data, so that P is not 0."""

    def apply(self, g: Tensor, *, transposed: bool = False) -> Tensor:
        """Compute M g or M^T g."""

    def surroundings(self, g: Tensor, *, transposed: bool = False) -> Tensor:
        """Compute P g or P^T g."""

    def weigh(self, values: Tensor) -> Tensor:
        """Compute c v."""

    def without_data(self, h: Tensor) -> Tensor:
        """Compute E h / q."""

    def over_pixels(self, values: Tensor) -> Tensor:
        """Sum (B, K, H, W) over all channels that share a confidence."""


def solve_backward(
    matrix: Maps, target: Tensor, y: Tensor, needs: tuple[bool, bool, bool], h: Tensor
) -> Grads:
    """Compute the gradients of target, confidence and smoothness from the gradient h of y."""
    wants_target, wants_confidence, wants_smoothness = needs
    z = matrix.apply(h, transposed=True)
    pull, more = z, None
    if (wants_target or wants_confidence) and matrix.may_have_gaps:
        a = matrix.without_data(h)
        pull = z + matrix.surroundings(a, transposed=True)
        if wants_confidence:
            more = matrix.surroundings(matrix.over_pixels(a * y), transposed=True)
    of_target = matrix.weigh(pull) if wants_target else None
    of_confidence = of_smoothness = None
    if wants_confidence and more is None:
        of_confidence = matrix.over_pixels(z * (target - y))
    elif wants_confidence and more is not None:
        of_confidence = matrix.over_pixels(pull * target - z * y) - more
    if wants_smoothness:
        rest = matrix.weigh(target - y)
        of_smoothness = -_as(matrix.smoothness, (z * rest).sum()) / matrix.smoothness
    return of_target, of_confidence, of_smoothness


def solve_jvp(
    matrix: Maps,
    target: Tensor,
    y: Tensor,
    target_: Tensor | None,
    confidence_: Tensor | None,
    smoothness_: Tensor | None,
) -> Tensor:
    """Compute the tangent of y from those of target, confidence and smoothness."""
    g_ = torch.zeros_like(y) if target_ is None else matrix.weigh(target_)
    rest = target - y
    b = g_
    if confidence_ is not None:
        b = b + confidence_ * rest
    if smoothness_ is not None:
        ratio = _as(y, smoothness_ / matrix.smoothness)
        b = b - ratio * matrix.weigh(rest)
    y_ = matrix.apply(b)
    if matrix.may_have_gaps and (target_ is not None or confidence_ is not None):
        if confidence_ is None:
            inside = matrix.surroundings(g_)
        else:
            inside = matrix.surroundings(g_ + confidence_ * target)
            inside = inside - y * matrix.surroundings(confidence_)
        y_ = y_ + matrix.without_data(inside)
    return y_


def adjoint_backward(
    matrix: Maps,
    g: Tensor,
    y: Tensor,
    needs: tuple[bool, bool, bool],
    h: Tensor,
    *,
    transposed: bool = False,
) -> Grads:
    """Compute the gradients of g, confidence and smoothness from the gradient h of y = M g.

    Transposed: y = M^T g.
    """
    wants_g, wants_confidence, wants_smoothness = needs
    z = matrix.apply(h, transposed=not transposed)
    of_confidence = of_smoothness = None
    if wants_confidence:
        of_confidence = -matrix.over_pixels(z * y)
    if wants_smoothness:
        rest = g - matrix.weigh(y)
        of_smoothness = -_as(matrix.smoothness, (z * rest).sum()) / matrix.smoothness
    return z if wants_g else None, of_confidence, of_smoothness


def adjoint_jvp(
    matrix: Maps,
    g: Tensor,
    y: Tensor,
    g_: Tensor | None,
    confidence_: Tensor | None,
    smoothness_: Tensor | None,
    *,
    transposed: bool = False,
) -> Tensor:
    """Compute the tangent of y = M g, or M^T g, from those of g, confidence and smoothness."""
    b = torch.zeros_like(g) if g_ is None else g_
    if confidence_ is not None:
        b = b - confidence_ * y
    if smoothness_ is not None:
        b = b - _as(y, smoothness_ / matrix.smoothness) * (g - matrix.weigh(y))
    return matrix.apply(b, transposed=transposed)


def _as(like: Tensor, value: Tensor) -> Tensor:
    return value.to(like.dtype)
