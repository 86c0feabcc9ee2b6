"""Declare Triton kernels that are compiled once for all image sizes.

Triton compiles a kernel again for each combination of integer arguments that are 1 or a multiple
of 16. If sizes were among these integers, each new image size would wait for a compilation.
"""

import inspect
from collections.abc import Callable
from typing import Any

import triton


def kernel(*sizes: str) -> Callable[[Callable[..., None]], Any]:
    """Decorate a kernel that the host launches.

    Parameters
    ----------
    *sizes : str
        Names of the kernel's parameters whose values Triton must not specialise on.

    Raises
    ------
    TypeError
        If the kernel has no parameter of such a name, for example after a rename.
    """

    def declare(function: Callable[..., None]) -> Any:
        missing = set(sizes) - set(inspect.signature(function).parameters)
        if missing:
            raise TypeError(
                f"kernel {function.__name__} has no parameters {sorted(missing)}: "
                "name only its parameters in @kernel(...)"
            )
        return triton.jit(function, do_not_specialize=sizes)

    return declare
