"""Declare Triton kernels, and launch them.

Triton compiles a kernel again for each combination of integer arguments that are 1 or a multiple
of 16. Here the values of integers are never compiled in, except for 1 where a kernel asks for it.
Each new size, sigma or number of images would else wait for the compiler. What is compiled in are
`tl.constexpr` parameters.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import triton

from bilateral.backends.cuda.compiler import store
from bilateral.backends.cuda.compiler.driver import LoadedKernel
from bilateral.backends.cuda.compiler.variant import PACKAGE, Variant

_POINTERS = {
    torch.bool: "*i1",
    torch.uint8: "*u8",
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.uint16: "*u16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
}
_MIN_INT32, _MAX_INT32 = -(1 << 31), (1 << 31) - 1

UNALIGNED = frozenset(
    (
        "alpha",
        "arrival",
        "coarse_last",
        "diverged",
        "done",
        "errors",
        "finished",
        "high",
        "is_root",
        "kept_norm",
        "last",
        "least",
        "lengths",
        "links_out",
        "low",
        "lower_total",
        "members",
        "nearest",
        "norm",
        "numbers",
        "smoothness",
        "start_norm",
        "step",
        "total",
        "upper_total",
    )
)
"""Parameters that need not begin at multiples of 16 bytes: numbers in, or parts of, larger tensors.
All others do, so that threads read 16 bytes at a time."""

recorded: dict[Variant, None] | None = None
"""Where to note the variants of all launches, in order, in the interpreter, too; None: nowhere."""


def kernel(*, ones: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Kernel]:
    """Decorate a kernel that the host launches.

    Parameters
    ----------
    ones : tuple of str
        Names of integer parameters whose value 1 is compiled in.

    Raises
    ------
    TypeError
        If the kernel has no parameter of such a name, for example after a rename.
    """

    def declare(function: Callable[..., None]) -> Kernel:
        missing = set(ones) - set(inspect.signature(function).parameters)
        if missing:
            raise TypeError(
                f"kernel {function.__name__} has no parameters {sorted(missing)}: "
                "name only its parameters in @kernel(...)"
            )
        return Kernel(function, ones)

    return declare


class Kernel:
    """A kernel that is launched with ``kernel[grid](*arguments, **constants_and_options)``."""

    def __init__(self, function: Callable[..., None], ones: tuple[str, ...]) -> None:
        self.function = triton.jit(function)
        """Triton's function."""
        self.unaligned = UNALIGNED
        """Names of parameters that need not begin at multiples of 16 bytes."""
        self._name = f"{function.__module__.removeprefix(PACKAGE)}:{function.__name__}"
        self._interpreted = not isinstance(self.function, triton.JITFunction)
        parameters = inspect.signature(function).parameters
        self._describe = _make_describe(parameters, ones, on_device=not self._interpreted)
        self._loaded: dict[Any, LoadedKernel] = {}
        self._lock = threading.Lock()

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """Return the function that launches the kernel with a grid of programs."""
        return partial(self._launch, grid)

    def _launch(self, grid: tuple[int, ...], *args: Any, **kwargs: Any) -> None:
        if self._interpreted:
            if recorded is not None:
                recorded[self._variant(self._describe(*args, **kwargs)[0])] = None
            self.function[grid](*args, **kwargs)
            return
        described, values = self._describe(*args, **kwargs)
        device: int = torch._C._cuda_getDevice()
        loaded = self._loaded.get((device, described))
        if loaded is None:
            with self._lock:
                loaded = self._loaded.get((device, described))
                if loaded is None:
                    variant = self._variant(described)
                    if recorded is not None:
                        recorded[variant] = None
                    loaded = self._loaded[device, described] = store.load(variant, device)
        loaded.launch(grid, torch._C._cuda_getCurrentRawStream(device), values)

    def _variant(self, described: tuple[Any, ...]) -> Variant:
        *kinds, address, options = described
        frozen = tuple(kind if isinstance(kind, str) else (kind,) for kind in kinds)
        return Variant(self._name, frozen, tuple(sorted(options)), address % 16 == 0)


def _make_describe(
    parameters: Mapping[str, inspect.Parameter], ones: tuple[str, ...], *, on_device: bool
) -> Callable[..., tuple[tuple[Any, ...], list[Any]]]:
    """Write the function that describes the arguments of a launch.

    It is called as the kernel is, and returns a tuple (kind of each argument, lowest bits of all
    addresses, options) and the list of run-time values. The kind of a run-time value is the name of
    its type, that of a constant its value. There is no loop: a launch must take microseconds.
    `on_device`: tensors must be on a CUDA device, or the kernel would read addresses of the host.
    """
    header, body, kinds = [], [], []
    for i, (name, parameter) in enumerate(parameters.items()):
        header.append(
            name if parameter.default is parameter.empty else f"{name}=_defaults_[{name!r}]"
        )
        if "constexpr" in str(parameter.annotation):
            kinds.append(name)
            continue
        kinds.append(f"_k{i}_")
        body += [
            f"if isinstance({name}, _Tensor_):",
            f"    _k{i}_ = _pointers_[{name}.dtype]; _a_ = {name}.data_ptr(); _values_.append(_a_)",
            *([] if name in UNALIGNED else ["    _address_ |= _a_"]),
            *([f"    if not {name}.is_cuda: _refuse_({name!r})"] if on_device else []),
            f"elif {name} is None: _k{i}_ = None",
            f"else: _k{i}_ = _of_number_({name}, {name in ones}, _values_)",
        ]
    lines = "\n    ".join(["_values_ = []; _address_ = 0", *body])
    code = (
        f"def describe({', '.join(header)}, **_options_):\n    {lines}\n"
        f"    return ({', '.join(kinds)}, _address_ & 15, tuple(_options_.items())), _values_\n"
    )
    namespace: dict[str, Any] = {
        "_Tensor_": torch.Tensor,
        "_pointers_": _POINTERS,
        "_of_number_": _kind_of_number,
        "_refuse_": _refuse_tensor_of_host,
        "_defaults_": {name: parameter.default for name, parameter in parameters.items()},
    }
    exec(code, namespace)
    describe: Callable[..., tuple[tuple[Any, ...], list[Any]]] = namespace["describe"]
    return describe


def _refuse_tensor_of_host(name: str) -> None:
    raise ValueError(f"{name}: expected a tensor on a CUDA device, got one of the host.")


def _kind_of_number(value: Any, one: bool, values: list[Any]) -> Any:
    """Return the kind of a number, and append it if it is a run-time value."""
    if one and value == 1:
        return 1
    values.append(value)
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    return "i32" if _MIN_INT32 <= value <= _MAX_INT32 else "i64"
