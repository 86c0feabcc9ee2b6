"""Robust losses for iteratively reweighted least squares (supplement, section "Robustness").

A loss has a value `rho(e)` and a weight `w(e) = rho'(e) / e`. Every loss here is symmetric, 0 at 0,
and a function of the error in units of its scale, ``rho(e; s) = rho(e / s; 1)``. Near 0, all are
about ``e^2 / (2 s^2)``, except `GemanMcClure`, which has the paper's scaling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation

Array = NDArray[Any]

# Beyond these, Barron's loss equals its limits at alpha = 0 and at -+infinity up to rounding.
_NEAR_ZERO, NEAR_INFINITY = 1e-20, 1e18


@runtime_checkable
class Loss(Protocol):
    """Protocol of a robust loss: any object with these two methods.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> class Absolute:
    ...     def rho(self, e):
    ...         return np.sqrt(e**2 + 1e-4)
    ...
    ...     def weight(self, e):
    ...         return 1 / np.sqrt(e**2 + 1e-4)
    >>> isinstance(Absolute(), bilateral.Loss)
    True
    >>> target = np.full((16, 16), 0.5)
    >>> target[3, 3] = 9
    >>> grid = bilateral.BilateralGrid(np.zeros((16, 16)))
    >>> out = bilateral.BilateralSolver(grid).solve_robust(target, loss=Absolute())
    >>> bool(abs(out - 0.5).max() < 0.01)
    True
    """

    def rho(self, e: Array, /) -> Array:
        """Return the loss of each error."""

    def weight(self, e: Array, /) -> Array:
        """Return ``rho'(e) / e``: finite and not negative, also for an error of 0."""


class Scaled(ABC):
    """Base class of a loss that is defined at scale 1, by functions of z = abs(e) / scale."""

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validation.positive("scale", self.scale))

    def rho(self, e: ArrayLike) -> Any:
        """Return the loss of each error, in the dtype of `e` if that is floating point."""
        return _scaled(self._rho, e, self.scale)

    def weight(self, e: ArrayLike) -> Any:
        """Return ``rho'(e) / e``, the weight of each error in the next least-squares problem."""
        return _scaled(self._weight, e, self.scale, power=2)

    @abstractmethod
    def _rho(self, z: Array) -> Array: ...

    @abstractmethod
    def _weight(self, z: Array) -> Array: ...


def _scaled(f: Callable[[Array], Array], e: ArrayLike, scale: float, power: int = 0) -> Any:
    """Return ``f(abs(e) / scale) / scale ** power`` without warnings of overflow or underflow."""
    errors = validation.floating_array("e", e)
    compute = np.result_type(errors.dtype, np.float32)  # float16 overflows
    info = np.finfo(compute)
    s = compute.type(min(max(scale, float(info.tiny)), float(info.max)))
    with np.errstate(over="ignore", under="ignore"):
        # A new axis, because NumPy 1 computes with scalars in float64.
        values = f(np.abs(errors, dtype=compute)[..., np.newaxis] / s)[..., 0]
        for _ in range(power):
            values = values / s
        return values.astype(errors.dtype, copy=False)


def _log1p_square(z: Array) -> Array:
    """log(1 + z^2); where z^2 overflows, 2 log(1 + z), which is equal up to rounding."""
    logarithm: Array = np.minimum(np.log1p(z * z), 2 * np.log1p(z))
    return logarithm


def _hypotenuse(z: Array) -> Array:
    """sqrt(1 + z^2); where z^2 overflows, 1 + z, which is equal up to rounding."""
    hypotenuse: Array = np.minimum(np.sqrt(1 + z * z), 1 + z)
    return hypotenuse


@dataclass(frozen=True)
class GemanMcClure(Scaled):
    """The paper's loss: ``e^2 / (s^2 + e^2)``, with the weight ``2 s^2 / (s^2 + e^2)^2``.

    The loss never exceeds 1, so that far outliers have no influence. It is half of ``Barron(-2,
    s / 2)``. Near 0 it is about ``e^2 / s^2``, twice the other losses of the same scale.

    Parameters
    ----------
    scale : float
        The paper's sigma_gm, s, in the target's unit: the error with a loss of 1/2.

    Examples
    --------
    >>> from bilateral import GemanMcClure
    >>> float(GemanMcClure(2.0).rho(2.0)), float(GemanMcClure(2.0).weight(0.0))
    (0.5, 0.5)
    """

    scale: float = 1.0
    convex = False

    def _rho(self, z: Array) -> Array:
        u: Array = np.minimum(z * z, np.finfo(z.dtype).max)  # infinity over infinity is NaN
        rho: Array = u / (1 + u)
        return rho

    def _weight(self, z: Array) -> Array:
        weight: Array = 2 / np.square(1 + z * z)
        return weight


@dataclass(frozen=True)
class Charbonnier(Scaled):
    """A smooth absolute value: ``sqrt(1 + (e / s)^2) - 1``; equal to ``Barron(1, s)``.

    Parameters
    ----------
    scale : float
        s, in the target's unit: the error at which the loss changes from quadratic to linear.

    Examples
    --------
    >>> from bilateral import Charbonnier
    >>> float(Charbonnier(2.0).weight(0.0)), float(Charbonnier(3.0).rho(4.0).round(4))
    (0.25, 0.6667)
    """

    scale: float = 1.0
    convex = True

    def _rho(self, z: Array) -> Array:
        h, inner = _hypotenuse(z), np.minimum(z, 1)
        return np.where(z < 1, inner * inner / (1 + h), h - 1)

    def _weight(self, z: Array) -> Array:
        return 1 / _hypotenuse(z)


@dataclass(frozen=True)
class Cauchy(Scaled):
    """The logarithm of a quadratic: ``log(1 + (e / s)^2 / 2)``; equal to ``Barron(0, s)``.

    Also called the Lorentzian loss.

    Parameters
    ----------
    scale : float
        s, in the target's unit.

    Examples
    --------
    >>> from bilateral import Cauchy
    >>> float(Cauchy(2.0).weight(0.0)), float(Cauchy(1.0).weight(2.0).round(4))
    (0.25, 0.3333)
    """

    scale: float = 1.0
    convex = False

    def _rho(self, z: Array) -> Array:
        return _log1p_square(z * math.sqrt(0.5))

    def _weight(self, z: Array) -> Array:
        return 1 / (1 + 0.5 * z * z)


@dataclass(frozen=True)
class Welsch(Scaled):
    """One minus a Gaussian: ``1 - exp(-(e / s)^2 / 2)``; equal to ``Barron(-inf, s)``.

    Also called the Leclerc loss. Its weights fall faster than those of the other losses.

    Parameters
    ----------
    scale : float
        s, in the target's unit: the standard deviation of the Gaussian.

    Examples
    --------
    >>> from bilateral import Welsch
    >>> float(Welsch(2.0).weight(0.0)), float(Welsch(1.0).rho(9.0))
    (0.25, 1.0)
    """

    scale: float = 1.0
    convex = False

    def _rho(self, z: Array) -> Array:
        return -np.expm1(-0.5 * z * z)

    def _weight(self, z: Array) -> Array:
        return np.exp(-0.5 * z * z)


@dataclass(frozen=True)
class Huber(Scaled):
    """Quadratic, then linear: ``(e / s)^2 / 2`` up to s and ``abs(e) / s - 1/2`` beyond.

    Parameters
    ----------
    scale : float
        s, in the target's unit: the error at which the loss becomes linear.

    Examples
    --------
    >>> from bilateral import Huber
    >>> float(Huber(2.0).weight(1.0)), float(Huber(2.0).rho(6.0))
    (0.25, 2.5)
    """

    scale: float = 1.0
    convex = True

    def _rho(self, z: Array) -> Array:
        inner = np.minimum(z, 1)
        return inner * (z - 0.5 * inner)

    def _weight(self, z: Array) -> Array:
        return 1 / np.maximum(z, 1)


@dataclass(frozen=True)
class Barron(Scaled):
    """The general loss of Barron (CVPR 2019), from quadratic to Welsch by one parameter.

    With ``b = abs(alpha - 2)``, the loss is ``b / alpha ((1 + (e / s)^2 / b)^(alpha / 2) - 1)``, or
    its limit at 2 (quadratic), at 0 (`Cauchy`) and at -infinity (`Welsch`). ``alpha=1`` is
    `Charbonnier`; ``alpha=-2`` is twice `GemanMcClure` at twice the scale.

    Parameters
    ----------
    alpha : float
        Shape of the loss: smaller is more robust; -infinity is allowed. Above 2, larger errors
        have larger weights, and reweighted least squares need not converge.
    scale : float
        s, in the target's unit.

    Examples
    --------
    >>> from bilateral import Barron
    >>> [float(Barron(alpha).weight(2.0).round(4)) for alpha in (2, 1, 0, -2, float("-inf"))]
    [1.0, 0.4472, 0.3333, 0.25, 0.1353]
    """

    alpha: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", validation.not_nan("alpha", self.alpha))
        super().__post_init__()

    @property
    def convex(self) -> bool:
        """Whether the loss is convex: true for alpha >= 1."""
        return self.alpha >= 1

    def _rho(self, z: Array) -> Array:
        alpha = self.alpha
        if alpha == 2:
            return 0.5 * z * z
        if abs(alpha) > NEAR_INFINITY:
            sign = math.copysign(1, alpha)
            return sign * np.expm1(sign * 0.5 * z * z)
        b = abs(alpha - 2)
        log = _log1p_square(z / math.sqrt(b))
        if abs(alpha) < _NEAR_ZERO:
            return 0.5 * b * log
        return b / alpha * np.expm1(0.5 * alpha * log)

    def _weight(self, z: Array) -> Array:
        alpha = self.alpha
        if alpha == 2:
            return np.ones_like(z)
        if abs(alpha) > NEAR_INFINITY:
            return np.exp(math.copysign(0.5, alpha) * z * z)
        return np.exp((0.5 * alpha - 1) * _log1p_square(z / math.sqrt(abs(alpha - 2))))
