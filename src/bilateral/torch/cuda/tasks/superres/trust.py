"""Measure where a photograph helps to enlarge a map: `reliability` for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.tasks.superres import policy
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks.superres.fit import LowResolution, as_real, unnoisiness
from bilateral.torch.cuda.tasks.superres.maps import bicubic, bilinear, reduce_map
from bilateral.torch.cuda.tasks.superres.noise import levels_at


def rules_of(level: float, noisy: float, coherence: float, *, any_whole: bool) -> list[float]:
    """Return the numbers of the rules: noise, and how much residuals and photograph tell."""
    noise = policy.TRUST_NOISE * level**2
    return [noise, policy.residual_weight(noisy), coherence, float(any_whole)]


def halve(values: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Return a map of half the size, and where it is known."""
    half = values.shape[0] // 2, values.shape[1] // 2
    maps = torch.stack([known.to(values.dtype), torch.where(known, values, 0), values])
    share_known, reduced, unweighted = reduce_map(maps, half)
    reduced = reduced / share_known.clamp(min=policy.LEAST_KNOWN)
    whole = share_known > policy.MOST_KNOWN
    return torch.where(whole, reduced, unweighted), whole


def photo_numbers(photo: Tensor) -> Tensor:
    """Return the numbers of a photograph (C, H, W) for `policy.coherence`, (2,) float64."""
    p = photo.float()
    variance = p.flatten(1).double().var(1, correction=0).sum()
    steps = [p.diff(dim=axis).square().sum(0).mean(dtype=torch.float64) for axis in (1, 2)]
    return torch.stack([variance, torch.stack(steps).mean()])


@recorded
def halved(low: LowResolution, photo: Tensor) -> tuple[LowResolution, Tensor]:
    """Return the map of half the size, and the photograph (C, H, W) of the map's size."""
    values, whole = halve(low.values, low.weights > 0)
    small = reduce_map(as_real(photo), low.shape)
    return LowResolution(values, whole.to(values.dtype)), small


@recorded
def blend_with_bicubic(
    x: Tensor,
    low: LowResolution,
    numbers: Tensor,
    guided: Tensor,
    half: LowResolution,
    half_numbers: Tensor,
    rules: Tensor,
) -> Tensor:
    """Replace the guided map x by the bicubic one where the photograph does not help.

    Parameters
    ----------
    x : (H, W) tensor
        The map, enlarged with the photograph.
    low : LowResolution
    numbers : Tensor
        Of `fit.numbers_of`.
    guided : (h, w) tensor
        The halved map, enlarged likewise.
    half : LowResolution
    half_numbers : Tensor
    rules : Tensor
        Of `rules_of`.
    """
    shape = x.shape[0], x.shape[1]
    noise, residual_weight, coherence, any_whole = rules.to(x.dtype).unbind()
    bicubic_half = _bicubic(half, low.shape, half_numbers)
    trust = _trust(low, guided, bicubic_half, noise, x.numel())
    trust = torch.where(any_whole > 0, trust, 1)
    trust = trust * _trust_of_noise(x, low, numbers, residual_weight, coherence)
    bicubic_map = _bicubic(low, shape, numbers)
    share = bilinear(trust, shape).clamp(0, 1).to(x.dtype)
    # Where the trust is full, x stays exactly.
    return torch.where(share < 1, bicubic_map + share * (x - bicubic_map), x)


def _bicubic(low: LowResolution, shape: tuple[int, int], numbers: Tensor) -> Tensor:
    """Enlarge without the photograph. Without noise, the block means should match the data."""
    x = bicubic(low.values, shape)
    error = low.values - reduce_map(x, low.shape)
    return x + bicubic(error, shape) * unnoisiness(numbers)


def _trust(
    low: LowResolution, guided: Tensor, bicubic_map: Tensor, noise: Tensor, pixels: int
) -> Tensor:
    """Return the trust in the photograph, 0 to 1, for each tile of a map.

    The map, which is to have so many pixels, is compared with its halves, enlarged with and without
    the photograph.
    """
    values, known = low.values, low.weights > 0
    # least squares: values = bicubic + share * (guided - bicubic)
    gain = guided - bicubic_map
    terms = torch.stack([(values - bicubic_map) * gain, gain * gain])
    product, square = reduce_map(torch.where(known, terms, 0), policy.tiles(low.shape))
    prior = policy.WHOLE_MAP * square.mean()
    share_of_map = product.sum() / square.sum().clamp(min=torch.finfo(values.dtype).tiny)
    share = (product + prior * share_of_map + noise) / (square + prior + noise)
    middle = policy.trust_middle(pixels / values.numel())
    trust: Tensor = ((share - middle) / policy.TRUST_WIDTH + 0.5).clamp(0, 1)
    return trust


def _trust_of_noise(
    x: Tensor, low: LowResolution, numbers: Tensor, noisy: Tensor, coherence: Tensor
) -> Tensor:
    """Return the trust in the photograph of a noisy map for each tile; 1 without noise."""
    values, known = low.values, low.weights > 0
    levels = levels_at(numbers[: 2 * policy.BINS], values)
    residual = (values - reduce_map(x, low.shape)) / levels
    residual = torch.where(known, residual, 0)
    # Products across the border are those of strangers, with a mean of 0.
    products = torch.stack([residual * residual.roll(-1, axis) for axis in (0, 1)])
    power = reduce_map(products, policy.tiles(low.shape)).sum(0) / 2
    range_ = policy.STRUCTURE_POWER - policy.WHITE_POWER
    white = ((policy.STRUCTURE_POWER - power) / range_).clamp(0, 1)
    return torch.where(noisy > 0, 1 - noisy * (1 - white * coherence), 1)
