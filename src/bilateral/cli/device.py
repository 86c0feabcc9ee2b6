"""Choose where a command computes: on the CPU, or on a CUDA device through PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral import tasks, validation
from bilateral.cli.errors import UsageError
from bilateral.io.errors import FileError

Array = NDArray[Any]
Device = Literal["cpu", "cuda", "auto"]

_WITH_CHANNELS = ("gray", "image", "probabilities", "reference", "scribbles", "target")
"""Arguments whose tensors have an axis of channels, also if there is only one."""
_ADVICE = "Leave --device out, or use --device auto, to compute on the CPU."


@dataclass(frozen=True)
class Task:
    """A call for arrays that runs where `--device` says."""

    name: str
    """Of the function in `bilateral.tasks` or `bilateral`, and of the one in `bilateral.torch`."""
    device: Device
    cpu_only: str = ""
    """What computes on the CPU only: a part of the command line, or empty."""

    def check(self) -> None:
        """Raise an error of usage if the device was asked for and cannot compute this."""
        if self.device != "cuda":
            return
        if self.cpu_only:
            raise UsageError(f"--device cuda: {self.cpu_only} computes on the CPU only. {_ADVICE}")
        problem = _find_problem()
        if problem:
            raise UsageError(f"--device cuda: {problem} {_ADVICE}")

    def __call__(self, *values: Any, **options: Any) -> Any:
        """Call the function for arrays, or the one for tensors with the arrays on the device."""
        if self.device == "cpu" or self.cpu_only:
            return self._on_cpu(*values, **options)
        problem = _find_problem()
        if not problem:
            return _call_with_tensors(self.name, values, options)
        if self.device == "cuda":  # on another machine than the one that checked it
            raise FileError(f"--device cuda: {problem} {_ADVICE}")
        return self._on_cpu(*values, **options)

    def _on_cpu(self, *values: Any, **options: Any) -> Any:
        module = tasks if hasattr(tasks, self.name) else bilateral
        return getattr(module, self.name)(*values, **options)


@lru_cache(maxsize=1)
def _find_problem() -> str:
    """Say what keeps this machine from computing on a CUDA device; empty if nothing does."""
    if find_spec("torch") is None:
        return "needs PyTorch, which is not installed: pip install 'bilateral[torch]'."
    import torch

    if not torch.cuda.is_available():
        return "PyTorch finds no CUDA device on this machine."
    if find_spec("triton") is None:
        return "needs Triton, which is not installed: pip install triton."
    return ""


def _find_device() -> str:
    """Return PyTorch's name of the device that computes."""
    return "cuda"


def _call_with_tensors(name: str, values: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function of `bilateral.torch` with tensors on the device; return an array."""
    import torch

    import bilateral.torch

    function = getattr(bilateral.torch, name)
    parameters = inspect.signature(function).parameters
    given: dict[str, Any] = dict(zip(parameters, values, strict=False))
    given |= {key: value for key, value in options.items() if key in parameters}
    dtype = options.get("dtype")
    if "dtype" in parameters and dtype is not None:
        given["dtype"] = torch.from_numpy(np.empty(0, dtype)).dtype
    device = _find_device()
    tensors = {
        key: _as_tensor(key, value).to(device) if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }
    found: Array = function(**tensors).cpu().numpy()
    x = _channels_last(found, given, parameters)
    return x if dtype is None or "dtype" in parameters else validation.as_dtype(x, np.dtype(dtype))


def _as_tensor(name: str, value: Array) -> Any:
    """Return an array (H, W) or (H, W, C) as a tensor (H, W) or (C, H, W)."""
    import torch

    native = value.astype(value.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind == "f" and native.dtype.itemsize > 8:
        native = native.astype(np.float64)
    if not native.flags.writeable or any(stride < 0 for stride in native.strides):
        native = native.copy()  # tensors have neither
    tensor = torch.from_numpy(native)
    if tensor.ndim == 3:
        return tensor.movedim(-1, 0)
    return tensor.unsqueeze(0) if name in _WITH_CHANNELS else tensor


def _channels_last(found: Array, given: Mapping[str, Any], parameters: Mapping[str, Any]) -> Array:
    """Return a result with the axes of the map or scores that it is made of."""
    lead = next(name for name in ("target", *parameters) if name in given)
    if found.ndim == 2:
        return found
    if given[lead].ndim == 2 and len(found) == 1:
        return np.asarray(found[0])
    return np.ascontiguousarray(np.moveaxis(found, 0, -1))
