"""Check numbers, counts and names from a fixed list."""

import math
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import numpy as np

from bilateral.validation.messages import quote

T = TypeVar("T")


def positive(name: str, value: float) -> float:
    """Return a finite number above 0."""
    number = _number(name, value, "a number above 0")
    if number <= 0:
        raise ValueError(f"{name}: expected a number above 0, got {quote(value)}.")
    return number


def not_negative(name: str, value: float) -> float:
    """Return a finite number of at least 0."""
    number = _number(name, value, "a number, 0 or above")
    if number < 0:
        raise ValueError(f"{name}: expected a number, 0 or above, got {quote(value)}.")
    return number


def finite(name: str, value: float) -> float:
    """Return a finite number."""
    return _number(name, value, "a finite number")


def not_nan(name: str, value: float) -> float:
    """Return a number that may be infinite but not NaN."""
    return _number(name, value, "a number or an infinity", infinite=True)


def fraction(name: str, value: float) -> float:
    """Return a number from 0 to below 1."""
    number = not_negative(name, value)
    if number >= 1:
        raise ValueError(f"{name}: expected a number from 0 to below 1, got {quote(value)}.")
    return number


def _number(name: str, value: float, expected: str, infinite: bool = False) -> float:
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    except Exception:  # `__float__` of other libraries raises any error
        raise TypeError(
            f"{name}: expected {expected}, got {quote(value)} ({type(value).__name__})."
        ) from None
    # Comparisons, because torch.compile cannot trace functions of `math`.
    if number != number or (abs(number) == math.inf and not infinite):
        raise ValueError(f"{name}: expected {expected}, got {quote(value)}.")
    return number


def count(name: str, value: int, least: int) -> int:
    """Return a whole number of at least `least`."""
    try:
        number = operator.index(value)
    except Exception:  # `__index__` of other libraries raises any error
        raise TypeError(
            f"{name}: expected a whole number, got {quote(value)} ({type(value).__name__})."
        ) from None
    if number < least:
        raise ValueError(f"{name}: expected at least {least}, got {number}.")
    return number


def flag(name: str, value: object) -> bool:
    """Return True or False, from any object with a truth value except text."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return bool(value)
    except Exception:  # the truth value of an array is an error
        raise TypeError(
            f"{name}: expected True or False, got {quote(value)} ({type(value).__name__})."
        ) from None


def count_from_text(name: str, value: str, least: int) -> int:
    """Return a whole number from text, such as an environment variable."""
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"{name}: expected a whole number, got {quote(value)}.") from None
    return count(name, number, least)


def odd(name: str, value: int, most: int) -> int:
    """Return an odd number from 1 to `most`."""
    number = count(name, value, 1)
    if number % 2 == 0 or number > most:
        raise ValueError(f"{name}: expected an odd number from 1 to {most}, got {number}.")
    return number


def one_of(name: str, value: int, options: Collection[int]) -> int:
    """Return a whole number that is one of `options`."""
    number = count(name, value, min(options))
    if number not in options:
        listed = " or ".join(str(option) for option in options)
        raise ValueError(f"{name}: expected {listed}, got {number}.")
    return number


def choice(name: str, value: str, options: Collection[str]) -> str:
    """Return a name that is one of `options`."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name}: expected one of {listed}, got {quote(value)}.")
    return value


def is_sequence(value: Any) -> bool:
    """Whether a value is a list, a tuple or an array with at least one axis."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def number_list(name: str, value: Any) -> tuple[float, ...]:
    """Return the numbers of None, of one number or of several, as a tuple."""
    if value is None:
        return ()
    several = value if is_sequence(value) else [value]
    return tuple(not_nan(name, number) for number in several)


def one_for_each(name: str, value: Any, length: int, noun: str) -> tuple[float, ...]:
    """Return `length` numbers above 0, from one for each `noun` or from one for all of them."""
    if not is_sequence(value):
        return (positive(name, value),) * length
    if len(value) != length:
        raise ValueError(
            f"{name}: expected one number, or one for each {noun}, {length} in all, "
            f"got {quote(value)}."
        )
    return tuple(positive(f"{name}[{i}]", item) for i, item in enumerate(value))


def one_or_two(name: str, value: Any, check: Callable[[str, Any], T]) -> tuple[T, T]:
    """Return two checked values, from a pair or from one value that stands for both."""
    if not isinstance(value, list | tuple):
        return (check(name, value),) * 2
    if len(value) != 2:
        raise ValueError(f"{name}: expected one or two numbers, got {quote(value)}.")
    return check(f"{name}[0]", value[0]), check(f"{name}[1]", value[1])


def height_and_width(name: str, value: Sequence[int]) -> tuple[int, int]:
    """Return height and width, at least 1 each: the first two numbers of a shape."""
    try:
        height, width = tuple(value)[:2]
    except Exception:  # iteration over other objects raises any error
        raise TypeError(f"{name}: expected (height, width), got {quote(value)}.") from None
    return count(f"{name}[0] (height)", height, 1), count(f"{name}[1] (width)", width, 1)
