"""Apply the domain transform and its transpose to CPU tensors."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import validation
from bilateral.filters.domain_transform import MAX_PASSES, domain_transform, first_scale
from bilateral.torch.inputs import as_maps, as_pixels


class FilterOptions(NamedTuple):
    """Checked options of the filter."""

    sigma_xy: float
    sigma_rgb: float
    iterations: int
    highest: float
    """Value of white in the reference."""
    reference_max: float | None = None
    """The same if the caller gave it."""

    @property
    def scale(self) -> tuple[float, float]:
        """-log of the first pass's weight, per pixel and per unit of the reference."""
        return first_scale(self.sigma_xy, self.sigma_rgb * (self.highest / 255), self.iterations)

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest value of a valid reference."""
        if self.reference_max is None and self.highest == 1:
            return validation.LOWEST, validation.HIGHEST
        return -math.inf, math.inf

    @property
    def passes(self) -> int:
        """Number of passes that change anything."""
        return min(self.iterations, MAX_PASSES)


def apply(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: FilterOptions
) -> tuple[Tensor, bool]:
    """Filter images (B, K, H, W), and return whether pixels may have different masses."""
    count = image.shape[0]
    values = as_pixels(image, count).numpy()
    guides = as_pixels(reference, reference.shape[0]).numpy()
    masses = None if weights is None else weights.detach().numpy()
    out = torch.empty(values.shape, dtype=image.dtype)
    for i, value in enumerate(values):
        try:
            out[i] = torch.from_numpy(
                domain_transform(
                    value,
                    guides[min(i, len(guides) - 1)],
                    options.sigma_xy,
                    options.sigma_rgb,
                    options.iterations,
                    weights=None if masses is None else masses[min(i, len(masses) - 1), 0],
                    reference_max=options.reference_max,
                )
            )
        except ValueError as error:
            if count > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
    weighted = weights is not None or not bool(torch.isfinite(image).all())
    return as_maps(out, image.shape), weighted


def apply_transposed(g: Tensor, reference: Tensor, options: FilterOptions) -> Tensor:
    """Compute F^T g of the filter without weights."""
    across, down = (_feedback(reference, axis, options.scale, g.dtype) for axis in (3, 2))
    for squarings in range(options.passes - 1, -1, -1):
        for axis, a in ((2, down), (3, across)):
            g = _transposed_line(g, a ** (2.0**squarings), axis)
    return g


def _feedback(
    reference: Tensor, axis: int, scale: tuple[float, float], dtype: torch.dtype
) -> Tensor:
    """Compute the weight a of the preceding pixel along an axis, 0 for the first: (B, 1, H, W)."""
    floating = reference.dtype.is_floating_point
    levels = reference.to(torch.promote_types(dtype, reference.dtype) if floating else torch.int32)
    difference = levels.diff(dim=axis).abs().sum(1, keepdim=True)
    real = difference if floating else difference.to(dtype)
    largest = torch.finfo(real.dtype).max
    step, level = (min(number, largest) for number in scale)
    a = torch.exp(-(step + level * real.clamp(max=largest)).to(dtype))
    return torch.nn.functional.pad(a, (1, 0) if axis == 3 else (0, 0, 1, 0))


def _transposed_line(g: Tensor, a: Tensor, axis: int) -> Tensor:
    """Transpose a line forward and backward: it runs forward first again, since both swap."""
    z = g.movedim(axis, 0).clone(memory_format=torch.contiguous_format)
    a = a.movedim(axis, 0).contiguous()
    lines, weights = z.unbind(), a.unbind()
    for i in range(1, len(lines)):
        lines[i].addcmul_(weights[i], lines[i - 1])
    z[:-1] *= 1 - a[1:]
    for i in range(len(lines) - 2, -1, -1):
        lines[i].addcmul_(weights[i + 1], lines[i + 1])
    z *= 1 - a
    return z.movedim(0, axis)
