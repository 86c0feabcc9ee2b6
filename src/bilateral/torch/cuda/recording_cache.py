"""Solves on a device: recorded once as CUDA graphs, then replayed.

A solve is hundreds of small kernels, and to launch them takes far longer than to run them. So from
the second solve of a kind on, for the same shapes and options, the whole of it is replayed from a
recording, in memory that it keeps. That works where nothing needs the host: values and weights in
order, numbers that the dtype serves, hardly more vertices than the recorded images had. The device
tells whether it was so; if not, the solve is done again, step by step.

A backward replays a recording, too, in the memory of its forward's, where the matrix is. If that
was replayed for another solve meanwhile, the forward is replayed first.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.solve import pcg
from bilateral.torch.cuda.graphs import lasting
from bilateral.torch.cuda.recording import Recording, Rooms
from bilateral.torch.cuda.system import Inputs
from bilateral.torch.options import LayerOptions

_KEPT = 8
"""Recordings of so many kinds of solve are kept."""

_lock = threading.Lock()
_seen: OrderedDict[Any, "Recorder"] = OrderedDict()


class Solved(NamedTuple):
    """What a recording made."""

    x: Tensor
    """(B H W, K)"""
    outcome: pcg.Outcome
    ticket: "Ticket"


def solve(
    inputs: Inputs, options: LayerOptions, *, like: "Ticket | None" = None, remember: bool = True
) -> Solved | None:
    """As `device.solve`; None if it must be done otherwise.

    The second solve of a kind that is to be remembered makes a recording. One that is `like`
    another has the same reference.
    """
    if options.solve.max_iterations == 0:
        return None
    kind = key(inputs, options)
    with _lock:
        if kind not in _seen and remember:
            _seen[kind] = Recorder(options)
            while len(_seen) > _KEPT:
                _seen.popitem(last=False)
            return None
    return replay(kind, inputs, like)


def key(inputs: Inputs, options: LayerOptions) -> Any:
    """What recordings have in common with a solve that they serve for."""
    reference, values, weights, _ = inputs
    shapes = tuple(reference.shape), tuple(values.shape), weights is not None
    return *shapes, reference.dtype, values.dtype, values.device, options


def replay(kind: Any, inputs: Inputs, like: "Ticket | None" = None) -> Solved | None:
    """A solve by the recordings of a key; None if there are none that serve."""
    with _lock:
        recorder = _seen.get(kind)
        if recorder is None:
            return None
        _seen.move_to_end(kind)
        return recorder.solve(inputs, like)


def forget() -> None:
    """Give back the memory of all recordings."""
    with _lock:
        _forget()


def _forget() -> None:
    for recorder in _seen.values():
        recorder.recordings.clear()
    torch.cuda.empty_cache()


def lacks_memory(error: RuntimeError) -> bool:
    """Whether it is the device's memory that was too little."""
    # The end of a recording that failed may fail, too.
    return any(isinstance(e, torch.OutOfMemoryError) for e in (error, error.__context__))


class Recorder:
    """Recordings for the same shapes and options, by their preconditioner."""

    def __init__(self, options: LayerOptions) -> None:
        self._options = options
        self._kind = (
            "pyramid"
            if options.solve.preconditioner == "multigrid"
            else options.solve.preconditioner
        )
        self.recordings: dict[str, Recording] = {}
        self._no_memory = self._declined = False

    def solve(self, inputs: Inputs, like: "Ticket | None" = None) -> Solved | None:
        """By the preconditioner that served last, or by the other."""
        if self._declined:  # a moment ago, and this is the same call
            self._declined = False
            return None
        for _ in range(2):
            if self._no_memory:
                return None
            recording = self.recordings.get(self._kind)
            if recording is None or recording.outgrown:
                least = None if recording is None else recording.rooms
                self.recordings.pop(self._kind, None)
                del recording  # its memory is free, then
                recording = self._record(inputs, least)
            if recording is None:
                return None
            found = recording.solve(inputs, like is not None and like.is_last_of(recording))
            if found is None:
                self._declined = not recording.may_serve
                return None
            if not isinstance(found, str):
                return Solved(*found, Ticket(recording))
            self._kind = found
        return None

    def _record(self, inputs: Inputs, least: Rooms | None) -> Recording | None:
        try:
            with lasting():
                made = Recording(inputs, self._options, self._kind, least)
        except RuntimeError as error:
            if not lacks_memory(error):
                raise
            self._no_memory = True
            _forget()
            return None  # a plain solve takes less
        self.recordings[self._kind] = made
        return made


class Ticket:
    """A solve by a recording, which has its matrix until it is replayed again."""

    def __init__(self, recording: Recording) -> None:
        self._recording: Recording | None = recording
        self._solve = recording.solves
        self.may_have_gaps = recording.problem.may_have_gaps

    def is_last_of(self, recording: Recording) -> bool:
        """Whether this is its last solve, whose grid it still has."""
        return self._recording is recording and self._solve == recording.solves

    @contextmanager
    def recording(self, inputs: Inputs) -> Iterator[Recording | None]:
        """The recording after this solve, which may have to be replayed; None if that fails."""
        made = self._recording
        with _lock:
            if made is not None and not self.is_last_of(made):
                again = made.solve(inputs)
                made = made if isinstance(again, tuple) else None
            if made is None:
                yield None
                return
            with made.in_use():
                try:
                    yield made
                except RuntimeError as error:
                    if lacks_memory(error):
                        self._recording = None
                    raise
