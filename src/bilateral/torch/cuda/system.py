"""Hold the linear system A y = b of a batch on CUDA: matrix, preconditioner and solution."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.grid.pyramid_transfer import push_pull
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import components, input_stats, pcg
from bilateral.backends.cuda.solve.iteration import PcgOptions
from bilateral.backends.cuda.solve.preconditioner import Preconditioner
from bilateral.numerics import policy
from bilateral.torch.cuda.batch_grid import BatchGrid
from bilateral.torch.options import LayerOptions


def count_loose(grid: Grid, weight: Tensor, smoothness: Tensor) -> Tensor:
    """Count the vertices without weight, and the loose pixels, as `policy` defines them: (2,)."""
    return input_stats.count_loose(grid, weight, smoothness, policy.LOOSE_SMOOTHNESS)


def choose_preconditioner(
    options: LayerOptions,
    smoothness: float,
    pixels: int,
    confidence: float,
    bare_vertices: float,
    loose_pixels: float,
    images: int,
) -> str:
    """Choose the preconditioner of a batch from the statistics of its poorest image.

    Parameters
    ----------
    options : LayerOptions
    smoothness : float
    pixels : int
        Number of pixels of an image.
    confidence : float
        Sum of the weights of the poorest image.
    bare_vertices : float
        Number of vertices without data.
    loose_pixels : float
        Number of loose pixels of all images. The CPU counts the faint ones for `FAINT_FRACTION`:
        there the pyramid gains less.
    images : int
    """
    return policy.choose_preconditioner(
        options.solve.preconditioner,
        smoothness=smoothness,
        pixels=pixels,
        confidence=confidence,
        every_vertex_has_data=bare_vertices == 0,
        tolerance=options.solve.tolerance,
        faint_fraction=lambda: loose_pixels / (images * pixels),
        # One image may have them all.
        loose_fraction=lambda: loose_pixels / pixels,
    )


def estimate_holds(
    options: LayerOptions, preconditioner: str, loose_pixels: float, pixels: int
) -> bool:
    """Whether a solve can trust its error estimate, by `policy.estimate_holds`.

    A caller that needs no check trusts it anyway.
    """
    return not options.solve.checks_error or policy.estimate_holds(
        preconditioner, options.solve.stop_tolerance, lambda: loose_pixels / pixels
    )


def pcg_options(max_iterations: int, tolerance: float) -> PcgOptions:
    """Return the options of conjugate gradients, with the constants that the CPU shares."""
    return PcgOptions(
        max_iterations,
        tolerance,
        error_window=policy.ERROR_WINDOW,
        step_noise=policy.STEP_NOISE,
        keep_from=policy.KEEP_FROM,
        keep_gain=policy.KEEP_GAIN,
        divergence=policy.DIVERGENCE,
    )


class System:
    """The matrix of a batch with its preconditioner, and the solution found with it.

    The host reads nothing from the device if the preconditioner is multigrid, or if there are no
    gaps.

    Parameters
    ----------
    batch_grid : BatchGrid
    weight : (n_vertices,) tensor
        S c. Its dtype is that of the solve.
    smoothness : () tensor
    kind : str
        Name of the preconditioner.
    has_bare_vertices : bool
        Whether vertices have no weight, so that parts of the grids may have no data.
    max_iterations : int
    """

    def __init__(
        self,
        batch_grid: BatchGrid,
        weight: Tensor,
        smoothness: Tensor,
        kind: str,
        has_bare_vertices: bool,
        max_iterations: int,
    ) -> None:
        self.batch_grid = batch_grid
        self.weight = weight
        self.smoothness = smoothness
        self.kind = kind
        self.with_data: Tensor | None = None
        """Which vertices are connected to data; None: all."""
        self.is_stiff = False
        """Whether the smoothness term may hide the mean of a component from a solve."""
        self._max_iterations = max_iterations
        grid, n = batch_grid.grid, batch_grid.bistochastized(weight.dtype)
        self.matrix = Laplacian(grid, n, batch_grid.blur, weight, smoothness)
        self.preconditioner: Preconditioner | VCycle
        if kind == "multigrid":
            self.preconditioner = VCycle(
                batch_grid.hierarchy(weight.dtype),
                weight,
                smoothness,
                grid.order.parity,
                level_stiffness=policy.LEVEL_STIFFNESS,
                faint_epsilons=policy.FAINT_EPSILONS,
            )
            self.with_data = self.preconditioner.with_data if has_bare_vertices else None
        else:
            self.preconditioner = Preconditioner(self.matrix, kind)
            self.with_data = components.with_data(grid, weight) if has_bare_vertices else None
        self.y = torch.empty(0)
        """Solution at the vertices."""

    @property
    def grid(self) -> Grid:
        """The grids of the batch."""
        return self.batch_grid.grid

    @property
    def may_have_gaps(self) -> bool:
        """Whether parts of the grids may have no data."""
        return self.with_data is not None

    def start(self, b: Tensor) -> Tensor:
        """Compute a start for A x = b: multigrid's nested start, or the paper's pyramid start."""
        if isinstance(self.preconditioner, VCycle):
            return self.preconditioner.nested_start(b)
        return push_pull(self.grid, b, self.weight)

    def improve(self, b: Tensor, x: Tensor, scale: Tensor | None, tolerance: float) -> pcg.Outcome:
        """Improve the start x of A x = b in place, to an error relative to `scale`.

        A stiff system is solved again until the means of its components are right, too.
        """
        residuals: list[float] = []
        while True:
            outcome = pcg.solve(
                self.matrix,
                self.preconditioner,
                b,
                x,
                scale,
                self.with_data,
                pcg_options(self._max_iterations - len(residuals), tolerance),
            )
            residuals += outcome.residuals
            takes_all_steps = tolerance < 0 and not outcome.diverged
            if not self.is_stiff or takes_all_steps or not residuals:
                return outcome
            shift = self._components.shift(self.weight, b, x, scale)
            is_last = len(residuals) >= self._max_iterations
            if not outcome.converged or shift <= tolerance or is_last:
                converged = outcome.converged and shift <= tolerance
                return pcg.Outcome(residuals, converged, outcome.diverged)

    @cached_property
    def _components(self) -> components.Components:
        return components.Components(self.grid)

    def values_in_gaps(self, b: Tensor) -> Tensor | None:
        """Compute the pyramid start for parts without data; None if x has it there already."""
        if self.kind != "multigrid" or self.with_data is None:
            return None
        return push_pull(self.grid, b, self.weight)

    def fill_gaps(self, x: Tensor, values: Tensor, out: Tensor | None = None) -> Tensor:
        """Combine the solution x of parts with data with the values of parts without."""
        assert self.with_data is not None
        return torch.where(self.with_data[:, None], x, values, out=out)

    def spread(self, v: Tensor, *, from_gaps: bool) -> Tensor:
        """Compute H v from parts without data to parts with data, or the other way round."""
        assert self.with_data is not None
        source = ~self.with_data if from_gaps else self.with_data
        out = push_pull(self.grid, v * source[:, None])
        return out * ~source[:, None]
