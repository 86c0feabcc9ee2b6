"""Apply a function to the images of stacks, one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike, NDArray

from bilateral import validation
from bilateral.dask.inputs import as_dask
from bilateral.threads import single_threaded

Array = NDArray[Any]


def map_frames(
    function: Callable[..., Array],
    *stacks: Any,
    frames: int = 1,
    like: int = 0,
    dtype: DTypeLike | None = None,
    **options: Any,
) -> Any:
    """Apply a function to every image of stacks of independent images, lazily.

    Parameters
    ----------
    function : function
        Takes one image of each stack and returns an image, such as `bilateral.solve`,
        `bilateral.tasks.refine_depth` or `bilateral.median`. It runs in one thread: the images are
        processed side by side.
    *stacks : (T, H, W) or (T, H, W, K) Dask arrays
        All of the same length T. None stands for a missing argument, such as a confidence.
    frames : int
        Images per task.
    like : int
        Number of the stack whose images have the shape of the results: 0 for the first, 1 for the
        targets of `bilateral.solve`.
    dtype : dtype, optional
        Dtype of the result; that of the stack `like` by default.
    **options
        Passed to the function.

    Returns
    -------
    Dask array
        Of the shape of the stack `like`.

    Examples
    --------
    >>> import dask.array as da
    >>> import bilateral.dask
    >>> noisy = da.random.default_rng(0).normal(size=(5, 20, 30), chunks=(2, 10, 10))
    >>> smooth = bilateral.dask.map_frames(bilateral.median, noisy, size=3)
    >>> smooth.shape, smooth.chunks[0]
    ((5, 20, 30), (1, 1, 1, 1, 1))
    """
    frames = validation.count("frames", frames, 1)
    if not 0 <= like < len(stacks) or stacks[like] is None:
        raise ValueError(f"like: expected the number of a Dask array among the stacks, got {like}.")
    given = [as_dask(f"stacks[{i}]", s) for i, s in enumerate(stacks) if s is not None]
    lengths = [stack.shape[0] for stack in given]
    if len(set(lengths)) > 1 or any(stack.ndim not in (3, 4) for stack in given):
        shapes = ", ".join(str(stack.shape) for stack in given)
        raise ValueError(
            f"stacks: expected (T, H, W) or (T, H, W, K) arrays of one length, got {shapes}."
        )
    given = [stack.rechunk((frames, *stack.shape[1:])) for stack in given]
    example = given[sum(stack is not None for stack in stacks[:like])]
    result = np.dtype(example.dtype if dtype is None else dtype)
    n_axes = max(stack.ndim for stack in given)
    aligned = [stack[..., np.newaxis] if stack.ndim < n_axes else stack for stack in given]
    added = tuple(stack.ndim < n_axes for stack in given)
    missing = tuple(stack is None for stack in stacks)
    chunks = (example.chunks[0], *((size,) for size in example.shape[1:]))
    return da.map_blocks(
        _apply,
        *aligned,
        function=function,
        added=added,
        missing=missing,
        options=options,
        dtype=result,
        chunks=chunks,
        drop_axis=n_axes - 1 if example.ndim < n_axes else None,
        meta=np.empty((0,) * example.ndim, result),
    )


def _apply(
    *stacks: Array,
    function: Callable[..., Array],
    added: tuple[bool, ...],
    missing: tuple[bool, ...],
    options: dict[str, Any],
) -> Array:
    """Apply the function to each image of a block of the stacks."""
    plain = iter(s[..., 0] if extra else s for s, extra in zip(stacks, added, strict=True))
    given = [None if is_missing else next(plain) for is_missing in missing]
    results = []
    with single_threaded():
        for i in range(len(stacks[0])):
            images = [None if stack is None else stack[i] for stack in given]
            results.append(function(*images, **options))
    return np.stack(results)
