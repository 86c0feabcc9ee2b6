"""Cache of recordings: replay a solve from the second call of its kind on.

A solve launches hundreds of small kernels, and launching them takes far longer than running them.
So from the second solve with the same shapes and options on, the whole solve is replayed from a
recording, in memory that the recording keeps. Images of ever different sizes share recordings
(`size_bucket.py`). A replay cannot ask the host, so it serves only inputs with valid values and
weights, numbers that the dtype resolves, and hardly more vertices than the recorded images had. The
device reports whether this was so. If not, the solve runs again, kernel by kernel.

A backward pass replays a recording, too, in the memory of the forward pass, which holds the matrix.
If another solve was replayed there in between, the forward pass is replayed first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.solve import pcg
from bilateral.torch.cuda.capacity import Capacity
from bilateral.torch.cuda.device_memory import drop_recordings, is_out_of_memory, lock_of, owner
from bilateral.torch.cuda.graphs import lasting_tensors
from bilateral.torch.cuda.recording import Recording
from bilateral.torch.cuda.size_bucket import SizeBucket, SizeHistory, size_bucket
from bilateral.torch.cuda.solve import Inputs
from bilateral.torch.options import LayerOptions

_MAX_KINDS = 16
"""Number of kinds of solve whose recordings a device keeps."""
_MAX_REMEMBERED = 256
"""Number of kinds of solve that a device remembers without recordings."""


class _DeviceCache:
    """The recordings of one device. Threads that use other devices do not wait for its lock."""

    def __init__(self, device: torch.device) -> None:
        self.lock = lock_of(device)
        self._free_memory = partial(drop_recordings, device)
        self.sets: OrderedDict[Any, RecordingSet] = OrderedDict()
        self._history = SizeHistory()

    def choose(self, kind: Kind, inputs: Inputs, options: LayerOptions) -> RecordingSet | None:
        """Return the recordings that serve a kind of solve, or that this call may make.

        Images of ever different sizes share the recordings of a bucket of sizes.
        """
        sizes_vary = self._history.add(*kind)
        own = self.sets.get(kind)
        bucket = None if own is not None and own.by_preconditioner else size_bucket(inputs, options)
        if bucket is not None and sizes_vary:
            kind = Kind(kind.rest, bucket)
            if kind not in self.sets:
                self.sets[kind] = RecordingSet(options, self._free_memory, bucket)
                self._drop_old()
        if kind in self.sets:
            self.sets.move_to_end(kind)
        return self.sets.get(kind)

    def remember(self, kind: Kind, options: LayerOptions) -> None:
        """Let the second call of a kind make a recording."""
        self.sets[kind] = RecordingSet(options, self._free_memory)
        self._drop_old()

    def _drop_old(self) -> None:
        recorded = [kind for kind, each in self.sets.items() if each.by_preconditioner]
        remembered = [kind for kind, each in self.sets.items() if not each.by_preconditioner]
        for kind in recorded[:-_MAX_KINDS] + remembered[:-_MAX_REMEMBERED]:
            del self.sets[kind]

    def drop(self) -> None:
        """Drop all recordings; the caller has the lock."""
        for recordings in self.sets.values():
            recordings.by_preconditioner.clear()


class Kind(NamedTuple):
    """A kind of solve: shapes, dtypes, device and options."""

    rest: Any
    """All but the size."""
    size: tuple[int, int] | SizeBucket
    """Height and width of the images, or their bucket."""


_caches: dict[torch.device, _DeviceCache] = {}


def _cache_of(device: torch.device) -> _DeviceCache:
    found = _caches.get(device)
    return _caches.setdefault(device, _DeviceCache(device)) if found is None else found  # atomic


class ReplayedSolution(NamedTuple):
    """Result of a replay."""

    x: Tensor
    """(B H W, K)"""
    outcome: pcg.Outcome
    replayed: ReplayedSolve


def solve(
    inputs: Inputs,
    options: LayerOptions,
    *,
    earlier: ReplayedSolve | None = None,
    keep_grid: bool = False,
    remember: bool = True,
) -> ReplayedSolution | None:
    """Solve by a recording; None if there is none that serves.

    The second call of a kind makes the recording, if the first call was remembered. An `earlier`
    solve has the same reference; with `keep_grid`, this solve keeps its preconditioner if that is
    multigrid, since a new grid takes longer than what the other preconditioner saves.
    """
    if options.solve.max_iterations == 0:
        return None
    kind = key(inputs, options)
    solution = replay(kind, inputs, options, earlier, keep_grid)
    if solution is None and remember:
        cache = _cache_of(inputs.values.device)
        with cache.lock:
            if kind not in cache.sets:
                cache.remember(kind, options)
    return solution


def key(inputs: Inputs, options: LayerOptions) -> Kind:
    """Return the kind of a solve."""
    reference, values, weights, _ = inputs
    images, channels, height, width = reference.shape
    shapes = images, channels, values.shape[1], weights is not None
    rest = *shapes, reference.dtype, values.dtype, values.device, options
    return Kind(rest, (height, width))


def replay(
    kind: Kind,
    inputs: Inputs,
    options: LayerOptions,
    earlier: ReplayedSolve | None = None,
    keep_grid: bool = False,
) -> ReplayedSolution | None:
    """Solve by the recordings of a kind; None if there is none that serves."""
    cache = _cache_of(inputs.values.device)
    with cache.lock:
        recordings = cache.choose(kind, inputs, options)
        return None if recordings is None else recordings.solve(inputs, earlier, keep_grid)


def recording_sets() -> list[RecordingSet]:
    """Return the recordings of all kinds of solve on all devices."""
    return [recordings for cache in _caches.values() for recordings in cache.sets.values()]


def forget() -> None:
    """Remove all recordings, and forget which kinds of solve there were."""
    for cache in _caches.values():
        with cache.lock:
            cache.sets.clear()


@owner
def _drop(device: torch.device) -> None:
    if device in _caches:
        _caches[device].drop()


class RecordingSet:
    """Recordings of one kind of solve, one per preconditioner.

    Parameters
    ----------
    options : LayerOptions
    free_memory : function
        Gives back the memory of the device's recordings.
    bucket : SizeBucket, optional
        Default: all solves have images of the same size.
    """

    def __init__(
        self,
        options: LayerOptions,
        free_memory: Callable[[], None],
        bucket: SizeBucket | None = None,
    ) -> None:
        self._options = options
        self._bucket = bucket
        self._free_memory = free_memory
        requested = options.solve.preconditioner
        self._first = "pyramid" if requested == "multigrid" else requested
        self._last: dict[float, str] = {}
        """The preconditioner of the last solve with a smoothness: the next solve tries it first."""
        self.by_preconditioner: dict[str, Recording] = {}
        self._out_of_memory = self._declined = False

    def solve(
        self, inputs: Inputs, earlier: ReplayedSolve | None = None, keep_grid: bool = False
    ) -> ReplayedSolution | None:
        """Replay with the preconditioner of the last solve, or else with the other one."""
        if self._declined:  # the same call asks a second time
            self._declined = False
            return None
        kind = self._last.get(inputs.smoothness, self._first)
        multigrid = self.by_preconditioner.get("multigrid")
        if keep_grid and multigrid and earlier is not None and earlier.is_last_of(multigrid):
            kind = "multigrid"
        for _ in range(2):
            if self._out_of_memory:
                return None
            recording = self.by_preconditioner.get(kind)
            if recording is None or recording.outgrown:
                min_capacity = None if recording is None else recording.capacity
                self.by_preconditioner.pop(kind, None)
                del recording  # frees its memory before the next recording
                recording = self._record(inputs, kind, min_capacity)
            if recording is None:
                return None
            same_reference = earlier is not None and earlier.is_last_of(recording)
            result = recording.solve(inputs, same_reference, keep_grid)
            if result is None:
                self._declined = not recording.worth_retrying
                return None
            if not isinstance(result, str):
                if len(self._last) >= _MAX_REMEMBERED:
                    self._last.clear()
                self._last[inputs.smoothness] = self._first = kind
                return ReplayedSolution(*result, ReplayedSolve(recording))
            kind = result
        return None

    def _record(self, inputs: Inputs, kind: str, min_capacity: Capacity | None) -> Recording | None:
        """Make a recording; None if the memory is too small, because a plain solve needs less."""
        try:
            with lasting_tensors():
                recording = Recording(inputs, self._options, kind, min_capacity, self._bucket)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self._out_of_memory = True
            self._free_memory()
            return None
        self.by_preconditioner[kind] = recording
        return recording


class ReplayedSolve:
    """One solve by a recording, which holds the solve's matrix until it is replayed again."""

    def __init__(self, recording: Recording) -> None:
        self._recording: Recording | None = recording
        self._number = recording.solves
        self.may_have_gaps = recording.system.may_have_gaps

    def is_last_of(self, recording: Recording) -> bool:
        """Whether this is the last solve of a recording, whose grid is still there."""
        return self._recording is recording and self._number == recording.solves

    @contextmanager
    def recording(self, inputs: Inputs) -> Iterator[Recording | None]:
        """Return the recording with the matrix of this solve.

        The solve is replayed first if another one was replayed since. None if that fails.
        """
        recording = self._recording
        with _cache_of(inputs.values.device).lock:
            if recording is not None and not self.is_last_of(recording):
                result = recording.solve(inputs)
                recording = recording if isinstance(result, tuple) else None
            if recording is None:
                yield None
                return
            with recording.in_use():
                try:
                    yield recording
                except RuntimeError as error:
                    if is_out_of_memory(error):
                        self._recording = None
                    raise
