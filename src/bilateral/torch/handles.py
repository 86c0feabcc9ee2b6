"""Pass the adjoint of a forward solve to its backward by a handle, a small tensor.

A handle is one of the forward operator's results, and autograd saves it like any other tensor. The
adjoint is looked up by the address of the handle's memory, which no other tensor can have while the
handle lives, and is forgotten as soon as that memory is freed. A copied handle (by a process
boundary or a hook on saved tensors) is not found; then the grid is built again from the reference,
which autograd saves too. So only speed depends on handles.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

_adjoints: dict[int, list[Any]] = {}


def keep(adjoints: list[Any], content: Sequence[int] | None = None) -> Tensor:
    """Keep the adjoints of a batch while the returned handle lives; 1 in it means possible gaps.

    `content` replaces the numbers in the handle, which its copies share.
    """
    if content is None:
        content = [adjoint.may_have_gaps for adjoint in adjoints]
    memory = np.array(content, np.int64)
    handle = torch.from_numpy(memory)  # keeps `memory`, which is freed with the tensor
    address = handle.data_ptr()
    _adjoints[address] = adjoints
    weakref.finalize(memory, _adjoints.pop, address, None).atexit = False
    return handle


def find(handle: Tensor | None) -> list[Any] | None:
    """Return the adjoints of a handle; None if it is a copy."""
    if handle is None:
        return None
    adjoints = _adjoints.get(handle.data_ptr())
    return adjoints if adjoints is not None and len(adjoints) == handle.numel() else None
