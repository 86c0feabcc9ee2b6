"""Measure where a photograph helps to enlarge a map: `reliability` for tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bilateral.tasks.superres import policy
from bilateral.torch.cuda.tasks.superres.fit import LowResolution, as_real
from bilateral.torch.cuda.tasks.superres.maps import bicubic, bilinear, reduce_map
from bilateral.torch.cuda.tasks.superres.noise import MapNoise

Enlarge = Callable[[LowResolution, Tensor], Tensor]


def blend_with_bicubic(x: Tensor, low: LowResolution, photo: Tensor, enlarge: Enlarge) -> Tensor:
    """Replace the guided map x by the bicubic one where the photograph does not help.

    Parameters
    ----------
    x : (H, W) tensor
        The map, enlarged with the photograph.
    low : LowResolution
    photo : (C, H, W) tensor
    enlarge : function of (low, photo)
    """
    if min(low.shape) < policy.LEAST_SIZE:
        return x
    shape = x.shape[0], x.shape[1]
    trust = _trust(low, reduce_map(as_real(photo), low.shape), x.numel(), enlarge)
    trust = trust * _trust_of_noise(x, low, photo)
    bicubic_map = _bicubic(low, shape)
    share = bilinear(trust, shape).clamp(0, 1).to(x.dtype)
    # Where the trust is full, x stays exactly.
    return torch.where(share < 1, bicubic_map + share * (x - bicubic_map), x)


def _bicubic(low: LowResolution, shape: tuple[int, int]) -> Tensor:
    """Enlarge without the photograph. Without noise, the block means should match the data."""
    x = bicubic(low.values, shape)
    error = low.values - reduce_map(x, low.shape)
    return x + bicubic(error, shape) * (1 - low.noise.noisiness)


def _trust(low: LowResolution, photo: Tensor, pixels: int, enlarge: Enlarge) -> Tensor:
    """Return the trust in the photograph, 0 to 1, for each tile of the map.

    `photo` has the size of the map, which is to have so many pixels.
    """
    values, known = low.values, low.weights > 0
    half = values.shape[0] // 2, values.shape[1] // 2
    maps = torch.stack([known.to(values.dtype), torch.where(known, values, 0), values])
    share_known, reduced, unweighted = reduce_map(maps, half)
    reduced = reduced / share_known.clamp(min=policy.LEAST_KNOWN)
    whole = share_known > policy.MOST_KNOWN
    if not bool(whole.any()):
        return values.new_ones((1, 1))
    reduced = torch.where(whole, reduced, unweighted)
    halved = LowResolution(reduced, whole.to(values.dtype), MapNoise.of(reduced, whole))
    guided = enlarge(halved, photo)
    bicubic_map = _bicubic(halved, low.shape)
    # least squares: values = bicubic + share * (guided - bicubic)
    gain = guided - bicubic_map
    terms = torch.stack([(values - bicubic_map) * gain, gain * gain])
    product, square = reduce_map(torch.where(known, terms, 0), policy.tiles(low.shape))
    prior = policy.WHOLE_MAP * square.mean()
    noise = policy.TRUST_NOISE * low.noise.level**2
    share_of_map = product.sum() / square.sum().clamp(min=torch.finfo(values.dtype).tiny)
    share = (product + prior * share_of_map + noise) / (square + prior + noise)
    middle = policy.trust_middle(pixels / values.numel())
    trust: Tensor = ((share - middle) / policy.TRUST_WIDTH + 0.5).clamp(0, 1)
    return trust


def _trust_of_noise(x: Tensor, low: LowResolution, photo: Tensor) -> Tensor:
    """Return the trust in the photograph of a noisy map for each tile; 1 without noise."""
    values, known = low.values, low.weights > 0
    tiles = policy.tiles(low.shape)
    noisy = policy.residual_weight(low.noise.noisiness)
    if noisy == 0:
        return values.new_ones(tiles)
    residual = (values - reduce_map(x, low.shape)) / low.noise.levels(values)
    residual = torch.where(known, residual, 0)
    # Products across the border are those of strangers, with a mean of 0.
    products = torch.stack([residual * residual.roll(-1, axis) for axis in (0, 1)])
    power = reduce_map(products, tiles).sum(0) / 2
    range_ = policy.STRUCTURE_POWER - policy.WHITE_POWER
    white = ((policy.STRUCTURE_POWER - power) / range_).clamp(0, 1)
    return 1 - noisy * (1 - white * _coherence(photo))


def _coherence(photo: Tensor) -> float:
    """Return 0 for a photograph of noise alone, in which no two neighbours are alike, else 1."""
    p = photo.float()
    variance = p.flatten(1).double().var(1, correction=0).sum()
    steps = [p.diff(dim=axis).square().sum(0).mean(dtype=torch.float64) for axis in (1, 2)]
    numbers = torch.stack([variance, torch.stack(steps).mean()])
    return policy.coherence(*numbers.tolist())
