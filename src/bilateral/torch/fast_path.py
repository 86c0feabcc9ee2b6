"""Fast path: repeated calls on CUDA skip validation and replay their recording.

Validation and conversion take a tenth of the time of a call on a CUDA device. They depend only on
shapes, dtypes, memory formats and options. A call that shares all of these with an earlier call
that was recorded and needed no conversion goes straight to the recording.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral.torch import inputs, operators
from bilateral.torch.dispatch import is_watched
from bilateral.torch.options import LayerOptions

_MAX_ROUTES = 64
_routes: dict[Any, _Route] = {}


class _Route(NamedTuple):
    """How to reach the recording of a call."""

    key: Any
    """Key in the cache of recordings."""
    shape: tuple[int, ...]
    """Shape of the reference, with four dimensions."""
    options: LayerOptions
    smoothness: float


class Call:
    """A call of `bilateral.torch.solve` for CUDA tensors."""

    def __init__(
        self, tensors: tuple[Tensor, Tensor, Tensor | None], options: tuple[Any, ...]
    ) -> None:
        self._tensors = tensors
        kinds = (
            None if t is None else (t.shape, t.dtype, t.device, t.is_contiguous()) for t in tensors
        )
        self._kind = *options, *kinds
        self._route = _routes.get(self._kind)

    @classmethod
    def of(
        cls, reference: Tensor, target: Tensor, confidence: Tensor | None, *options: Any
    ) -> Call | None:
        """Describe a call by its unchecked arguments; None if the fast path does not apply."""
        if torch.compiler.is_compiling() or not isinstance(target, Tensor) or not target.is_cuda:
            return None
        tensors = reference, target, confidence
        plain = all(t is None or type(t) is Tensor for t in tensors)
        if not plain or any(isinstance(value, Tensor) for value in options):
            return None
        try:
            return cls(tensors, options)
        except TypeError:  # an option without a hash
            return None

    @property
    def is_known(self) -> bool:
        """Whether an equal call was remembered."""
        return self._route is not None

    def replay(self) -> Tensor | None:
        """Replay the recording; None if the call must take the usual path."""
        route = self._route
        reference, target, confidence = self._tensors
        if route is None or is_watched(*self._tensors):
            return None
        weights = None if confidence is None else confidence.view(-1, 1)
        pixels = reference.view(route.shape), target.view(-1, 1), weights, route.smoothness
        x = operators.infer_again(route.key, route.options, *pixels)
        return None if x is None else x.view(target.shape)

    def remember(self, batch: inputs.Batch, smoothness: Tensor, options: LayerOptions) -> None:
        """Remember the route of this call, which was just replayed for the given batch."""
        if not self._needs_no_conversion(batch):
            return
        while len(_routes) >= _MAX_ROUTES:
            _routes.pop(next(iter(_routes)))
        key = operators.recording_key(*batch, options)
        shape = tuple(batch.reference.shape)
        _routes[self._kind] = _Route(key, shape, options, float(smoothness))

    def _needs_no_conversion(self, batch: inputs.Batch) -> bool:
        """Whether the caller's pixels already lie in memory as recordings take them."""
        count = inputs.matrices(*batch)
        pairs = [(a, b) for a, b in zip(self._tensors, batch, strict=True) if a is not None]
        return (
            batch.target.shape[0] * batch.target.shape[1] == count == batch.reference.shape[0]
            and (batch.confidence is None or batch.confidence.numel() == batch.target.numel())
            and all(a.is_contiguous() for a, _ in pairs)
            and all(
                b is not None and a.dtype == b.dtype and a.data_ptr() == b.data_ptr()
                for a, b in pairs
            )
        )
