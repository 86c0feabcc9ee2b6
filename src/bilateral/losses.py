"""Robust losses for iteratively reweighted least squares (supplement, section "Robustness").

A loss is its value `rho(e)` and its weight `w(e) = rho'(e) / e`. Every one here is symmetric, 0 at
0, and a function of the error in units of its scale, ``rho(e; s) = rho(e / s; 1)``. All but
`GemanMcClure`, which keeps the paper's scaling, are ``e^2 / (2 s^2)`` near 0.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation

Array = NDArray[Any]

# Where Barron's family equals its limits at 0 and -+infinity to within rounding.
_NEAR_ZERO, NEAR_INFINITY = 1e-20, 1e18


@runtime_checkable
class Loss(Protocol):
    """What a robust solve needs of a loss: any object with these two methods will do."""

    def rho(self, e: Array, /) -> Array:
        """The loss of each error."""

    def weight(self, e: Array, /) -> Array:
        """``rho'(e) / e``: finite and not negative, also where the error is 0."""


class Scaled(ABC):
    """A loss given at scale 1, as two functions of z = abs(e) / scale."""

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", validation.positive("scale", self.scale))

    def rho(self, e: ArrayLike) -> Any:
        """The loss of each error, in the dtype of `e` where that is floating point."""
        return _scaled(self._rho, e, self.scale)

    def weight(self, e: ArrayLike) -> Any:
        """``rho'(e) / e``, the weight of each error in the next least-squares problem."""
        return _scaled(self._weight, e, self.scale, power=2)

    @abstractmethod
    def _rho(self, z: Array) -> Array: ...

    @abstractmethod
    def _weight(self, z: Array) -> Array: ...


def _scaled(f: Callable[[Array], Array], e: ArrayLike, scale: float, power: int = 0) -> Any:
    """``f(abs(e) / scale) / scale ** power`` without a warning: what overflows is its limit."""
    errors = validation.floating_array("e", e)
    compute = np.result_type(errors.dtype, np.float32)  # float16 is too narrow for what is inside
    info = np.finfo(compute)
    s = compute.type(min(max(scale, float(info.tiny)), float(info.max)))
    with np.errstate(over="ignore", under="ignore"):
        # An axis more: NumPy 1 would compute with scalars in float64.
        values = f(np.abs(errors, dtype=compute)[..., np.newaxis] / s)[..., 0]
        for _ in range(power):
            values = values / s
        return values.astype(errors.dtype, copy=False)


def _log1p_square(z: Array) -> Array:
    """log(1 + z^2), also where z^2 overflows: there it is 2 log(1 + z) to within rounding."""
    logarithm: Array = np.minimum(np.log1p(z * z), 2 * np.log1p(z))
    return logarithm


def _hypotenuse(z: Array) -> Array:
    """sqrt(1 + z^2), also where z^2 overflows: there it is 1 + z to within rounding."""
    hypotenuse: Array = np.minimum(np.sqrt(1 + z * z), 1 + z)
    return hypotenuse


@dataclass(frozen=True)
class GemanMcClure(Scaled):
    """The paper's loss: ``e^2 / (s^2 + e^2)``, with the weight ``2 s^2 / (s^2 + e^2)^2``.

    It never exceeds 1, so far outliers stop mattering. It is half of ``Barron(-2, s / 2)``, and
    about ``e^2 / s^2`` near 0, twice what the other losses of the same scale are.

    Parameters
    ----------
    scale : float
        s, the paper's sigma_gm, in units of the target: the error at which the loss is 1/2.

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
        s, in units of the target: where the loss turns from quadratic to linear.

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

    Also called Lorentzian.

    Parameters
    ----------
    scale : float
        s, in units of the target.

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

    Also called Leclerc. Its weights fall faster than those of the other losses.

    Parameters
    ----------
    scale : float
        s, in units of the target: the standard deviation of the Gaussian.

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
        s, in units of the target: where the loss turns linear.

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

    With ``b = abs(alpha - 2)`` it is ``b / alpha ((1 + (e / s)^2 / b)^(alpha / 2) - 1)``, and its
    limits at 2 (quadratic), 0 (`Cauchy`) and -infinity (`Welsch`). ``alpha=1`` is `Charbonnier`,
    ``alpha=-2`` twice `GemanMcClure` at twice the scale.

    Parameters
    ----------
    alpha : float
        The smaller, the more robust; -infinity is allowed. Above 2 errors weigh the more the
        larger they are: then reweighted least squares need not converge.
    scale : float
        s, in units of the target.

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
        """Whether the loss is convex: for alpha of 1 and above."""
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
