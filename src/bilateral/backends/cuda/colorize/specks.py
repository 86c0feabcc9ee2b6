"""Colour the pixels that would show as specks by the pixels around them.

`tasks/colorize/surroundings.py` says which pixels these are. Their number is known to the device
only, so every kernel looks at all pixels; programs without a speck only copy.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import Edges, read_neighbours
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256
_FEW: tl.constexpr = tl.constexpr(1)
_WITHOUT_DATA: tl.constexpr = tl.constexpr(2)
_STROKED: tl.constexpr = tl.constexpr(3)
_RADIUS: tl.constexpr = tl.constexpr(2)


class Rules(NamedTuple):
    """Numbers of the rules in `tasks/colorize/policy.py`."""

    few: float
    """Most pixels of a vertex with few."""
    small: float
    """A vertex and its neighbours with fewer pixels are small."""
    small_region: float
    visible: float
    sigma: float
    max_level: float
    least_mass: float


class Vertices(NamedTuple):
    """The vertices of a solve for the strokes' colours."""

    mass: Tensor
    """(room,) int32: number of pixels of each vertex."""
    edges: Edges
    total: Tensor
    """(1,) int32: number of vertices."""
    weight: Tensor
    """(room,): weight of the strokes."""
    with_data: Tensor | None
    """(room,) bool: vertices that are connected to a stroke; None: all."""
    parent: Tensor
    """(H W,) int32: vertex of each pixel."""


def vertex_kinds(vertices: Vertices, blur: tuple[float, float, float], rules: Rules) -> Tensor:
    """Return the kind of each vertex: (room,) uint8."""
    mass, edges, total, weight, with_data, _ = vertices
    room = len(mass)
    kinds = torch.empty(room, dtype=torch.uint8, device=weight.device)
    connected = kinds if with_data is None else with_data.to(torch.uint8)
    _kinds[(triton.cdiv(room, _BLOCK),)](
        mass,
        weight,
        connected,
        *edges,
        kinds,
        total,
        room,
        int(with_data is not None),
        *map(float, blur),
        rules.few,
        rules.small,
        D=edges.directions,
        BLOCK=_BLOCK,
    )
    return kinds


class Specks:
    """The specks of a picture, and their colours so far.

    Parameters
    ----------
    kinds : Tensor
        Of vertices.
    parent : Tensor
        (H W,): vertex of each pixel.
    root, size : Tensor
        As `labels.regions.Regions`.
    chroma : Tensor
        (H, W, 2), of the solve.
    levels : Tensor
        (H, W): luma in 8-bit grey levels.
    rules : Rules
    """

    def __init__(
        self,
        kinds: Tensor,
        parent: Tensor,
        root: Tensor,
        size: Tensor,
        chroma: Tensor,
        levels: Tensor,
        rules: Rules,
    ) -> None:
        height, width = levels.shape
        self._solved, self._levels, self._rules = chroma, levels, rules
        self._values = [chroma, torch.empty_like(chroma)]
        self._states = [torch.empty_like(levels, dtype=torch.uint8) for _ in range(2)]
        self._kinds = torch.empty_like(self._states[0])
        self._grid = (triton.cdiv(height * width, _BLOCK),)
        self._sizes = height, width
        _find[self._grid](
            kinds, parent, root, size, chroma, self._kinds, self._states[0], *self._sizes,
            rules.small_region, rules.visible, BLOCK=_BLOCK,
        )  # fmt: skip
        self._rounds = 0

    def fill(self, rounds: int) -> Tensor:
        """Fill some rounds; return the unknown pixels before and after each: (rounds, 2) int32."""
        counts = torch.zeros((rounds, 2), dtype=torch.int32, device=self._levels.device)
        for k in range(rounds):
            least = self._rules.least_mass if self._rounds == 0 else 0.0
            _fill[self._grid](
                self._values[0], self._values[1], *self._states, self._levels, counts, k,
                *self._sizes, least, self._rules.sigma, self._rules.max_level, BLOCK=_BLOCK,
            )  # fmt: skip
            if self._rounds == 0:
                self._values[0] = torch.empty_like(self._solved)  # keep those of the solve
            self._values.reverse()
            self._states.reverse()
            self._rounds += 1
        return counts

    def result(self) -> Tensor:
        """Return U and V, (2, H, W): pixels with a chain to a stroke stay if they look alike."""
        height, width = self._sizes
        out = self._solved.new_empty((2, height, width))
        _finish[self._grid](
            self._solved, self._values[0], self._kinds, out, *self._sizes, self._rules.visible,
            BLOCK=_BLOCK,
        )  # fmt: skip
        return out


@kernel()
def _kinds(
    mass,
    weight,
    connected,
    words,
    to,
    kinds,
    total,
    room,
    has_gaps,
    centre,
    space,
    range_,
    few,
    small,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    own = tl.load(mass + i, mask=mask, other=0).to(tl.float32)
    blurred = own * centre
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = neighbours[e]
        other = tl.load(mass + j, mask=there, other=0).to(tl.float32)
        blurred += (space if e < 4 else range_) * other
    kind = tl.where(own <= few, _FEW, 0)
    alone = (has_gaps != 0) & (tl.load(connected + i, mask=mask, other=1) == 0)
    kind = tl.where(alone & (blurred < small), _WITHOUT_DATA, kind)
    kind = tl.where(tl.load(weight + i, mask=mask, other=0) > 0, _STROKED, kind)
    tl.store(kinds + i, kind.to(tl.uint8), mask=mask)


@triton.jit
def _pixel(y, x, dy, dx, height, width):
    """Return the place of the pixel at an offset; beyond the border, the nearest one."""
    row = tl.minimum(tl.maximum(y + dy, 0), height - 1)
    return row * width + tl.minimum(tl.maximum(x + dx, 0), width - 1)


@triton.jit
def _distance(chroma, i, j, mask):
    """Return the distance of two pixels' chroma."""
    u = tl.load(chroma + 2 * i, mask=mask, other=0) - tl.load(chroma + 2 * j, mask=mask, other=0)
    v = tl.load(chroma + 2 * i + 1, mask=mask, other=0)
    v -= tl.load(chroma + 2 * j + 1, mask=mask, other=0)
    return tl.sqrt(u * u + v * v)


@kernel()
def _find(
    kinds,
    parent,
    root,
    size,
    chroma,
    pixel_kinds,
    state,
    height,
    width,
    small_region,
    visible,
    BLOCK: tl.constexpr,
):
    """Store the kind of each pixel, and 1 for specks, whose colour is not known."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < height * width
    y, x = i // width, i % width
    kind = tl.load(kinds + tl.load(parent + i, mask=inside, other=0), mask=inside, other=0)
    kind = kind.to(tl.int32)
    region = tl.load(size + tl.load(root + i, mask=inside, other=0), mask=inside, other=0)
    kind = tl.where(inside & (region <= small_region), tl.maximum(kind, _FEW), kind)
    kind = tl.where(kind == _STROKED, 0, kind)
    speck = kind == _WITHOUT_DATA
    if tl.max(kind, 0) > 0:
        of_kind = inside & (kind == _FEW)
        stands_out = i < 0
        for k in range(-_RADIUS, _RADIUS + 1):
            along, down = _pixel(y, x, 0, k, height, width), _pixel(y, x, k, 0, height, width)
            stands_out = stands_out | (_distance(chroma, i, along, of_kind) > visible)
            stands_out = stands_out | (_distance(chroma, i, down, of_kind) > visible)
        speck = speck | (of_kind & stands_out)
    tl.store(pixel_kinds + i, kind.to(tl.uint8), mask=inside)
    tl.store(state + i, speck.to(tl.uint8), mask=inside)


@kernel()
def _fill(
    values,
    new_values,
    state,
    new_state,
    levels,
    counts,
    round_,
    height,
    width,
    least,
    sigma,
    max_level,
    BLOCK: tl.constexpr,
):
    """Give each unknown pixel the mean of the known ones around it, if these weigh enough."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < height * width
    y, x = i // width, i % width
    unknown = inside & (tl.load(state + i, mask=inside, other=0) != 0)
    u = tl.load(values + 2 * i, mask=inside, other=0)
    v = tl.load(values + 2 * i + 1, mask=inside, other=0)
    before = tl.sum(unknown.to(tl.int32), 0)
    if before > 0:
        own = _clipped(levels, i, unknown, sigma, max_level)
        mass = tl.zeros((BLOCK,), tl.float32)
        sum_u, sum_v = tl.zeros_like(u), tl.zeros_like(v)
        for k in range(25):
            dy, dx = k // 5 - 2, k % 5 - 2
            within = (dy * dy + dx * dx > 0) & (dy * dy + dx * dx < 8)
            j = _pixel(y, x, dy, dx, height, width)
            there = unknown & within & (tl.load(state + j, mask=unknown, other=1) == 0)
            weight = tl.exp(-tl.abs(_clipped(levels, j, there, sigma, max_level) - own))
            weight = tl.where(there, weight, 0)
            mass += weight
            sum_u += weight * tl.load(values + 2 * j, mask=there, other=0)
            sum_v += weight * tl.load(values + 2 * j + 1, mask=there, other=0)
        found = unknown & (mass > least)
        divisor = tl.where(found, mass, 1)
        u, v = tl.where(found, sum_u / divisor, u), tl.where(found, sum_v / divisor, v)
        unknown = unknown & (found == 0)
        tl.atomic_add(counts + 2 * round_, before)
        tl.atomic_add(counts + 2 * round_ + 1, tl.sum(unknown.to(tl.int32), 0))
    tl.store(new_values + 2 * i, u, mask=inside)
    tl.store(new_values + 2 * i + 1, v, mask=inside)
    tl.store(new_state + i, unknown.to(tl.uint8), mask=inside)


@triton.jit
def _clipped(levels, i, mask, sigma, max_level):
    """Load luma in units in which a difference of 1 divides a weight by e."""
    level = tl.load(levels + i, mask=mask, other=0).to(tl.float32)
    return tl.minimum(tl.maximum(level, 0.0), max_level) / sigma


@kernel()
def _finish(solved, values, kinds, out, height, width, visible, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < height * width
    u, v = (
        tl.load(values + 2 * i, mask=inside, other=0),
        tl.load(solved + 2 * i, mask=inside, other=0),
    )
    u2 = tl.load(values + 2 * i + 1, mask=inside, other=0)
    v2 = tl.load(solved + 2 * i + 1, mask=inside, other=0)
    distance = tl.sqrt((u - v) * (u - v) + (u2 - v2) * (u2 - v2))
    stays = (tl.load(kinds + i, mask=inside, other=0) == _FEW) & (distance <= visible)
    tl.store(out + i, tl.where(stays, v, u), mask=inside)
    tl.store(out + height * width + i, tl.where(stays, v2, u2), mask=inside)
