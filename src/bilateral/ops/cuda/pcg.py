"""Preconditioned conjugate gradients on a batch, with the paper's preconditioners."""

import math
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda import sums
from bilateral.ops.cuda.diffusion import Matrix

_BETWEEN_LOOKS = 8
"""Steps between looks at the error, for each of which the host waits for the device."""
_LEAST_STEPS = 2


class Outcome(NamedTuple):
    """How it went."""

    residuals: list[float]
    """The error estimate after each step, of the worst channel."""
    converged: bool


class Preconditioner:
    """M^-1 r = P^T ((z_weight P(1) P(r)) / P(diag A)), or r / diag A."""

    def __init__(self, matrix: Matrix, kind: str) -> None:
        self._grid = matrix.grid
        diagonal = matrix.diagonal
        self._levels = matrix.grid.levels if kind == "pyramid" else ()
        self.inverse = torch.where(diagonal > 0, 1 / diagonal, 0)
        self._scales = []
        size, below = torch.ones_like(diagonal)[:, None], diagonal[:, None]
        for k, level in enumerate(self._levels):
            size, below = sums.lift(level, size), sums.lift(level, below)
            weight = 2.0 ** -(5 + k + 1)
            self._scales.append(torch.where(below > 0, weight * size / below, 0))

    def apply(self, r: Tensor) -> Tensor:
        """M^-1 r of (n_vertices, K)."""
        up = r
        lifted = []
        for level in self._levels:
            up = sums.lift(level, up)
            lifted.append(up)
        z = self.inverse[:, None] * r
        if not lifted:
            return z
        above = self._scales[-1] * lifted[-1]
        for k in range(len(lifted) - 2, -1, -1):
            above = self._scales[k] * lifted[k] + above.index_select(0, self._levels[k + 1].parent)
        return z + above.index_select(0, self._levels[0].parent)


def solve(
    matrix: Matrix,
    preconditioner: Preconditioner,
    b: Tensor,
    x: Tensor,
    scale: Tensor,
    active: Tensor | None,
    most_steps: int,
    tolerance: float,
) -> Outcome:
    """Improve x (n_vertices, K) in place until its estimated error is `tolerance` times `scale`.

    `scale` is (B, K). Only `active` vertices move; None: all. A negative tolerance: always as many
    steps as allowed.
    """
    pixels = math.prod(matrix.grid.shape[1:])
    least = 0.05 * torch.finfo(x.dtype).eps
    limit = max(tolerance, least)
    r = b - matrix.multiply(x)[0]
    if active is not None:
        r *= active[:, None]
    z = preconditioner.apply(r)
    if active is not None:
        z *= active[:, None]
    norm = matrix.dot(r, z)
    d = z.clone()
    estimates = [[_ErrorEstimate() for _ in range(scale.shape[1])] for _ in range(scale.shape[0])]
    finished = torch.zeros_like(norm, dtype=torch.bool)
    residuals: list[float] = []
    lengths: list[Tensor] = []
    converged = False
    for step in range(1, most_steps + 1):
        q, bend, moved = matrix.multiply(d)
        alpha = torch.where((bend > 0) & ~finished, norm / bend, 0)
        lengths.append(alpha * torch.sqrt(moved / pixels) / scale)
        _descend(matrix, alpha, d, q, x, r)
        last = step == most_steps
        if step >= _LEAST_STEPS and (last or step % _BETWEEN_LOOKS == 0):
            converged = _look(lengths, estimates, residuals, finished, limit)
            lengths.clear()
            if converged and tolerance >= 0:
                break
        if last:
            break
        z = preconditioner.apply(r)
        if active is not None:
            z *= active[:, None]
        following = matrix.dot(r, z)
        beta = torch.where(norm > 0, following / norm, 0)
        norm = following
        _turn(matrix, beta, z, d)
    return Outcome(residuals, converged)


def _look(
    lengths: list[Tensor],
    estimates: list[list["_ErrorEstimate"]],
    residuals: list[float],
    finished: Tensor,
    limit: float,
) -> bool:
    """Estimate the errors after the last steps; what is within the limit is finished."""
    done = finished.tolist()
    for rows in torch.stack(lengths).tolist():
        worst = 0.0
        for image, row in enumerate(rows):
            for channel, length in enumerate(row):
                if done[image][channel]:
                    continue
                estimate = estimates[image][channel]
                estimate.add(length)
                worst = max(worst, estimate.value())
        residuals.append(worst)
    for image, row in enumerate(done):
        for channel, was in enumerate(row):
            row[channel] = was or estimates[image][channel].value() <= limit
    finished.copy_(torch.tensor(done))
    return all(all(row) for row in done)


class _ErrorEstimate:
    """How far the solution is, judged by the steps alone: core/estimate.hpp, not steady."""

    def __init__(self) -> None:
        self._steps: list[float] = []

    def add(self, step: float) -> None:
        self._steps.append(step)

    def value(self) -> float:
        steps = self._steps
        n = len(steps)
        last = max(steps[-3:])
        if n < 2:
            return 1.5 * last
        window = min(max(n // 3, 1), 256)
        now = sum(s * s for s in steps[n - window :])
        before = sum(s * s for s in steps[n - 2 * window : n - window])
        rho = (now / before) ** (0.5 / window) if before > 0 else 0.0
        rho = min(rho, 1 - 0.25 / n)
        return last * max(1.5, rho / (1 - rho))


def _descend(matrix: Matrix, alpha: Tensor, d: Tensor, q: Tensor, x: Tensor, r: Tensor) -> None:
    """X += alpha d, r -= alpha q."""
    _step[_blocks(matrix, d)](alpha, d, q, x, r, matrix.grid.first_vertex, d.shape[1], **_sizes(d))


def _turn(matrix: Matrix, beta: Tensor, z: Tensor, d: Tensor) -> None:
    """D = z + beta d."""
    _direct[_blocks(matrix, d)](beta, z, d, matrix.grid.first_vertex, d.shape[1], **_sizes(d))


def _blocks(matrix: Matrix, d: Tensor) -> tuple[int, int]:
    images = matrix.grid.shape[0]
    return max(1, min(512 // images, triton.cdiv(d.shape[0], 256))), images


def _sizes(d: Tensor) -> dict[str, int]:
    padded = triton.next_power_of_2(d.shape[1])
    return {"KP": padded, "BLOCK": max(16, 256 // padded)}


@triton.jit
def _step(alpha, d, q, x, r, first_vertex, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    k = tl.arange(0, KP)
    a = tl.load(alpha + image * channels + k, mask=k < channels, other=0)
    a = a.to(x.dtype.element_ty)[None, :]
    for at in range(begin + program * BLOCK, end, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        moved = tl.load(x + to, mask=both) + a * tl.load(d + to, mask=both)
        tl.store(x + to, moved, mask=both)
        left = tl.load(r + to, mask=both) - a * tl.load(q + to, mask=both)
        tl.store(r + to, left, mask=both)


@triton.jit
def _direct(beta, z, d, first_vertex, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    k = tl.arange(0, KP)
    b = tl.load(beta + image * channels + k, mask=k < channels, other=0)
    b = b.to(d.dtype.element_ty)[None, :]
    for at in range(begin + program * BLOCK, end, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        turned = tl.load(z + to, mask=both) + b * tl.load(d + to, mask=both)
        tl.store(d + to, turned, mask=both)
