"""Reduce maps by a whole or fractional factor: the mean over blocks of pixels, and its adjoint.

As in core/filters/block_means.hpp, a pixel on the border of two blocks belongs to both in parts.
There are no more blocks than pixels along an axis, so a pixel overlaps one or two blocks.
"""

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

BLOCK = 16
"""Blocks whose means one program computes."""
WIDTH = 8
"""Columns of pixels of each block that it loads at a time."""


def block_means(pixels: Tensor, shape: tuple[int, int]) -> Tensor:
    """Return the means over blocks of (P, H, W) pixels, as (P, h, w) of the same dtype."""
    planes, height, width = pixels.shape
    means = pixels.new_empty((planes, *shape))
    _block_means[block_programs(planes, shape)](
        pixels.contiguous(), means, height, width, *shape, BLOCK=BLOCK, WIDTH=WIDTH
    )
    return means


def spread_blocks(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Return B^T values for values (P, h, w) of blocks, as (P, H, W) pixels."""
    planes, rows, columns = values.shape
    height, width = size
    pixels = values.new_empty((planes, height, width))
    _spread_blocks[(planes * height, triton.cdiv(width, 256))](
        values.contiguous(), pixels, height, width, rows, columns, BLOCK=256
    )
    return pixels


def block_programs(planes: int, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the grid of programs for the blocks of all planes."""
    rows, columns = shape
    return planes * rows, triton.cdiv(columns, BLOCK)


@kernel()
def _block_means(
    pixels, means, height, width, rows, columns, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    program = tl.program_id(0)
    plane = pixels + (program // rows).to(tl.int64) * height * width
    b = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = mean_of_blocks(
        plane, None, 0.0, program % rows, b, height, width, rows, columns, BLOCK, WIDTH
    )
    tl.store(means + program.to(tl.int64) * columns + b, total, mask=b < columns)


@triton.jit
def mean_of_blocks(
    plane,
    other,
    factor,
    row,
    b,
    height,
    width,
    rows,
    columns,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Return the means of `plane + factor * other` over the blocks b of a row of blocks.

    `other` may be None.
    """
    first_y = (row * height) // rows
    last_y = ((row + 1) * height - 1) // rows
    first_x = (b * width) // columns
    most = width // columns + 2  # columns of pixels that a block may touch
    total = tl.zeros((BLOCK, WIDTH), plane.dtype.element_ty)
    for begin in range(0, most, WIDTH):
        x = first_x[:, None] + begin + tl.arange(0, WIDTH)[None, :]
        share = overlap(x, b[:, None], columns, width)
        inside = (share > 0) & (b[:, None] < columns) & (x < width)
        share = share.to(total.dtype) / width.to(total.dtype)
        for y in range(first_y, last_y + 1):
            of_row = overlap(y, row, rows, height).to(total.dtype) / height.to(total.dtype)
            value = tl.load(plane + y * width + x, mask=inside, other=0)
            if other is not None:
                value += factor * tl.load(other + y * width + x, mask=inside, other=0)
            total += tl.where(inside, share * of_row * value, 0)
    return tl.sum(total, 1)


@triton.jit
def overlap(pixel, block, blocks, length):
    """Return the overlap of a pixel and a block, in units of 1 / blocks of a pixel; at least 0.

    Divided by the number of pixels along the axis it is the pixel's share of the block's mean.
    """
    begin = tl.maximum(pixel * blocks, block * length)
    return tl.maximum(tl.minimum((pixel + 1) * blocks, (block + 1) * length) - begin, 0)


@triton.jit
def spread_to_pixels(values, y, x, inside, height, width, rows, columns, SQUARED: tl.constexpr):
    """Return the sum of values over the blocks of pixels, times their shares or squared shares."""
    top, left = (y * rows) // height, (x * columns) // width
    total = tl.zeros_like(x).to(values.dtype.element_ty)
    for i in range(4):
        row, column = top + i // 2, left + i % 2
        there = inside & (row < rows) & (column < columns)
        share = overlap(y, row, rows, height).to(total.dtype) / height.to(total.dtype)
        share *= overlap(x, column, columns, width).to(total.dtype) / width.to(total.dtype)
        if SQUARED:
            share *= share
        total += share * tl.load(values + row * columns + column, mask=there, other=0)
    return total


@kernel()
def _spread_blocks(values, pixels, height, width, rows, columns, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y, plane = program % height, (program // height).to(tl.int64)
    total = spread_to_pixels(
        values + plane * rows * columns,
        y + x * 0,
        x,
        x < width,
        height,
        width,
        rows,
        columns,
        False,
    )
    tl.store(pixels + program.to(tl.int64) * width + x, total, mask=x < width)
