"""Translate aliases of keywords, and answer keywords of other libraries with the name here."""

from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_SAME_LAMBDA = "the same scale as in the authors' code, whose blur is blur='uniform' here"
_OTHER_TOLERANCE = "relative to the range of the target, not to the first residual"

# name elsewhere -> names here, the first that a function has, and a remark
_FOREIGN: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(
        ("lam", "lambda_", "lambd", "lmbda", "bs_lam"), (("smoothness",), _SAME_LAMBDA)
    ),
    **dict.fromkeys(("sigma_spatial", "sigma_space", "sigmaSpace"), (("sigma_xy",), "in pixels")),
    **dict.fromkeys(
        ("sigma_color", "sigmaColor", "sigma_range", "sigma_r"),
        (("sigma_rgb", "sigma_luma"), "in 8-bit grey levels"),
    ),
    **dict.fromkeys(
        ("num_iter", "num_iters", "n_iter", "n_iters", "max_iter", "maxiter", "cg_maxiter"),
        (("max_iterations", "iterations"), "the largest number of steps"),
    ),
    "max_tries": (("max_iterations", "iterations"), "the largest number of steps"),
    **dict.fromkeys(("tol", "cg_tol", "max_tol"), (("tolerance",), _OTHER_TOLERANCE)),
    **dict.fromkeys(
        ("guide", "guidance", "im", "img"), (("reference", "image", "gray"), "the photograph")
    ),
    "src": (("target", "depth", "image"), "the map to smooth"),
    **dict.fromkeys(("conf", "weight", "weights"), (("confidence",), "0 for unknown pixels")),
}


def keywords(**aliases: str) -> Callable[[F], F]:
    """Let a function take aliases of its parameters, and say more about unknown keywords.

    Parameters
    ----------
    **aliases : str
        The parameter that each alias stands for, such as ``photo="reference"``.
    """

    def decorate(function: F) -> F:
        names = tuple(signature(function).parameters)
        known = frozenset(names)
        with_own_names = partial(_translate, function, names, aliases)

        def call(*args: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    options = with_own_names(args, options)
                    break
            return function(*args, **options)

        # doctest finds the functions of a module by their globals.
        plain, own_globals = cast(FunctionType, call), cast(FunctionType, function).__globals__
        wrapper = FunctionType(
            plain.__code__, own_globals, function.__name__, None, plain.__closure__
        )
        return cast(F, update_wrapper(wrapper, function))

    return decorate


def _translate(
    function: Callable[..., Any],
    names: tuple[str, ...],
    aliases: dict[str, str],
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return the keywords of a call with the names of the function's own parameters."""
    translated: dict[str, Any] = {}
    for name, value in options.items():
        own = aliases.get(name, name)
        title = function.__qualname__.removesuffix(".__init__")
        if own not in names:
            raise TypeError(_unknown(title, names, name))
        if own != name and (own in options or own in names[: len(args)]):
            raise TypeError(f"{title}() got both {own!r} and {name!r}, which mean the same.")
        if own in translated:
            raise TypeError(f"{title}() got {own!r} under two names, one of them {name!r}.")
        translated[own] = value
    return translated


def _unknown(title: str, names: tuple[str, ...], name: str) -> str:
    candidates, remark = _FOREIGN.get(name, ((), ""))
    own = next((candidate for candidate in candidates if candidate in names), None)
    if own is None:
        return f"{title}() got an unexpected keyword argument {name!r}"
    return f"{title}() has no parameter {name!r}; the name here is {own!r} ({remark})."
