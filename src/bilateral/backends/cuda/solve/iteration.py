"""Iterate preconditioned conjugate gradients on a batch: its vectors, its scalars and its steps.

All of a step runs on the device, its scalars included, and an image makes no more steps when its
channels have converged. So the host can launch steps ahead. With the paper's preconditioners, a
step takes four kernels:

- y = D_n z for z = M^-1 r, and the parts of r^T z;
- q = A z, and the parts of z^T A z;
- d = y + beta d, s = q + beta s, u += alpha d, r -= alpha s, and prefix sums of r;
- the sums of r over coarse vertices, and the estimated error.

This is the variant of Chronopoulos and Gear (1989), in which s is never computed as A times the
direction: the product reads one number per neighbour instead of z, n and the direction. The
directions and u = D_n x contain the factor n, as y does, so that z need not be stored; x = u / n is
computed at the end. With multigrid, a V-cycle comes before the first kernel, and the last kernel
only judges the error.
"""

import math
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.image_parts import MAX_PROGRAMS
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.grid.pyramid_transfer import PrefixSums
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import step_kernels
from bilateral.backends.cuda.solve.preconditioner import Preconditioner

_LAUNCH: dict[torch.dtype, dict[str, Any]] = {
    torch.float32: {"num_warps": 8, "maxnreg": 64},
    torch.float64: {"num_warps": 8},
}
"""Launch options of kernels that process all vertices. 64 registers per thread let 4 programs share
a multiprocessor."""


class PcgOptions(NamedTuple):
    """When an iteration ends."""

    max_iterations: int
    tolerance: float
    """Largest estimated error; negative: always make `max_iterations` steps."""
    error_window: int
    """The error estimate compares two windows of at most this many steps."""
    step_noise: float
    """Smallest tolerance, in machine epsilons: smaller steps do not change the solution."""
    keep_from: int
    """The best step is kept from this step on."""
    keep_gain: float
    """A step replaces the kept one if it lowers r^T M^-1 r by this factor."""
    divergence: float
    """An iteration diverged if its r^T M^-1 r exceeds that of the kept step by this factor."""


class Iteration:
    """The vectors and scalars of one solve of A x = b.

    Parameters
    ----------
    matrix : Laplacian
        A.
    preconditioner : Preconditioner or VCycle
    b, x : Tensor
        (n_vertices, K). x holds the start, and after `finish` the solution.
    scale : Tensor, optional
        (B, K): size of the solution, which errors are relative to. None: the root mean square of x
        over the pixels.
    active : Tensor, optional
        Whether each vertex may change. None: all may.
    options : PcgOptions
    """

    def __init__(
        self,
        matrix: Laplacian,
        preconditioner: Preconditioner | VCycle,
        b: Tensor,
        x: Tensor,
        scale: Tensor | None,
        active: Tensor | None,
        options: PcgOptions,
    ) -> None:
        self._A = matrix
        self._M = preconditioner if isinstance(preconditioner, Preconditioner) else None
        self._vcycle = preconditioner if isinstance(preconditioner, VCycle) else None
        self._factors = None if self._M is None else self._M.factors
        self._x, self._active = x, active
        self._fixed = options.tolerance < 0
        self._allocate_scalars(scale, options)
        self._r, self._q, self._s, self._y, self._d, self._u = (
            torch.empty_like(x) for _ in range(6)
        )
        self._best = torch.empty_like(x) if options.max_iterations > options.keep_from else None
        grid, channels = matrix.grid, x.shape[1]
        self._prefix = PrefixSums(grid, x, channels)
        self._coarse = x.new_empty(
            (grid.pyramid.begin.shape[0] if self._factors is not None else 0, channels)
        )
        if self._vcycle is not None:
            self._vcycle.solve_colour0(b, x)
        self._update(matrix.multiply(x), b)
        self._judge_and_sum_coarse(first=True)

    def _allocate_scalars(self, scale: Tensor | None, options: PcgOptions) -> None:
        grid, device = self._A.grid, self._x.device
        images, channels = grid.shape[0], self._x.shape[1]
        padded, steps = triton.next_power_of_2(channels), options.max_iterations
        wide: dict[str, Any] = {"dtype": torch.float64, "device": device}
        # Parts by program: r^T z, z^T A z, and the sums of (d / n)^2 and of x^2 over pixels.
        self._parts = torch.empty(4, images, grid.programs, padded, **wide)
        self._scale = None if scale is None else scale.contiguous()
        if scale is not None and padded > channels:
            self._scale = torch.ones(images, padded, **wide)
            self._scale[:, :channels] = scale
        epsilon = torch.finfo(self._x.dtype).eps
        limit = max(options.tolerance, options.step_noise * epsilon)
        pixels = float(math.prod(grid.shape[1:]))
        best = options.keep_from, options.keep_gain, options.divergence, epsilon**2
        self._numbers = constant((limit, pixels, *best), torch.float64, device)
        if grid.image_pixels is not None:
            self._numbers = self._numbers.clone()
            self._numbers[1:2] = grid.image_pixels
        size = images * padded
        # r^T z of the step before, of the best step and of the start; alpha of the step before; the
        # lengths and the errors of all steps.
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
        """`done`, per image: 1 if it has converged, 2 if it has made all steps, else 0. `diverged`,
        per channel: 1 if the last step is far worse than the best, else 0."""
        if padded > channels:
            self._finished.view(images, padded)[:, channels:] = 1
        self._window = triton.next_power_of_2(2 * max(2, options.error_window))

    def step(self) -> None:
        """Make a step: z = M^-1 r; d = n z + beta d; u += alpha d; r -= alpha A (d / n)."""
        self._precondition()
        self._A.step(self._y, self._q, self._parts, self.done)
        self._update(self._q)
        self._judge_and_sum_coarse()

    def finish(self) -> None:
        """Write x: the last step, or the best in channels that diverged. More steps may follow."""
        grid, prefix = self._A.grid, self._prefix
        step_kernels.write_solution[(grid.programs, grid.shape[0])](
            *(self._x, self._u, self._best, self.diverged, self._A.n),
            *(grid.first_vertex, self._x.shape[1]),
            KP=prefix.padded,
            BLOCK=prefix.block,
        )

    def _update(self, q: Tensor, b: Tensor | None = None) -> None:
        grid, prefix = self._A.grid, self._prefix
        step_kernels.update[(grid.programs, grid.shape[0])](
            *(self._x, self._u, self._A.n, self._r, b, self._y, self._d, q, self._s),
            *(self._A.pixels, self._active),
            *(self._parts, self._norm, self._alpha, self._finished, self.done),
            *(None if self._factors is None else prefix.sums, prefix.parts),
            *(self._best, self._kept_norm, self._step, self._numbers),
            grid.first_vertex,
            self._x.shape[1],
            SQUARES=self._scale is None,
            KP=prefix.padded,
            PP=MAX_PROGRAMS,
            BLOCK=prefix.block,
            **_LAUNCH[self._x.dtype],
        )

    def _judge_and_sum_coarse(self, *, first: bool = False) -> None:
        grid, prefix = self._A.grid, self._prefix
        images, count = grid.shape[0], self._coarse.shape[0]
        block = prefix.range_block
        step_kernels.judge_and_sum_coarse[(images + triton.cdiv(count, block),)](
            *grid.pyramid.ranges,
            *prefix.arguments,
            *(self._factors, self._coarse, count, self._x.shape[1]),
            *(self._parts, self._norm, self._alpha, self._scale, self._numbers),
            *(self._lengths, self.errors, self._finished, self.done, self._step),
            *(self._kept_norm, self._start_norm, self.diverged),
            *(self.errors.shape[0], images, grid.programs, int(first)),
            FIXED=self._fixed,
            STEADY=self._vcycle is not None,
            KP=prefix.padded,
            PP=MAX_PROGRAMS,
            PA=prefix.padded_parts,
            WINDOW=self._window,
            BLOCK=block,
        )

    def _precondition(self) -> None:
        if self._vcycle is not None:
            self._vcycle.apply(self._r, colour0_solved=True, out=self._y)
        grid, prefix = self._A.grid, self._prefix
        pyramid = grid.pyramid
        step_kernels.precondition[(grid.programs, grid.shape[0])](
            self._r,
            None if self._M is None else self._A.inverse,
            None if self._factors is None else self._coarse,
            *(pyramid.parent, pyramid.ancestors),
            *(self._active, self._A.n, self._y, self._parts, self.done),
            *(grid.first_vertex, pyramid.rooms[0], self._x.shape[1]),
            LEVELS=pyramid.ancestors.shape[0],
            KP=prefix.padded,
            BLOCK=prefix.block,
            **_LAUNCH[self._x.dtype],
        )
