"""Register the derivatives of the operators: of any order, in forward and reverse mode.

`derivatives` has the formulas. Every term is a linear map of pixels again, so that higher
derivatives need no formulas of their own. Only inputs and outputs are kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bilateral.torch import derivatives, operators, vmap
from bilateral.torch.derivatives import Grads
from bilateral.torch.dispatch import in_forward_mode, is_plain, is_watched, needs_gradient
from bilateral.torch.options import COUNT, LayerOptions


def solve(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    options: LayerOptions,
) -> tuple[Tensor, Tensor]:
    """Call `operators.solve` with all derivatives."""
    tensors = reference, target, confidence, smoothness, like
    forward_mode = in_forward_mode()
    if confidence is not None and confidence.requires_grad and torch.is_grad_enabled():
        options = replace(options, solve=replace(options.solve, exact=True))
    # torch.compile knows the backward of an operator, but would silently drop tangents.
    if torch.compiler.is_compiling():
        if forward_mode:
            raise NotImplementedError(
                "bilateral.torch: forward-mode derivatives inside torch.compile are not supported. "
                "Call torch.func.jvp outside of the compiled function, or use reverse mode."
            )
        compiled: tuple[Tensor, Tensor] = operators.solve(*tensors, *options.arguments)
        return compiled
    if not needs_gradient(*tensors[1:4]) and not forward_mode:
        plain: tuple[Tensor, Tensor] = _run("solve", operators.solve, *tensors, *options.arguments)
        return plain
    result: tuple[Tensor, Tensor] = _apply(_Solve, *tensors, options)
    return result


def infer(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    options: LayerOptions,
) -> Tensor | None:
    """Solve CUDA tensors without derivatives by a recording; None if there is none."""
    tensors = reference, target, confidence, smoothness
    if not target.is_cuda or is_watched(*tensors):
        return None
    return operators.infer(*tensors, options)


def _apply(function: Any, *args: Any) -> Any:
    return function.apply(*args)


def _run(name: str, operator: Any, *args: Any) -> Any:
    """Call an operator, or its CPU function directly if the dispatcher has nothing to do."""
    if is_plain(args) and not any(isinstance(value, Tensor) and value.is_cuda for value in args):
        return operators.kernels[name](*args)
    return operator(*args)


def _with_signature(function: Any) -> Any:
    """Cache the signature of `forward`, which `apply` would compute on every call."""
    function.forward.__signature__ = inspect.signature(function.forward)
    return function


class Matrix:
    """The matrix of one solve as differentiable maps of pixels."""

    def __init__(
        self,
        handle: Tensor,
        reference: Tensor,
        confidence: Tensor | None,
        smoothness: Tensor,
        options: LayerOptions,
    ) -> None:
        self._tensors = handle, reference, confidence, smoothness
        self._options = options
        self.c = confidence
        self.smoothness = smoothness

    def apply(self, g: Tensor, *, transposed: bool = False) -> Tensor:
        """Compute M g or M^T g."""
        handle, reference, confidence, smoothness = self._tensors
        tensors = handle, reference, g, confidence, smoothness
        if torch.compiler.is_compiling():
            compiled: Tensor = _product(tensors, transposed, self._options)
            return compiled
        result: Tensor = _apply(_ApplyAdjoint, *tensors, transposed, self._options)
        return result

    def surroundings(self, g: Tensor, *, transposed: bool = False) -> Tensor:
        """Compute P g or P^T g."""
        handle, reference, confidence, smoothness = self._tensors
        tensors = handle, reference, g, confidence, smoothness
        if torch.compiler.is_compiling():
            compiled: Tensor = operators.surroundings(
                *tensors, transposed, *self._options.arguments
            )
            return compiled
        result: Tensor = _apply(_Surroundings, *tensors, transposed, self._options)
        return result

    def gradients(
        self, target: Tensor, y: Tensor, needs: tuple[bool, bool, bool], h: Tensor
    ) -> Grads:
        """Compute all gradients of a solve at once, as constants."""
        handle, reference, confidence, smoothness = self._tensors
        gradients = operators.gradients(
            handle,
            reference,
            h,
            confidence,
            smoothness,
            target,
            y,
            list(needs),
            *self._options.arguments,
        )
        return tuple(grad if need else None for grad, need in zip(gradients, needs, strict=True))

    def weigh(self, values: Tensor) -> Tensor:
        """Compute c v."""
        return values if self.c is None else self.c * values

    def without_data(self, h: Tensor) -> Tensor:
        """Compute E h / q."""
        assert self.c is not None
        q = self.surroundings(self.c)
        inside = q > 0
        return torch.where(inside, h / torch.where(inside, q, 1), 0)

    @property
    def may_have_gaps(self) -> bool:
        """Whether P may differ from 0; True if unknown."""
        if self.c is None or self._options.solve.planar:
            return False
        handle = self._tensors[0]
        if type(handle) is not Tensor:  # traced
            return True
        try:
            return bool(handle.any())
        except RuntimeError:  # inside vmap over references or confidences
            return True

    def over_pixels(self, values: Tensor) -> Tensor:
        """Sum (B, K, H, W) over all channels and images that share a confidence."""
        assert self.c is not None
        return values.sum(1 if self.c.shape[0] == values.shape[0] else (0, 1), keepdim=True)


@_with_signature
class _Solve(torch.autograd.Function):
    """`operators.solve` with derivatives in both modes."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *tensors, options = args
        return _run("solve", operators.solve, *tensors, *options.arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        reference, target, confidence, smoothness, _, options = inputs
        y, handle = output
        ctx.mark_non_differentiable(handle)
        ctx.set_materialize_grads(False)
        saved = reference, target, confidence, smoothness, y, handle
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.options = options

    @staticmethod
    def backward(ctx: Any, h: Tensor | None, _: None) -> Any:
        return (*_backward_of_solve(ctx, h), None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        reference, target, confidence, smoothness, y, handle = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.options)
        return derivatives.solve_jvp(matrix, target, y, *tangents[1:4]), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, options = args
        return vmap.solve(info, in_dims, tensors, lambda *folded: _apply(_Solve, *folded, options))


def _backward_of_solve(ctx: Any, h: Tensor | None) -> Grads:
    reference, target, confidence, smoothness, y, handle = ctx.saved_tensors
    if h is None:
        return (None,) * 5
    matrix = Matrix(handle, reference, confidence, smoothness, ctx.options)
    needs = ctx.needs_input_grad[1:4]
    composed = torch.is_grad_enabled() or in_forward_mode() or ctx.options.solve.planar
    if composed:
        grads = derivatives.solve_backward(matrix, target, y, needs, h)
    else:  # nobody differentiates the gradients: take them in fewer passes
        grads = matrix.gradients(target, y, needs, h)
    return (None, *grads, None)


def _setup_solve(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _Solve.setup_context(ctx, (*inputs[:5], LayerOptions.from_arguments(*inputs[5:])), output)


def _solve_operator_backward(ctx: Any, h: Tensor | None, _: Any) -> Any:
    return (*_backward_of_solve(ctx, h), *(None,) * COUNT)


def _product(tensors: Sequence[Any], transposed: bool, options: LayerOptions) -> Any:
    """Compute M g or M^T g without derivatives; both are the same for the constant model."""
    if options.solve.planar:
        return operators.apply_planes(*tensors, transposed, *options.arguments)
    if torch.compiler.is_compiling():
        return operators.apply_adjoint(*tensors, *options.arguments)
    return _run("apply_adjoint", operators.apply_adjoint, *tensors, *options.arguments)


@_with_signature
class _ApplyAdjoint(torch.autograd.Function):
    """`operators.apply_adjoint` or `apply_planes`, M g or M^T g, with derivatives in both modes."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *tensors, transposed, options = args
        return _product(tensors, transposed, options)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, transposed, options = inputs
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)
        ctx.transposed, ctx.options = transposed, options

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        return (*_backward_of_adjoint(ctx, h), None, None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        handle, reference, g, confidence, smoothness, y = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.options)
        return derivatives.adjoint_jvp(matrix, g, y, *tangents[2:5], transposed=ctx.transposed)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, transposed, options = args
        return vmap.map_(
            info,
            in_dims,
            tensors,
            lambda *folded: _apply(_ApplyAdjoint, *folded, transposed, options),
        )


def _backward_of_adjoint(ctx: Any, h: Tensor) -> Grads:
    handle, reference, g, confidence, smoothness, y = ctx.saved_tensors
    matrix = Matrix(handle, reference, confidence, smoothness, ctx.options)
    needs = ctx.needs_input_grad[2:5]
    grads = derivatives.adjoint_backward(matrix, g, y, needs, h, transposed=ctx.transposed)
    return None, None, *grads


def _setup_adjoint(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _setup_planes(ctx, (*inputs[:5], False, *inputs[5:]), output)


def _setup_planes(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _ApplyAdjoint.setup_context(
        ctx, (*inputs[:6], LayerOptions.from_arguments(*inputs[6:])), output
    )


def _adjoint_operator_backward(ctx: Any, h: Tensor) -> Any:
    return (*_backward_of_adjoint(ctx, h), *(None,) * COUNT)


def _planes_operator_backward(ctx: Any, h: Tensor) -> Any:
    return (*_backward_of_adjoint(ctx, h), *(None,) * (COUNT + 1))


@_with_signature
class _Surroundings(torch.autograd.Function):
    """`operators.surroundings`, P g or P^T g, with derivatives in both modes."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *others, options = args
        return operators.surroundings(*others, *options.arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        handle, reference, _, confidence, smoothness, transposed, options = inputs
        saved = handle, reference, confidence, smoothness
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.transposed, ctx.options = transposed, options

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        handle, reference, confidence, smoothness = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.options)
        of_g = matrix.surroundings(h, transposed=not ctx.transposed)
        return None, None, of_g, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        handle, reference, confidence, smoothness = ctx.saved_tensors
        matrix, g_ = Matrix(handle, reference, confidence, smoothness, ctx.options), tangents[2]
        return None if g_ is None else matrix.surroundings(g_, transposed=ctx.transposed)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, transposed, options = args
        return vmap.map_(
            info,
            in_dims,
            tensors,
            lambda *folded: _apply(_Surroundings, *folded, transposed, options),
        )


def _setup_surroundings(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _Surroundings.setup_context(
        ctx, (*inputs[:6], LayerOptions.from_arguments(*inputs[6:])), output
    )


def _surroundings_operator_backward(ctx: Any, h: Tensor) -> Any:
    return (*_Surroundings.backward(ctx, h), *(None,) * (COUNT - 1))


def _gradients_operator_backward(*_: Any) -> Any:
    raise RuntimeError("bilateral::gradients: autograd cannot differentiate its results.")


for _name, _backward, _setup in (
    ("solve", _solve_operator_backward, _setup_solve),
    ("apply_adjoint", _adjoint_operator_backward, _setup_adjoint),
    ("apply_planes", _planes_operator_backward, _setup_planes),
    ("surroundings", _surroundings_operator_backward, _setup_surroundings),
    ("gradients", _gradients_operator_backward, None),
):
    torch.library.register_autograd(f"bilateral::{_name}", _backward, setup_context=_setup)
