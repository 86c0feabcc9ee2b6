"""Polish maps by conjugate gradients on the graph of pixels, as core/filters/polish.hpp does.

A step has three kernels: means over blocks, if any; the new direction p and q = A p; and the step
along p. Each program adds up the partial sums of all programs of its plane itself, always in the
same order, so that results are the same in every run and no number goes to the host.
"""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.filters.block_means import (
    BLOCK,
    WIDTH,
    block_programs,
    mean_of_blocks,
    spread_to_pixels,
)
from bilateral.backends.cuda.kernel import kernel

_PIXELS = 1024
"""Pixels that a program handles at a time."""
_MAX_PROGRAMS = 512
"""Most programs of a plane; a power of two."""


class Observation(NamedTuple):
    """Values of low resolution that the block means of all planes should match."""

    low: Tensor
    """(h, w)"""
    weights: Tensor
    """(h, w)"""


class Scale(NamedTuple):
    """The numbers of a polish."""

    smoothness: float
    sigma: float
    """Contrast of an edge, in the unit of the reference."""
    anchor: float
    edge: float
    """Size of an edge, in the unit of the maps."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that the kernels take, as a tensor of the maps' dtype."""
        return self.smoothness, 1 / self.sigma, self.anchor, 1 / self.edge


def polish(
    image: Tensor,
    reference: Tensor,
    target: Tensor | None,
    mass: Tensor | None,
    observation: Observation | None,
    numbers: Tensor,
    rounds: int,
    steps: int,
) -> Tensor:
    """Polish maps (B, K, H, W) of float32 or float64; all tensors have their dtype.

    Parameters
    ----------
    image : Tensor
        (B, K, H, W).
    reference : Tensor
        (B or 1, C, H, W).
    target : Tensor or None
        (B, K, H, W), finite.
    mass : Tensor or None
        (B, 1, H, W): weight of the target.
    observation : Observation or None
    numbers : Tensor
        (4,), of `Scale`.
    rounds, steps : int
        Rounds of reweighting, and steps in each.
    """
    solver = _Solver(image, reference, target, mass, observation, numbers)
    for _ in range(rounds):
        solver.run_round(steps)
    return solver.z.view(image.shape)


class _Solver:
    """The memory of a polish, and its kernels in their order."""

    def __init__(
        self,
        image: Tensor,
        reference: Tensor,
        target: Tensor | None,
        mass: Tensor | None,
        observation: Observation | None,
        numbers: Tensor,
    ) -> None:
        images, channels, height, width = image.shape
        planes, pixels = images * channels, height * width
        self._start = image.contiguous().view(planes, height, width)
        self.z = self._start.clone()
        self._reference = reference.contiguous()
        shared = len(reference) == 1
        self._geometry = height, width
        self._images = channels, reference.shape[1], 0 if shared else reference.shape[1] * pixels
        self._target = target if target is None else target.contiguous()
        self._mass = mass if mass is None else mass.contiguous()
        self._blocks = (0, 0) if observation is None else tuple(observation.low.shape)
        none = image.new_empty(0)
        low, weights = (none, none) if observation is None else observation
        self._low, self._low_weights = low.contiguous(), weights.contiguous()
        new = self.z.new_empty
        self._u, self._q, self._r, self._inverse, self._p, self._last_p = new(
            (6, planes, height, width)
        )
        self._edges = new((planes, 4, height, width))
        self._means = new((planes, math.prod(self._blocks)))
        self._planes = planes
        programs = min(_MAX_PROGRAMS, triton.cdiv(pixels, _PIXELS))
        self._programs = triton.next_power_of_2(programs + 1) // 2
        least_energy = torch.finfo(image.dtype).eps ** 4
        least = constant((least_energy,), image.dtype, image.device)
        self._numbers = torch.cat([numbers, least])

    def run_round(self, steps: int) -> None:
        """Weigh the edges by the present maps, and take some steps of conjugate gradients."""
        new = self.z.new_empty
        # Sums of r u after each number of steps, and of p q in each step.
        energy = new((steps + 1, self._planes, self._programs), dtype=torch.float64)
        curvature = new((self._planes, self._programs), dtype=torch.float64)
        grid = (self._planes * self._programs,)
        sizes = {"PROGRAMS": self._programs, "BLOCK": _PIXELS}
        _weigh_edges[grid](
            self.z, self._reference, self._numbers, self._edges, *self._images, *self._geometry,
            **sizes,
        )  # fmt: skip
        self._average(self.z, None, energy, 0, True)
        _start_round[grid](
            self.z, self._start, self._target, self._mass, self._edges, self._numbers,
            self._low_weights, self._means, self._inverse, self._r, self._u, self._last_p, energy,
            self._images[0], *self._geometry, *self._blocks, **sizes,
        )  # fmt: skip
        for step in range(steps):
            self._average(self._u, self._last_p, energy, step, False)
            _multiply[grid](
                self._u, self._last_p, self._p, self._q, self._edges, self._mass, self._numbers,
                self._means, energy, curvature, step, self._planes, self._images[0],
                *self._geometry, *self._blocks, **sizes,
            )  # fmt: skip
            _descend[grid](
                self.z, self._p, self._q, self._r, self._u, self._inverse, self._numbers, energy,
                curvature, step, self._planes, *self._geometry, **sizes,
            )  # fmt: skip
            self._p, self._last_p = self._last_p, self._p

    def _average(
        self, v: Tensor, last: Tensor | None, energy: Tensor, step: int, subtract: bool
    ) -> None:
        """Store the weighted block means of v, or of the next direction that follows from it."""
        if not self._blocks[0]:
            return
        rows, columns = self._blocks
        _average[block_programs(self._planes, (rows, columns))](
            v, v if last is None else last, self._low, self._low_weights, self._means, energy, step,
            self._planes, int(subtract), *self._geometry, rows, columns,
            PROGRAMS=self._programs, BLOCK=BLOCK, WIDTH=WIDTH,
        )  # fmt: skip


@triton.jit
def _sum_of(partial, PROGRAMS: tl.constexpr):
    """Return the sum of the partial sums of all programs of a plane."""
    return tl.sum(tl.load(partial + tl.arange(0, PROGRAMS)), 0)


@triton.jit
def _beta(energy, step, planes, plane, PROGRAMS: tl.constexpr):
    """Return the weight of the last direction in the next one."""
    now = _sum_of(energy + (step * planes + plane) * PROGRAMS, PROGRAMS)
    before = tl.maximum(step - 1, 0)
    last = _sum_of(energy + (before * planes + plane) * PROGRAMS, PROGRAMS)
    return tl.where((step > 0) & (last > 0), now / tl.where(last > 0, last, 1.0), 0.0)


@triton.jit
def _store_sum(partial, value, PROGRAMS: tl.constexpr):
    """Store the sum of this program."""
    tl.store(partial + tl.program_id(0) % PROGRAMS, tl.sum(value, 0))


@kernel()
def _weigh_edges(
    z,
    reference,
    numbers,
    edges,
    channels,
    colours,
    image_stride,
    height,
    width,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the weights of the edges to the east, south, south-east and south-west.

    That is the weight in the graph, by colours, times Cauchy's, by the map.
    """
    plane = (tl.program_id(0) // PROGRAMS).to(tl.int64)
    pixels = height * width
    z += plane * pixels
    edges += plane * 4 * pixels
    reference += plane // channels * image_stride
    smoothness, unit_colour = tl.load(numbers), tl.load(numbers + 1)
    unit = tl.load(numbers + 3)
    diagonal = tl.full((1,), 0.7071067811865476, tl.float64).to(z.dtype.element_ty)
    for begin in range(tl.program_id(0) % PROGRAMS * BLOCK, pixels, PROGRAMS * BLOCK):
        i = begin + tl.arange(0, BLOCK)
        y, x = i // width, i % width
        here = tl.load(z + i, mask=i < pixels, other=0)
        for k in tl.static_range(4):
            across = 1 if k % 2 == 0 else (0 if k == 1 else -1)
            down = 0 if k == 0 else 1
            there = (i < pixels) & (y + down < height) & (x + across < width) & (x + across >= 0)
            j = i + down * width + across
            distance = tl.zeros_like(here)
            for c in range(0, colours):
                of_i = tl.load(reference + c * pixels + i, mask=there, other=0)
                of_j = tl.load(reference + c * pixels + j, mask=there, other=0)
                distance += tl.abs(of_i - of_j)
            e = (here - tl.load(z + j, mask=there, other=0)) * unit
            weight = smoothness * tl.exp(-distance * unit_colour) / (1 + e * e)
            if k > 1:
                weight *= diagonal
            tl.store(edges + k * pixels + i, tl.where(there, weight, 0), mask=i < pixels)


@kernel()
def _average(
    v,
    last,
    low,
    low_weights,
    means,
    energy,
    step,
    planes,
    subtract,
    height,
    width,
    rows,
    columns,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Store weights times block means: of v minus `low`, or of the direction v + beta last."""
    program = tl.program_id(0)
    plane = (program // rows).to(tl.int64)
    row = program % rows
    b = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pixels = height * width
    beta = tl.full((), 0.0, tl.float64)
    if subtract == 0:
        beta = _beta(energy, step, planes, plane, PROGRAMS)
    mean = mean_of_blocks(
        v + plane * pixels,
        last + plane * pixels,
        beta.to(v.dtype.element_ty),
        row,
        b,
        height,
        width,
        rows,
        columns,
        BLOCK,
        WIDTH,
    )
    at = row * columns + b
    weight = tl.load(low_weights + at, mask=b < columns, other=0)
    if subtract != 0:
        mean -= tl.load(low + at, mask=b < columns, other=0)
    to = means + plane * rows * columns + at
    tl.store(to, tl.where(weight > 0, weight * mean, 0), mask=b < columns)


@triton.jit
def _edge_pair(v, edges, at, i, offset, here, beta, last, pixels):
    """Return the products and the weights of the edges to a neighbour and from the opposite one."""
    forth, back = i + offset, i - offset
    inside, behind = (i < pixels) & (forth < pixels), (i < pixels) & (back >= 0)
    weight = tl.load(edges + at + i, mask=i < pixels, other=0)
    opposite = tl.load(edges + at + back, mask=behind, other=0)
    after = tl.load(v + forth, mask=inside, other=0)
    before = tl.load(v + back, mask=behind, other=0)
    if last is not None:
        after += beta * tl.load(last + forth, mask=inside, other=0)
        before += beta * tl.load(last + back, mask=behind, other=0)
    return weight * (here - after) + opposite * (here - before), weight + opposite


@triton.jit
def _product(v, last, beta, edges, i, width, pixels):
    """Return p = v + beta last, the edges' part of A p, and the edges' part of A's diagonal."""
    p = tl.load(v + i, mask=i < pixels, other=0)
    if last is not None:
        p += beta * tl.load(last + i, mask=i < pixels, other=0)
    east, e = _edge_pair(v, edges, 0, i, 1, p, beta, last, pixels)
    south, s = _edge_pair(v, edges, pixels, i, width, p, beta, last, pixels)
    south_east, se = _edge_pair(v, edges, 2 * pixels, i, width + 1, p, beta, last, pixels)
    south_west, sw = _edge_pair(v, edges, 3 * pixels, i, width - 1, p, beta, last, pixels)
    return p, east + south + south_east + south_west, e + s + se + sw


@kernel()
def _start_round(
    z,
    start,
    target,
    mass,
    edges,
    numbers,
    low_weights,
    means,
    inverse,
    r,
    u,
    last_p,
    energy,
    channels,
    height,
    width,
    rows,
    columns,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store 1 / diag(A), the residual r = b - A z, u = r / diag(A) and partial sums of r u."""
    plane = (tl.program_id(0) // PROGRAMS).to(tl.int64)
    pixels = height * width
    at = plane * pixels
    of_mass = plane // channels * pixels
    anchor = tl.load(numbers + 2)
    total = tl.zeros((BLOCK,), tl.float64)
    for begin in range(tl.program_id(0) % PROGRAMS * BLOCK, pixels, PROGRAMS * BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < pixels
        value, product, diagonal = _product(z + at, None, anchor, edges + 4 * at, i, width, pixels)
        b = anchor * tl.load(start + at + i, mask=inside, other=0)
        base = anchor + tl.zeros_like(b)
        if mass is not None:
            m = tl.load(mass + of_mass + i, mask=inside, other=0)
            base += m
            b += m * tl.load(target + at + i, mask=inside, other=0)
        product += base * value
        diagonal += base
        if rows > 0:
            y, x = i // width, i % width
            sizes = height, width, rows, columns
            of_plane = means + plane * rows * columns
            product += spread_to_pixels(of_plane, y, x, inside, *sizes, False)
            diagonal += spread_to_pixels(low_weights, y, x, inside, *sizes, True)
        inverted = tl.where(diagonal > 0, 1 / tl.where(diagonal > 0, diagonal, 1), 0)
        residual = b - product
        next_u = inverted * residual
        tl.store(inverse + at + i, inverted, mask=inside)
        tl.store(r + at + i, residual, mask=inside)
        tl.store(u + at + i, next_u, mask=inside)
        tl.store(last_p + at + i, tl.zeros_like(next_u), mask=inside)
        part = residual.to(tl.float64) * next_u.to(tl.float64)
        total += tl.where(inside, part, 0)
    _store_sum(energy + plane * PROGRAMS, total, PROGRAMS)


@kernel()
def _multiply(
    u,
    last_p,
    p,
    q,
    edges,
    mass,
    numbers,
    means,
    energy,
    curvature,
    step,
    planes,
    channels,
    height,
    width,
    rows,
    columns,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the direction p = u + beta last_p, q = A p and partial sums of p q."""
    plane = (tl.program_id(0) // PROGRAMS).to(tl.int64)
    pixels = height * width
    at = plane * pixels
    of_mass = plane // channels * pixels
    anchor = tl.load(numbers + 2)
    beta = _beta(energy, step, planes, plane, PROGRAMS).to(anchor.dtype)
    total = tl.zeros((BLOCK,), tl.float64)
    for begin in range(tl.program_id(0) % PROGRAMS * BLOCK, pixels, PROGRAMS * BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < pixels
        value, product, _ = _product(u + at, last_p + at, beta, edges + 4 * at, i, width, pixels)
        base = anchor + tl.zeros_like(value)
        if mass is not None:
            base += tl.load(mass + of_mass + i, mask=inside, other=0)
        product += base * value
        if rows > 0:
            y, x = i // width, i % width
            sizes = height, width, rows, columns
            product += spread_to_pixels(means + plane * rows * columns, y, x, inside, *sizes, False)
        tl.store(p + at + i, value, mask=inside)
        tl.store(q + at + i, product, mask=inside)
        total += tl.where(inside, (value * product).to(tl.float64), 0)
    _store_sum(curvature + plane * PROGRAMS, total, PROGRAMS)


@kernel()
def _descend(
    z,
    p,
    q,
    r,
    u,
    inverse,
    numbers,
    energy,
    curvature,
    step,
    planes,
    height,
    width,
    PROGRAMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take the step along p; store z, r, u = r / diag(A) and partial sums of r u.

    A map that has converged stays: further steps would only follow rounding errors.
    """
    plane = (tl.program_id(0) // PROGRAMS).to(tl.int64)
    pixels = height * width
    at = plane * pixels
    first = _sum_of(energy + plane * PROGRAMS, PROGRAMS)
    now = _sum_of(energy + (step * planes + plane) * PROGRAMS, PROGRAMS)
    bend = _sum_of(curvature + plane * PROGRAMS, PROGRAMS)
    moves = (now > tl.load(numbers + 4).to(tl.float64) * first) & (bend > 0)
    alpha = tl.where(moves, now / tl.where(bend > 0, bend, 1.0), 0.0).to(z.dtype.element_ty)
    total = tl.zeros((BLOCK,), tl.float64)
    for begin in range(tl.program_id(0) % PROGRAMS * BLOCK, pixels, PROGRAMS * BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < pixels
        value = tl.load(z + at + i, mask=inside, other=0)
        value += alpha * tl.load(p + at + i, mask=inside, other=0)
        residual = tl.load(r + at + i, mask=inside, other=0)
        residual -= alpha * tl.load(q + at + i, mask=inside, other=0)
        next_u = tl.load(inverse + at + i, mask=inside, other=0) * residual
        tl.store(z + at + i, value, mask=inside)
        tl.store(r + at + i, residual, mask=inside)
        tl.store(u + at + i, next_u, mask=inside)
        part = residual.to(tl.float64) * next_u.to(tl.float64)
        total += tl.where(inside, part, 0)
    to = energy + ((step + 1) * planes + plane) * PROGRAMS
    _store_sum(to, total, PROGRAMS)
