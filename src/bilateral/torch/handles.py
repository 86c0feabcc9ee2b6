"""How the grid of a forward solve reaches its backward: by a handle, a small tensor.

A handle is one of the forward operator's results and is saved for the backward like any other
tensor. What it stands for is looked up by the address of its memory, which nothing else can have
as long as the handle lives, and is forgotten as soon as that memory is freed. A handle that was
copied, by a process boundary or a hook on saved tensors, is not found: then the grid is built
again from the reference, which is saved, too. So nothing but speed depends on handles.
"""

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

_kept: dict[int, list[Any]] = {}


def keep(inverses: list[Any]) -> Tensor:
    """Keep the matrices of a batch while the result lives; 1 in it means there may be gaps."""
    memory = np.array([inverse.may_have_gaps for inverse in inverses], np.int64)
    handle = torch.from_numpy(memory)  # holds on to `memory`, which is freed with the tensor
    address = handle.data_ptr()
    _kept[address] = inverses
    weakref.finalize(memory, _kept.pop, address, None).atexit = False
    return handle


def find(handle: Tensor | None) -> list[Any] | None:
    """What a handle stands for, if it is the one that was returned."""
    if handle is None:
        return None
    found = _kept.get(handle.data_ptr())
    return found if found is not None and len(found) == handle.numel() else None
