"""Solve the joined system of all blocks once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from bilateral.info import SolveInfo
from bilateral.numerics import pcg
from bilateral.numerics.blocks.block import BlockSums
from bilateral.numerics.blocks.join import Joined, joined_starts, observe
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import Problem
from bilateral.numerics.solve import solve_vertices
from bilateral.numerics.system import System
from bilateral.numerics.warm_start import to_start

Array = NDArray[Any]

BYTES_PER_VERTEX = 220
"""Memory of a multigrid solve for each vertex, with one channel; docs/scale.md has measurements.
A solve by the paper's pyramid takes less than half."""


def solve_joined(
    joined: Joined,
    blocks: Sequence[BlockSums],
    smoothness: float,
    options: SolveOptions,
    rank_tolerance: float | None = None,
    callback: pcg.Callback | None = None,
) -> tuple[Array, SolveInfo]:
    """Return the solution (n_vertices, K), as `bilateral.solve` finds it in memory."""
    system = observe(joined, blocks, smoothness)
    y = joined_starts(joined, blocks)
    y = None if y is None else to_start(system, y)
    return solve_system(joined, system, smoothness, options, rank_tolerance, callback, y)


def solve_system(
    joined: Joined,
    system: System,
    smoothness: float,
    options: SolveOptions,
    rank_tolerance: float | None = None,
    callback: pcg.Callback | None = None,
    y: Array | None = None,
) -> tuple[Array, SolveInfo]:
    """Return the solution (n_vertices, K) of the joined system, from the start `y` if given."""
    problem = Problem(system, pcg.choose_preconditioner(joined.grid, system, options))
    return solve_vertices(
        joined.grid, problem, y, smoothness, options, rank_tolerance, callback, stacklevel=1
    )
