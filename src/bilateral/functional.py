"""Solve in one call: reference and target in, smooth target out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from bilateral import validation
from bilateral.grid import BilateralGrid
from bilateral.numerics import policy
from bilateral.numerics.pcg import Callback
from bilateral.solver import BilateralSolver, solve_once


@validation.keywords(photo="reference", depth="target")
def solve(
    reference: ArrayLike,
    target: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    sigma_xy: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    sigma_t: float | None = None,
    smoothness: float | str = policy.SMOOTHNESS,
    blur: str | tuple[float, float, float] = "paper",
    tolerance: float = 1e-3,
    max_iterations: int | None = None,
    preconditioner: str = "multigrid",
    initial: str | None = None,
    method: str | None = None,
    model: str = "constant",
    slope_smoothness: float = policy.SLOPE_SMOOTHNESS,
    slope_ridge: float | None = policy.SLOPE_RIDGE,
    clamp: bool = True,
    smooth: tuple[float, float] | None = None,
    rank_tolerance: float | None = None,
    warm_start: ArrayLike | None = None,
    callback: Callback | None = None,
    return_info: bool = False,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Smooth a target so that it follows the edges of a reference image.

    Parameters
    ----------
    reference : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1. `photo` is
        an alias.
    target : (H, W) or (H, W, K) array
        The map to smooth: depth, flow, chroma, a mask. A pixel with a non-finite value counts as
        unknown. `depth` is an alias.
    confidence : (H, W) array, optional
        Trust in each pixel, 0 for unknown; 1 everywhere by default.
    sigma_xy : float
        Size of a grid cell in pixels.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    sigma_t : float, optional
        Size of a grid cell in frames, for a video: reference, target and confidence then have an
        axis T before H, and all frames are solved together.
    smoothness : float or "auto"
        The paper's lambda: larger is smoother. For few known pixels use "auto", as for
        `BilateralSolver`, or 0.01 to 0.1: larger values flatten the map and do not make known
        values reach further.
    blur, reference_max
        As for `BilateralGrid`.
    tolerance, max_iterations, preconditioner, initial, method, model, slope_smoothness, \
slope_ridge, clamp
        As for `BilateralSolver`. ``model="planar"`` suits slanted surfaces: disparities or inverse
        depths of floors and walls.
    smooth, rank_tolerance, warm_start, callback, return_info, dtype
        As for `BilateralSolver.solve`.

    Returns
    -------
    x : array
        The smooth map, in the target's shape and dtype.
    info : SolveInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.zeros((32, 32), np.uint8)
    >>> photo[:, 16:] = 255
    >>> target = np.full((32, 32), np.nan, np.float32)
    >>> target[4, 4], target[4, 28] = 1, 2
    >>> bilateral.solve(photo, target)[20, [0, 15, 16, 31]].round(2).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    began = time.perf_counter()
    return_info = validation.flag("return_info", return_info)
    validation.warn_if_swapped(reference, target, stacklevel=3)
    try:
        grid = BilateralGrid(
            reference,
            sigma_xy,
            sigma_luma,
            sigma_chroma,
            blur,
            sigma_t=sigma_t,
            reference_max=reference_max,
        )
    except ValueError as error:
        validation.add_swap_hint(error, reference, target)
        raise
    solver = BilateralSolver(
        grid,
        smoothness,
        tolerance=tolerance,
        max_iterations=max_iterations,
        preconditioner=preconditioner,
        initial=initial,
        method=method,
        model=model,
        slope_smoothness=slope_smoothness,
        slope_ridge=slope_ridge,
        clamp=clamp,
    )
    x, info = solve_once(
        solver, target, confidence, smooth, rank_tolerance, warm_start, callback, dtype, 4
    )
    if not return_info:
        return x
    return x, replace(info, seconds=time.perf_counter() - began)
