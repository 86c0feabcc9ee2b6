"""The operators on CUDA tensors: the system of a whole batch, by the kernels of `ops.cuda`.

Everything is computed on the device; the host waits for it where it needs a number: the size of
the grid and of its pyramid, and now and then how far the solve has come.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import color
from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.grid.bistochastize import bistochastize
from bilateral.backends.cuda.grid.grid import Grid, build_grid
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import components, pcg
from bilateral.backends.cuda.solve.input_stats import compute_input_stats, count_faint
from bilateral.backends.cuda.solve.iteration import PcgOptions
from bilateral.backends.cuda.solve.preconditioner import Preconditioner
from bilateral.numerics import policy
from bilateral.torch.options import LayerOptions


class Inputs(NamedTuple):
    """Of a solve, besides its options."""

    reference: Tensor
    """(B, C, H, W)"""
    values: Tensor
    """(B H W, K)"""
    weights: Tensor | None
    """(B H W, 1); None: 1 everywhere."""
    smoothness: float


class HierarchyRooms(NamedTuple):
    """Room for rows and links of each level of a hierarchy, and its first small level."""

    levels: list[tuple[int, int]] | None = None
    first_small: int | None = None


class Space:
    """Grids of references, and for both precisions their bistochastization and hierarchy."""

    def __init__(
        self, grid: Grid, blur: tuple[float, float, float], recorded: HierarchyRooms | None
    ) -> None:
        self.grid = grid
        self.blur = blur
        self._recorded = recorded or HierarchyRooms()
        self._n: dict[torch.dtype, Tensor] = {}
        self._hierarchies: dict[torch.dtype, Hierarchy] = {}

    def renewed(self) -> "Space":
        """The same grid, with nothing made from it yet."""
        return Space(self.grid, self.blur, self._recorded)

    def balanced(self, dtype: torch.dtype) -> Tensor:
        """The n of a dtype."""
        if dtype not in self._n:
            self._n[dtype] = bistochastize(self.grid, self.blur, dtype)
        return self._n[dtype]

    def hierarchy(self, dtype: torch.dtype) -> Hierarchy:
        """For multigrid in a dtype."""
        if dtype not in self._hierarchies:
            grid, n = self.grid, self.balanced(dtype)
            self._hierarchies[dtype] = Hierarchy(
                grid.edges, n, self.blur, grid.first_vertex, *self._recorded
            )
        return self._hierarchies[dtype]


def space(
    reference: Tensor,
    options: LayerOptions,
    rooms: Sequence[int] | None = None,
    hierarchy: HierarchyRooms | None = None,
) -> Space:
    """The grids of (B, C, H, W) references, which are checked unless there are `rooms`."""
    highest = options.grid.reference_max
    if highest is None:
        integer = not reference.dtype.is_floating_point
        highest = float(torch.iinfo(reference.dtype).max) if integer else 1.0
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    channels = reference.shape[1]
    matrix, offset = color.feature_map(channels, highest)
    xy, luma, chroma = (
        options.grid.sigma_xy,
        options.grid.sigma_luma,
        options.grid.sigma_chroma,
    )
    grid = build_grid(
        reference,
        matrix.tolist(),
        offset.tolist(),
        (luma, chroma, chroma)[:channels],
        highest,
        xy,
        rooms,
        edge_guard=policy.EDGE_GUARD,
    )
    floating = reference.dtype.is_floating_point
    if rooms is None and floating and bool(grid.tile_keys.out_of_range) and not _finite(reference):
        raise ValueError("reference: expected finite values, got NaN or infinity.")
    unit = max(options.grid.blur)
    centre, near, range_ = (weight / unit for weight in options.grid.blur)
    return Space(grid, (centre, near, range_), hierarchy)


def _finite(values: Tensor) -> bool:
    return bool(torch.isfinite(values).all())


def choose(
    options: LayerOptions, smoothness: float, pixels: int, weight: float, bare: float, faint: float
) -> str:
    """Choose the preconditioner of a batch from the statistics of its poorest image.

    Parameters
    ----------
    options : LayerOptions
    smoothness : float
    pixels : int
        Number of pixels of an image.
    weight : float
        Sum of the weights of the poorest image.
    bare : float
        Number of vertices without data.
    faint : float
        Fraction of pixels whose vertex and all its neighbours lack data. The CPU does not look at
        the neighbours: there the pyramid gains less.
    """
    return policy.choose_preconditioner(
        options.solve.preconditioner,
        smoothness=smoothness,
        pixels=pixels,
        confidence=weight,
        every_vertex_has_data=bare == 0,
        faint_fraction=lambda: faint,
    )


def count_poor(grid: Grid, weight: Tensor, smoothness: Tensor) -> Tensor:
    """How many vertices have no weight, and how many pixels are far from any: (2,)."""
    return count_faint(grid, weight, smoothness, policy.EASY_SMOOTHNESS)


class Inverse(NamedTuple):
    """What a problem's matrix makes of S g, at the vertices."""

    x: Tensor
    """A^-1 S g, 0 in parts without data."""
    z: Tensor
    """The gradient of S (c t) for that of the solution, g: x, and what comes from these parts."""
    extra: Tensor | None
    """Of the gradient of S c, what is not z (t - y): (n_vertices,); None: nothing."""


class Problem:
    """The matrix of a batch, and the solution for which it was made.

    Nothing is read from the device for multigrid, nor without `gaps`: vertices without weight.
    """

    def __init__(
        self, where: Space, weight: Tensor, smoothness: Tensor, kind: str, gaps: bool, steps: int
    ) -> None:
        self.space = where
        self.weight = weight
        self.smoothness = smoothness
        self.kind = kind
        self.active: Tensor | None = None
        """Which vertices are connected to data; None: all."""
        self._steps = steps
        n = where.balanced(weight.dtype)
        self.matrix = Laplacian(where.grid, n, where.blur, weight, smoothness)
        self.preconditioner: Preconditioner | VCycle
        if kind == "multigrid":
            parity = where.grid.order.parity
            self.preconditioner = VCycle(
                where.hierarchy(weight.dtype),
                weight,
                smoothness,
                parity,
                level_stiffness=policy.LEVEL_STIFFNESS,
                faint_epsilons=policy.FAINT_EPSILONS,
            )
            self.active = self.preconditioner.with_data if gaps else None
        else:
            self.preconditioner = Preconditioner(self.matrix, kind)
            self.active = components.with_data(where.grid, weight) if gaps else None
        self.y = torch.empty(0)

    @property
    def may_have_gaps(self) -> bool:
        """Whether parts of the grids have no data."""
        return self.active is not None

    def start(self, b: Tensor) -> Tensor:
        """A start for A x = b: multigrid's, or the paper's."""
        if isinstance(self.preconditioner, VCycle):
            return self.preconditioner.nested_start(b)
        return pyramid_transfer.push_pull(self.space.grid, b, self.weight)

    def improve(self, b: Tensor, x: Tensor, scale: Tensor | None, tolerance: float) -> pcg.Outcome:
        """Solve A x = b in place."""
        return pcg.solve(
            self.matrix,
            self.preconditioner,
            b,
            x,
            scale,
            self.active,
            pcg_options(self._steps, tolerance),
        )

    def elsewhere(self, b: Tensor) -> Tensor | None:
        """The paper's start for parts without data; None if x has it there, or there are none."""
        if self.kind != "multigrid" or self.active is None:
            return None
        return pyramid_transfer.push_pull(self.space.grid, b, self.weight)

    def fill(self, x: Tensor, elsewhere: Tensor, out: Tensor | None = None) -> Tensor:
        """The solution: x where there are data."""
        assert self.active is not None
        return torch.where(self.active[:, None], x, elsewhere, out=out)

    def inverse(self, g: Tensor, tolerance: float) -> tuple[Inverse, pcg.Outcome]:
        """For (B H W, K) pixels."""
        part = Inversion(self, g)
        outcome = self.improve(part.b, part.x, None, self.of_result(tolerance))
        return part.end(), outcome

    def of_result(self, tolerance: float) -> float:
        """The error that an inverse may have, relative to its size."""
        return policy.ADJOINT_TOLERANCE[self.kind] * tolerance

    def spread(self, v: Tensor, *, from_gaps: bool) -> Tensor:
        """H v from vertices of one kind, in and out of parts without data, to the other."""
        assert self.active is not None
        source = ~self.active if from_gaps else self.active
        out = pyramid_transfer.push_pull(self.space.grid, v * source[:, None])
        return out * ~source[:, None]


class Inversion:
    """An inverse that is being made: A x = b is to be solved, from x."""

    def __init__(self, problem: Problem, g: Tensor) -> None:
        self._problem, active = problem, problem.active
        self._own = splatting.splat(problem.space.grid, g)
        largest = g.abs().amax()
        self._unit = torch.where(largest > 0, largest, 1)
        b = (self._own / self._unit).to(problem.weight.dtype)
        self.b = b if active is None else b * active[:, None]
        x = problem.start(self.b)
        self.x = x if active is None else x * active[:, None]

    def end(self) -> Inverse:
        """In units of g, with what comes from parts without data."""
        problem, dtype = self._problem, self._own.dtype
        x = (self.x * self._unit).to(dtype)
        if problem.active is None:
            return Inverse(x, x, None)
        q = pyramid_transfer.push_pull(problem.space.grid, problem.weight[:, None])
        gaps = ~problem.active[:, None]
        a = torch.where(gaps, self._own / q.to(dtype), 0)
        y = problem.y.to(dtype)
        both = torch.cat([a, (a * y).sum(1, keepdim=True)], 1)
        spread = problem.spread(both, from_gaps=True)
        pulled = spread[:, :-1]
        return Inverse(x, x + pulled, (pulled * y).sum(1) - spread[:, -1])


def solve(
    where: Space, values: Tensor, weights: Tensor | None, smoothness: float, options: LayerOptions
) -> tuple[Tensor, Problem, pcg.Outcome]:
    """The solution for (B H W, K) values with (B H W, 1) weights, and its problem."""
    grid = where.grid
    images = grid.shape[0]
    seen = compute_input_stats(values, weights, images)
    if bool(seen.invalid_weights.any()):
        raise ValueError(
            "confidence: expected finite numbers, 0 or above, got others. "
            "Set it to 0 where there is no data."
        )
    total = seen.weight_sum
    if not bool((total > 0).all()):
        empty = int((total <= 0).nonzero()[0])
        error = ValueError(
            "target: expected at least one pixel with a finite value and a confidence above 0, "
            "got none. Check the mask, and NaNs in the target."
        )
        if images > 1:
            error.add_note(f"In image {empty} of the batch.")
        raise error
    weight, b = splatting.splat_weighted(grid, values, weights)
    problem = _problem(where, weight, float(total.min()), smoothness, options)
    b = b.to(problem.weight.dtype)
    x = problem.start(b)
    outcome = reached(problem.improve(b, x, seen.scale, options.solve.stop_tolerance), options)
    elsewhere = problem.elsewhere(b)
    problem.y = x if elsewhere is None else problem.fill(x, elsewhere)
    return splatting.slice_(grid, problem.y.to(values.dtype)), problem, outcome


def pcg_options(max_iterations: int, tolerance: float) -> PcgOptions:
    """Return the options of conjugate gradients, with the constants that the CPU shares."""
    return PcgOptions(max_iterations, tolerance, policy.ERROR_WINDOW, policy.TOLERANCE_EPSILONS)


def reached(outcome: pcg.Outcome, options: LayerOptions) -> pcg.Outcome:
    """Count an exact solve as converged if its error is below the requested tolerance."""
    if not options.solve.exact or not outcome.residuals:
        return outcome
    enough = outcome.converged or outcome.residuals[-1] <= options.solve.tolerance
    return outcome._replace(converged=enough)


def _problem(
    where: Space, weight: Tensor, total: float, smoothness: float, options: LayerOptions
) -> Problem:
    """The problem in the precision and with the preconditioner that it takes."""
    grid = where.grid
    images, height, width = grid.shape
    pixels = height * width
    factor = torch.tensor(smoothness, dtype=torch.float64, device=weight.device)
    if not policy.float32_is_enough(smoothness, pixels, total, grid.room / images):
        weight = weight.double()
    bare, poor = count_poor(grid, weight, factor).tolist()
    kind = choose(options, smoothness, pixels, total, bare, poor / (images * pixels))
    arguments = factor, kind, bare > 0, options.solve.max_iterations
    problem = Problem(where, weight, *arguments)
    fine = problem.preconditioner
    if (
        weight.dtype != torch.float64
        and isinstance(fine, VCycle)
        and bool(fine.has_faint_component)
    ):
        problem = Problem(where, weight.double(), *arguments)
    if problem.active is not None and bool(problem.active.all()):
        problem.active = None
    return problem


def gradients(
    problem: Problem,
    found: Inverse,
    target: Tensor,
    weights: Tensor | None,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of (B H W, K) target, of (B H W, 1) weights and of the smoothness.

    From the inverse for the solution's gradient; empty where not wanted, but for the last.
    """
    x, z, extra = found
    y = problem.y
    of_target, of_weights = splatting.slice_gradients(
        problem.space.grid, z, y.to(z.dtype), extra, target, weights, wanted[0], wanted[1]
    )
    of_smoothness = z.new_zeros((), dtype=torch.float64)
    if wanted[2]:
        product = problem.matrix.multiply(y) - problem.weight[:, None] * y
        of_smoothness = -problem.matrix.dot(product, x).sum() / problem.smoothness
    return of_target, of_weights, of_smoothness
