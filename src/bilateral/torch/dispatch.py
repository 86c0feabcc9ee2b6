"""Decide whether autograd, a functional transform or a dispatch mode is active."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def is_watched(*tensors: Tensor | None) -> bool:
    """Return True if autograd, a functional transform or a dispatch mode is active.

    The first tensor is the reference, which has no derivative.
    """
    active = torch.compiler.is_compiling() or in_forward_mode()
    return active or needs_gradient(*tensors[1:]) or not is_plain(tensors)


def in_forward_mode() -> bool:
    """Return True inside a forward-mode derivative."""
    return forward_ad._current_level >= 0


def needs_gradient(*values: Tensor | None) -> bool:
    """Return True if autograd records and a tensor requires a gradient."""
    return torch.is_grad_enabled() and any(v.requires_grad for v in values if v is not None)


def is_plain(args: Any) -> bool:
    """Return True if no functional transform, dispatch mode or tensor subclass is involved."""
    plain = torch.Tensor, torch.nn.Parameter
    modes = torch._C._len_torch_dispatch_stack() > 0
    transforms = torch._C._functorch.peek_interpreter_stack() is not None
    return (
        not modes
        and not transforms
        and all(type(value) in plain for value in args if isinstance(value, Tensor))
    )
