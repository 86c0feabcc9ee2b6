"""Solve in blocks within one process: every block is pickled, and blocks arrive in any order."""

import pickle
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from bilateral import validation
from bilateral.info import SolveInfo
from bilateral.numerics import blocks
from bilateral.numerics.options import GridOptions, SolveOptions

Array = npt.NDArray[Any]
DEFAULTS = {
    "sigma_xy": 8,
    "sigma_luma": 8,
    "sigma_chroma": 8,
    "blur": "paper",
    "reference_max": None,
    "smoothness": 4.0,
    "dtype": None,
    "rank_tolerance": None,
    "method": None,
    "preconditioner": "multigrid",
    "initial": None,
    "max_iterations": None,
    "model": "constant",
    "warm_start": None,
}


def rectangles(chunks: Sequence[Sequence[int]]) -> list[tuple[slice, slice]]:
    """Return the pixels of all chunks."""
    rows, columns = (
        [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
        for sizes in chunks
    )
    return [(row, column) for row in rows for column in columns]


class BlockSolve:
    """A solve whose pixels are cut into chunks."""

    def __init__(
        self,
        reference: Array,
        target: Array,
        confidence: Array | None,
        chunks: Sequence[Sequence[int]],
        seed: int = 0,
        **given: Any,
    ) -> None:
        self.given = {**DEFAULTS, **given}
        self.target, self.confidence = target, confidence
        layout = blocks.Layout(target.shape[:2], float(self.given["sigma_xy"]))
        channels = 1 if reference.ndim == 2 else reference.shape[2]
        grid = GridOptions.checked(self.given, 2 + channels)
        solve = SolveOptions.checked_with_method(self.given)
        self.options = blocks.BlockOptions(layout, grid, solve, self.given["dtype"])
        self.places = rectangles(layout.whole_chunks(chunks))
        np.random.default_rng(seed).shuffle(self.places)
        self.blocks, vertices, self.sums = [], [], []
        for rows, columns in self.places:
            position = rows.start, columns.start
            block, part = blocks.build_block(reference[rows, columns], position, self.options)
            block = pickle.loads(pickle.dumps(block))
            weights = None if confidence is None else confidence[rows, columns]
            start = self.given["warm_start"]
            self.sums.append(
                blocks.splat_block(
                    block,
                    target[rows, columns],
                    weights,
                    self.options,
                    warm_start=None if start is None else start[rows, columns],
                )
            )
            self.blocks.append(block)
            vertices.append(part)
        self.joined = pickle.loads(pickle.dumps(blocks.join(layout, grid, vertices)))

    def plain(self) -> tuple[Array, SolveInfo]:
        """Solve as `bilateral.solve` does."""
        smoothness = validation.smoothness_number(self.given["smoothness"], "blocks")
        vertices, info = blocks.solve_joined(
            self.joined, self.sums, smoothness, self.options.solve, self.given["rank_tolerance"]
        )
        return self.slice(vertices), info

    def robust(
        self, loss: Any, iterations: int, weights: str, min_change: float = 0.0
    ) -> tuple[Array, SolveInfo]:
        """Solve as `BilateralSolver.solve_robust` does."""
        smoothness, solve = self.given["smoothness"], self.options.solve
        arguments = blocks.RobustOptions(loss, iterations, min_change, smoothness)
        channels = 1 if self.target.ndim == 2 else self.target.shape[2]
        states = []
        for channel in [None] if weights == "joint" else range(channels):
            sums = [
                blocks.splat_block(
                    block,
                    self.target[place],
                    None if self.confidence is None else self.confidence[place],
                    self.options,
                    channel,
                    robust=True,
                )
                for block, place in zip(self.blocks, self.places, strict=True)
            ]
            state = blocks.first_round(self.joined, sums, solve, arguments)
            for _ in range(iterations + 2):
                parts = [
                    blocks.reweigh_block(
                        block,
                        self.target[place],
                        self.joined.index.gather(state.y, block.position, block.shape),
                        state.by_pixels,
                        self.options,
                        arguments,
                        channel,
                    )
                    for block, place in zip(self.blocks, self.places, strict=True)
                ]
                state = blocks.next_round(self.joined, state, parts, solve, arguments)
            states.append(state)
        vertices, info = blocks.robust_vertices(self.joined, states, solve, smoothness)
        return self.slice(vertices), info

    def slice(self, vertices: Array) -> Array:
        """Put the sliced blocks together."""
        dtype = self.target.dtype
        out = None
        for block, place in zip(self.blocks, self.places, strict=True):
            part = self.joined.index.gather(vertices, block.position, block.shape)
            pixels = blocks.slice_block(block, part, dtype, self.target.ndim, self.options)
            out = np.empty(self.target.shape, pixels.dtype) if out is None else out
            out[place] = pixels
        assert out is not None
        return out
