"""The paper's preconditioners (section 4): Jacobi's, and the hierarchical one.

M^-1 r = P^T ((z_weight P(1) P(r)) / P(diag A)), z_weight being 1 at level 0, else 2^-(5 + k).
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda import sums
from bilateral.ops.cuda.constants import constant
from bilateral.ops.cuda.diffusion import Matrix
from bilateral.ops.cuda.grouping import Groups

_ALONE = 16384
"""Levels that have hardly more vertices per image are left to one program for each."""


class Preconditioner:
    """What the levels above the grid add to r / diag A."""

    def __init__(self, matrix: Matrix, kind: str) -> None:
        diagonal = matrix.diagonal
        self.inverse = torch.where(diagonal > 0, 1 / diagonal, 0)
        self._levels = matrix.grid.levels if kind == "pyramid" else ()
        self._images = matrix.grid.shape[0]
        self._scales = []
        size, below = torch.ones_like(diagonal)[:, None], diagonal[:, None]
        for k, level in enumerate(self._levels):
            size, below = sums.lift(level, size), sums.lift(level, below)
            weight = 2.0 ** -(5 + k + 1)
            counts = (below > 0) & (matrix.grid.finer(k).total > self._images)
            self._scales.append(torch.where(counts, weight * size / below, 0))
        # By the pixels, so that sums are the same whatever the room.
        pixels = math.prod(matrix.grid.shape[1:])
        few = (k for k in range(1, len(self._levels)) if pixels >> (2 * k + 3) <= _ALONE)
        self._shared = next(few, len(self._levels))
        self._top = _Top(self._levels, self._scales, self._shared, self._images)
        self._lifted: list[Tensor] = []

    def lift(self, r: Tensor, done: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """What all levels add, for each vertex of the first one, and whose parent that is."""
        if not self._levels:
            return None, None
        channels = r.shape[1]
        if not self._lifted or self._lifted[0].shape[1] != channels:
            make: Any = torch.zeros
            rooms = [level.room for level in self._levels[: self._shared - 1]]
            last = self._top.room
            self._lifted = [
                make((room, channels), dtype=r.dtype, device=r.device) for room in (*rooms, last)
            ]
        up = r
        for level, out in zip(self._levels[: self._shared], self._lifted, strict=True):
            up = sums.lift(level, up, out)
        self._top.add(self._lifted[-1], done)
        for k in range(self._shared - 2, -1, -1):
            own, above = self._lifted[k], self._lifted[k + 1]
            block = max(16, 256 // triton.next_power_of_2(channels))
            _lower[(triton.cdiv(own.shape[0], block),)](
                own,
                self._scales[k],
                above,
                self._levels[k + 1].parent,
                self._levels[k].total,
                own.shape[0],
                channels,
                KP=triton.next_power_of_2(channels),
                BLOCK=block,
            )
        return self._lifted[0], self._levels[0].parent


class _Top:
    """The upper levels, from `first` - 1 on, one after another in the same memory."""

    def __init__(
        self, levels: tuple[Groups, ...], scales: list[Tensor], first: int, images: int
    ) -> None:
        self._images = images
        upper = levels[first - 1 :] if levels else ()
        self._count = len(upper)
        self.room = sum(level.room for level in upper)
        if not upper:
            return
        device = scales[0].device
        rooms = [level.room for level in upper]
        offsets = [sum(rooms[:k]) for k in range(len(rooms))]
        self._offsets = constant(tuple(offsets), torch.int32, device)
        starts = []
        for level in upper:
            tiles = (level.first.shape[0] - 1) // images
            starts.append(level.first[::tiles])
        self._starts = torch.stack(starts)
        self._scale = torch.cat([scale[:, 0] for scale in scales[first - 1 :]])
        nothing = torch.zeros(0, dtype=torch.int32, device=device)
        self._parent = torch.cat([nothing, *(level.parent for level in upper[1:])])
        # Of each level but the first, whose place is left empty.
        first_members = [torch.zeros(rooms[0] + 1, dtype=torch.int32, device=device)]
        first_members += [level.first_member for level in upper[1:]]
        self._first_member = torch.cat(first_members)
        self._members = torch.cat([nothing, *(level.members for level in upper[1:])])

    def add(self, up: Tensor, done: Tensor) -> None:
        """From the sums of the first of these levels, in place, what all of them add to it."""
        channels = up.shape[1]
        padded = triton.next_power_of_2(channels)
        _add_levels[(self._images,)](
            up,
            self._scale,
            self._parent,
            self._first_member,
            self._members,
            self._offsets,
            self._starts,
            done,
            self._count,
            channels,
            KP=padded,
            BLOCK=max(16, 1024 // padded),
            num_warps=16,
        )


@triton.jit
def _lower(own, scale, above, parent, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    """A level's own part and that of all above it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    k = tl.arange(0, KP)
    both = mask[:, None] & (k[None, :] < channels)
    to = i[:, None] * channels + k[None, :]
    up = tl.load(parent + i, mask=mask, other=0)
    more = tl.load(above + up[:, None] * channels + k[None, :], mask=both, other=0)
    factor = tl.load(scale + i, mask=mask, other=0)[:, None]
    tl.store(own + to, factor * tl.load(own + to, mask=both, other=0) + more, mask=both)


@triton.jit
def _add_levels(
    up,
    scale,
    parent,
    first_member,
    members,
    offsets,
    starts,
    done,
    count,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum level by level upwards, then add up what each has, downwards; one program per image."""
    image, images = tl.program_id(0), tl.num_programs(0)
    k = tl.arange(0, KP)
    on = tl.load(done + image) == 0
    levels = tl.where(on, count, 0)
    for level in range(1, levels):
        own, below = tl.load(offsets + level), tl.load(offsets + level - 1)
        begin = tl.load(starts + level * (images + 1) + image)
        end = tl.load(starts + level * (images + 1) + image + 1)
        items = below - tl.load(offsets)  # of the members, which begin at the second level
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            low = tl.load(first_member + own + level + i, mask=mask, other=0)
            high = tl.load(first_member + own + level + i + 1, mask=mask, other=0)
            total = tl.zeros((BLOCK, KP), up.dtype.element_ty)
            for j in range(0, tl.max(high - low, 0)):
                there = low + j < high
                item = tl.load(members + items + low + j, mask=there, other=0)
                total += tl.load(
                    up + (below + item)[:, None] * channels + k[None, :],
                    mask=there[:, None] & (k[None, :] < channels),
                    other=0,
                )
            to = (own + i)[:, None] * channels + k[None, :]
            tl.store(up + to, total, mask=mask[:, None] & (k[None, :] < channels))
        tl.debug_barrier()
    for down in range(0, levels):
        level = levels - 1 - down
        own = tl.load(offsets + level)
        begin = tl.load(starts + level * (images + 1) + image)
        end = tl.load(starts + level * (images + 1) + image + 1)
        last = level == levels - 1
        above = tl.load(offsets + tl.where(last, level, level + 1))
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            both = mask[:, None] & (k[None, :] < channels)
            to = (own + i)[:, None] * channels + k[None, :]
            value = tl.load(scale + own + i, mask=mask, other=0)[:, None] * tl.load(
                up + to, mask=both, other=0
            )
            inner = mask & (i * 0 + level < levels - 1)
            higher = tl.load(parent + own + i, mask=inner, other=0)
            value += tl.load(
                up + (above + higher)[:, None] * channels + k[None, :],
                mask=inner[:, None] & (k[None, :] < channels),
                other=0,
            )
            tl.store(up + to, value, mask=both)
        tl.debug_barrier()
