"""Preconditioned conjugate gradients on a batch, with the paper's preconditioners.

Everything of a step happens on the device, its scalars included, and the steps of an image end
where its channels have converged. So the host may launch steps ahead.
"""

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.constants import constant
from bilateral.ops.cuda.diffusion import Matrix
from bilateral.ops.cuda.preconditioner import Preconditioner

_BETWEEN_LOOKS = 8
"""Steps between looks at the error, for each of which the host waits for the device."""
_WINDOW = 256  # as in core/estimate.hpp


class Outcome(NamedTuple):
    """How it went."""

    residuals: list[float]
    """The error estimate after each step, of the worst channel."""
    converged: bool


class Iteration:
    """The vectors and scalars of one solve, (n_vertices, K)."""

    def __init__(
        self,
        matrix: Matrix,
        preconditioner: Preconditioner,
        b: Tensor,
        x: Tensor,
        scale: Tensor,
        active: Tensor | None,
        most_steps: int,
        tolerance: float,
    ) -> None:
        images, channels = scale.shape
        self._A, self._M = matrix, preconditioner
        self._x, self._active = x, active
        self._padded = triton.next_power_of_2(channels)
        self._parts = matrix.parts(x)
        device = x.device
        wide: dict[str, Any] = {"dtype": torch.float64, "device": device}
        self._scale = torch.ones(images, self._padded, **wide)
        self._scale[:, :channels] = scale
        limit = max(tolerance, 0.05 * torch.finfo(x.dtype).eps)
        pixels = float(math.prod(matrix.grid.shape[1:]))
        self._numbers = constant((limit, pixels), torch.float64, device)
        self._norm, self._alpha, self._beta = torch.zeros(3, images, self._padded, **wide)
        self._lengths = torch.zeros(most_steps, images, self._padded, **wide)
        self._errors = torch.zeros(most_steps, images, **wide)
        self._finished = torch.zeros(images, self._padded, dtype=torch.int32, device=device)
        self._finished[:, channels:] = 1
        self.done = torch.zeros(images, dtype=torch.int32, device=device)
        self._step = torch.zeros(1, dtype=torch.int32, device=device)
        self._fixed = tolerance < 0
        self._q = torch.empty_like(x)
        matrix.multiply_into(self._q, self._parts, x)
        self._r = b - self._q
        if active is not None:
            self._r *= active[:, None]
        self._z, self._d = torch.empty_like(x), torch.zeros_like(x)
        self._direct()

    def step(self) -> None:
        """X += alpha d; r -= alpha q; d = M^-1 r + beta d."""
        self._A.multiply_into(self._q, self._parts, self._d, self.done)
        images, channels = self._scale.shape[0], self._x.shape[1]
        programs = self._A.programs
        _advance[(images,)](
            self._parts,
            self._norm,
            self._scale,
            self._numbers,
            self._lengths,
            self._errors,
            self._finished,
            self.done,
            self._alpha,
            self._step,
            programs,
            FIXED=self._fixed,
            KP=self._padded,
            PP=triton.next_power_of_2(programs),
            WINDOW=_WINDOW,
        )
        _descend[(programs, images)](
            self._alpha,
            self._d,
            self._q,
            self._x,
            self._r,
            self._A.grid.first_vertex,
            channels,
            KP=self._padded,
            BLOCK=max(16, 256 // self._padded),
        )
        self._direct()
        self._step += 1

    def _direct(self) -> None:
        """D = M^-1 r + beta d, with beta from r^T M^-1 r."""
        images, channels = self._scale.shape[0], self._x.shape[1]
        programs = self._A.programs
        size = {"KP": self._padded, "BLOCK": max(16, 256 // self._padded)}
        above, parent = self._M.lift(self._r, self.done)
        _precondition[(programs, images)](
            self._r,
            self._M.inverse,
            above,
            parent,
            self._active,
            self._z,
            self._parts,
            self.done,
            self._A.grid.first_vertex,
            channels,
            **size,
        )
        _follow[(images,)](
            self._parts,
            self._norm,
            self._beta,
            programs,
            KP=self._padded,
            PP=triton.next_power_of_2(programs),
        )
        _turn[(programs, images)](
            self._beta,
            self._z,
            self._d,
            self.done,
            self._A.grid.first_vertex,
            channels,
            **size,
        )

    def errors(self, steps: int) -> list[float]:
        """The error estimates after so many steps; the host waits for the device."""
        errors: list[float] = self._errors[:steps].amax(1).tolist()
        while len(errors) > 1 and errors[-1] == 0:  # all had ended before
            errors.pop()
        return errors


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
    if most_steps == 0:
        return Outcome([], converged=False)
    run = Iteration(matrix, preconditioner, b, x, scale, active, most_steps, tolerance)
    for step in range(1, most_steps + 1):
        run.step()
        if step % _BETWEEN_LOOKS == 0 and tolerance >= 0 and bool((run.done != 0).all()):
            break
    return Outcome(run.errors(step), bool((run.done != 0).all()))


@triton.jit
def _sum_parts(parts, image, programs, k, KP: tl.constexpr, PP: tl.constexpr):
    p = tl.arange(0, PP)
    at = (image * programs + p[:, None]) * KP + k[None, :]
    return tl.sum(tl.load(parts + at, mask=(p < programs)[:, None], other=0), 0)


@triton.jit
def _advance(
    parts,
    norm,
    scale,
    numbers,
    lengths,
    errors,
    finished,
    done,
    alpha,
    step,
    programs,
    FIXED: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """The length of a step, and by all lengths so far how far the solution is, per channel.

    The estimate is that of core/estimate.hpp, not steady.
    """
    image, images = tl.program_id(0), tl.num_programs(0)
    k = tl.arange(0, KP)
    own = image * KP + k
    bend = _sum_parts(parts, image, programs, k, KP, PP)
    moved = _sum_parts(parts + images * programs * KP, image, programs, k, KP, PP)
    limit, pixels = tl.load(numbers), tl.load(numbers + 1)
    was = tl.load(finished + own)
    go = (was == 0) & (bend > 0) & (tl.load(done + image) == 0)
    a = tl.where(go, tl.load(norm + own) / tl.where(go, bend, 1.0), 0.0)
    tl.store(alpha + own, a)
    s = tl.load(step)
    length = tl.where(go, a * tl.sqrt(moved / pixels) / tl.load(scale + own), 0.0)
    tl.store(lengths + s * images * KP + own, length)
    last, now, before = length, length * length, tl.zeros((KP,), tl.float64)
    for j in range(1, 3):
        at = s - j + k * 0
        last = tl.maximum(last, tl.load(lengths + at * images * KP + own, mask=at >= 0, other=0.0))
    window = tl.minimum(tl.maximum((s + 1) // 3, 1), WINDOW)
    for j in range(1, window):
        value = tl.load(lengths + (s - j) * images * KP + own)
        now += value * value
    for j in range(0, window):
        at = s - window - j + k * 0
        value = tl.load(lengths + at * images * KP + own, mask=at >= 0, other=0.0)
        before += value * value
    some = (before > 0) & (now > 0)
    ratio = tl.where(some, now / tl.where(some, before, 1.0), 1.0)
    rho = tl.where(some, tl.exp(tl.log(ratio) * (0.5 / window.to(tl.float64))), 0.0)
    rho = tl.minimum(rho, 1 - 0.25 / (s + 1).to(tl.float64))
    left = tl.where(s == 0, 1.5 * last, last * tl.maximum(rho / (1 - rho), 1.5))
    tl.store(errors + s * images + image, tl.max(tl.where(was != 0, 0.0, left), 0))
    if not FIXED:
        now_done = (was != 0) | ((s >= 1) & (left <= limit))
        tl.store(finished + own, now_done.to(tl.int32))
        tl.store(done + image, tl.min(now_done.to(tl.int32), 0))


@triton.jit
def _descend(alpha, d, q, x, r, first_vertex, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    k = tl.arange(0, KP)
    a = tl.load(alpha + image * KP + k)
    end = tl.where(tl.max(a, 0) > 0, end, begin)
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
def _precondition(
    r,
    inverse,
    above,
    parent,
    active,
    z,
    parts,
    done,
    first_vertex,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Z = r / diag A + what the pyramid adds, and this program's part of r^T z."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    k = tl.arange(0, KP)
    total = tl.zeros((KP,), tl.float64)
    for at in range(begin + program * BLOCK, end, programs * BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        both = mask[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        left = tl.load(r + to, mask=both, other=0)
        made = tl.load(inverse + i, mask=mask, other=0)[:, None] * left
        if above is not None:
            up = tl.load(parent + i, mask=mask, other=0).to(tl.int64)
            made += tl.load(above + up[:, None] * channels + k[None, :], mask=both, other=0)
        if active is not None:
            on = tl.load(active + i, mask=mask, other=0) != 0
            made = tl.where(on[:, None], made, 0.0)
        tl.store(z + to, made, mask=both)
        total += tl.sum((left * made).to(tl.float64), 0)
    tl.store(parts + (image * programs + program) * KP + k, total)


@triton.jit
def _follow(parts, norm, beta, programs, KP: tl.constexpr, PP: tl.constexpr):
    image = tl.program_id(0)
    k = tl.arange(0, KP)
    own = image * KP + k
    following = _sum_parts(parts, image, programs, k, KP, PP)
    before = tl.load(norm + own)
    some = before > 0
    tl.store(beta + own, tl.where(some, following / tl.where(some, before, 1.0), 0.0))
    tl.store(norm + own, following)


@triton.jit
def _turn(beta, z, d, done, first_vertex, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    k = tl.arange(0, KP)
    b = tl.load(beta + image * KP + k).to(d.dtype.element_ty)[None, :]
    for at in range(begin + program * BLOCK, end, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        turned = tl.load(z + to, mask=both) + b * tl.load(d + to, mask=both)
        tl.store(d + to, turned, mask=both)
