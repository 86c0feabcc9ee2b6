"""Slice a solution to pixels, and filter it by the domain transform if the caller wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dask.delayed import Delayed

from bilateral import validation
from bilateral.dask.domain_transform import filtered
from bilateral.dask.graph import BlockTasks, slice_all
from bilateral.dask.inputs import Cut


def finish(
    cut: Cut, built: Sequence[BlockTasks], solution: Delayed, sigmas: tuple[float, float] | None
) -> Any:
    """Return the Dask array of a solution; `sigmas` are those of the argument `smooth`."""
    if sigmas is None:
        return slice_all(cut, built, solution, as_solved=False)
    pixels = slice_all(cut, built, solution, as_solved=True)
    white = cut.options.grid.reference_max
    return filtered(pixels, cut.reference, *sigmas, 3, None, white, None, cut.dtype)


def checked_sigmas(smooth: Any, cut: Cut) -> tuple[float, float] | None:
    """Check the argument `smooth`."""
    return validation.smooth(smooth, validation.Reference(cut.reference, 1.0))
