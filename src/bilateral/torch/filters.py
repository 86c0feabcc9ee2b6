"""The domain transform as a differentiable function of tensors.

Without weights the filter is a matrix F, a product over passes, axes and directions. Forth along a
line, y_i = (1 - a_i) x_i + a_i y_{i-1}, whose transpose is

    z_i = g_i + a_{i+1} z_{i+1},    dx_i = (1 - a_i) z_i,

a line in the other direction again. With masses m, which are the weights, and 0 where a value v is
not finite, y = F (m v) / q with q = F m. So for a loss with the gradient h in y

    dv = m F^T (h / q),    dm = v F^T (h / q) - F^T (h y / q);

channels share m, and their parts of dm are summed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bilateral import validation as checks
from bilateral.filters.domain_transform import MAX_PASSES, first_scale
from bilateral.filters.domain_transform import domain_transform as filter_array
from bilateral.torch import inputs as shapes
from bilateral.torch import operators

_NAMES = shapes.Names("image", "weights", "bilateral.domain_transform")
_FAR = 1e8
"""A mass this many times the smallest number is rounding's alone, and passes on no gradient."""


class _Options(NamedTuple):
    sigma_xy: float
    sigma_rgb: float
    iterations: int
    highest: float

    @property
    def scale(self) -> tuple[float, float]:
        """As `ops.cpu.domain_transform` takes it, with the number of passes."""
        return first_scale(self.sigma_xy, self.sigma_rgb * (self.highest / 255), self.iterations)

    @property
    def passes(self) -> int:
        return min(self.iterations, MAX_PASSES)


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

    `bilateral.domain_transform` for tensors, which see for what it does. There are gradients with
    respect to image and weights, of first order. There are none with respect to the reference.
    CUDA tensors are filtered on their device.

    Parameters
    ----------
    image : (B, K, H, W) or (K, H, W) tensor
        What to smooth. A pixel with a value that is not finite counts as unknown, and gets no
        gradient.
    reference : (B, C, H, W) or (C, H, W) tensor
        Whose edges to keep, of at most 3 channels: uint8, uint16 or floating point, with white at
        255, 65535 or 1. One without B, or with B = 1, serves the whole batch.
    sigma_xy : float
        Standard deviation of the filter in pixels, where the reference is flat.
    sigma_rgb : float
        In 8-bit grey levels, summed over the channels; a larger difference is an edge.
    iterations : int
        Number of passes.
    weights : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor, optional
        How much each pixel counts, 0 for unknown; 1 everywhere if left out. The channels of an
        image share them.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.

    Returns
    -------
    tensor
        Of the image's shape, dtype and device, finite everywhere. What is inside is computed in
        float64 for a float64 image, else in float32. A pixel so far from any known one that its
        weight vanishes in floating point takes over some known value near it, without a gradient.

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
    given = shapes.batch(reference, image, weights, _NAMES, channels=(1, 2, 3))
    dtype = given.reference.dtype
    usual = 1.0 if dtype.is_floating_point else float(torch.iinfo(dtype).max)
    options = _Options(
        checks.positive("sigma_xy", sigma_xy),
        checks.positive("sigma_rgb", sigma_rgb),
        checks.count("iterations", iterations, 1),
        usual if reference_max is None else checks.positive("reference_max", reference_max),
    )
    y = _run(given.target, given.confidence, given.reference, options)
    return shapes.like_target(y, image)


def _apply(image: Tensor, weights: Tensor | None, reference: Tensor, options: _Options) -> Tensor:
    function: Any = _DomainTransform
    found: Tensor = function.apply(image, weights, reference, options)[0]
    return found


_torch: Any = torch  # partly without types
_run = _torch.compiler.disable(_apply)  # or a graph break would look inside


class _DomainTransform(torch.autograd.Function):
    @staticmethod
    def forward(
        image: Tensor, weights: Tensor | None, reference: Tensor, options: _Options
    ) -> tuple[Tensor, bool]:
        """The filtered images, and whether pixels may count differently."""
        return _backend(image).filter(image, weights, reference, options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, bool]) -> None:
        image, weights, reference, ctx.options = inputs
        y, ctx.weighed = output
        kept = (image, weights, y) if ctx.weighed else (None, None, None)
        ctx.save_for_backward(reference, *kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, h: Tensor, _: None) -> tuple[Tensor | None, ...]:
        """As the module says."""
        reference, image, weights, y = ctx.saved_tensors
        run, transpose = _backend(h)
        if not ctx.weighed:
            return transpose(h, reference, ctx.options), None, None, None
        known = torch.isfinite(image).all(1, keepdim=True)
        mass, largest = known.to(h.dtype), 1.0
        if weights is not None:
            largest = weights.amax((1, 2, 3), keepdim=True)
            mass = torch.where(known, weights / largest, 0)
        q = run(mass, None, reference, ctx.options)[0]
        a = torch.where(q > _FAR * torch.finfo(q.dtype).tiny, h / q, 0)
        if weights is None or not ctx.needs_input_grad[1]:
            return mass * transpose(a, reference, ctx.options), None, None, None
        both = torch.cat([a, (a * y).sum(1, keepdim=True)], 1)
        z = transpose(both, reference, ctx.options)
        values = torch.where(known, image, 0)
        of_mass = (values * z[:, :-1]).sum(1, keepdim=True) - z[:, -1:]
        of_weights = torch.where(known, of_mass / largest, 0)
        return mass * z[:, :-1], of_weights.sum_to_size(weights.shape), None, None


def _filter(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: _Options
) -> tuple[Tensor, bool]:
    count = image.shape[0]
    values = shapes.as_pixels(image, count).numpy()
    guides = shapes.as_pixels(reference, reference.shape[0]).numpy()
    masses = None if weights is None else weights.detach().numpy()
    out = torch.empty(values.shape, dtype=image.dtype)
    for i, value in enumerate(values):
        try:
            out[i] = torch.from_numpy(
                filter_array(
                    value,
                    guides[min(i, len(guides) - 1)],
                    options.sigma_xy,
                    options.sigma_rgb,
                    options.iterations,
                    weights=None if masses is None else masses[min(i, len(masses) - 1), 0],
                    reference_max=options.highest,
                )
            )
        except ValueError as error:
            if count > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
    weighed = weights is not None or not bool(torch.isfinite(image).all())
    return shapes.as_maps(out, image.shape), weighed


def _transposed(g: Tensor, reference: Tensor, options: _Options) -> Tensor:
    across, down = (_neighbours(reference, axis, options.scale, g.dtype) for axis in (3, 2))
    for squarings in range(options.passes - 1, -1, -1):
        for axis, a in ((2, down), (3, across)):
            g = _transposed_line(g, a ** (2.0**squarings), axis)
    return g


def _neighbours(
    reference: Tensor, axis: int, scale: tuple[float, float], dtype: torch.dtype
) -> Tensor:
    """What a pixel takes from the one before it along an axis, 0 for the first: (B, 1, H, W)."""
    floating = reference.dtype.is_floating_point
    levels = reference.to(torch.promote_types(dtype, reference.dtype) if floating else torch.int32)
    difference = levels.diff(dim=axis).abs().sum(1, keepdim=True)
    real = difference if floating else difference.to(dtype)
    most = torch.finfo(real.dtype).max
    step, level = (min(number, most) for number in scale)
    shares = torch.exp(-(step + level * real.clamp(max=most)).to(dtype))
    return torch.nn.functional.pad(shares, (1, 0) if axis == 3 else (0, 0, 1, 0))


def _transposed_line(g: Tensor, a: Tensor, axis: int) -> Tensor:
    """The transpose of the way forth and back: forth again first, since both change places."""
    z = g.movedim(axis, 0).clone(memory_format=torch.contiguous_format)
    a = a.movedim(axis, 0).contiguous()
    lines, shares = z.unbind(), a.unbind()
    for i in range(1, len(lines)):
        lines[i].addcmul_(shares[i], lines[i - 1])
    z[:-1] *= 1 - a[1:]
    for i in range(len(lines) - 2, -1, -1):
        lines[i].addcmul_(shares[i + 1], lines[i + 1])
    z *= 1 - a
    return z.movedim(0, axis)


def _filter_on_device(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: _Options
) -> tuple[Tensor, bool]:
    """The host reads flags once, at the end; holes, which are found there, take a second run."""
    kernels = _kernels()
    capturing = image.is_cuda and torch.cuda.is_current_stream_capturing()
    weighed = weights is not None or capturing
    arguments = image, weights, reference, options.scale, options.passes
    with operators.on_device_of(image):
        y, flags = kernels.domain_transform(*arguments, weighed)
        if capturing:  # nobody may look
            return y, weighed
        seen = kernels.read_flags(flags)
        if seen.invalid_reference or any(seen.invalid_weights) or not all(seen.has_data):
            # An error, of which the CPU says where it is.
            theirs = None if weights is None else weights.cpu()
            _filter(image.cpu(), theirs, reference.cpu(), options)
        if any(seen.needs_weights) and not weighed:
            y, _ = kernels.domain_transform(*arguments, True)
    return y, weighed or any(seen.needs_weights)


def _transposed_on_device(g: Tensor, reference: Tensor, options: _Options) -> Tensor:
    with operators.on_device_of(g):
        out: Tensor = _kernels().transposed(g, reference, options.scale, options.passes)
    return out


def _kernels() -> Any:
    operators.load_cuda_operators()  # or an error that says what to install
    from bilateral.backends.cuda.filters import domain_transform

    return domain_transform


class _Backend(NamedTuple):
    filter: Callable[[Tensor, Tensor | None, Tensor, _Options], tuple[Tensor, bool]]
    transposed: Callable[[Tensor, Tensor, _Options], Tensor]


def _backend(tensor: Tensor) -> _Backend:
    if tensor.is_cuda:
        spared = operators.load_cuda_operators().spared
        return _Backend(spared(_filter_on_device), spared(_transposed_on_device))
    return _Backend(_filter, _transposed)
