"""Iterate preconditioned conjugate gradients on the planes of a batch.

As in `solve/iteration.py`, everything runs on the device, and an image makes no more steps when its
channels have converged. After the V-cycle z = M^-1 r, a step takes three kernels:

- q = A z, and the parts of r^T z and z^T A z;
- d = z + beta d, s = q + beta s, x += alpha d, r -= alpha s, and the parts of the distance moved;
- the estimated error.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.image_parts import part_of_image
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.planes.blocks import (
    evaluate,
    read_matrix,
    read_plane,
    times,
    write_plane,
)
from bilateral.backends.cuda.planes.graph import add_force, read_links, read_meeting
from bilateral.backends.cuda.planes.levels import find_residual
from bilateral.backends.cuda.planes.vcycle import VCycle
from bilateral.backends.cuda.solve.best_step import is_better
from bilateral.backends.cuda.solve.error_estimate import judge_step, step_lengths
from bilateral.backends.cuda.solve.iteration import PcgOptions
from bilateral.backends.cuda.solve.pcg import Outcome, trim_errors

_STEPS_PER_CHECK = 2
"""Steps between checks of the error: at each check the host waits for the device."""


def solve(
    grid: Grid,
    vcycle: VCycle,
    pixel_moments: Tensor,
    b: Tensor,
    x: Tensor,
    scale: Tensor,
    active: Tensor | None,
    options: PcgOptions,
    record: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
) -> Outcome:
    """Improve x in place until its estimated error is below the tolerance.

    Parameters
    ----------
    grid : Grid
    vcycle : VCycle
    pixel_moments : Tensor
        As `Positions.pixel_moments`, in the dtype of the solve.
    b, x : Tensor
        (room, K, 3).
    scale : Tensor
        (B, K): size of the solution, which errors are relative to.
    active : Tensor, optional
        Whether each vertex may change. None: all may.
    options : PcgOptions
    record : function, optional
        Returns a function that launches again what another function launches, in less time.
    """
    if options.max_iterations == 0:
        return Outcome([], converged=False, diverged=False)
    start = None if active is None else x.clone()
    iteration = _Iteration(grid, vcycle, pixel_moments, b, x, scale, active, options)
    step, again = 0, iteration.step
    while step < options.max_iterations:
        again()
        step += 1
        check = step % _STEPS_PER_CHECK == 0 and options.tolerance >= 0
        if check and bool((iteration.done != 0).all()):
            break
        if step == _STEPS_PER_CHECK and record is not None:
            again = record(iteration.step)
    diverged = bool(iteration.diverged.any())
    if diverged:
        iteration.restore_best()
    vcycle.solve_colour0(b, x)
    if active is not None and start is not None:
        torch.where(active[:, None, None], x, start, out=x)
    errors = trim_errors(iteration.errors[:step].amax(1).tolist())
    return Outcome(errors, bool((iteration.done == 1).all()) and not diverged, diverged)


class _Iteration:
    """The vectors and scalars of one solve; parameters as for `solve`."""

    def __init__(
        self,
        grid: Grid,
        vcycle: VCycle,
        pixel_moments: Tensor,
        b: Tensor,
        x: Tensor,
        scale: Tensor,
        active: Tensor | None,
        options: PcgOptions,
    ) -> None:
        self._grid, self._vcycle, self._moments, self._x = grid, vcycle, pixel_moments, x
        self._fixed = options.tolerance < 0
        self._r, self._z, self._q, self._s, self._d = (torch.zeros_like(x) for _ in range(5))
        self._best = torch.empty_like(x) if options.max_iterations > options.keep_from else None
        self._channels, self._padded = x.shape[1], triton.next_power_of_2(x.shape[1])
        self._block = max(16, 128 // self._padded)
        self._allocate_scalars(scale, options)
        vcycle.solve_colour0(b, x)
        find_residual(vcycle.grid, b, x, self._r, as_parent=False)
        if active is not None:
            self._r *= active[:, None, None]

    def _allocate_scalars(self, scale: Tensor, options: PcgOptions) -> None:
        grid, device = self._grid, self._x.device
        images, padded, steps = grid.shape[0], self._padded, options.max_iterations
        wide: dict[str, Any] = {"dtype": torch.float64, "device": device}
        # Parts by program: r^T z, z^T A z, and the squares of d over pixels.
        self._parts = torch.empty(3, images, grid.programs, padded, **wide)
        self._scale = torch.ones(images, padded, **wide)
        self._scale[:, : self._channels] = scale
        epsilon = torch.finfo(self._x.dtype).eps
        limit = max(options.tolerance, options.step_noise * epsilon)
        pixels = float(math.prod(grid.shape[1:]))
        best = options.keep_from, options.keep_gain, options.divergence, epsilon**2
        self._numbers = constant((limit, pixels, *best), torch.float64, device)
        size = images * padded
        zeros = torch.zeros(4 * size + steps * (size + images), **wide)
        self._norm, self._kept_norm, self._start_norm, self._alpha, self._lengths, errors = (
            zeros.split_with_sizes([size] * 4 + [steps * size, steps * images])
        )
        self.errors = errors.view(steps, images)
        """Estimated error after each step; 0 for steps that an image did not make."""
        states = torch.zeros(2 * (size + images), dtype=torch.int32, device=device)
        self._finished, self.diverged, self.done, self._step = states.split_with_sizes(
            [size, size, images, images]
        )
        """As those of `solve/iteration.py`."""
        if padded > self._channels:
            self._finished.view(images, padded)[:, self._channels :] = 1
        window = max(2, min(steps // 3 + 1, options.error_window))
        self._window = triton.next_power_of_2(2 * window)

    def step(self) -> None:
        """Make a step: z = M^-1 r; d = z + beta d; x += alpha d; r -= alpha A d."""
        grid, channels = self._grid, self._channels
        self._vcycle.apply(self._r, self._z)
        programs = grid.programs, grid.shape[0]
        level = self._vcycle.grid
        constants = level.graph.constants(channels)
        _multiply[programs](
            *level.graph.arguments[:-2],
            *(level.smoothness, level.turn, level.data),
            *(self._r, self._z, self._q, self._parts, self.done, grid.first_vertex, channels),
            D=constants["D"],
            STEP=constants["STEP"],
            KP=self._padded,
            BLOCK=self._block,
        )
        _update[programs](
            *(self._x, self._r, self._z, self._q, self._d, self._s, self._moments, self._best),
            *(self._parts, self._norm, self._alpha, self._finished, self.done),
            *(self._kept_norm, self._step, self._numbers, grid.first_vertex, channels),
            KP=self._padded,
            PP=triton.next_power_of_2(grid.programs),
            BLOCK=self._block,
        )
        _judge[(grid.shape[0],)](
            *(self._parts, self._norm, self._alpha, self._scale, self._numbers),
            *(self._lengths, self.errors, self._finished, self.done, self._step),
            *(self._kept_norm, self._start_norm, self.diverged),
            *(self.errors.shape[0], grid.programs),
            FIXED=self._fixed,
            KP=self._padded,
            PP=triton.next_power_of_2(grid.programs),
            WINDOW=self._window,
        )

    def restore_best(self) -> None:
        """Return to the best step in channels that diverged."""
        if self._best is None:
            return
        grid = self._grid
        row = torch.arange(grid.room, dtype=torch.int32, device=self._x.device)
        image = torch.searchsorted(grid.first_vertex[1:].contiguous(), row, right=True)
        worse = self.diverged.view(grid.shape[0], -1)[:, : self._channels] != 0
        chosen = worse.index_select(0, image.clamp(max=grid.shape[0] - 1))[:, :, None]
        torch.where(chosen, self._best, self._x, out=self._x)


@kernel(ones=("channels",))
def _multiply(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    smoothness,
    turns,
    data,
    r,
    z,
    q,
    parts,
    done,
    first_vertex,
    channels,
    D: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store q = A z, and r^T z and z^T A z of one part of an image."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    graph = to, weight, meet, place, factors, first, last
    k = tl.arange(0, KP)
    factor = tl.load(smoothness)
    norm = tl.zeros((BLOCK, KP), tl.float64)
    energy = tl.zeros((BLOCK, KP), tl.float64)
    zero = tl.zeros((BLOCK, KP), q.dtype.element_ty)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        own = read_plane(z, i, mask, channels, k)
        links = read_links(graph, i, mask, D)
        turn = tl.load(turns + i, mask=mask, other=0)
        flow = (zero, zero, zero)
        for step in tl.static_range(STEP):
            j, w, near, far = read_meeting(graph, links, step, step)
            there = read_plane(z, j, j >= 0, channels, k)
            gap = evaluate(own, near) - evaluate(there, far)
            flow = add_force(flow, w, turn, near, gap, own[1] - there[1], own[2] - there[2])
        product = times(read_matrix(data, i, mask), own)
        product = (
            product[0] + factor * flow[0],
            product[1] + factor * flow[1],
            product[2] + factor * flow[2],
        )
        write_plane(q, i, mask, channels, k, product)
        residual = read_plane(r, i, mask, channels, k)
        for u in tl.static_range(3):
            norm += (residual[u] * own[u]).to(tl.float64)
            energy += (product[u] * own[u]).to(tl.float64)
    part = image * programs + program
    tl.store(parts + part * KP + k, tl.sum(norm, 0))
    tl.store(parts + (images * programs + part) * KP + k, tl.sum(energy, 0))


@kernel(ones=("channels",))
def _update(
    x,
    r,
    z,
    q,
    d,
    s,
    moments,
    best,
    parts,
    norm,
    alpha,
    finished,
    done,
    kept_norm,
    step,
    numbers,
    first_vertex,
    channels,
    KP: tl.constexpr,
    PP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Make a step of x and r; if x is the best step so far, copy it to `best` first."""
    T: tl.constexpr = x.dtype.element_ty
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    k = tl.arange(0, KP)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    scalars = parts, norm, alpha, finished
    norm_k, beta_k, alpha_k = step_lengths(*scalars, image, images, programs, k, KP, PP)
    length, beta = alpha_k.to(T)[None, :], beta_k.to(T)[None, :]
    if best is not None:
        kept = tl.load(kept_norm + image * KP + k)
        better = is_better(norm_k, kept, tl.load(step + image), numbers)
        is_best = tl.max(better.to(tl.int32), 0) != 0
    movement = tl.zeros((BLOCK, KP), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        turned, product = read_plane(z, i, mask, channels, k), read_plane(q, i, mask, channels, k)
        last_d, last_s = read_plane(d, i, mask, channels, k), read_plane(s, i, mask, channels, k)
        solution, residual = (
            read_plane(x, i, mask, channels, k),
            read_plane(r, i, mask, channels, k),
        )
        if best is not None:  # noqa: SIM102 (Triton compiles both sides of "and")
            if is_best:
                at_best, both = read_places(i, mask & (i >= 0), channels, k)
                for u in tl.static_range(3):
                    tl.store(best + at_best + u, solution[u], mask=both & better[None, :])
        d0, d1, d2 = (
            turned[0] + beta * last_d[0],
            turned[1] + beta * last_d[1],
            turned[2] + beta * last_d[2],
        )
        s0, s1, s2 = (
            product[0] + beta * last_s[0],
            product[1] + beta * last_s[1],
            product[2] + beta * last_s[2],
        )
        write_plane(d, i, mask, channels, k, (d0, d1, d2))
        write_plane(s, i, mask, channels, k, (s0, s1, s2))
        moved = solution[0] + length * d0, solution[1] + length * d1, solution[2] + length * d2
        write_plane(x, i, mask, channels, k, moved)
        left = residual[0] - length * s0, residual[1] - length * s1, residual[2] - length * s2
        write_plane(r, i, mask, channels, k, left)
        m = moments + i.to(tl.int64) * 4
        squares = tl.load(m, mask=mask, other=0)[:, None] * d0 * d0
        squares += tl.load(m + 1, mask=mask, other=0)[:, None] * d1 * d1
        squares += 2 * (tl.load(m + 2, mask=mask, other=0)[:, None] * d1 * d2)
        squares += tl.load(m + 3, mask=mask, other=0)[:, None] * d2 * d2
        movement += squares.to(tl.float64)
    part = image * programs + program
    tl.store(parts + (2 * images * programs + part) * KP + k, tl.sum(movement, 0))


@triton.jit
def read_places(i, mask, channels, k):
    """Return the places of the planes of rows i in channels k, and their mask."""
    mask = mask[:, None] & (k[None, :] < channels)
    return (i.to(tl.int64)[:, None] * channels + k[None, :]) * 3, mask


@kernel()
def _judge(
    parts,
    norm,
    alpha,
    scale,
    numbers,
    lengths,
    errors,
    finished,
    done,
    step,
    kept_norm,
    start_norm,
    diverged,
    max_iterations,
    programs,
    FIXED: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """Estimate the error of an image after a step."""
    image, images = tl.program_id(0), tl.num_programs(0)
    state = parts, norm, alpha, scale, numbers, lengths, errors, finished, done, step
    judge_step(
        state,
        (kept_norm, start_norm, diverged),
        max_iterations,
        (image, images, programs),
        tl.arange(0, KP),
        FIXED,
        True,
        KP,
        PP,
        WINDOW,
    )
