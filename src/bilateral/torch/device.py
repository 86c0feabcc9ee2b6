"""The operators on CUDA tensors: the system of a whole batch, by the kernels of `ops.cuda`.

Everything is computed on the device; the host waits for it where it needs a number: the size of
the grid and of its pyramid, and now and then how far the solve has come.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import color
from bilateral.ops.cuda import components, diffusion, pcg, sums
from bilateral.ops.cuda.grid import Grid, build_grid
from bilateral.ops.cuda.preconditioner import Preconditioner
from bilateral.ops.cuda.survey import survey

_PYRAMID_STEPS = 10
"""For each of the steps that multigrid, which is not there, may take."""
_OF_RESULT = 25.0
"""As `inverse._OF_RESULT` for the pyramid."""
_EXACT = 0.1
_TRUST, _ATTEMPTS = 0.5, 4
STIFF = 100.0


class Options(NamedTuple):
    """The operators' configuration."""

    sigmas: Sequence[float]
    blur: Sequence[float]
    reference_max: float | None
    tolerance: float
    max_iterations: int
    preconditioner: str
    exact: bool

    @property
    def kind(self) -> str:
        """The preconditioner on this device."""
        return "jacobi" if self.preconditioner == "jacobi" else "pyramid"

    @property
    def steps(self) -> int:
        """At most."""
        more = _PYRAMID_STEPS if self.preconditioner == "multigrid" else 1
        return more * self.max_iterations


class Space(NamedTuple):
    """Grids of references, and their bistochastization for both precisions."""

    grid: Grid
    blur: tuple[float, float, float]
    n: dict[torch.dtype, Tensor]

    def balanced(self, dtype: torch.dtype) -> Tensor:
        """The n of a dtype."""
        if dtype not in self.n:
            self.n[dtype] = diffusion.bistochastize(self.grid, self.blur, dtype)
        return self.n[dtype]


def space(reference: Tensor, options: Options, rooms: Sequence[int] | None = None) -> Space:
    """The grids of (B, C, H, W) references, which are checked unless there are `rooms`."""
    highest = options.reference_max
    if highest is None:
        integer = not reference.dtype.is_floating_point
        highest = float(torch.iinfo(reference.dtype).max) if integer else 1.0
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    channels = reference.shape[1]
    matrix, offset = color.feature_map(channels, highest)
    xy, luma, chroma = options.sigmas
    grid = build_grid(
        reference,
        matrix.tolist(),
        offset.tolist(),
        (luma, chroma, chroma)[:channels],
        highest,
        xy,
        rooms,
    )
    floating = reference.dtype.is_floating_point
    if rooms is None and floating and bool(grid.colours.strange) and not _finite(reference):
        raise ValueError("reference: expected finite values, got NaN or infinity.")
    unit = max(options.blur)
    centre, near, range_ = (weight / unit for weight in options.blur)
    return Space(grid, (centre, near, range_), {})


def _finite(values: Tensor) -> bool:
    return bool(torch.isfinite(values).all())


class Problem:
    """The matrix of a batch, and the solution for which it was made."""

    def __init__(
        self, where: Space, weight: Tensor, total: Tensor, smoothness: float, options: Options
    ) -> None:
        self.space = where
        self.smoothness = smoothness
        self.options = options
        grid = where.grid
        pixels = math.prod(grid.shape[1:])
        stiff = smoothness * pixels / float(total.min())
        most = STIFF * math.sqrt(grid.room / grid.shape[0])
        wide = weight.dtype == torch.float64 or not stiff <= most
        self.weight = weight.to(torch.float64 if wide else torch.float32)
        gaps = not bool((weight > 0).all())
        self.active = components.with_data(grid, self.weight) if gaps else None
        if self.active is not None and bool(self.active.all()):
            self.active = None
        n = where.balanced(self.weight.dtype)
        factor = torch.tensor(smoothness, dtype=torch.float64, device=weight.device)
        self.matrix = diffusion.Matrix(grid, n, where.blur, self.weight, factor)
        self.preconditioner = Preconditioner(self.matrix, options.kind)
        self.y = torch.empty(0)

    @property
    def may_have_gaps(self) -> bool:
        """Whether parts of the grids have no data."""
        return self.active is not None

    def start(self, b: Tensor) -> Tensor:
        """The paper's: H b / H weight."""
        grid = self.space.grid
        return sums.push_pull(grid, b) / sums.push_pull(grid, self.weight[:, None])

    def improve(self, b: Tensor, x: Tensor, scale: Tensor, tolerance: float) -> pcg.Outcome:
        """Solve A x = b in place."""
        return pcg.solve(
            self.matrix,
            self.preconditioner,
            b,
            x,
            scale,
            self.active,
            self.options.steps,
            tolerance,
        )

    def inverse(self, b: Tensor) -> tuple[Tensor, pcg.Outcome]:
        """A^-1 b at the vertices, 0 in parts without data."""
        dtype = b.dtype
        unit = float(b.abs().max()) or 1.0
        b = (b / unit).to(self.weight.dtype)
        if self.active is not None:
            b = b * self.active[:, None]
        x = self.start(b)
        if self.active is not None:
            x = x * self.active[:, None]
        size = self._rms(x)
        for _ in range(_ATTEMPTS):
            scale = torch.where(size > 0, size, 1.0)
            outcome = self.improve(b, x, scale, _OF_RESULT * self.options.tolerance)
            size = self._rms(x)
            if not outcome.converged or not bool(((size > 0) & (size < _TRUST * scale)).any()):
                break
        return (x * unit).to(dtype), outcome

    def spread(self, v: Tensor, *, from_gaps: bool) -> Tensor:
        """H v from vertices of one kind, in and out of parts without data, to the other."""
        assert self.active is not None
        source = ~self.active if from_gaps else self.active
        out = sums.push_pull(self.space.grid, v * source[:, None])
        return out * ~source[:, None]

    def _rms(self, x: Tensor) -> Tensor:
        """Over the pixels of each image: (B, K)."""
        pixels = math.prod(self.space.grid.shape[1:])
        return torch.sqrt(self.matrix.dot(x * self.matrix.mass[:, None], x) / pixels)


def solve(
    where: Space, values: Tensor, weights: Tensor | None, smoothness: float, options: Options
) -> tuple[Tensor, Problem, pcg.Outcome]:
    """The solution for (B H W, K) values with (B H W, 1) weights, and its problem."""
    grid = where.grid
    images = grid.shape[0]
    seen = survey(values, weights, images)
    if bool(seen.invalid.any()):
        raise ValueError(
            "confidence: expected finite numbers, 0 or above, got others. "
            "Set it to 0 where there is no data."
        )
    total = seen.total
    if not bool((total > 0).all()):
        empty = int((total <= 0).nonzero()[0])
        error = ValueError(
            "target: expected at least one pixel with a finite value and a confidence above 0, "
            "got none. Check the mask, and NaNs in the target."
        )
        if images > 1:
            error.add_note(f"In image {empty} of the batch.")
        raise error
    c = torch.ones_like(values[:, :1]) if weights is None else weights
    sums_ = sums.splat(grid, values, c)
    problem = Problem(where, sums_[:, 0].contiguous(), total, smoothness, options)
    b = sums_[:, 1:].to(problem.weight.dtype).contiguous()
    x = problem.start(b)
    tolerance = options.tolerance * (_EXACT if options.exact else 1)
    outcome = problem.improve(b, x, seen.scale, tolerance)
    if options.exact and outcome.residuals:
        reached = outcome.converged or outcome.residuals[-1] <= options.tolerance
        outcome = outcome._replace(converged=reached)
    problem.y = x
    return sums.slice_(grid, x.to(values.dtype)), problem, outcome


def gradients(
    problem: Problem,
    h: Tensor,
    target: Tensor,
    weights: Tensor | None,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, pcg.Outcome]:
    """The gradients of (B H W, K) target, of (B H W, 1) weights and of the smoothness."""
    grid = problem.space.grid
    h_v = sums.splat(grid, h)
    x, outcome = problem.inverse(h_v)
    y = problem.y.to(h.dtype)
    z, extra = x, None
    if problem.active is not None and (wanted[0] or wanted[1]):
        q = sums.push_pull(grid, problem.weight[:, None])
        gaps = ~problem.active[:, None]
        a = torch.where(gaps, h_v / q.to(h.dtype), 0)
        both = torch.cat([a, (a * y).sum(1, keepdim=True)], 1)
        spread = problem.spread(both, from_gaps=True)
        pulled = spread[:, :-1]
        z = x + pulled
        extra = (pulled * y).sum(1, keepdim=True) - spread[:, -1:]
    nothing = h.new_empty(0)
    of_target = of_weights = nothing
    if wanted[0]:
        of_target = sums.slice_(grid, z.contiguous())
        of_target = of_target if weights is None else weights * of_target
    if wanted[1]:
        at = sums.slice_(grid, torch.cat([z, y], 1))
        channels = z.shape[1]
        of_weights = (at[:, :channels] * (target - at[:, channels:])).sum(1, keepdim=True)
        if extra is not None:
            of_weights = of_weights + sums.slice_(grid, extra)
    of_smoothness = h.new_zeros((), dtype=torch.float64)
    if wanted[2]:
        wide = problem.y
        product = problem.matrix.multiply(wide) - problem.weight[:, None] * wide
        of_smoothness = -(product.double() * x.double()).sum() / problem.smoothness
    return of_target, of_weights, of_smoothness, outcome
