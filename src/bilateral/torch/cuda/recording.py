"""Record one kind of solve as CUDA graphs, for certain shapes and options, with their memory."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.pyramid_transfer import push_pull
from bilateral.backends.cuda.grid.splat import slice_, splat_weighted
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import pcg
from bilateral.backends.cuda.solve.input_stats import compute_input_stats
from bilateral.backends.cuda.solve.iteration import Iteration
from bilateral.backends.cuda.solve.report import DIVERGED, new_report, write_report
from bilateral.numerics import policy
from bilateral.torch.cuda.adjoint import AdjointSolution, AdjointSystem, adjoint_tolerance
from bilateral.torch.cuda.batch_grid import build_batch_grid
from bilateral.torch.cuda.capacity import Capacity
from bilateral.torch.cuda.graphs import Graph, Steps, lasting_tensors
from bilateral.torch.cuda.size_bucket import BucketMemory, SizeBucket
from bilateral.torch.cuda.solve import Inputs, accept_tolerance
from bilateral.torch.cuda.system import (
    System,
    choose_preconditioner,
    count_loose,
    estimate_holds,
    pcg_options,
)
from bilateral.torch.options import LayerOptions


class Recording:
    """The graphs of one kind of solve, and their memory.

    Parameters
    ----------
    inputs : Inputs
        Their shapes and dtypes are those of all solves.
    options : LayerOptions
    kind : str
        Name of the preconditioner.
    min_capacity : Capacity, optional
        Capacity that an earlier recording had.
    bucket : SizeBucket, optional
        Default: all solves have images of the same size.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: LayerOptions,
        kind: str,
        min_capacity: Capacity | None,
        bucket: SizeBucket | None = None,
    ) -> None:
        reference, values, weights, _ = inputs
        self._options = options
        self._kind = kind
        self.outgrown = False
        """Whether the last solve needed more room."""
        self.worth_retrying = False
        """Whether the last solve can be replayed with more room, or with finite values."""
        pixels = None if bucket is None else bucket.pixels
        self.capacity = Capacity(reference, options, kind, pixels)
        if min_capacity is not None:
            self.capacity.grow(min_capacity)
        self._image_pixels = math.prod(reference.shape[2:])
        self._bucket: BucketMemory | None = None
        if bucket is None:
            self._reference, self._values = reference.clone(), values.clone()
            self._weights = None if weights is None else weights.clone()
        else:
            self._bucket = memory = BucketMemory(bucket, inputs, options.grid.sigma_xy)
            memory.load_reference(reference)
            memory.load_values(inputs)
            self._reference, self._values = memory.reference, memory.values
            self._weights = memory.weights
        self._smoothness = torch.ones((), dtype=torch.float64, device=values.device)
        self._smoothness_on_host = 1.0
        self._trusts_estimate = True
        """Whether the error estimate of the last solve holds."""
        self._report = new_report(options.solve.max_iterations, values.device)
        self._free: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        """Passed when the memory is free for the next solve."""
        self.solves = 0
        """Number of solves that were replayed."""
        # Several graphs, so that the device starts as soon as it has the reference, and so that
        # the work on values and pyramid runs in parallel, in memory of its own.
        self._grid_graph = Graph(self._build_grid)
        self._grid_graph.replay()
        self.pool = self._grid_graph.pool
        """Memory of all graphs but one. They run one after another."""
        self._grid_results_graph = Graph(self._compute_grid_results, self.pool)
        self._grid_results_graph.replay()
        self._side_stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._values_graph = Graph(self._splat_values)
        self._values_graph.replay()
        self._steps = Steps(
            kind, options.solve.max_iterations, self._start, self._proceed, self.pool
        )
        self._adjoint: _RecordedAdjoint | None = None

    def _build_grid(self) -> None:
        capacity = self.capacity
        self._batch_grid = build_batch_grid(
            self._reference,
            self._options,
            capacity.grid,
            capacity.hierarchy,
            None if self._bucket is None else self._bucket.tiles,
            None if self._bucket is None else self._bucket.pixels,
        )

    def _compute_grid_results(self) -> None:
        """Compute everything that the grid would otherwise compute at its first use."""
        self._batch_grid = batch_grid = self._batch_grid.without_results()
        dtype = self._values.dtype
        batch_grid.bistochastized(dtype)
        if self._kind == "multigrid" and (hierarchy := batch_grid.hierarchy(dtype)).depth > 0:
            hierarchy.small_levels  # noqa: B018

    def _splat_values(self) -> None:
        self._grid = grid = replace(self._batch_grid.grid)  # a copy without the pyramid
        self._stats = compute_input_stats(self._values, self._weights, grid.shape[0])
        self._weight, self._b = splat_weighted(grid, self._values, self._weights)
        self._loose_counts = count_loose(grid, self._weight, self._smoothness)
        self._in_gaps: Tensor | None = None
        if self._kind == "multigrid":
            self._in_gaps = push_pull(grid, self._b, self._weight)
        else:
            grid.pyramid  # noqa: B018

    def _start(self, steps: int) -> None:
        """Set up the system and take the first steps."""
        options, batch_grid, weight = self._options, self._batch_grid, self._weight
        batch_grid.grid = self._grid
        self.system = system = System(
            batch_grid, weight, self._smoothness, self._kind, False, options.solve.max_iterations
        )
        self._overflow_and_faint: tuple[Tensor | None, Tensor | None] = None, None
        fine, stream = system.preconditioner, torch.cuda.current_stream()
        self._side_stream.wait_stream(stream)
        if isinstance(fine, VCycle):
            with torch.cuda.stream(self._side_stream):  # only the end of the solve needs these
                system.with_data = fine.with_data
                overflow = batch_grid.hierarchy(weight.dtype).overflow
                self._overflow_and_faint = overflow, fine.has_faint_component
        self._x = system.start(self._b)
        # Both graphs of steps leave the solution here.
        system.y = self._x if self._in_gaps is None else torch.empty_like(self._x)
        self._iteration = Iteration(
            system.matrix,
            system.preconditioner,
            self._b,
            self._x,
            self._stats.scale,
            None,
            pcg_options(options.solve.max_iterations, options.solve.stop_tolerance),
        )
        stream.wait_stream(self._side_stream)
        self._proceed(steps)

    def _proceed(self, steps: int) -> None:
        """Take more steps, complete the solution and write the report."""
        for _ in range(steps):
            self._iteration.step()
        self._iteration.finish()
        if self._in_gaps is not None:
            self.system.fill_gaps(self._x, self._in_gaps, out=self.system.y)
        self.write_report(self._iteration)

    def write_report(self, iteration: Iteration) -> None:
        """Write a report on an iteration with this matrix."""
        write_report(
            self._report,
            self._grid,
            self._stats,
            self._loose_counts,
            *self._overflow_and_faint,
            iteration,
        )

    def read_report(self) -> list[float]:
        """Wait for the device and read the report."""
        report: list[float] = self._report.tolist()
        return report

    @contextmanager
    def in_use(self) -> Iterator[torch.cuda.Stream]:
        """Reserve the memory for the current stream, and return that stream."""
        stream = torch.cuda.current_stream()
        stream.wait_event(self._free)
        try:
            yield stream
        finally:
            self._free.record(stream)

    def solve(
        self, inputs: Inputs, same_reference: bool = False, keep_grid: bool = False
    ) -> tuple[Tensor, pcg.Outcome] | str | None:
        """Replay the solve for other inputs.

        Parameters
        ----------
        inputs : Inputs
        same_reference : bool
            Whether the reference is that of the last solve, so that the grid stays.
        keep_grid : bool
            Whether multigrid solves on the same grid what "pyramid" would solve as well.

        Returns
        -------
        pixels and outcome, or str, or None
            Pixels (B H W, K). The name of another preconditioner if the inputs need that one. None
            if no recording serves.
        """
        reference, _, _, smoothness = inputs
        self.solves += 1
        with self.in_use() as stream:
            if smoothness != self._smoothness_on_host:
                self._smoothness.fill_(smoothness)
                self._smoothness_on_host = smoothness
            self._side_stream.wait_stream(stream)
            if not same_reference:
                self._load_reference(reference)
                self._grid_graph.replay()
            with torch.cuda.stream(self._side_stream):
                self._load_values(inputs)
            if not same_reference:
                self._side_stream.wait_stream(stream)
                self._grid_results_graph.replay()
            with torch.cuda.stream(self._side_stream):
                self._values_graph.replay()
            stream.wait_stream(self._side_stream)
            self._steps.replay(smoothness)
            out = self._slice()
            report = self.read_report()
            kind = self._suitable_preconditioner(report[:DIVERGED], smoothness)
            multigrid_serves = self._kind == "multigrid" and kind == "pyramid"
            if kind != self._kind and not (keep_grid and same_reference and multigrid_serves):
                return kind
            outcome, continued = self._steps.finish(report, self.read_report, smoothness)
            if continued:
                out = self._slice()
        if outcome.converged and not self._trusts_estimate:
            return None
        return out, accept_tolerance(outcome, self._options)

    def _load_reference(self, reference: Tensor) -> None:
        self._image_pixels = math.prod(reference.shape[2:])
        if self._bucket is None:
            self._reference.copy_(reference)
        else:
            self._bucket.load_reference(reference)

    def _load_values(self, inputs: Inputs) -> None:
        if self._bucket is not None:
            self._bucket.load_values(inputs)
            return
        self._values.copy_(inputs.values)
        if self._weights is not None and inputs.weights is not None:
            self._weights.copy_(inputs.weights)

    def _slice(self) -> Tensor:
        """Return the solution at the pixels, within the range of the known values."""
        pixels = slice_(self._grid, self.system.y, self._stats.low, self._stats.high)
        return pixels if self._bucket is None else self._bucket.cut(pixels)

    def solve_adjoint(self, g: Tensor) -> tuple[AdjointSolution, pcg.Outcome]:
        """Solve the adjoint system for pixels g (B H W, K) and the matrix of the last solve.

        The next call overwrites the memory of the result.
        """
        if self._adjoint is None or self._adjoint.g.shape != g.shape:
            with lasting_tensors():
                self._adjoint = _RecordedAdjoint(self, g, self._kind, self._options)
        return self._adjoint.solve(g)

    def _suitable_preconditioner(self, header: list[float], smoothness: float) -> str | None:
        """Return the preconditioner that the reported inputs need; None if no recording serves."""
        (
            *totals,
            out_of_range,
            bare,
            loose,
            overflow,
            faint_component,
            weight,
            invalid,
            nonfinite,
        ) = header
        self.outgrown = bool(overflow) or any(
            total > room for total, room in zip(totals, self.capacity.grid, strict=True)
        )
        self.worth_retrying = self.outgrown or bool(nonfinite)
        images, pixels = self._grid.shape[0], self._image_pixels
        if self.outgrown or out_of_range or invalid or nonfinite or weight <= 0 or faint_component:
            return None
        if not policy.float32_is_enough(smoothness, pixels, weight, totals[0] / images):
            return None
        kind = choose_preconditioner(self._options, smoothness, pixels, weight, bare, loose, images)
        self._trusts_estimate = estimate_holds(self._options, self._kind, loose, pixels)
        return None if bare and kind != "multigrid" else kind


class _RecordedAdjoint:
    """The graphs of an adjoint solve with the matrix of a recording."""

    def __init__(self, recording: Recording, g: Tensor, kind: str, options: LayerOptions) -> None:
        self._recording = weakref.proxy(recording)
        self._max_iterations = options.solve.max_iterations
        self._tolerance = adjoint_tolerance(recording.system, options.solve.tolerance)
        self.g = g.clone()
        self._steps = Steps(kind, self._max_iterations, self._start, self._proceed, recording.pool)
        self._steps.replay()
        self._solution_graph = Graph(self._compute_solution, recording.pool)

    def solve(self, g: Tensor) -> tuple[AdjointSolution, pcg.Outcome]:
        """Replay the adjoint solve."""
        self.g.copy_(g)
        self._steps.replay()
        self._solution_graph.replay()
        read = self._recording.read_report
        outcome, continued = self._steps.finish(read(), read)
        if continued:
            self._solution_graph.replay()
        return self._solution, outcome

    def _start(self, steps: int) -> None:
        system = self._recording.system
        self._adjoint = adjoint = AdjointSystem(system, self.g)
        self._iteration = Iteration(
            system.matrix,
            system.preconditioner,
            adjoint.b,
            adjoint.x,
            None,
            system.with_data,
            pcg_options(self._max_iterations, self._tolerance),
        )
        self._proceed(steps)

    def _proceed(self, steps: int) -> None:
        for _ in range(steps):
            self._iteration.step()
        self._iteration.finish()
        self._recording.write_report(self._iteration)

    def _compute_solution(self) -> None:
        self._solution = self._adjoint.solution()
