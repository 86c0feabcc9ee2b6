"""The operators ``torch.ops.bilateral.*``; their derivatives are in `derivatives`.

They all take a reference (R, 3 or 1, H, W), a confidence (N, 1, H, W) or None, a smoothness () and
the configuration, and maps (B, K, H, W); R and N are 1 or B. If both are 1 the whole batch has one
matrix and becomes channels of one solve.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid
from bilateral.info import ConvergenceWarning
from bilateral.numerics import adjoint as inverse
from bilateral.numerics.adjoint import Inverse
from bilateral.solver import BilateralSolver
from bilateral.torch import handles as kept
from bilateral.torch import inputs as shapes
from bilateral.torch import vmap as batching

Array = NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])


# `torch.library.custom_op` would do the same with checks on every call that take their time.
_torch: Any = torch  # partly without types
_library = _torch.library.Library("bilateral", "DEF")

_CONFIG = (
    "float[] sigmas, float[] blur, float? reference_max, "
    "float tolerance, int max_iterations, str preconditioner, bool exact"
)
_MATRIX = "Tensor handle, Tensor reference, Tensor g, Tensor? confidence, Tensor smoothness"

kernels: dict[str, Callable[..., Any]] = {}
"""The functions behind the operators, by name."""


def _on_device(name: str) -> Callable[..., Any]:
    """The same operator for CUDA tensors."""

    def run(*args: Any) -> Any:
        with there(*args):
            return getattr(load_device(), name)(_warn_of, *args)

    return run


def infer(*args: Any) -> Tensor | None:
    """`solve` without a handle for CUDA tensors, if it can be had faster."""
    with there(*args):
        found: Tensor | None = load_device().infer(_warn_of, *args)
    return found


def infer_again(*args: Any) -> Tensor | None:
    """`infer`, for arguments as recordings take them."""
    with there(*args):
        found: Tensor | None = load_device().infer_again(_warn_of, *args)
    return found


def recording_key(*args: Any) -> Any:
    """What the recordings of such a call are found by."""
    return load_device().recording_key(*args)


def there(*args: Any) -> Any:
    """Make the tensors' CUDA device the current one, on which Triton launches."""
    devices = (v.device for v in args if isinstance(v, Tensor) and v.is_cuda)
    device = next(devices, None)
    return nullcontext() if device is None else torch.cuda.device(device)


def load_device() -> Any:
    """The operators for CUDA tensors. Triton is loaded where it is used."""
    try:
        from bilateral.torch.cuda import operators as device_operators
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ModuleNotFoundError(
            "bilateral.torch needs Triton for CUDA tensors, which is not installed. "
            "Install it with: pip install triton",
            name="triton",
        ) from error
    return device_operators


def _operator(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define the operator of a schema by a function for CPU tensors, and return the operator."""

    def define(function: Callable[..., Any]) -> Callable[..., Any]:
        name = schema.partition("(")[0]
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        kernels[name] = _torch.compiler.disable(function)  # or a graph break would look inside
        _library.impl(name, kernels[name], "CPU")
        _library.impl(name, _torch.compiler.disable(_on_device(name)), "CUDA")
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
    f"Tensor? like, {_CONFIG}) -> (Tensor, Tensor)"
)
def solve(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    *config: Any,
) -> tuple[Tensor, Tensor]:
    """The solution and a handle on what derivatives need; `like` is a handle with the same grid."""
    count = shapes.matrices(reference, target, confidence)
    values = _arrays(target, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]
    out = torch.empty(values.shape, dtype=target.dtype)
    known, inverses = kept.find(like), list[Inverse]()
    for i in range(count):
        grid = None
        if known is not None:
            grid = known[min(i, len(known) - 1)].grid
        elif reference.shape[0] == 1 and inverses:
            grid = inverses[0].grid
        weight = None if weights is None else weights[i]
        try:
            solver = _solver(reference, i, grid, smoothness, *config)
            matrix, outcome = inverse.solve(
                solver, values[i], weight, out[i].numpy(), exact=config[-1]
            )
        except ValueError as error:
            if count > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
        _warn(matrix, outcome)
        inverses.append(matrix)
    return shapes.as_maps(out, target.shape), kept.keep(inverses)


@_fake_of("solve")
def _(
    reference: Tensor, target: Tensor, confidence: Tensor | None, *_: Any
) -> tuple[Tensor, Tensor]:
    count = shapes.matrices(reference, target, confidence)
    place = torch.device("cpu") if target.device.type == "cuda" else target.device
    return _fake(target, count), torch.empty((count,), dtype=torch.int64, device=place)


@_operator(
    "gradients(Tensor handle, Tensor reference, Tensor h, Tensor? confidence, Tensor smoothness, "
    f"Tensor target, Tensor y, bool[] wanted, {_CONFIG}) -> (Tensor, Tensor, Tensor)"
)
def gradients(
    handle: Tensor,
    reference: Tensor,
    h: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    target: Tensor,
    y: Tensor,
    wanted: Sequence[bool],
    *config: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of target, confidence and smoothness, empty where not `wanted`.

    They are what `derivatives` says, in as few passes over pixels as it takes, and cannot be
    differentiated themselves.
    """
    matrices = _inverses(handle, reference, target, confidence, smoothness, y, config)
    count = len(matrices)
    hs, targets = _arrays(h, count), _arrays(target, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]
    of_target = torch.empty(hs.shape if wanted[0] else 0, dtype=h.dtype)
    of_confidence = torch.empty(hs.shape[:3] if wanted[1] else 0, dtype=h.dtype)
    of_smoothness = 0.0
    for i, matrix in enumerate(matrices):
        parts = inverse.Wanted(
            of_target[i].numpy() if wanted[0] else None,
            of_confidence[i].numpy() if wanted[1] else None,
            wanted[2],
        )
        part, outcome = matrix.gradients(
            np.ascontiguousarray(hs[i]),
            np.ascontiguousarray(targets[i]),
            None if weights is None else np.ascontiguousarray(weights[i]),
            parts,
        )
        of_smoothness += part
        _warn(matrix, outcome)
    return (
        shapes.as_maps(of_target, h.shape) if wanted[0] else of_target,
        of_confidence.unsqueeze(1) if wanted[1] else of_confidence,
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
    wanted: Sequence[bool],
    *____: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    count = shapes.matrices(reference, h, confidence)
    return (
        _fake(h, count) if wanted[0] else h.new_empty(0),
        h.new_empty((count, 1, *h.shape[2:])) if wanted[1] else h.new_empty(0),
        torch.empty_like(smoothness),
    )


@_vmap_of("gradients")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return batching.one_by_one(
        info.batch_size, in_dims[:7], args[:7], lambda *own: gradients(*own, *args[7:])
    )


@_operator(f"apply_inverse({_MATRIX}, {_CONFIG}) -> Tensor")
def apply_inverse(
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    *config: Any,
) -> Tensor:
    """M g = S^T A^-1 S g, and 0 in parts without data."""

    def apply(matrix: Inverse, values: Array, out: Array) -> None:
        _warn(matrix, matrix.apply(values, out))

    return _map(apply, handle, reference, g, confidence, smoothness, config)


@_operator(f"surroundings({_MATRIX}, bool transposed, {_CONFIG}) -> Tensor")
def surroundings(
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    transposed: bool,
    *config: Any,
) -> Tensor:
    """P g: U g in parts without data, from g elsewhere; or P^T g. `smoothness` does not matter."""

    def apply(matrix: Inverse, values: Array, out: Array) -> None:
        matrix.surroundings(values, out, transposed=transposed)

    return _map(apply, handle, reference, g, confidence, smoothness, config)


@_fake_of("apply_inverse")
@_fake_of("surroundings")
def _(_: Tensor, reference: Tensor, g: Tensor, confidence: Tensor | None, *__: Any) -> Tensor:
    return _fake(g, shapes.matrices(reference, g, confidence))


@_vmap_of("solve")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return batching.solve(info, in_dims, args[:5], lambda *folded: solve(*folded, *args[5:]))


@_vmap_of("apply_inverse")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return batching.map_(info, in_dims, args[:5], lambda *own: apply_inverse(*own, *args[5:]))


@_vmap_of("surroundings")
def _(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
    return batching.map_(info, in_dims, args[:5], lambda *own: surroundings(*own, *args[5:]))


def _map(
    apply: Callable[[Inverse, Array, Array], None],
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    config: tuple[Any, ...],
) -> Tensor:
    """What each matrix makes of its part of g."""
    count = shapes.matrices(reference, g, confidence)
    values = _arrays(g, count)
    out = torch.empty(values.shape, dtype=g.dtype)
    matrices = _inverses(handle, reference, g, confidence, smoothness, None, config)
    for i, matrix in enumerate(matrices):
        apply(matrix, np.ascontiguousarray(values[i]), out[i].numpy())
    return shapes.as_maps(out, g.shape)


def _solver(
    reference: Tensor,
    i: int,
    grid: BilateralGrid | None,
    smoothness: Tensor,
    sigmas: tuple[float, float, float],
    blur: tuple[float, float, float],
    reference_max: float | None,
    tolerance: float,
    max_iterations: int,
    preconditioner: str,
    _exact: bool,
) -> BilateralSolver:
    """The solver of image i."""
    if grid is None:
        image = reference[min(i, reference.shape[0] - 1)].permute(1, 2, 0).numpy()
        centre, space, range_ = blur
        weights = centre, space, range_
        grid = BilateralGrid(image, *sigmas, weights, reference_max=reference_max)
    return BilateralSolver(
        grid,
        float(smoothness),
        tolerance=tolerance,
        max_iterations=max_iterations,
        preconditioner=preconditioner,
    )


def _inverses(
    handle: Tensor,
    reference: Tensor,
    maps: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    y: Tensor | None,
    config: tuple[Any, ...],
) -> list[Inverse]:
    """What the handle stands for, or the same made again.

    Without y the `maps` are any that have the batch's shape, for its matrices alone.
    """
    count = shapes.matrices(reference, maps, confidence)
    found = kept.find(handle)
    if found is not None and len(found) == count:
        return found
    targets = _arrays(torch.zeros_like(maps) if y is None else maps, count)
    solutions = targets if y is None else _arrays(y, count)
    weights = None if confidence is None else _arrays(confidence, count)[..., 0]
    return [
        Inverse.of(
            _solver(reference, i, None, smoothness, *config),
            targets[i],
            None if weights is None else weights[i],
            solutions[i],
        )
        for i in range(count)
    ]


def _arrays(maps: Tensor, count: int) -> Array:
    """Channels last for the core: (B, K, H, W) to (count, H, W, ...), a view if memory allows."""
    return shapes.as_pixels(maps, count).numpy()


def _fake(maps: Tensor, count: int) -> Tensor:
    images, channels, height, width = maps.shape
    made = maps.new_empty((count, height, width, images * channels // count))
    return shapes.as_maps(made, maps.shape)


def _warn(matrix: Inverse, outcome: cpu.Outcome) -> None:
    """Warn of a solve that ended too early, where this package or PyTorch was called."""
    if not outcome.converged:
        matrix.warn(outcome, _level())


def _warn_of(outcome: Any, options: Any) -> None:
    """The same on a device."""
    if outcome.converged or options.tolerance == 0 or not outcome.residuals:
        return
    warnings.warn(
        f"the solve stopped after {len(outcome.residuals)} steps with an estimated error of "
        f"{outcome.residuals[-1]:.2g} of the target's range, above tolerance={options.tolerance:g}."
        f" Raise max_iterations or tolerance; more known pixels or a smaller smoothness make the "
        f"problem easier.",
        ConvergenceWarning,
        _level(),
    )


def _level() -> int:
    """How far up the stack this package or PyTorch was called, from the caller's place."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in ("bilateral", "torch"):
            break
        frame, level = frame.f_back, level + 1
    return level
