"""Solve a batch with planes on CUDA, and keep the matrix, to apply derivatives of the solution.

The steps and formulas are those of `bilateral.numerics.planar` and `numerics.plane_adjoint`. The
host waits for the device where it needs a number: for statistics of the inputs, and for the error
of the solve. Everything else stays on the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bilateral.backends.cuda.planes.splat import pixel_sums, slice_planes, splat_planes
from bilateral.backends.cuda.solve import input_stats, pcg
from bilateral.backends.cuda.solve.input_stats import InputStats, compute_input_stats
from bilateral.numerics import policy
from bilateral.torch.cuda.batch_grid import build_batch_grid
from bilateral.torch.cuda.planar import slope_rule
from bilateral.torch.cuda.planar.plane_grid import PlaneGrid
from bilateral.torch.cuda.planar.system import PlaneSystem
from bilateral.torch.cuda.solve import Inputs, accept_tolerance, check_weights
from bilateral.torch.cuda.system import System
from bilateral.torch.options import LayerOptions

Slopes = tuple[float, float]
"""Slope smoothness and ridge of an image."""


@dataclass(frozen=True)
class _Observed:
    """The data of a batch at the vertices."""

    moments: Tensor
    weighted: Tensor
    origin: Tensor
    """(B, K) float64: what the values were centred by."""
    unit: Tensor
    """(B, K) float64: what the values were divided by."""
    confidence: float
    """Sum of the weights of the poorest image."""
    confidence_unit: float
    """The caller's confidence of 1."""
    smoothness: float
    """lambda, in the unit of the confidences."""


class PlaneProblem:
    """One planar solve of a batch: its solution, and any number of solves with its matrix.

    Parameters
    ----------
    inputs : Inputs
    options : LayerOptions
    earlier : System or PlaneProblem, optional
        An earlier problem with the same references, whose grid serves again.
    slopes : list of (float, float), optional
        Penalties of each image. None: those of the options, or of the rule.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: LayerOptions,
        earlier: System | PlaneProblem | None = None,
        slopes: list[Slopes] | None = None,
    ) -> None:
        self._options = options
        self.grid = _grid_of(inputs.reference, options, earlier)
        values, weights = inputs.values, inputs.weights
        if options.solve.needs_float64:
            values = values.double()
        weights = None if weights is None else weights.to(values.dtype)
        stats = compute_input_stats(values, weights, self.grid.grid.shape[0])
        check_weights(stats)
        self._observed = _observe(self.grid, values, weights, stats, inputs.smoothness)
        if slopes is None:
            observed = self._observed
            slopes = _slopes(self.grid, values, weights, observed, options)
        self.slopes = slopes
        self._systems: dict[tuple[bool, bool], PlaneSystem] = {}

    @property
    def content(self) -> list[int]:
        """The ridge of each image as the bits of an integer, to rebuild this from a handle."""
        return [int(np.float64(ridge).view(np.int64)) for _, ridge in self.slopes]

    def solve(self, dtype: torch.dtype) -> tuple[Tensor, pcg.Outcome]:
        """Return the solution (B H W, K), without the clamp."""
        options, observed = self._options, self._observed
        system = self._system(for_derivatives=False)
        x, outcome = system.solve(
            observed.weighted, torch.ones_like(observed.unit), options.solve.stop_tolerance
        )
        grid = self.grid
        pixels = slice_planes(grid.grid, grid.positions, x, observed.origin, observed.unit, dtype)
        return pixels, accept_tolerance(outcome, options)

    def apply(self, g: Tensor, *, transposed: bool) -> tuple[Tensor, pcg.Outcome]:
        """Compute M g or M^T g for pixels (B H W, K)."""
        grid, observed = self.grid, self._observed
        system = self._system(for_derivatives=True)
        b = pixel_sums(grid.grid, grid.positions, g.contiguous())
        largest = b.abs().amax()
        if not bool(torch.isfinite(largest)):
            return torch.full_like(g, torch.nan), pcg.Outcome([], True, False)
        # Gradients may have any magnitude. Scaling by a power of 2 costs no rounding.
        wide = torch.where(largest > 0, largest, 1).double()
        unit = wide / torch.frexp(wide).mantissa
        b = (b / unit).to(observed.moments.dtype)
        fill, with_data = system.fill, system.with_data
        if fill is not None and transposed:
            fill.fill_transposed(b)
        elif with_data is not None:
            b = b * with_data[:, None, None]

        def pixels_of(x: Tensor) -> Tensor:
            x = x * with_data[:, None, None] if with_data is not None and transposed else x
            return slice_planes(grid.grid, grid.positions, x)

        x, _ = system.solve(b, torch.ones_like(self._rms(g)), 0.0, steps=0)
        size = self._rms(pixels_of(x))
        tolerance = policy.PLANE_ADJOINT_TOLERANCE * self._options.solve.tolerance
        for _ in range(policy.ADJOINT_ATTEMPTS):
            scale = torch.where(size > 0, size, 1)
            x, outcome = system.solve(b, scale, tolerance, start=x)
            pixels = pixels_of(x)
            size = self._rms(pixels)
            shrunk = (size > 0) & (size < policy.ADJOINT_TRUST * scale)
            if not outcome.converged or not bool(shrunk.any()):
                break
        pixels = pixels * (unit / observed.confidence_unit)
        return pixels.to(g.dtype), outcome

    def _rms(self, pixels: Tensor) -> Tensor:
        """Return the root mean square of each channel of each image, (B, K) float64."""
        images = self.grid.grid.shape[0]
        return pixels.view(images, -1, pixels.shape[1]).double().square().mean(1).sqrt()

    def _system(self, *, for_derivatives: bool) -> PlaneSystem:
        """Return the matrix, made when it is needed first."""
        least = policy.LEAST_DERIVATIVE_RIDGE if for_derivatives else 0.0
        slopes = [(mu, max(ridge, least)) for mu, ridge in self.slopes]
        # Sweeps over the grid suit solutions, whose size is known.
        key = slopes != self.slopes, for_derivatives or not self._is_easy()
        if key not in self._systems:
            observed = self._observed
            self._systems[key] = PlaneSystem(
                self.grid,
                observed.moments,
                observed.smoothness,
                slopes,
                self._options.solve.max_iterations,
                all_levels=key[1],
            )
        return self._systems[key]

    def _is_easy(self) -> bool:
        """Whether sweeps over the grids solve all images, by `policy.sweeps_are_enough`."""
        observed, grid = self._observed, self.grid.grid
        _, height, width = grid.shape
        weight = observed.moments[:, 0]

        def loose_fraction() -> float:
            smoothness = torch.tensor(
                observed.smoothness, dtype=torch.float64, device=weight.device
            )
            most = policy.SWEEP_LOOSE_SMOOTHNESS
            counts = input_stats.count_loose(grid, weight.contiguous(), smoothness, most)
            return float(counts[1]) / (height * width)  # one image may have them all

        return policy.sweeps_are_enough(
            smoothness=observed.smoothness,
            slope_ridge=min(ridge for _, ridge in self.slopes),
            pixels=height * width,
            confidence=observed.confidence,
            every_vertex_has_data=bool((weight > 0).all()),
            tolerance=self._options.solve.stop_tolerance,
            loose_fraction=loose_fraction,
        )


def rebuild(inputs: Inputs, options: LayerOptions, content: list[int]) -> PlaneProblem:
    """Set a problem up again from its inputs and its content; values may be other ones."""
    ridges = [float(np.int64(bits).view(np.float64)) for bits in content]
    penalty = options.solve.slope_smoothness
    if options.solve.slope_ridge is None:  # the same factor multiplied both
        slopes = [(penalty * ridge / policy.SLOPE_RIDGE, ridge) for ridge in ridges]
    else:
        slopes = [(penalty, ridge) for ridge in ridges]
    return PlaneProblem(inputs, options, slopes=slopes)


def _grid_of(
    reference: Tensor, options: LayerOptions, earlier: System | PlaneProblem | None
) -> PlaneGrid:
    if isinstance(earlier, PlaneProblem):
        return earlier.grid
    batch_grid = build_batch_grid(reference, options) if earlier is None else earlier.batch_grid
    return PlaneGrid(batch_grid, options.grid.sigma_xy)


def _observe(
    grid: PlaneGrid, values: Tensor, weights: Tensor | None, stats: InputStats, smoothness: float
) -> _Observed:
    """Splat values and weights to planes.

    Numbers that exceed float32 turn a float32 problem into a float64 one. Numbers that exceed
    float64 are divided by their largest.
    """
    images, height, width = grid.grid.shape
    confidence = float(stats.weight_sum.min())
    largest = 1.0 if weights is None else float(weights.amax())
    numbers = (largest, smoothness)
    unit = 1.0
    if values.dtype == torch.float32:
        limit = policy.LARGEST_FLOAT32
        enough = all(1 / limit < number < limit for number in numbers)
        vertices = grid.grid.room / images
        if not enough or not policy.float32_is_enough(
            smoothness, height * width, confidence, vertices
        ):
            values = values.double()
            weights = None if weights is None else weights.double()
    limit = policy.LARGEST_FLOAT64
    if weights is not None and not all(1 / limit < number < limit for number in numbers):
        unit = largest
        weights = weights / unit
        with np.errstate(over="ignore", under="ignore"):
            smoothness = float(np.clip(np.float64(smoothness) / unit, 1e-30, 1e30))
    origin = stats.low / 2 + stats.high / 2
    moments, weighted = splat_planes(
        grid.grid, grid.positions, values, weights, origin, stats.scale
    )
    return _Observed(moments, weighted, origin, stats.scale, confidence / unit, unit, smoothness)


def _slopes(
    grid: PlaneGrid,
    values: Tensor,
    weights: Tensor | None,
    observed: _Observed,
    options: LayerOptions,
) -> list[Slopes]:
    """Return the penalties of each image: the caller's, or those of the rule."""
    solve, images = options.solve, grid.grid.shape[0]
    if solve.slope_ridge is not None:
        return [(solve.slope_smoothness, solve.slope_ridge)] * images
    factors = slope_rule.factors(grid, values, weights, observed.unit, observed.smoothness)
    return [(solve.slope_smoothness * f, policy.SLOPE_RIDGE * f) for f in factors]
