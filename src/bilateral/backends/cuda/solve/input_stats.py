"""What there is to know about values and weights before a solve, found in one pass."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

_PROGRAMS = 512
_BLOCK = 1024


class Survey(NamedTuple):
    """Of the values and weights of a batch."""

    scale: Tensor
    """The range of the known values of each image and channel, or their size: (B, K), float64."""
    total: Tensor
    """The sum of each image's weights: (B,), float64."""
    invalid: Tensor
    """How many weights are negative or not finite: (B,), float64."""
    unknown: Tensor
    """Whether there are values that are not finite: (B,), float64."""


def survey(values: Tensor, weights: Tensor | None, images: int) -> Survey:
    """Look at (B H W, K) values with (B H W, 1) weights, or 1 for each."""
    channels = values.shape[1]
    pixels = values.shape[0] // images
    programs = max(1, min(_PROGRAMS // images, pixels // _BLOCK))
    # For each channel its least and largest value; the sum of weights, and numbers of invalid
    # ones and of values that are not finite.
    rows = 2 * channels + 3
    parts = torch.empty((images, rows, programs), dtype=torch.float64, device=values.device)
    _look[(programs, images)](values, weights, parts, pixels, channels, BLOCK=_BLOCK)
    out = torch.empty((images, channels + 3), dtype=torch.float64, device=values.device)
    _conclude[(images,)](parts, out, programs, channels, PP=triton.next_power_of_2(programs))
    return Survey(out[:, :channels], *(out[:, channels + k] for k in range(3)))


def count_poor(grid: Grid, weight: Tensor, smoothness: Tensor, easy: float) -> Tensor:
    """How many vertices have no weight, and how many pixels are far from any: (2,) int32.

    That is in vertices that have too little weight, as all their neighbours: for which smoothness
    times pixels is more than `easy` times the weight.
    """
    out = torch.zeros(2, dtype=torch.int32, device=weight.device)
    block = 512
    _count_poor[(triton.cdiv(grid.room, block),)](
        grid.mass,
        weight,
        *grid.edges,
        grid.total,
        smoothness,
        out,
        grid.room,
        EASY=easy,
        D=grid.edges.directions,
        BLOCK=block,
        num_warps=8,
    )
    return out


@kernel()
def _look(values, weights, parts, pixels, channels, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    base = image.to(tl.int64) * pixels
    rows = 2 * channels + 3
    to = parts + image * rows * programs + program
    total, invalid = tl.zeros((), tl.float64), tl.zeros((), tl.float64)
    unknown = tl.zeros((), tl.int32)
    for k in range(0, channels):
        low = tl.full((BLOCK,), float("inf"), tl.float64)
        high = tl.full((BLOCK,), float("-inf"), tl.float64)
        sums = tl.zeros((BLOCK,), tl.float64)
        bad, lost = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
        for at in range(program * BLOCK, pixels, programs * BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < pixels
            value = tl.load(values + (base + i) * channels + k, mask=mask, other=0).to(tl.float64)
            c = tl.where(mask, 1.0, 0.0).to(tl.float64)
            if weights is not None:
                c = tl.load(weights + base + i, mask=mask, other=0).to(tl.float64)
                valid = (c >= 0) & (c < float("inf"))
                bad += (mask & (valid == 0)).to(tl.int32)
                c = tl.where(valid, c, 0.0)
            sums += c
            finite = tl.abs(value) < float("inf")
            lost += (finite == 0).to(tl.int32)
            low = tl.minimum(low, tl.where(c > 0, value, float("inf")))
            high = tl.maximum(high, tl.where(c > 0, value, float("-inf")))
        tl.store(to + 2 * k * programs, tl.min(low, 0))
        tl.store(to + (2 * k + 1) * programs, tl.max(high, 0))
        total, invalid = tl.sum(sums, 0), tl.sum(bad, 0).to(tl.float64)
        unknown += tl.sum(lost, 0)
    tl.store(to + 2 * channels * programs, total)
    tl.store(to + (2 * channels + 1) * programs, invalid)
    tl.store(to + (2 * channels + 2) * programs, unknown.to(tl.float64))


@kernel("programs")
def _conclude(parts, out, programs, channels, PP: tl.constexpr):
    image = tl.program_id(0)
    p = tl.arange(0, PP)
    mask = p < programs
    rows = 2 * channels + 3
    own = parts + image * rows * programs + p
    to = out + image * (channels + 3)
    for k in range(0, channels):
        low = tl.min(tl.load(own + 2 * k * programs, mask=mask, other=float("inf")), 0)
        high = tl.max(tl.load(own + (2 * k + 1) * programs, mask=mask, other=float("-inf")), 0)
        size = tl.maximum(tl.abs(low), tl.abs(high))
        scale = tl.where(high > low, high - low, size)
        tl.store(to + k, tl.where((scale > 0) & (scale < float("inf")), scale, 1.0))
    for k in range(0, 3):
        part = tl.load(own + (2 * channels + k) * programs, mask=mask, other=0)
        tl.store(to + channels + k, tl.sum(part, 0))


@kernel("room")
def _count_poor(
    mass,
    weight,
    words,
    to,
    total,
    smoothness,
    out,
    room,
    EASY: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    least = tl.load(smoothness) / EASY  # of a pixel's weight
    own = tl.load(weight + i, mask=mask, other=1)
    pixels = tl.load(mass + i, mask=mask, other=0)
    far = mask & (least * pixels > own)
    if tl.max(far.to(tl.int32), 0) > 0:
        near = read_neighbours(words, to, i, far, D)
        for e in tl.static_range(D):
            there, j = near[e]
            other = tl.load(weight + j, mask=there, other=0)
            rich = least * tl.load(mass + j, mask=there, other=0) <= other
            far = far & ((there == 0) | (rich == 0))
    bare = tl.sum((mask & (own <= 0)).to(tl.int32), 0)
    poor = tl.sum(tl.where(far, pixels, 0), 0)
    tl.atomic_add(out, bare, mask=bare > 0)
    tl.atomic_add(out + 1, poor, mask=poor > 0)
