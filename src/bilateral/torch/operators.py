"""Define the operators ``torch.ops.bilateral.*``; `autograd` has their derivatives.

All operators take a reference (R, 3 or 1, H, W), a confidence (N, 1, H, W) or None, a smoothness
(), the options, and maps (B, K, H, W); R and N are 1 or B. If both are 1, the whole batch shares
one matrix and becomes the channels of one solve.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral import validation
from bilateral.grid import BilateralGrid
from bilateral.info import ConvergenceWarning
from bilateral.numerics.adjoint import Adjoint, Outputs
from bilateral.numerics.pcg import Outcome, divergence_message
from bilateral.numerics.plane_adjoint import PlaneAdjoint
from bilateral.torch import handles, inputs, vmap
from bilateral.torch.options import FEATURE_CHANNELS, SCHEMA, LayerOptions
from bilateral.torch.untraced import untraced

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])


# `torch.library.custom_op` would do the same with checks on every call that take their time.
_torch: Any = torch  # partly without types
_library = _torch.library.Library("bilateral", "DEF")

_MATRIX = "Tensor handle, Tensor reference, Tensor g, Tensor? confidence, Tensor smoothness"

kernels: dict[str, Callable[..., Any]] = {}
"""The CPU function of each operator, by name."""


def _on_device(name: str) -> Callable[..., Any]:
    """Return the operator for CUDA tensors."""

    def run(*args: Any) -> Any:
        with on_device_of(*args):
            return getattr(load_cuda_operators(), name)(warn_of, *args)

    return run


def infer(*args: Any) -> Tensor | None:
    """Replay a recorded `solve` of CUDA tensors without a handle; None if there is none."""
    with on_device_of(*args):
        y: Tensor | None = load_cuda_operators().infer(warn_of, *args)
    return y


def infer_again(*args: Any) -> Tensor | None:
    """Replay a recorded `solve` for arguments in the layout of its recording."""
    with on_device_of(*args):
        y: Tensor | None = load_cuda_operators().infer_again(warn_of, *args)
    return y


def recording_key(*args: Any) -> Any:
    """Return the key of a call in the cache of recordings."""
    return load_cuda_operators().recording_key(*args)


def on_device_of(*args: Any) -> Any:
    """Make the tensors' CUDA device current, because Triton launches on the current device."""
    devices = (v.device for v in args if isinstance(v, Tensor) and v.is_cuda)
    device = next(devices, None)
    return nullcontext() if device is None else torch.cuda.device(device)


def load_cuda_operators() -> Any:
    """Import the operators for CUDA tensors, and Triton with them."""
    try:
        from bilateral.torch.cuda import operators as cuda_operators
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ModuleNotFoundError(
            "bilateral.torch needs Triton for CUDA tensors, which is not installed. "
            "Install it with: pip install triton",
            name="triton",
        ) from error
    return cuda_operators


def _operator(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define an operator by its schema and its function for CPU tensors; return the operator."""

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        name = schema.partition("(")[0]
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        kernels[name] = untraced(function)  # after a graph break, too
        _library.impl(name, kernels[name], "CPU")
        _library.impl(name, untraced(_on_device(name)), "CUDA")
        operator: Callable[..., Any] = getattr(torch.ops.bilateral, name).default
        return operator

    return define


def _fake_of(name: str) -> Callable[[F], F]:
    return _rule(torch.library.register_fake, name)


def _vmap_of(name: str) -> Callable[[F], F]:
    return _rule(torch.library.register_vmap, name)


def _rule(register: Any, name: str) -> Callable[[F], F]:
    def add(function: F) -> F:
        register(f"bilateral::{name}", function, lib=_library)
        return function

    return add


@_operator(
    "solve(Tensor reference, Tensor target, Tensor? confidence, Tensor smoothness, "
    f"Tensor? like, {SCHEMA}) -> (Tensor, Tensor)"
)
def solve(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    *arguments: Any,
) -> tuple[Tensor, Tensor]:
    """Return the solution and a handle on its adjoint; `like` is a handle with the same grid."""
    options = LayerOptions.from_arguments(*arguments)
    count = inputs.matrices(reference, target, confidence)
    values = _arrays(target, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]
    out = torch.empty(values.shape, dtype=target.dtype)
    kind = PlaneAdjoint if options.solve.planar else Adjoint
    earlier, adjoints = handles.find(like), list[Adjoint | PlaneAdjoint]()
    for i in range(count):
        grid = None
        if earlier is not None:
            grid = earlier[min(i, len(earlier) - 1)].grid
        elif reference.shape[0] == 1 and adjoints:
            grid = adjoints[0].grid
        weight = None if weights is None else weights[i]
        try:
            adjoint, outcome = kind.solve(
                grid or _grid(reference, i, options),
                validation.positive("smoothness", float(smoothness)),
                options.solve,
                values[i],
                weight,
                out[i].numpy(),
            )
        except ValueError as error:
            if count > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
        _warn(adjoint, outcome)
        adjoints.append(adjoint)
    planes = [adjoint.content for adjoint in adjoints if isinstance(adjoint, PlaneAdjoint)]
    return inputs.as_maps(out, target.shape), handles.keep(adjoints, planes or None)


@_fake_of("solve")
def _(
    reference: Tensor, target: Tensor, confidence: Tensor | None, *_: Any
) -> tuple[Tensor, Tensor]:
    count = inputs.matrices(reference, target, confidence)
    place = torch.device("cpu") if target.device.type == "cuda" else target.device
    return _fake(target, count), torch.empty((count,), dtype=torch.int64, device=place)


@_operator(
    "gradients(Tensor handle, Tensor reference, Tensor h, Tensor? confidence, Tensor smoothness, "
    f"Tensor target, Tensor y, bool[] needed, {SCHEMA}) -> (Tensor, Tensor, Tensor)"
)
def gradients(
    handle: Tensor,
    reference: Tensor,
    h: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    target: Tensor,
    y: Tensor,
    needed: Sequence[bool],
    *arguments: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of target, confidence and smoothness; empty where not `needed`.

    `autograd` derives them; here they take as few passes over pixels as possible, and cannot be
    differentiated themselves. For the constant model only.
    """
    adjoints = _adjoints(handle, reference, target, confidence, smoothness, y, arguments)
    count = len(adjoints)
    hs, targets = _arrays(h, count), _arrays(target, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]
    of_target = torch.empty(hs.shape if needed[0] else 0, dtype=h.dtype)
    of_confidence = torch.empty(hs.shape[:3] if needed[1] else 0, dtype=h.dtype)
    of_smoothness = 0.0
    for i, adjoint in enumerate(adjoints):
        assert isinstance(adjoint, Adjoint)
        outputs = Outputs(
            of_target[i].numpy() if needed[0] else None,
            of_confidence[i].numpy() if needed[1] else None,
            needed[2],
        )
        part, outcome = adjoint.gradients(
            np.ascontiguousarray(hs[i]),
            np.ascontiguousarray(targets[i]),
            None if weights is None else np.ascontiguousarray(weights[i]),
            outputs,
        )
        of_smoothness += part
        _warn(adjoint, outcome)
    return (
        inputs.as_maps(of_target, h.shape) if needed[0] else of_target,
        of_confidence.unsqueeze(1) if needed[1] else of_confidence,
        torch.tensor(of_smoothness, dtype=smoothness.dtype),
    )


@_fake_of("gradients")
def _(
    _: Tensor,
    reference: Tensor,
    h: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    __: Tensor,
    ___: Tensor,
    needed: Sequence[bool],
    *____: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    count = inputs.matrices(reference, h, confidence)
    return (
        _fake(h, count) if needed[0] else h.new_empty(0),
        h.new_empty((count, 1, *h.shape[2:])) if needed[1] else h.new_empty(0),
        torch.empty_like(smoothness),
    )


@_vmap_of("gradients")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return vmap.one_by_one(
        info.batch_size, in_dims[:7], args[:7], lambda *own: gradients(*own, *args[7:])
    )


@_operator(f"apply_adjoint({_MATRIX}, {SCHEMA}) -> Tensor")
def apply_adjoint(
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    *arguments: Any,
) -> Tensor:
    """Compute M g = S^T A^-1 S g, and 0 in parts without data."""

    def apply(adjoint: Any, values: Array, out: Array) -> None:
        _warn(adjoint, adjoint.apply(values, out))

    return _map(apply, handle, reference, g, confidence, smoothness, arguments)


@_operator(f"apply_planes({_MATRIX}, bool transposed, {SCHEMA}) -> Tensor")
def apply_planes(
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    transposed: bool,
    *arguments: Any,
) -> Tensor:
    """Compute M g or M^T g of the planar model."""

    def apply(adjoint: Any, values: Array, out: Array) -> None:
        _warn(adjoint, adjoint.apply(values, out, transposed=transposed))

    return _map(apply, handle, reference, g, confidence, smoothness, arguments)


@_operator(f"surroundings({_MATRIX}, bool transposed, {SCHEMA}) -> Tensor")
def surroundings(
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    transposed: bool,
    *arguments: Any,
) -> Tensor:
    """Compute P g, which is U g in parts without data from g elsewhere; or P^T g.

    The result does not depend on `smoothness`.
    """

    def apply(adjoint: Any, values: Array, out: Array) -> None:
        adjoint.surroundings(values, out, transposed=transposed)

    return _map(apply, handle, reference, g, confidence, smoothness, arguments)


@_fake_of("apply_adjoint")
@_fake_of("apply_planes")
@_fake_of("surroundings")
def _(_: Tensor, reference: Tensor, g: Tensor, confidence: Tensor | None, *__: Any) -> Tensor:
    return _fake(g, inputs.matrices(reference, g, confidence))


@_vmap_of("solve")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return vmap.solve(info, in_dims, args[:5], lambda *folded: solve(*folded, *args[5:]))


@_vmap_of("apply_adjoint")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return vmap.map_(info, in_dims, args[:5], lambda *own: apply_adjoint(*own, *args[5:]))


@_vmap_of("apply_planes")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return vmap.map_(info, in_dims, args[:5], lambda *own: apply_planes(*own, *args[5:]))


@_vmap_of("surroundings")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return vmap.map_(info, in_dims, args[:5], lambda *own: surroundings(*own, *args[5:]))


def _map(
    apply: Callable[[Any, Array, Array], None],
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    arguments: tuple[Any, ...],
) -> Tensor:
    """Apply a function of each adjoint to its part of g."""
    count = inputs.matrices(reference, g, confidence)
    values = _arrays(g, count)
    out = torch.empty(values.shape, dtype=g.dtype)
    adjoints = _adjoints(handle, reference, g, confidence, smoothness, None, arguments)
    for i, adjoint in enumerate(adjoints):
        apply(adjoint, np.ascontiguousarray(values[i]), out[i].numpy())
    return inputs.as_maps(out, g.shape)


def _grid(reference: Tensor, i: int, options: LayerOptions) -> BilateralGrid:
    """Build the grid of image i."""
    image = reference[min(i, reference.shape[0] - 1)].permute(1, 2, 0).numpy()
    grid = options.grid
    if image.shape[2] == FEATURE_CHANNELS:
        sigmas = grid.sigma_luma, grid.sigma_chroma
        return BilateralGrid.from_features(image, sigmas, grid.sigma_xy, blur=grid.blur)
    return BilateralGrid(image, **asdict(grid))


def _adjoints(
    handle: Tensor,
    reference: Tensor,
    maps: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    y: Tensor | None,
    arguments: tuple[Any, ...],
) -> list[Adjoint | PlaneAdjoint]:
    """Return the adjoints of a handle, or build them again.

    Without the solution y, only the shape of `maps` matters.
    """
    count = inputs.matrices(reference, maps, confidence)
    adjoints = handles.find(handle)
    if adjoints is not None and len(adjoints) == count:
        return adjoints
    options = LayerOptions.from_arguments(*arguments)
    targets = _arrays(torch.zeros_like(maps) if y is None else maps, count)
    solutions = targets if y is None else _arrays(y, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]

    def rebuild(i: int) -> Adjoint | PlaneAdjoint:
        given = (
            _grid(reference, i, options),
            validation.positive("smoothness", float(smoothness)),
            options.solve,
            targets[i],
            None if weights is None else weights[i],
        )
        if options.solve.planar:
            return PlaneAdjoint.of_inputs(*given, int(handle[min(i, len(handle) - 1)]))
        return Adjoint.of_solution(*given, solutions[i])

    return [rebuild(i) for i in range(count)]


def _arrays(maps: Tensor, count: int) -> Array:
    """Move channels last: (B, K, H, W) to (count, H, W, ...), as a view if memory allows."""
    return validation.aligned(inputs.as_pixels(maps, count).numpy())


def _fake(maps: Tensor, count: int) -> Tensor:
    images, channels, height, width = maps.shape
    pixels = maps.new_empty((count, height, width, images * channels // count))
    return inputs.as_maps(pixels, maps.shape)


def _warn(adjoint: Adjoint | PlaneAdjoint, outcome: Outcome) -> None:
    """Warn if a solve ended too early, at the line that called this package or PyTorch."""
    if not outcome.converged:
        adjoint.warn(outcome, _level())


def warn_of(outcome: Any, options: LayerOptions) -> None:
    """Warn if a solve on a CUDA device diverged or ended too early."""
    tolerance = options.solve.tolerance
    if outcome.diverged:
        message = divergence_message(len(outcome.residuals), "the smoothness")
        warnings.warn(message, ConvergenceWarning, _level())
        return
    fixed = tolerance == 0 or options.solve.fixed_steps
    if outcome.converged or fixed or not outcome.residuals:
        return
    warnings.warn(
        f"the solve stopped after {len(outcome.residuals)} steps with an estimated error of "
        f"{outcome.residuals[-1]:.2g} of the target's range, above tolerance={tolerance:g}."
        f" Raise max_iterations or tolerance; more known pixels or a smaller smoothness make the "
        f"problem easier.",
        ConvergenceWarning,
        _level(),
    )


def _level() -> int:
    """Count the stack frames up to the line that called this package or PyTorch."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("bilateral", "torch"):
            break
        frame, level = frame.f_back, level + 1
    return level
