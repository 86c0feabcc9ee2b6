"""Load compiled kernels and launch them, by the functions of CUDA's driver.

Triton's own launchers are C programs, one for each list of argument types, which the compiler of
the host builds first. Here the driver takes the arguments from memory, whatever their types are.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

_FORMATS = {"i1": "?7x", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q", "fp32": "f4x"}
"""How the value of a type fills a place of 8 bytes; pointers are "Q"."""
_HIDDEN_ARGUMENTS = 4
"""Places after the arguments, for pointers to scratch memory that no kernel uses."""
_MAX_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SHARED_WITHOUT_ASKING = 48 * 1024
_NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT


@cache
def _cuda() -> Any:
    cuda = ctypes.CDLL("libcuda.so.1")
    whole, pointer = ctypes.c_uint, ctypes.c_void_p
    cuda.cuLaunchKernel.argtypes = [pointer, *[whole] * 7, pointer, pointer, pointer]
    cuda.cuModuleLoadData.argtypes = [pointer, ctypes.c_char_p]
    cuda.cuModuleGetFunction.argtypes = [pointer, pointer, ctypes.c_char_p]
    cuda.cuFuncSetAttribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int]
    return cuda


def _check(status: int, doing: str) -> None:
    if status:
        text = ctypes.c_char_p()
        _cuda().cuGetErrorString(status, ctypes.byref(text))
        reason = (text.value or b"unknown error").decode()
        raise RuntimeError(f"CUDA error {status} while {doing}: {reason}")


def make_context_current(device: int) -> None:
    """Give this thread the context of a device that PyTorch uses, too."""
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    _check(_cuda().cuDeviceGet(ctypes.byref(handle), device), "looking for the device")
    status = _cuda().cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
    _check(status, "taking the device's context")
    _check(_cuda().cuCtxSetCurrent(context), "setting the device's context")


class LoadedKernel:
    """A compiled kernel in the memory of a device.

    Parameters
    ----------
    described : dict
        "name", "shared" and "threads", as from `compile_variant`.
    code : bytes
    types : list of str
        Triton's names of the types of the run-time arguments.
    device : int
    """

    def __init__(
        self, described: dict[str, Any], code: bytes, types: Sequence[str], device: int
    ) -> None:
        cuda, name = _cuda(), described["name"]
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        status = cuda.cuModuleLoadData(ctypes.byref(module), code)
        if status == _NO_CONTEXT:
            make_context_current(device)
            status = cuda.cuModuleLoadData(ctypes.byref(module), code)
        _check(status, f"loading kernel {name}")
        status = cuda.cuModuleGetFunction(ctypes.byref(self._function), module, name.encode())
        _check(status, f"loading kernel {name}")
        self._name, self._device = name, device
        self._threads, self._shared = described["threads"], described["shared"]
        if self._shared > _SHARED_WITHOUT_ASKING:
            status = cuda.cuFuncSetAttribute(self._function, _MAX_SHARED, self._shared)
            _check(status, f"giving kernel {name} {self._shared} bytes of shared memory")
        self._pack = struct.Struct("".join(_FORMATS.get(kind, "Q") for kind in types)).pack_into
        places = len(types) + _HIDDEN_ARGUMENTS
        self._values = ctypes.create_string_buffer(8 * places)
        begin = ctypes.addressof(self._values)
        self._places = (ctypes.c_void_p * places)(*range(begin, begin + 8 * places, 8))
        self._launch = cuda.cuLaunchKernel
        self._lock = threading.Lock()

    def launch(self, grid: Sequence[int], stream: int, values: Sequence[Any]) -> None:
        """Launch the kernel with the addresses and numbers of its run-time arguments."""
        x, y, z = (*grid, 1, 1)[:3]
        if x * y * z == 0:
            return
        shape = x, y, z, self._threads, 1, 1, self._shared
        with self._lock:
            self._pack(self._values, 0, *values)
            status = self._launch(self._function, *shape, stream, self._places, None)
            if status == _NO_CONTEXT:
                make_context_current(self._device)
                status = self._launch(self._function, *shape, stream, self._places, None)
        if status:
            _check(status, f"launching kernel {self._name}")
