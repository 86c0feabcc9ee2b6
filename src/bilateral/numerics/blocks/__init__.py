"""Solve an image in blocks, with the bits of the solve in memory.

Vertices of different tiles never coincide, so a block of whole tiles finds its vertices and their
sums alone. The vertices of all blocks, sorted as in memory, make the same grid and the same system.
Its solution is sliced block by block.
"""

from bilateral.numerics.blocks.block import (
    Block,
    BlockOptions,
    BlockSums,
    BlockVertices,
    build_block,
    slice_block,
    splat_block,
)
from bilateral.numerics.blocks.join import Joined, TileIndex, join, observe
from bilateral.numerics.blocks.layout import Layout
from bilateral.numerics.blocks.plain import BYTES_PER_VERTEX, solve_joined, solve_system
from bilateral.numerics.blocks.robust import (
    BlockWeights,
    RobustOptions,
    RobustState,
    first_round,
    next_round,
    reweigh_block,
    robust_vertices,
)

__all__ = [
    "BYTES_PER_VERTEX",
    "Block",
    "BlockOptions",
    "BlockSums",
    "BlockVertices",
    "BlockWeights",
    "Joined",
    "Layout",
    "RobustOptions",
    "RobustState",
    "TileIndex",
    "build_block",
    "first_round",
    "join",
    "next_round",
    "observe",
    "reweigh_block",
    "robust_vertices",
    "slice_block",
    "solve_joined",
    "solve_system",
    "splat_block",
]
