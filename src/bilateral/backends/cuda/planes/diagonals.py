"""Compute the blocks on the diagonal of the planar matrices, one 3 x 3 block per row and level.

They are the only part of the matrices that depends on smoothness, slope penalties and confidence.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    lane_rows,
    link_number,
    low_word,
    max_links,
    sum_lanes,
)
from bilateral.backends.cuda.planes.blocks import (
    add_moved,
    invert,
    read_matrix,
    read_point,
    write_matrix,
)
from bilateral.backends.cuda.planes.geometry import Geometry
from bilateral.backends.cuda.planes.graph import read_links, read_meeting


class Diagonals:
    """Data blocks and inverse diagonal blocks of all levels.

    Level k has the smoothness lambda level_stiffness^-k; that of its slopes stays the same.

    Parameters
    ----------
    geometry : Geometry
    moments : Tensor
        (room, 6), as from `splat_planes`.
    smoothness : float
        lambda.
    slope_smoothness, slope_ridge : sequence of float
        mu and eps of each image.
    level_stiffness : float
    """

    def __init__(
        self,
        geometry: Geometry,
        moments: Tensor,
        smoothness: float,
        slope_smoothness: Sequence[float],
        slope_ridge: Sequence[float],
        level_stiffness: float,
    ) -> None:
        self._geometry = geometry
        like: dict[str, Any] = {"dtype": moments.dtype, "device": moments.device}
        stiffness = [level_stiffness**k for k in range(geometry.depth + 1)]
        self.smoothness = torch.tensor([smoothness / s for s in stiffness], **like)
        """lambda_k of all levels."""
        self.turns: list[Tensor] = []
        """Per level, (rows,): weight of the slopes' smoothness, relative to lambda_k."""
        self.data: list[Tensor] = []
        """Per level, (rows, 6): the data term's blocks, with the ridge."""
        self.inverses: list[Tensor] = []
        """Per level, (rows, 6): inverses of the diagonal blocks."""
        for k, level in enumerate(geometry.levels):
            mu = [value * stiffness[k] for value in slope_smoothness]
            self.turns.append(per_row(level.graph, mu, moments.dtype))
            if k == 0:
                ridge = per_row(level.graph, [smoothness * e for e in slope_ridge], torch.float64)
                ridge = (ridge * level.mass).to(moments.dtype)
                self.data.append(moments.clone())
                self.data[0][:, 2] += ridge
                self.data[0][:, 5] += ridge
            else:
                self.data.append(torch.empty((level.graph.room, 6), **like))
            self.inverses.append(torch.empty_like(self.data[k]))
            self._find_level(k)

    def _find_level(self, k: int) -> None:
        geometry = self._geometry
        level, constants = geometry.levels[k], geometry.levels[k].constants()
        below: tuple[Tensor | None, ...] = (None,) * 4
        if k > 0:
            transfer = geometry.transfers[k - 1]
            below = (
                self.data[k - 1],
                geometry.lifts[k - 1],
                transfer.bounds,
                transfer.members,
            )
        _find_blocks[(triton.cdiv(level.graph.room, constants["BLOCK"]),)](
            *level.arguments,
            *below,
            *(self.smoothness[k:], self.turns[k], self.data[k], self.inverses[k]),
            **constants,
        )


def per_row(graph: Graph, values: Sequence[float], dtype: torch.dtype) -> Tensor:
    """Return the value of each row's image, (rows,)."""
    device = graph.to.device
    if len(set(values)) == 1:
        return torch.full((graph.room,), values[0], dtype=dtype, device=device)
    row = torch.arange(graph.room, dtype=torch.int32, device=device)
    image = torch.searchsorted(graph.starts[1:].contiguous(), row, right=True)
    image = image.clamp(max=graph.images - 1)
    return constant(tuple(values), dtype, device).index_select(0, image)


@kernel()
def _find_blocks(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    room,
    total,
    data_below,
    lift,
    bounds,
    members,
    smoothness,
    turns,
    data,
    inverse,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    """Store the data blocks of coarse rows, and the inverse diagonal blocks of all rows."""
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    zero = tl.zeros((BLOCK * LANES,), data.dtype.element_ty)
    if bounds is None:
        own = read_matrix(data, i, mask)
    else:
        own = (zero, zero, zero, zero, zero, zero)
        begin = low_word(tl.load(bounds + i, mask=mask, other=0))
        end = low_word(tl.load(bounds + i + 1, mask=mask, other=0))
        for at in range(0, tl.max(end - begin, 0)):
            exists = begin + at < end
            row = tl.load(members + begin + at, mask=exists, other=0)
            own = add_moved(
                own, read_matrix(data_below, row, exists), read_point(lift, row, exists)
            )
        write_matrix(data, i, mask & (lane == 0), own)
    graph = to, weight, meet, place, factors, first, last
    links = read_links(graph, i, mask, D)
    s0, s1, s2, s3, s4, s5 = zero, zero, zero, zero, zero, zero
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            _, w, near, _ = read_meeting(graph, links, e, step)
            force_x, force_y = w * near[0], w * near[1]
            s0 += w
            s1 += force_x
            s2 += force_x * near[0]
            s3 += force_y
            s4 += force_x * near[1]
            s5 += force_y * near[1]
    turn = tl.load(turns + i, mask=mask, other=0) * sum_lanes(s0, LANES)
    smooth = (
        sum_lanes(s0, LANES),
        sum_lanes(s1, LANES),
        sum_lanes(s2, LANES) + turn,
        sum_lanes(s3, LANES),
        sum_lanes(s4, LANES),
        sum_lanes(s5, LANES) + turn,
    )
    lambda_k = tl.load(smoothness).to(tl.float64)
    block = ()
    for n in tl.static_range(6):
        block += (own[n].to(tl.float64) + lambda_k * smooth[n].to(tl.float64),)  # type: ignore[assignment]
    write_matrix(inverse, i, mask & (lane == 0), invert(block))
