"""Compute range, sum, count and finiteness of values and weights in one pass, before a solve."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.image_parts import MAX_PROGRAMS
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 1024
_VERTEX_BLOCK = 512


class InputStats(NamedTuple):
    """Statistics of the values and weights of a batch, in float64."""

    scale: Tensor
    """(B, K): range of the values with a weight above 0, or their size if all are equal."""
    low: Tensor
    """(B, K): lowest of these values."""
    high: Tensor
    """(B, K): highest of these values."""
    weight_sum: Tensor
    """(B,): sum of the weights of each image."""
    invalid_weights: Tensor
    """(B,): number of weights that are negative or not finite."""
    nonfinite_values: Tensor
    """(B,): number of values that are not finite."""


def compute_input_stats(values: Tensor, weights: Tensor | None, images: int) -> InputStats:
    """Compute the statistics of (B H W, K) values with (B H W, 1) weights; None: all are 1."""
    channels = values.shape[1]
    pixels = values.shape[0] // images
    programs = max(1, min(MAX_PROGRAMS // images, pixels // _BLOCK))
    # Smallest and largest value of each channel; then the last three numbers of `InputStats`.
    rows = 2 * channels + 3
    parts = torch.empty((images, rows, programs), dtype=torch.float64, device=values.device)
    _compute_parts[(programs, images)](values, weights, parts, pixels, channels, BLOCK=_BLOCK)
    out = torch.empty((images, 3 * channels + 3), dtype=torch.float64, device=values.device)
    _combine_parts[(images,)](parts, out, programs, channels, PP=MAX_PROGRAMS)
    per_channel = (out[:, k * channels : (k + 1) * channels] for k in range(3))
    return InputStats(*per_channel, *(out[:, 3 * channels + k] for k in range(3)))


def count_loose(grid: Grid, weight: Tensor, smoothness: Tensor, most: float) -> Tensor:
    """Count the vertices without weight, and the loose pixels: (2,) int32.

    A vertex lacks weight if the smoothness times its pixels exceeds `most` times its weight. A
    pixel is loose if its vertex has neighbours, and if both the vertex and all of them lack weight.
    """
    counts = torch.zeros(2, dtype=torch.int32, device=weight.device)
    _count_loose[(triton.cdiv(grid.room, _VERTEX_BLOCK),)](
        grid.mass,
        weight,
        *grid.edges,
        grid.total,
        smoothness,
        counts,
        grid.room,
        MOST=most,
        D=grid.edges.directions,
        BLOCK=_VERTEX_BLOCK,
        num_warps=8,
    )
    return counts


@kernel(ones=("channels",))
def _compute_parts(values, weights, parts, pixels, channels, BLOCK: tl.constexpr):
    """Compute the statistics of this program's part of an image."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    base = image.to(tl.int64) * pixels
    rows = 2 * channels + 3
    to = parts + image * rows * programs + program
    weight_sum, invalid = tl.zeros((), tl.float64), tl.zeros((), tl.float64)
    nonfinite = tl.zeros((), tl.int32)
    for k in range(0, channels):
        low = tl.full((BLOCK,), float("inf"), tl.float64)
        high = tl.full((BLOCK,), float("-inf"), tl.float64)
        sums = tl.zeros((BLOCK,), tl.float64)
        invalid_k, nonfinite_k = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
        for at in range(program * BLOCK, pixels, programs * BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < pixels
            value = tl.load(values + (base + i) * channels + k, mask=mask, other=0).to(tl.float64)
            c = tl.where(mask, 1.0, 0.0).to(tl.float64)
            if weights is not None:
                c = tl.load(weights + base + i, mask=mask, other=0).to(tl.float64)
                valid = (c >= 0) & (c < float("inf"))
                invalid_k += (mask & (valid == 0)).to(tl.int32)
                c = tl.where(valid, c, 0.0)
            sums += c
            finite = tl.abs(value) < float("inf")
            nonfinite_k += (finite == 0).to(tl.int32)
            low = tl.minimum(low, tl.where(c > 0, value, float("inf")))
            high = tl.maximum(high, tl.where(c > 0, value, float("-inf")))
        tl.store(to + 2 * k * programs, tl.min(low, 0))
        tl.store(to + (2 * k + 1) * programs, tl.max(high, 0))
        # The weights are the same for all channels.
        weight_sum, invalid = tl.sum(sums, 0), tl.sum(invalid_k, 0).to(tl.float64)
        nonfinite += tl.sum(nonfinite_k, 0)
    tl.store(to + 2 * channels * programs, weight_sum)
    tl.store(to + (2 * channels + 1) * programs, invalid)
    tl.store(to + (2 * channels + 2) * programs, nonfinite.to(tl.float64))


@kernel()
def _combine_parts(parts, out, programs, channels, PP: tl.constexpr):
    """Combine the parts of an image's programs."""
    image = tl.program_id(0)
    p = tl.arange(0, PP)
    mask = p < programs
    rows = 2 * channels + 3
    image_parts = parts + image * rows * programs + p
    to = out + image * (3 * channels + 3)
    for k in range(0, channels):
        lows = tl.load(image_parts + 2 * k * programs, mask=mask, other=float("inf"))
        highs = tl.load(image_parts + (2 * k + 1) * programs, mask=mask, other=float("-inf"))
        low, high = tl.min(lows, 0), tl.max(highs, 0)
        size = tl.maximum(tl.abs(low), tl.abs(high))
        scale = tl.where(high > low, high - low, size)
        tl.store(to + k, tl.where((scale > 0) & (scale < float("inf")), scale, 1.0))
        tl.store(to + channels + k, low)
        tl.store(to + 2 * channels + k, high)
    for k in range(0, 3):
        part = tl.load(image_parts + (2 * channels + k) * programs, mask=mask, other=0)
        tl.store(to + 3 * channels + k, tl.sum(part, 0))


@kernel()
def _count_loose(
    mass,
    weight,
    words,
    to,
    total,
    smoothness,
    counts,
    room,
    MOST: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i, mask = program_rows(total, room, BLOCK)
    least = tl.load(smoothness) / MOST  # weight per pixel
    weight_i = tl.load(weight + i, mask=mask, other=1)
    pixels = tl.load(mass + i, mask=mask, other=0)
    lacking = mask & (least * pixels > weight_i)
    linked = mask & (mask == 0)
    if tl.max(lacking.to(tl.int32), 0) > 0:
        neighbours = read_neighbours(words, to, i, lacking, D)
        for e in tl.static_range(D):
            exists, j = neighbours[e]
            weight_j = tl.load(weight + j, mask=exists, other=0)
            enough = least * tl.load(mass + j, mask=exists, other=0) <= weight_j
            lacking = lacking & ((exists == 0) | (enough == 0))
            linked = linked | exists
    empty_vertices = tl.sum((mask & (weight_i <= 0)).to(tl.int32), 0)
    loose_pixels = tl.sum(tl.where(lacking & linked, pixels, 0), 0)
    tl.atomic_add(counts, empty_vertices, mask=empty_vertices > 0)
    tl.atomic_add(counts + 1, loose_pixels, mask=loose_pixels > 0)
