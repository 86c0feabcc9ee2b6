"""The layer for PyTorch on the CPU: the array's solution, and finite gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import bilateral
import bilateral.torch as layer
from fuzz import draw as wrongs
from fuzz.call import Call, Case, require
from fuzz.draw import Array, Draw
from fuzz.harnesses.solver import LOSSES, PRECONDITIONERS

torch.set_num_threads(1)


def tensor(array: Array) -> torch.Tensor:
    """A tensor (C, H, W) of an array (H, W) or (H, W, C)."""
    native = np.array(array, array.dtype.newbyteorder("="), order="C")
    values = torch.from_numpy(native)
    return values[None] if values.ndim == 2 else values.permute(2, 0, 1)


def tensors(d: Draw) -> Case:
    """`bilateral.torch.solve`, `solve_robust` and `domain_transform`."""
    shape = d.shape(20)
    photo = d.photo(shape, dtypes=("uint8", "float32"))
    target = d.map(shape, channels=(0, 1, 2, 3), dtypes=("float32", "float64"))
    confidence = d.confidence(target, decades=1)
    reference, values = tensor(photo), tensor(target)
    weights = None if confidence is None else tensor(confidence)[0]
    options: dict[str, Any] = d.grid_options() | d.some(preconditioner=PRECONDITIONERS)
    options["smoothness"] = d.decades(-1, 2)
    kind = d.random()
    if kind < 0.12:
        table = {"sigma_xy": wrongs.POSITIVE, "preconditioner": wrongs.CHOICE}
        table |= {"tolerance": wrongs.NOT_NEGATIVE, "max_iterations": wrongs.COUNT}
        wrong = d.spoil(options, table)
        yield Call(layer.solve, reference, values, weights, wrong=wrong, **options)
    elif kind < 0.2:
        bad = values[:, :, :-1] if shape[1] > 1 else values[..., None, None, None]
        yield Call(layer.solve, reference, bad, weights, wrong="target", **options)
    elif kind < 0.3:
        given = {"loss": d.choice(LOSSES), "iterations": d.randrange(1, 4)}
        x = yield Call(layer.solve_robust, reference, values, weights, **given, **options)
        like(x, values)
    elif kind < 0.45:
        sigmas = d.decades(-1, 2), d.decades(-1, 3)
        x = yield Call(layer.domain_transform, values, reference, *sigmas)
        like(x, values)
        expected = bilateral.domain_transform(target, photo, *sigmas)
        compare(x, expected, target, 1e-4)
    else:
        values.requires_grad_(d.chance(0.5))
        x = yield Call(layer.solve, reference, values, weights, **options)
        like(x, values)
        expected = bilateral.solve(photo, target, confidence, **options)
        compare(x, expected, target, 3e-3)
        if values.requires_grad:
            yield Call(x.square().mean().backward)
            require(values.grad is not None, "no gradient", x)
            require(bool(values.grad.isfinite().all()), "a gradient is not finite", values.grad)


def like(x: torch.Tensor, target: torch.Tensor) -> None:
    """Require a finite tensor of the target's shape and dtype."""
    require(x.shape == target.shape and x.dtype == target.dtype, "shape or dtype", x)
    require(bool(x.isfinite().all()), "not finite", x)


def compare(x: torch.Tensor, expected: Array, target: Array, bound: float) -> None:
    """Require the array's result, up to a part of the range of the known values."""
    got = x.detach().permute(1, 2, 0).numpy().reshape(expected.shape).astype(np.float64)
    known = target[np.isfinite(target)].astype(np.float64)
    error = float(np.sqrt(np.mean((got - expected) ** 2)))
    room = 1e-5 * float(np.abs(known).max())
    require(error <= bound * float(np.ptp(known)) + room, "the array's result differs", error)
