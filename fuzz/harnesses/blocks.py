"""Solves in blocks, as for Dask arrays and large files: the bits of the solve in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import bilateral
from bilateral.numerics import blocks as engine
from fuzz.call import Call, Case, require
from fuzz.draw import Draw
from fuzz.harnesses.oracle import oracle  # puts the tests' support on the path
from fuzz.harnesses.solver import LOSSES
from fuzz.properties import same_bits
from support.block_solves import BlockSolve  # type: ignore[import-not-found]

__all__ = ["blocks", "oracle"]


def sizes(d: Draw, length: int) -> list[int]:
    """Sizes of chunks along an axis."""
    parts: list[int] = []
    while sum(parts) < length:
        rest = length - sum(parts)
        parts.append(d.choice((1, rest, d.randint(1, rest))))
    return parts


def blocks(d: Draw) -> Case:
    """Plain and robust solves, for any chunks in any order."""
    shape = d.shape(40)
    photo, target = d.photo(shape, channels=(0, 3)), d.map(shape, channels=(0, 0, 1, 2))
    confidence = d.confidence(target)
    options: dict[str, Any] = d.grid_options() | {"smoothness": d.decades(-1, 2)}
    options["reference_max"] = None
    cut = [sizes(d, length) for length in shape]
    seed = d.randrange(1 << 30)
    require(engine is not None, "no engine")
    if d.chance(0.3) and target.dtype.kind == "f" and target.ndim == 2:
        loss, rounds = d.choice(LOSSES), d.randrange(1, 4)
        grid = {k: v for k, v in options.items() if k != "smoothness"}
        made = bilateral.BilateralSolver(
            bilateral.BilateralGrid(photo, **grid), options["smoothness"]
        )
        expected = yield Call(made.solve_robust, target, confidence, loss, rounds)
        parts = BlockSolve(photo, target, confidence, cut, seed, **options)
        got = yield Call(parts.robust, loss, rounds, "joint", errors=(ValueError,))
    else:
        options |= d.some(method=(None, "paper"))
        expected = yield Call(bilateral.solve, photo, target, confidence, **options)
        made_blocks = Call(
            BlockSolve, photo, target, confidence, cut, seed, errors=(ValueError,), **options
        )
        parts = yield made_blocks
        if isinstance(parts, ValueError):
            require("in blocks" in str(parts), "an error only in blocks", parts)
            return
        got = yield Call(parts.plain, errors=(ValueError,))
    if isinstance(got, ValueError):
        require("in blocks" in str(got), "an error only in blocks", got)
        return
    same_bits(np.asarray(got[0]), np.asarray(expected), "blocks")
