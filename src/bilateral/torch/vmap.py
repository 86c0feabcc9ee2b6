"""Batching rules for vmap: maps that share a matrix become channels, all others more images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Dims = Sequence[int | None]


def solve(info: Any, in_dims: Dims, tensors: Sequence[Any], call: Callable[..., Any]) -> Any:
    """Batch an operator of (reference, target, confidence, smoothness, like)."""
    reference, target, confidence, smoothness, like = tensors
    dims = in_dims[:5]
    if dims[3] is not None:
        return one_by_one(info.batch_size, dims, tensors, call)
    if dims[0] is None and dims[2] is None:
        assert dims[1] is not None
        y, handle = call(reference, _into_channels(target, dims[1]), confidence, smoothness, like)
        return (_out_of_channels(y, info.batch_size), handle), (1, None)
    folded = _into_images(
        info.batch_size, (reference, target, confidence), (dims[0], dims[1], dims[2])
    )
    y, handle = call(*folded, smoothness, None)
    return (_out_of_images(y, info.batch_size), _out_of_images(handle, info.batch_size)), (0, 0)


def map_(info: Any, in_dims: Dims, tensors: Sequence[Any], call: Callable[..., Any]) -> Any:
    """Batch a linear map of (handle, reference, g, confidence, smoothness)."""
    handle, reference, g, confidence, smoothness = tensors
    dims = in_dims[:5]
    if dims[4] is not None:
        return one_by_one(info.batch_size, dims, tensors, call)
    if dims[0] is None and dims[1] is None and dims[3] is None:
        assert dims[2] is not None
        y = call(handle, reference, _into_channels(g, dims[2]), confidence, smoothness)
        return _out_of_channels(y, info.batch_size), 1
    if dims[0] is not None:
        handle = handle.movedim(dims[0], 0).flatten()
    reference, g, confidence = _into_images(
        info.batch_size, (reference, g, confidence), (dims[1], dims[2], dims[3])
    )
    y = call(handle, reference, g, confidence, smoothness)
    return _out_of_images(y, info.batch_size), 0


def _into_channels(maps: Tensor, dim: int) -> Tensor:
    return maps.movedim(dim, 1).flatten(1, 2)


def _out_of_channels(maps: Tensor, count: int) -> Tensor:
    return maps.reshape(maps.shape[0], count, -1, *maps.shape[2:])


def _into_images(count: int, tensors: Sequence[Any], dims: Dims) -> list[Tensor | None]:
    """Merge the mapped dimension of (reference, maps, confidence) into the batch."""
    reference, maps, confidence = (
        None if value is None else value.unsqueeze(0) if dim is None else value.movedim(dim, 0)
        for value, dim in zip(tensors, dims, strict=True)
    )
    assert reference is not None
    assert maps is not None
    images = maps.shape[1]
    is_shared = reference.shape[:2] == (1, 1)
    folded: list[Tensor | None] = [
        reference[0] if is_shared else _flat(reference, count, images),
        _flat(maps, count, images),
        None if confidence is None else _flat(confidence, count, images),
    ]
    return folded


def _flat(value: Tensor, count: int, images: int) -> Tensor:
    return value.expand(count, images, *value.shape[2:]).flatten(0, 1)


def _out_of_images(value: Tensor, count: int) -> Tensor:
    return value.reshape(count, -1, *value.shape[1:])


def one_by_one(count: int, dims: Dims, tensors: Sequence[Any], call: Callable[..., Any]) -> Any:
    """Call an operator once per mapped index, which works for any arguments."""
    results = []
    for i in range(count):
        selected = (
            value if dim is None else value.select(dim, i)
            for value, dim in zip(tensors, dims, strict=True)
        )
        results.append(call(*selected))
    if isinstance(results[0], Tensor):
        return torch.stack(results), 0
    stacked = tuple(torch.stack(parts) for parts in zip(*results, strict=True))
    return stacked, (0,) * len(stacked)
