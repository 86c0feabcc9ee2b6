"""One call of the library, and what a harness yields."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from fuzz.draw import Draw

Case = Generator["Call", Any, None]
"""A harness's calls for one seed: it yields a call, gets its result, and checks it."""

Harness = Callable[[Draw], Case]


class Call:
    """A function with its arguments.

    `wrong` names the argument that is wrong: the call must raise a ValueError or a TypeError whose
    message holds the name. `errors` are types that a valid call may raise instead of a result; the
    harness then gets the error.
    """

    __slots__ = ("args", "errors", "function", "options", "wrong")

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        wrong: str | None = None,
        errors: tuple[type[Exception], ...] = (),
        **options: Any,
    ) -> None:
        self.function = function
        self.args = args
        self.options = options
        self.wrong = wrong
        self.errors = errors

    def __str__(self) -> str:
        given = [short(value) for value in self.args]
        given += [f"{name}={short(value)}" for name, value in self.options.items()]
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{name}({', '.join(given)})"


class Finding(Exception):  # noqa: N818
    """A call did not do what it should."""


def require(holds: Any, what: str, *values: Any) -> None:
    """Raise a finding unless a property holds."""
    if not holds:
        raise Finding(f"{what}: {', '.join(short(value) for value in values)}")


def short(value: Any) -> str:
    """Describe a value in a few words."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0:
        if value.size <= 3:
            return f"{value.dtype} {value.tolist()}"
        return f"{value.dtype} array of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
