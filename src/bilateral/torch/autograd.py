"""Derivatives of the operators, of any order and in both modes.

Let A = lambda L + diag(S c) (Eq. 6), M = S^T A^-1 S, and y = M g with g = c t. S is a partition of
the pixels, so A' = lambda' L + S diag(c') S^T, and lambda L x = S (g - c y) for y = S^T x. From
A x' + A' x = S g' follows

    y' = M (g' - c' y - lambda' / lambda (g - c y)),        g' = c' t + c t'.

M is symmetric. So for a loss with the gradient h in y, and with z = M h, the one solve of the
paper's section 3,

    dg = z,    dc = -z y,    dlambda = -<z, g - c y> / lambda,
    and through g:    dt = c z,    dc += t z;

channels share c and lambda, and their parts are summed. Every term is M and products of pixels
again, so that further derivatives need no formulas of their own. What is kept are inputs and
outputs.

A part of the grid without data has y = P (c t) / q with q = P c instead. P = E U (1 - E) takes from
all other parts, E being the projection on these ones and U = S^T H S symmetric and constant:

    y' = (P (c' t + c t') - y P c') / q,
    with a = E h / q:    dt = c P^T a,    dc = t P^T a - P^T (a y).

Both are 0 inside these parts: no confidence is there, and the first one to come would make the
solution jump.
"""

import inspect
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from bilateral.torch import operators
from bilateral.torch import vmap as batching
from bilateral.torch.options import Config

Grads = tuple[Tensor | None, ...]


def solve(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    config: Config,
) -> tuple[Tensor, Tensor]:
    """`operators.solve` with all derivatives."""
    tensors = reference, target, confidence, smoothness, like
    forward_mode = forward_ad._current_level >= 0
    if confidence is not None and confidence.requires_grad and torch.is_grad_enabled():
        config = replace(config, exact=True)
    # Compilers know the operators with their backward, but would drop tangents without a word.
    if torch.compiler.is_compiling():
        if forward_mode:
            raise NotImplementedError(
                "bilateral.torch: forward-mode derivatives inside torch.compile are not supported. "
                "Call torch.func.jvp outside of the compiled function, or use reverse mode."
            )
        compiled: tuple[Tensor, Tensor] = operators.solve(*tensors, *config.arguments)
        return compiled
    if not _needed(*tensors[1:4]) and not forward_mode:
        plain: tuple[Tensor, Tensor] = _run("solve", operators.solve, *tensors, *config.arguments)
        return plain
    result: tuple[Tensor, Tensor] = _apply(_Solve, *tensors, config)
    return result


def infer(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    config: Config,
) -> Tensor | None:
    """The solution alone, for tensors nobody has looked at; None if it must be had otherwise."""
    tensors = reference, target, confidence, smoothness
    if not target.is_cuda or watched(*tensors):
        return None
    return operators.infer(*tensors, *config.arguments)


def watched(*tensors: Tensor | None) -> bool:
    """Whether anybody, a derivative above all, wants to know what happens to them."""
    busy = torch.compiler.is_compiling() or forward_ad._current_level >= 0
    return busy or _needed(*tensors[1:]) or not _alone(tensors)


def _needed(*values: Tensor | None) -> bool:
    """Whether derivatives are."""
    return torch.is_grad_enabled() and any(v.requires_grad for v in values if v is not None)


def _apply(function: Any, *args: Any) -> Any:
    return function.apply(*args)


def _run(name: str, operator: Any, *args: Any) -> Any:
    """An operator, or the function behind it if nothing in between could want to know."""
    if _alone(args) and not any(isinstance(value, Tensor) and value.is_cuda for value in args):
        return operators.kernels[name](*args)
    return operator(*args)


def _alone(args: Any) -> bool:
    """Whether nothing between here and the tensors' memory wants to know what happens."""
    usual = torch.Tensor, torch.nn.Parameter
    modes = torch._C._len_torch_dispatch_stack() > 0
    transforms = torch._C._functorch.peek_interpreter_stack() is not None
    return (
        not modes
        and not transforms
        and all(type(value) in usual for value in args if isinstance(value, Tensor))
    )


def _with_signature(function: Any) -> Any:
    """An autograd function whose `forward` has its signature at hand: `apply` asks every time."""
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
        config: Config,
    ) -> None:
        self._tensors = handle, reference, confidence, smoothness
        self._config = config
        self.c = confidence
        self.smoothness = smoothness

    def inverse(self, g: Tensor) -> Tensor:
        """M g."""
        handle, reference, confidence, smoothness = self._tensors
        tensors = handle, reference, g, confidence, smoothness
        if torch.compiler.is_compiling():
            compiled: Tensor = operators.apply_inverse(*tensors, *self._config.arguments)
            return compiled
        result: Tensor = _apply(_ApplyInverse, *tensors, self._config)
        return result

    def surroundings(self, g: Tensor, *, transposed: bool = False) -> Tensor:
        """P g or P^T g."""
        handle, reference, confidence, smoothness = self._tensors
        tensors = handle, reference, g, confidence, smoothness
        if torch.compiler.is_compiling():
            compiled: Tensor = operators.surroundings(*tensors, transposed, *self._config.arguments)
            return compiled
        result: Tensor = _apply(_Surroundings, *tensors, transposed, self._config)
        return result

    def gradients(
        self, target: Tensor, y: Tensor, needs: tuple[bool, bool, bool], h: Tensor
    ) -> Grads:
        """All gradients of a solve at once, as constants."""
        handle, reference, confidence, smoothness = self._tensors
        found = operators.gradients(
            handle,
            reference,
            h,
            confidence,
            smoothness,
            target,
            y,
            list(needs),
            *self._config.arguments,
        )
        return tuple(grad if need else None for grad, need in zip(found, needs, strict=True))

    def weigh(self, values: Tensor) -> Tensor:
        """The product c v."""
        return values if self.c is None else self.c * values

    def without_data(self, h: Tensor) -> Tensor:
        """E h / q."""
        assert self.c is not None
        q = self.surroundings(self.c)
        inside = q > 0
        return torch.where(inside, h / torch.where(inside, q, 1), 0)

    @property
    def may_have_gaps(self) -> bool:
        """Whether there may be parts without data; True where one cannot know."""
        if self.c is None:
            return False
        handle = self._tensors[0]
        if type(handle) is not Tensor:  # a tracer's
            return True
        try:
            return bool(handle.any())
        except RuntimeError:  # one of a vmap over references or confidences
            return True

    def over_pixels(self, values: Tensor) -> Tensor:
        """What a confidence gets of (B, K, H, W): a sum over all that share it."""
        assert self.c is not None
        return values.sum(1 if self.c.shape[0] == values.shape[0] else (0, 1), keepdim=True)


def _solve_backward(
    matrix: Matrix, target: Tensor, y: Tensor, needs: tuple[bool, bool, bool], h: Tensor
) -> Grads:
    """Gradients of target, confidence and smoothness."""
    if not torch.is_grad_enabled() and forward_ad._current_level < 0:
        return matrix.gradients(target, y, needs, h)
    wants_target, wants_confidence, wants_smoothness = needs
    z = matrix.inverse(h)
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


def _solve_jvp(
    matrix: Matrix,
    target: Tensor,
    y: Tensor,
    target_: Tensor | None,
    confidence_: Tensor | None,
    smoothness_: Tensor | None,
) -> Tensor:
    """The derivative of y along the given directions."""
    g_ = torch.zeros_like(y) if target_ is None else matrix.weigh(target_)
    rest = target - y
    b = g_
    if confidence_ is not None:
        b = b + confidence_ * rest
    if smoothness_ is not None:
        ratio = _as(y, smoothness_ / matrix.smoothness)
        b = b - ratio * matrix.weigh(rest)
    y_ = matrix.inverse(b)
    if matrix.may_have_gaps and (target_ is not None or confidence_ is not None):
        if confidence_ is None:
            inside = matrix.surroundings(g_)
        else:
            inside = matrix.surroundings(g_ + confidence_ * target)
            inside = inside - y * matrix.surroundings(confidence_)
        y_ = y_ + matrix.without_data(inside)
    return y_


def _inverse_backward(
    matrix: Matrix, g: Tensor, y: Tensor, needs: tuple[bool, bool, bool], h: Tensor
) -> Grads:
    """Gradients of g, confidence and smoothness."""
    wants_g, wants_confidence, wants_smoothness = needs
    z = matrix.inverse(h)
    of_confidence = of_smoothness = None
    if wants_confidence:
        of_confidence = -matrix.over_pixels(z * y)
    if wants_smoothness:
        rest = g - matrix.weigh(y)
        of_smoothness = -_as(matrix.smoothness, (z * rest).sum()) / matrix.smoothness
    return z if wants_g else None, of_confidence, of_smoothness


def _inverse_jvp(
    matrix: Matrix,
    g: Tensor,
    y: Tensor,
    g_: Tensor | None,
    confidence_: Tensor | None,
    smoothness_: Tensor | None,
) -> Tensor:
    b = torch.zeros_like(g) if g_ is None else g_
    if confidence_ is not None:
        b = b - confidence_ * y
    if smoothness_ is not None:
        b = b - _as(y, smoothness_ / matrix.smoothness) * (g - matrix.weigh(y))
    return matrix.inverse(b)


def _as(like: Tensor, value: Tensor) -> Tensor:
    return value.to(like.dtype)


@_with_signature
class _Solve(torch.autograd.Function):
    """The solution and a handle, with both modes of derivatives."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *tensors, config = args
        return _run("solve", operators.solve, *tensors, *config.arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        reference, target, confidence, smoothness, _, config = inputs
        y, handle = output
        ctx.mark_non_differentiable(handle)
        ctx.set_materialize_grads(False)
        saved = reference, target, confidence, smoothness, y, handle
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.config = config

    @staticmethod
    def backward(ctx: Any, h: Tensor | None, _: None) -> Any:
        return (*_backward_of_solve(ctx, h), None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        reference, target, confidence, smoothness, y, handle = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.config)
        return _solve_jvp(matrix, target, y, *tangents[1:4]), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, config = args
        return batching.solve(
            info, in_dims, tensors, lambda *folded: _apply(_Solve, *folded, config)
        )


def _backward_of_solve(ctx: Any, h: Tensor | None) -> Grads:
    reference, target, confidence, smoothness, y, handle = ctx.saved_tensors
    if h is None:
        return (None,) * 5
    matrix = Matrix(handle, reference, confidence, smoothness, ctx.config)
    grads = _solve_backward(matrix, target, y, ctx.needs_input_grad[1:4], h)
    return (None, *grads, None)


def _setup_solve(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _Solve.setup_context(ctx, (*inputs[:5], Config(*inputs[5:])), output)


def _solve_operator_backward(ctx: Any, h: Tensor | None, _: Any) -> Any:
    return (*_backward_of_solve(ctx, h), *(None,) * 7)


@_with_signature
class _ApplyInverse(torch.autograd.Function):
    """M g."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *tensors, config = args
        return _run("apply_inverse", operators.apply_inverse, *tensors, *config.arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        *tensors, config = inputs
        ctx.save_for_backward(*tensors, output)
        ctx.save_for_forward(*tensors, output)
        ctx.config = config

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        return (*_backward_of_inverse(ctx, h), None)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        handle, reference, g, confidence, smoothness, y = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.config)
        return _inverse_jvp(matrix, g, y, *tangents[2:5])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, config = args
        return batching.map_(
            info, in_dims, tensors, lambda *folded: _apply(_ApplyInverse, *folded, config)
        )


def _backward_of_inverse(ctx: Any, h: Tensor) -> Grads:
    handle, reference, g, confidence, smoothness, y = ctx.saved_tensors
    matrix = Matrix(handle, reference, confidence, smoothness, ctx.config)
    return None, None, *_inverse_backward(matrix, g, y, ctx.needs_input_grad[2:5], h)


def _setup_inverse(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _ApplyInverse.setup_context(ctx, (*inputs[:5], Config(*inputs[5:])), output)


def _inverse_operator_backward(ctx: Any, h: Tensor) -> Any:
    return (*_backward_of_inverse(ctx, h), *(None,) * 7)


@_with_signature
class _Surroundings(torch.autograd.Function):
    """P g or P^T g."""

    @staticmethod
    def forward(*args: Any) -> Any:
        *others, config = args
        return operators.surroundings(*others, *config.arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        handle, reference, _, confidence, smoothness, transposed, config = inputs
        saved = handle, reference, confidence, smoothness
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.transposed, ctx.config = transposed, config

    @staticmethod
    def backward(ctx: Any, h: Tensor) -> Any:
        handle, reference, confidence, smoothness = ctx.saved_tensors
        matrix = Matrix(handle, reference, confidence, smoothness, ctx.config)
        of_g = matrix.surroundings(h, transposed=not ctx.transposed)
        return None, None, of_g, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        handle, reference, confidence, smoothness = ctx.saved_tensors
        matrix, g_ = Matrix(handle, reference, confidence, smoothness, ctx.config), tangents[2]
        return None if g_ is None else matrix.surroundings(g_, transposed=ctx.transposed)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        *tensors, transposed, config = args
        return batching.map_(
            info,
            in_dims,
            tensors,
            lambda *folded: _apply(_Surroundings, *folded, transposed, config),
        )


def _setup_surroundings(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _Surroundings.setup_context(ctx, (*inputs[:6], Config(*inputs[6:])), output)


def _surroundings_operator_backward(ctx: Any, h: Tensor) -> Any:
    return (*_Surroundings.backward(ctx, h), *(None,) * 6)


def _gradients_operator_backward(*_: Any) -> Any:
    raise RuntimeError("bilateral::gradients: its results are constants to autograd.")


for _name, _backward, _setup in (
    ("solve", _solve_operator_backward, _setup_solve),
    ("apply_inverse", _inverse_operator_backward, _setup_inverse),
    ("surroundings", _surroundings_operator_backward, _setup_surroundings),
    ("gradients", _gradients_operator_backward, None),
):
    torch.library.register_autograd(f"bilateral::{_name}", _backward, setup_context=_setup)
