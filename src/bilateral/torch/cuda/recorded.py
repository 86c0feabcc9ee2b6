"""Replay functions of tensors as CUDA graphs, from their second call with the same shapes on.

Tasks launch many small kernels between their solves, and launching takes the host longer than
running takes the device. A function that reads nothing from the device is recorded as one graph: a
call copies its tensors into the recording's memory, replays the graph, and copies the results out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from bilateral.torch.cuda import device_memory
from bilateral.torch.cuda.device_memory import drop_recordings, is_out_of_memory, lock_of, owner
from bilateral.torch.cuda.graphs import Graph, lasting_tensors

P = ParamSpec("P")
T = TypeVar("T")

_MAX_RECORDINGS = 64
"""Number of recordings that a device keeps."""
_MAX_REMEMBERED = 512
"""Number of kinds of calls that a device remembers, with and without recordings."""


class _Place:
    """Stands for a tensor in the arguments or in the result of a recording."""

    def __init__(self, number: int) -> None:
        self.number = number


class RecordedFunction(Generic[P, T]):
    """A function whose calls on a CUDA device are replayed; see `recorded`."""

    def __init__(self, function: Callable[P, T]) -> None:
        update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function, or replay it."""
        tensors: list[Tensor] = []
        key = _key((args, tuple(kwargs.items())), tensors)
        if not tensors or not device_memory.can_record(tensors[0]):
            return self.function(*args, **kwargs)
        device = tensors[0].device
        with lock_of(device):
            cache = _caches.setdefault(device, _DeviceCache())
            recording = cache.recording(self, key, tensors, args, kwargs)
            if recording is not None:
                return cast(T, recording.replay(tensors))
        return self.function(*args, **kwargs)


def recorded(function: Callable[P, T]) -> RecordedFunction[P, T]:
    """Decorate a function of tensors that is replayed as one CUDA graph.

    It must read nothing from the device, and change none of its arguments. Arguments are tensors on
    one device, hashable options, and tuples of these; the result is a tensor, or a tuple of tensors
    and tuples. Numbers that change from call to call are tensors, or each would be recorded alone.
    """
    return RecordedFunction(function)


def _key(value: Any, tensors: list[Tensor]) -> Any:
    """Describe arguments by shapes, dtypes and options, and collect their tensors."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return Tensor, value.shape, value.dtype, value.device
    if isinstance(value, tuple):
        return type(value), *(_key(part, tensors) for part in value)
    return type(value), value


def _with_places(value: Any, tensors: list[Tensor]) -> Any:
    """Replace the tensors of nested tuples by their places in a list, and collect them."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    return _rebuilt(value, lambda part: _with_places(part, tensors))


def _with_tensors(value: Any, tensors: list[Tensor]) -> Any:
    """Replace places by tensors."""
    if isinstance(value, _Place):
        return tensors[value.number]
    return _rebuilt(value, lambda part: _with_tensors(part, tensors))


def _rebuilt(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a tuple, or a named one, with its parts converted; anything else as it is."""
    if not isinstance(value, tuple):
        return value
    parts = map(convert, value)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


class _Recording:
    """The graph of a function for certain shapes and options, with its memory."""

    def __init__(
        self,
        function: Callable[..., Any],
        tensors: list[Tensor],
        arguments: Any,
        free: Any,
        pool: Any,
    ) -> None:
        self._free = free
        self._inputs = [
            tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in tensors
        ]
        args, kwargs = _with_tensors(_with_places(arguments, []), self._inputs)
        self._outputs: list[Tensor] = []
        self._result: Any = None

        def run() -> None:
            outputs: list[Tensor] = []
            self._result = _with_places(function(*args, **dict(kwargs)), outputs)
            self._outputs = outputs

        graph = Graph(run, pool)
        self.pool, self._replay = graph.pool, graph.replay

    def replay(self, tensors: list[Tensor]) -> Any:
        """Return the results for other tensors."""
        stream = torch.cuda.current_stream()
        stream.wait_event(self._free)
        try:
            _copy(tensors, self._inputs)
            self._replay()
            outputs = [torch.empty_like(output) for output in self._outputs]
            _copy(self._outputs, outputs)
        finally:
            self._free.record(stream)
        return _with_tensors(self._result, outputs)


def _copy(tensors: list[Tensor], out: list[Tensor]) -> None:
    """Copy tensors into others, in one launch for those of one dtype."""
    groups: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for tensor, own in zip(tensors, out, strict=True):
        sources, targets = groups.setdefault(tensor.dtype, ([], []))
        sources.append(tensor)
        targets.append(own)
    for sources, targets in groups.values():
        torch._foreach_copy_(targets, sources)


class _DeviceCache:
    """The recordings of one device; whoever calls its methods has the lock."""

    def __init__(self) -> None:
        self.kinds: OrderedDict[Any, _Recording | None] = OrderedDict()
        """Kinds of calls, the last used one last; None: without a recording."""
        self._refused: set[Any] = set()
        """Kinds that did not fit into memory, or that cannot be recorded."""
        self._free: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        """Passed when the memory, which all recordings share, is free for the next call."""

    def recording(
        self,
        function: RecordedFunction[Any, Any],
        key: Any,
        tensors: list[Tensor],
        args: Any,
        kwargs: Any,
    ) -> _Recording | None:
        """Return the recording of a kind of call; the second call makes it."""
        kind = function, key
        if kind not in self.kinds:
            self.kinds[kind] = None
            self._drop_old()
            return None
        self.kinds.move_to_end(kind)
        found = self.kinds[kind]
        if found is None and kind not in self._refused:
            found = self._make(kind, tensors, (args, tuple(kwargs.items())))
        return found

    def _make(self, kind: Any, tensors: list[Tensor], arguments: Any) -> _Recording | None:
        """Make a recording; None if the memory is too small, because a plain call needs less."""
        function: RecordedFunction[Any, Any] = kind[0]
        try:
            with lasting_tensors():
                pools = (other.pool for other in self.kinds.values() if other is not None)
                torch.cuda.current_stream().wait_event(self._free)
                made = _Recording(
                    function.function, tensors, arguments, self._free, next(pools, None)
                )
        except RuntimeError as error:
            self._refused.add(kind)
            if is_out_of_memory(error):
                drop_recordings(tensors[0].device)
            else:
                failures.append((function.function.__qualname__, str(error)))
            return None
        self.kinds[kind] = made
        self._drop_old()
        return made

    def _drop_old(self) -> None:
        made = [kind for kind, recording in self.kinds.items() if recording is not None]
        for kind in made[:-_MAX_RECORDINGS]:
            self.kinds[kind] = None
        while len(self.kinds) > _MAX_REMEMBERED:
            kind, _ = self.kinds.popitem(last=False)
            self._refused.discard(kind)

    def forget(self) -> None:
        """Drop all recordings and kinds."""
        self.kinds.clear()
        self._refused.clear()

    def drop(self) -> None:
        """Drop all recordings, but remember their kinds."""
        for kind in self.kinds:
            self.kinds[kind] = None


_caches: dict[torch.device, _DeviceCache] = {}
failures: list[tuple[str, str]] = []
"""Functions that could not be recorded, and the errors: they are called kernel by kernel instead.
Tests expect none."""


@owner
def _drop(device: torch.device) -> None:
    if device in _caches:
        _caches[device].drop()


def forget() -> None:
    """Remove all recordings, and forget which calls there were."""
    for device, cache in list(_caches.items()):
        with lock_of(device):
            cache.forget()


def recordings() -> list[str]:
    """Return the name of the function of each recording."""
    return [
        kind[0].function.__qualname__
        for cache in _caches.values()
        for kind, made in cache.kinds.items()
        if made is not None
    ]
