"""Solve Dask arrays: the same result as `bilateral.solve` in memory, bit for bit."""

from __future__ import annotations

from typing import Any

from dask.delayed import delayed
from numpy.typing import DTypeLike

from bilateral import validation
from bilateral.dask import tasks
from bilateral.dask.graph import build_all
from bilateral.dask.inputs import cut
from bilateral.dask.smoothing import checked_sigmas, finish
from bilateral.numerics import policy
from bilateral.numerics.pcg import Callback


@validation.keywords(photo="reference", depth="target")
def solve(
    reference: Any,
    target: Any,
    confidence: Any | None = None,
    *,
    sigma_xy: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    sigma_t: float | None = None,
    smoothness: float = policy.SMOOTHNESS,
    blur: str | tuple[float, float, float] = "paper",
    tolerance: float = 1e-3,
    max_iterations: int | None = None,
    preconditioner: str = "multigrid",
    initial: str | None = None,
    method: str | None = None,
    model: str = "constant",
    smooth: tuple[float, float] | None = None,
    rank_tolerance: float | None = None,
    warm_start: Any | None = None,
    callback: Callback | None = None,
    return_info: bool = False,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Smooth a target so that it follows the edges of a reference image, lazily.

    The result has the bits of `bilateral.solve`, for any chunks and any scheduler. Chunks of the
    target are moved to borders of grid cells; chunks of 1 to 16 megapixels suit most machines. Each
    block finds its vertices and sums alone. The solve for all vertices, 25 to 100 times fewer than
    pixels, is one task on one worker: it takes up to 220 bytes per vertex, and logs the number
    under the name ``bilateral.dask``. Blocks keep 1 byte per pixel between the two passes.

    Parameters
    ----------
    reference : (H, W) or (H, W, 3) Dask array
    target : (H, W) or (H, W, K) Dask array
    confidence : (H, W) Dask array, optional
    sigma_xy, sigma_luma, sigma_chroma, smoothness, blur, tolerance, max_iterations, \
preconditioner, initial, method, smooth, rank_tolerance, reference_max, dtype
        As for `bilateral.solve`. The smoothness must be a number.
    sigma_t, model
        Only the defaults: videos and planes are solved in memory.
    warm_start : Dask array, optional
        An earlier solution, in the target's shape.
    callback : function of (step, residual), optional
        Runs on the worker that solves.
    return_info : bool
        Return ``(x, info)``; `info` is a Dask Delayed of a `SolveInfo`, whose seconds are those of
        the solve without the blocks.

    Returns
    -------
    x : Dask array
        The smooth map, in the target's shape and dtype.
    info : Delayed
        Only with ``return_info=True``.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import bilateral.dask
    >>> photo = np.zeros((32, 32), np.uint8)
    >>> photo[:, 16:] = 255
    >>> depth = np.full((32, 32), np.nan, np.float32)
    >>> depth[4, 4], depth[4, 28] = 1, 2
    >>> x = bilateral.dask.solve(da.from_array(photo, chunks=10), da.from_array(depth, chunks=12))
    >>> x.chunks
    ((16, 8, 8), (16, 8, 8))
    >>> bool((x.compute() == bilateral.solve(photo, depth)).all())
    True
    """
    return_info = validation.flag("return_info", return_info)
    checked = validation.smoothness("smoothness", smoothness)
    smoothness = validation.smoothness_number(checked, "Dask arrays")
    validation.callback(callback)
    if rank_tolerance is not None:
        validation.fraction("rank_tolerance", rank_tolerance)
    parts = cut(reference, target, confidence, locals(), dtype)
    sigmas = checked_sigmas(smooth, parts)
    built = build_all(parts)
    solution = delayed(tasks.solve, pure=True, traverse=False)(
        [task.vertices for task in built],
        [task.sums for task in built],
        parts.options,
        smoothness,
        rank_tolerance,
        callback,
    )
    x = finish(parts, built, solution, sigmas)
    return (x, solution.info) if return_info else x
