"""Check options of grids and solves: blur, smooth, loss and callback."""

from typing import Any, TypeVar

from bilateral.validation.images import Reference
from bilateral.validation.messages import quote
from bilateral.validation.numbers import choice, not_negative, positive

T = TypeVar("T")
Blur = str | tuple[float, float, float]

BLURS = {"paper": (2.0, 1.0, 0.125), "uniform": None}
"""Weights (centre, space, range) by name; None: they depend on the number of dimensions."""

_LEAST_CENTRE = 1e-6
"""Smallest centre weight, relative to the largest weight."""
_LEAST_WEIGHT = 1e-20
"""Smaller weights of neighbours, relative to the largest weight, count as 0."""


def blur(value: Blur, dimensions: int) -> tuple[float, float, float]:
    """Return the weights of B-bar (centre, space, range) of a name or of three numbers."""
    if isinstance(value, str):
        choice("blur", value, BLURS)
        return BLURS[value] or (2.0 * dimensions, 1.0, 1.0)
    try:
        centre, space, range_ = value
    except Exception:  # iteration over other objects raises any error
        raise TypeError(
            f"blur: expected 'paper', 'uniform' or (centre, space, range), got {quote(value)}."
        ) from None
    weights = (
        positive("blur[0] (centre)", centre),
        not_negative("blur[1] (space)", space),
        not_negative("blur[2] (range)", range_),
    )
    if weights[0] < _LEAST_CENTRE * max(weights):
        raise ValueError(
            f"blur: expected a centre weight of at least a millionth of the others, "
            f"got {quote(value)}. A vertex without neighbours has only its centre."
        )
    # Smaller weights have no effect that float64 could show, but their products underflow.
    least = _LEAST_WEIGHT * max(weights)
    space, range_ = (weight if weight >= least else 0.0 for weight in weights[1:])
    return weights[0], space, range_


def callback(value: object) -> None:
    """Raise unless a value is a function or None."""
    if value is not None and not callable(value):
        raise TypeError(
            f"callback: expected a function of (step, residual), got {quote(value)} "
            f"({type(value).__name__})."
        )


def smooth(value: Any, reference: Reference | None) -> tuple[float, float] | None:
    """Return the sigmas of the domain transform after a solve, or None."""
    if value is None:
        return None
    if reference is None:
        raise ValueError(
            f"smooth: expected None, since the grid was made from features and not from an image, "
            f"got {quote(value)}. Call bilateral.domain_transform on the result."
        )
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(
            f"smooth: expected two numbers (sigma_xy, sigma_rgb) or None, got {quote(value)}. "
            f"The paper's choice for stereo is (4, 4)."
        )
    return positive("smooth[0]", value[0]), positive("smooth[1]", value[1])


def loss(value: T) -> T:
    """Return a robust loss: any object with the methods `rho` and `weight`."""
    if isinstance(value, type) or not callable(getattr(value, "weight", None)):
        example = (
            f"{value.__name__}()" if isinstance(value, type) else "bilateral.GemanMcClure(1.0)"
        )
        raise TypeError(
            f"loss: expected an object with the methods rho(e) and weight(e), got {quote(value)}. "
            f"Give one such as {example}."
        )
    return value


def instance(name: str, value: object, expected: type, example: str) -> None:
    """Raise unless a value is an object of a class."""
    if not isinstance(value, expected):
        raise TypeError(
            f"{name}: expected a {expected.__name__}, got {quote(value)} ({type(value).__name__}). "
            f"Make one with {example}."
        )


def none_with(name: str, value: object, other: str) -> None:
    """Raise if an argument is not None although another one rules it out."""
    if value is not None:
        raise ValueError(f"{name}: expected None with {other}, got {quote(value)}.")


def none_without(name: str, value: object, other: str) -> None:
    """Raise if an argument is not None although the argument that it depends on is missing."""
    if value is not None:
        raise TypeError(f"{name}: expected None, since there is no {other}, got {quote(value)}.")


def smoothness(name: str, value: Any) -> float | str:
    """Return a finite number above 0, or "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise TypeError(
                f"{name}: expected a number above 0 or 'auto', got {quote(value)} (str)."
            )
        return value
    return positive(name, value)


def fixed_smoothness(value: float) -> float:
    """Return a finite number above 0; raise for "auto", which has no derivatives."""
    if isinstance(value, str) and value == "auto":
        raise TypeError(
            f"smoothness: expected a number above 0, got {quote(value)}. The smoothness 'auto' is "
            f"for arrays: info.smoothness of bilateral.solve(..., return_info=True) is its number."
        )
    return positive("smoothness", value)


def smoothness_number(value: float | str, task: str) -> float:
    """Return a smoothness that is a number; raise for "auto" in a task without a target."""
    if isinstance(value, str):
        raise ValueError(
            f"smoothness: expected a number for {task}, got {value!r}, which depends on a target. "
            f"Solve with return_info=True first: info.smoothness is the number."
        )
    return value
