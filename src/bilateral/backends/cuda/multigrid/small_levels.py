"""The small levels of a hierarchy, one after another in the same memory.

Launches would take longer than the work they do, so one program per image does it all.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.levels import damped, residual, shape, sum_members

_BLOCK = 256
_OMEGA = 0.9


class Tail:
    """From `graphs[0]` up to the last one."""

    def __init__(self, graphs: list[Graph], transfers: list[Transfer], recorded: bool) -> None:
        device = graphs[0].to.device
        # Rooms that are only just enough are different each time: their tables are not kept.
        table = constant if recorded else _table
        self._first = graphs[0]
        self.count = len(graphs)
        rooms = [graph.room for graph in graphs]
        entries = [graph.to.shape[0] for graph in graphs]
        self.rows = sum(rooms)
        self.offsets = table(tuple(sum(rooms[:k]) for k in range(self.count)), torch.int32, device)
        self._entries = table(
            tuple(sum(entries[:k]) for k in range(self.count)), torch.int32, device
        )
        self.starts = torch.stack([graph.starts for graph in graphs])
        self._to = torch.cat([graph.to for graph in graphs])
        self._weight, self._first_link, self._last_link = (
            torch.cat([part for graph in graphs if (part := getattr(graph, name)) is not None])
            for name in ("weight", "first", "last")
        )
        self.degree = torch.cat([graph.degree for graph in graphs])
        # The last level's rows have no parents.
        none = torch.full((rooms[-1],), -1, dtype=torch.int32, device=device)
        self._parent = torch.cat([*(way.parent for way in transfers), none])
        self.members = torch.cat([*(way.members for way in transfers), none])
        # Of each level but the first.
        self.bounds = torch.cat([none.long()[:0], *(way.bounds for way in transfers)])

    def vectors(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Memory for r, x and residuals of all levels, of as many channels as there are in like."""
        sizes = (3, self.rows, like.shape[1])
        r, x, left = torch.empty(sizes, dtype=like.dtype, device=like.device)
        return r, x, left

    def cycle(
        self, vectors: tuple[Tensor, Tensor, Tensor], c: Tensor, inverse: Tensor, factors: Tensor
    ) -> Tensor:
        """From the first level's r, one V-cycle with a step of Jacobi's before and after: x."""
        r, x, left = vectors
        sizes = shape(r.shape[1], 512)
        _cycle[(self.starts.shape[1] - 1,)](
            r,
            x,
            left,
            c,
            inverse,
            factors,
            self._to,
            self._weight,
            self._first_link,
            self._last_link,
            self._parent,
            self.bounds,
            self.members,
            self.offsets,
            self._entries,
            self.starts,
            self.count,
            r.shape[1],
            OMEGA=_OMEGA,
            STEP=8,
            **sizes,
            num_warps=16,
        )
        return x

    def with_data(self, c: Tensor) -> Tensor:
        """Whether each row of the first level is connected to a weight above 0: 0 or 1."""
        marks = torch.empty(self._first.room, dtype=torch.int32, device=c.device)
        _mark_all[(triton.cdiv(self._first.room, _BLOCK),)](
            c,
            self._parent,
            self.offsets,
            marks,
            self._first.total,
            self._first.room,
            self.count,
            BLOCK=_BLOCK,
        )
        return marks


def _table(values: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


@kernel("entries", "count")
def _cycle(
    r,
    x,
    left,
    c,
    inverse,
    factors,
    to,
    weight,
    first,
    last,
    parent,
    bounds,
    members,
    offsets,
    entries,
    starts,
    count,
    channels,
    OMEGA: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    image, images = tl.program_id(0), tl.num_programs(0)
    k = tl.arange(0, KP)
    for level in range(0, count - 1):
        own, link = tl.load(offsets + level), tl.load(entries + level)
        up = tl.load(offsets + level + 1)
        at_image = starts + level * (images + 1) + image
        factor = tl.load(factors + level)
        end = tl.load(at_image + 1)
        for at in range(tl.load(at_image), end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            value, rest, links = residual(
                to + link,
                weight + link,
                None,
                None,
                first + own,
                last + own,
                r + own * channels,
                None,
                inverse + own,
                None,
                None,
                c + own,
                factor,
                i,
                mask,
                channels,
                OMEGA,
                0,
                STEP,
                KP,
            )
            where = (own + i)[:, None] * channels + k[None, :]
            tl.store(left + where, rest, mask=mask[:, None] & (k[None, :] < channels))
        tl.debug_barrier()
        lists = bounds + (up - tl.load(offsets + 1) + level)
        end = tl.load(at_image + images + 2)
        for at in range(tl.load(at_image + images + 1), end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            total = sum_members(
                left + own * channels, lists, members + own, i, mask, channels, KP, BLOCK
            )
            where = (up + i)[:, None] * channels + k[None, :]
            tl.store(r + where, total, mask=mask[:, None] & (k[None, :] < channels))
        tl.debug_barrier()
    for down in range(0, count):
        level = count - 1 - down
        own, link = tl.load(offsets + level), tl.load(entries + level)
        up = tl.load(offsets + tl.minimum(level + 1, count - 1))
        at_image = starts + level * (images + 1) + image
        factor = tl.load(factors + level)
        end = tl.load(at_image + 1)
        for at in range(tl.load(at_image), end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            value, rest, links = residual(
                to + link,
                weight + link,
                None,
                None,
                first + own,
                last + own,
                r + own * channels,
                None,
                inverse + own,
                x + up * channels,
                parent + own,
                c + own,
                factor,
                i,
                mask,
                channels,
                OMEGA,
                0,
                STEP,
                KP,
            )
            value = damped(value, rest, links, inverse + own, i, mask, OMEGA)
            where = (own + i)[:, None] * channels + k[None, :]
            tl.store(x + where, value, mask=mask[:, None] & (k[None, :] < channels))
        tl.debug_barrier()


@kernel("room", "count")
def _mark_all(c, parent, offsets, marks, total, room, count, BLOCK: tl.constexpr):
    """Whether the last row above each one has weights."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    row, on = i, mask
    for level in range(1, count):
        p = tl.load(parent + row, mask=on, other=-1)
        on = p >= 0
        row = tl.where(on, tl.load(offsets + level) + p, row)
    own = tl.load(c + row, mask=mask, other=0) > 0
    tl.store(marks + i, own.to(tl.int32), mask=i < room)
