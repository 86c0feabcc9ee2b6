"""Small tensors that are made once: a graph cannot copy them to the device each time."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor


@lru_cache(maxsize=256)
def constant(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of nested tuples of numbers, not to be written to."""
    return torch.tensor(values, dtype=dtype, device=device)
