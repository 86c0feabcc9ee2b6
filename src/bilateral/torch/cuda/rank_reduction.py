"""Solve many classes through few combinations: `numerics.lowrank` for tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.numerics import lowrank


class Reduced(NamedTuple):
    """Fewer channels (M, H, W), and how to restore the others."""

    p: Tensor
    mean: Tensor | None = None
    """Per channel of the full map; None: nothing was reduced."""
    basis: Tensor | None = None
    """Orthonormal rows, one per channel of the reduced map."""

    def expand(self, x: Tensor) -> Tensor:
        """Convert a solution of the reduced map to all channels."""
        if self.mean is None or self.basis is None:
            return x
        full = (self.basis.T @ x.flatten(1)).view(-1, *x.shape[1:])
        return full + self.mean[:, None, None]


class Moments(NamedTuple):
    """Mean and covariance of maps over the pixels, in float64."""

    mean: Tensor
    """(K,)"""
    covariance: Tensor
    """(K, K)"""


def moments(p: Tensor, c: Tensor | None, tolerance: float | None) -> Moments | None:
    """Return the moments of (K, H, W) maps with weights (H, W); None: nothing can be reduced."""
    if tolerance is None or not lowrank.reduction_pays(len(p), 1):
        return None
    values = p.flatten(1).double()
    weight = torch.ones_like(values[0]) if c is None else c.flatten().double()
    total = weight.sum()
    mean = (values @ weight) / total
    centred = values - mean[:, None]
    return Moments(mean, (centred * weight) @ centred.T / total)


def leading_directions(moments: Moments | None, tolerance: float | None) -> Tensor | None:
    """Return an orthonormal basis of what matters, (M, K) float64; None: everything does.

    Directions that hold less than `tolerance` of the variance are dropped: as `lowrank.reduce`, but
    with the variance over pixels instead of vertices. The host waits for the device.
    """
    if moments is None or tolerance is None:
        return None
    basis = lowrank.leading_directions(moments.covariance.cpu().numpy(), tolerance)
    return None if basis is None else torch.from_numpy(basis).to(moments.mean.device)


def project(p: Tensor, moments: Moments | None, basis: Tensor | None) -> Reduced:
    """Reduce (K, H, W) maps to the basis."""
    if moments is None or basis is None:
        return Reduced(p)
    centred = p.flatten(1).double() - moments.mean[:, None]
    projected = (basis @ centred).float().view(-1, *p.shape[1:])
    return Reduced(projected, moments.mean.float(), basis.float())
