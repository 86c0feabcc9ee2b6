"""Check in Triton's interpreter that kernels access only memory of their tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from triton.runtime import interpreter


class _Checked:
    """Memory operations of the interpreter that check their addresses first."""

    def __init__(self, operations: Any) -> None:
        self._operations = operations
        self.kernel = ""
        self.ranges: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    def load(self, places: Any, mask: Any, other: Any, dtype: Any) -> Any:
        self._look(places, mask, np.dtype(dtype).itemsize)
        return self._operations.load(places, mask, other, dtype)

    def store(self, places: Any, values: Any, mask: Any) -> Any:
        self._look(places, mask, values.dtype.itemsize)
        return self._operations.store(places, values, mask)

    def atomic_rmw(self, kind: Any, places: Any, values: Any, mask: Any, order: Any) -> Any:
        self._look(places, mask, values.dtype.itemsize)
        return self._operations.atomic_rmw(kind, places, values, mask, order)

    def _look(self, places: Any, mask: Any, size: int) -> None:
        at = np.asarray(places).astype(np.int64).ravel()
        at = at[np.broadcast_to(np.asarray(mask).ravel().astype(bool), at.shape)]
        inside = np.zeros(at.shape, bool)
        for first, end in self.ranges:
            inside |= (at >= first) & (at + size <= end)
        assert inside.all(), f"{self.kernel}: {(~inside).sum()} of {at.size} places are outside"


@contextmanager
def within_bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a kernel accesses memory outside its tensors, or if a tensor is not contiguous.

    New memory holds NaN and large integers, so that reads before a write change results.
    """
    executor = getattr(interpreter, "GridExecutor", None)
    if not hasattr(executor, "_init_args_hst") or not hasattr(interpreter, "_interpreter"):
        pytest.skip("another interpreter than this test knows")
    checked, take = _Checked(interpreter._interpreter), executor._init_args_hst

    def look_at_arguments(self: Any, *args: Any) -> Any:
        positional, named = take(self, *args)
        checked.kernel = self.fn.__name__
        tensors = [v for v in (*positional, *named.values()) if isinstance(v, torch.Tensor)]
        assert all(t.is_contiguous() for t in tensors), f"{checked.kernel}: not contiguous"
        checked.ranges = [_range(tensor) for tensor in tensors if tensor.numel() > 0]
        return positional, named

    before = torch.are_deterministic_algorithms_enabled()
    with monkeypatch.context() as patch:
        patch.setattr(interpreter, "_interpreter", checked)
        patch.setattr(executor, "_init_args_hst", look_at_arguments)
        torch.use_deterministic_algorithms(True)  # fills new memory with NaN and large integers
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of the first byte and of the end of the last number."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
