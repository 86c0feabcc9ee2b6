"""Keep functions out of compiled graphs, without importing PyTorch's compiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

_torch: Any = torch  # partly without types
_COMPILER = "torch._dynamo"


def untraced(function: F) -> F:
    """Return the function as `torch.compiler.disable` does: `torch.compile` never looks inside.

    `torch.compiler.disable` imports the compiler, which takes most of a second. Here that waits
    until somebody else has imported it: before, nothing can trace the function.
    """
    hidden: Any = None

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal hidden
        if _COMPILER not in sys.modules:
            return function(*args, **kwargs)
        if hidden is None:
            hidden = _torch.compiler.disable(function)
        return hidden(*args, **kwargs)  # a frame with nothing but this call is never compiled

    marked: Any = run
    marked._torchdynamo_disable = True  # as `disable` marks its functions
    marked._torchdynamo_disable_msg = None
    out: F = marked
    return out
