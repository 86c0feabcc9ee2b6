"""The way of a call like one before, past all checks, to its recording.

On a CUDA device checks and conversions take a tenth of a call's time. They only depend on shapes,
dtypes, memory formats and options. So a call that has them all in common with one that was replayed
from a recording, and whose tensors were taken as they are, goes straight there.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral.torch import autograd as derivatives
from bilateral.torch import inputs as shapes
from bilateral.torch import operators
from bilateral.torch.options import Config

_KEPT = 64
_ways: dict[Any, "_Way"] = {}


class _Way(NamedTuple):
    key: Any
    """Of the recordings."""
    shape: tuple[int, ...]
    """Of the reference, with four dimensions."""
    config: tuple[Any, ...]
    smoothness: float


class Call:
    """A call of `bilateral.torch.solve` for CUDA tensors."""

    def __init__(self, tensors: tuple[Tensor, Tensor, Tensor | None], options: tuple[Any, ...]):
        self._tensors = tensors
        kinds = (
            None if t is None else (t.shape, t.dtype, t.device, t.is_contiguous()) for t in tensors
        )
        self._kind = *options, *kinds
        self._way = _ways.get(self._kind)

    @classmethod
    def of(
        cls, reference: Tensor, target: Tensor, confidence: Tensor | None, *options: Any
    ) -> "Call | None":
        """None if the arguments, which nobody has looked at yet, are not what is usual."""
        if torch.compiler.is_compiling() or not isinstance(target, Tensor) or not target.is_cuda:
            return None
        tensors = reference, target, confidence
        usual = all(t is None or type(t) is Tensor for t in tensors)
        if not usual or any(isinstance(value, Tensor) for value in options):
            return None
        try:
            return cls(tensors, options)
        except TypeError:  # an option without a hash
            return None

    @property
    def is_known(self) -> bool:
        """Whether there was one like it."""
        return self._way is not None

    def result(self) -> Tensor | None:
        """None if it must be had otherwise."""
        way = self._way
        reference, target, confidence = self._tensors
        if way is None or derivatives.watched(*self._tensors):
            return None
        weights = None if confidence is None else confidence.view(-1, 1)
        inputs = reference.view(way.shape), target.view(-1, 1), weights, way.smoothness
        found = operators.infer_again(way.key, way.config, *inputs)
        return None if found is None else found.view(target.shape)

    def learn(self, given: shapes.Batch, smoothness: Tensor, config: Config) -> None:
        """Remember the way of this call, which was replayed for the given tensors."""
        if not self._is_taken_as_it_is(given):
            return
        while len(_ways) >= _KEPT:
            _ways.pop(next(iter(_ways)))
        key = operators.recording_key(*given, *config.arguments)
        shape = tuple(given.reference.shape)
        _ways[self._kind] = _Way(key, shape, config.arguments, float(smoothness))

    def _is_taken_as_it_is(self, given: shapes.Batch) -> bool:
        """Whether pixels lie in memory as recordings take them, with one number each."""
        count = shapes.matrices(*given)
        pairs = [(a, b) for a, b in zip(self._tensors, given, strict=True) if a is not None]
        return (
            given.target.shape[0] * given.target.shape[1] == count == given.reference.shape[0]
            and (given.confidence is None or given.confidence.numel() == given.target.numel())
            and all(a.is_contiguous() for a, _ in pairs)
            and all(
                b is not None and a.dtype == b.dtype and a.data_ptr() == b.data_ptr()
                for a, b in pairs
            )
        )
