"""Filter tensors by the domain transform, differentiably.

Without weights the filter is a matrix F, a product over passes, axes and directions. Forward along
a line, y_i = (1 - a_i) x_i + a_i y_{i-1}. The transpose of this line is

    z_i = g_i + a_{i+1} z_{i+1},    dx_i = (1 - a_i) z_i,

which is a line in the other direction. With masses m, which are the weights, and 0 where a value v
is not finite, y = F (m v) / q with q = F m. So for a loss with the gradient h in y

    dv = m F^T (h / q),    dm = v F^T (h / q) - F^T (h y / q).

Channels share m, so their parts of dm are summed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bilateral import validation
from bilateral.torch import cpu_filters, inputs, operators
from bilateral.torch.cpu_filters import FilterOptions
from bilateral.torch.untraced import untraced

_NAMES = inputs.Names("image", "weights", "bilateral.domain_transform")
_MIN_MASS = 1e8
"""A mass below this many times the smallest number consists of rounding errors, and passes on no
gradient."""


@validation.keywords(photo="reference", target="image", depth="image")
def domain_transform(
    image: Tensor,
    reference: Tensor,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int = 3,
    *,
    weights: Tensor | None = None,
    reference_max: float | None = None,
) -> Tensor:
    """Smooth images without crossing the edges of references, differentiably.

    This is `bilateral.domain_transform` for tensors, and its documentation describes the filter.
    Image and weights have gradients of first order; the reference has none. CUDA tensors are
    filtered on their device.

    Parameters
    ----------
    image : (B, K, H, W) or (K, H, W) tensor
        The images to smooth. A pixel with a value that is not finite is unknown, and gets no
        gradient.
    reference : (B, C, H, W) or (C, H, W) tensor
        Guide images of at most 3 channels, whose edges the result keeps: uint8, uint16 or floating
        point, with white at 255, 65535 or 1. A reference without B, or with B = 1, serves the whole
        batch.
    sigma_xy : float
        Standard deviation of the filter in pixels, where the reference is flat.
    sigma_rgb : float
        Contrast of an edge in 8-bit grey levels, summed over the channels: the filter does not
        cross larger differences of the reference.
    iterations : int
        Number of passes.
    weights : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor, optional
        Weight of each pixel, 0 for unknown. Default: 1 everywhere. The channels of an image share
        the weights.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.

    Returns
    -------
    tensor
        Of the image's shape, dtype and device, finite everywhere. The computation runs in float64
        for a float64 image, else in float32. A pixel so far from any known pixel that its weight
        vanishes in floating point gets some known value near it, without a gradient.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.tensor([20, 20, 20, 200, 200, 200], dtype=torch.uint8).expand(1, 4, 6)
    >>> noise = torch.tensor([[4.0, -4.0], [-4.0, 4.0]]).tile(2, 3)
    >>> smooth = bilateral.torch.domain_transform(photo + noise, photo, sigma_xy=2, sigma_rgb=8)
    >>> [round(value, 1) for value in smooth[0, 0].tolist()]
    [21.0, 20.6, 20.8, 199.0, 199.4, 199.2]
    """
    batch = inputs.batch(reference, image, weights, _NAMES, channels=(1, 2, 3))
    dtype = batch.reference.dtype
    white = 1.0 if dtype.is_floating_point else float(torch.iinfo(dtype).max)
    if reference_max is not None:
        reference_max = white = validation.positive("reference_max", reference_max)
    options = FilterOptions(
        validation.positive("sigma_xy", sigma_xy),
        validation.positive("sigma_rgb", sigma_rgb),
        validation.count("iterations", iterations, 1),
        white,
        reference_max,
    )
    y = _run(batch.target, batch.confidence, batch.reference, options)
    return inputs.like_target(y, image)


def _apply(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: FilterOptions
) -> Tensor:
    function: Any = _DomainTransform
    filtered: Tensor = function.apply(image, weights, reference, options)[0]
    return filtered


_run = untraced(_apply)


class _DomainTransform(torch.autograd.Function):
    @staticmethod
    def forward(
        image: Tensor, weights: Tensor | None, reference: Tensor, options: FilterOptions
    ) -> tuple[Tensor, bool]:
        """Return the filtered images, and whether pixels may have different masses."""
        filtered: tuple[Tensor, bool] = _backend(image).apply(image, weights, reference, options)
        return filtered

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, bool]) -> None:
        image, weights, reference, ctx.options = inputs
        y, ctx.weighted = output
        saved = (image, weights, y) if ctx.weighted else (None, None, None)
        ctx.save_for_backward(reference, *saved)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, h: Tensor, _: None) -> tuple[Tensor | None, ...]:
        """Compute dv and dm as the module's docstring derives them."""
        reference, image, weights, y = ctx.saved_tensors
        backend = _backend(h)
        if not ctx.weighted:
            return backend.apply_transposed(h, reference, ctx.options), None, None, None
        known = torch.isfinite(image).all(1, keepdim=True)
        mass, largest = known.to(h.dtype), 1.0
        if weights is not None:
            largest = weights.amax((1, 2, 3), keepdim=True)
            mass = torch.where(known, weights / largest, 0)
        q = backend.apply(mass, None, reference, ctx.options)[0]
        a = torch.where(q > _MIN_MASS * torch.finfo(q.dtype).tiny, h / q, 0)
        if weights is None or not ctx.needs_input_grad[1]:
            return mass * backend.apply_transposed(a, reference, ctx.options), None, None, None
        both = torch.cat([a, (a * y).sum(1, keepdim=True)], 1)
        z = backend.apply_transposed(both, reference, ctx.options)
        values = torch.where(known, image, 0)
        of_mass = (values * z[:, :-1]).sum(1, keepdim=True) - z[:, -1:]
        of_weights = torch.where(known, of_mass / largest, 0)
        return mass * z[:, :-1], of_weights.sum_to_size(weights.shape), None, None


def _backend(tensor: Tensor) -> Any:
    """Return the module with `apply` and `apply_transposed` for the device of a tensor."""
    if not tensor.is_cuda:
        return cpu_filters
    operators.load_cuda_operators()  # raises an error that says how to install Triton
    from bilateral.torch.cuda import filters

    return filters
