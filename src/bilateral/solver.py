"""The bilateral solver: an object that keeps the grid for many targets."""

import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import losses
from bilateral import validation as checks
from bilateral.backends import cpu
from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.info import ConvergenceWarning, SolveInfo
from bilateral.numerics import lowrank, robust, system, variance
from bilateral.numerics.system import Callback
from bilateral.numerics.warm_start import Last

Array = NDArray[Any]

PRECONDITIONERS = ("multigrid", "pyramid", "jacobi")
INITIALS = ("pyramid", "nested", "flat")
METHODS = ("paper",)
WEIGHTS = ("joint", "channel")

_GEMAN_MCCLURE = losses.GemanMcClure(1.0)
_FLOAT32_TOLERANCE = 1e-5
"""Below this, rounding in float32 would be felt: such solves run in float64 whatever the target."""


class BilateralSolver:
    """Solves any number of targets on one grid.

    The output minimizes ``smoothness / 2 * sum_ij W_ij (x_i - x_j)^2 + sum_i c_i (x_i - t_i)^2``
    (Eq. 1 of the paper) over images that are constant on each vertex of the grid, W being the
    bistochastized bilateral affinity.

    Parameters
    ----------
    grid : BilateralGrid
    smoothness : float
        The paper's lambda, relative to a confidence of 1.
    tolerance : float
        Stop when the estimated RMS error is below this fraction of the range of the known values.
        0: as many steps as change anything, at most `max_iterations`. Below 1e-5 the solve runs
        in float64.
    max_iterations : int, optional
        100, or 25 for ``method="paper"``.
    preconditioner : {"multigrid", "pyramid", "jacobi"}
        "multigrid" converges in a handful of steps on anything. Where every vertex has data and
        the smoothness is moderate it stands for "pyramid", the paper's, which is cheaper there.
    initial : {"pyramid", "nested", "flat"}, optional
        Where to start: a push-pull over the grid's pyramid, the solutions of coarser multigrid
        levels, or each vertex's own mean. By default "nested" with multigrid, else "pyramid".
    method : {"paper"}, optional
        Exactly the paper: pyramid preconditioner and start, and a fixed number of steps whatever
        the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral import BilateralGrid, BilateralSolver
    >>> photo = np.repeat(np.uint8([[20, 20, 200, 200]]), 4, axis=0)
    >>> solver = BilateralSolver(BilateralGrid(photo, sigma_xy=1), smoothness=2)
    >>> depth = np.full((4, 4), np.nan)
    >>> depth[0, 0], depth[0, 3] = 1, 5  # one known pixel on each side of the edge
    >>> x, info = solver.solve(depth, return_info=True)
    >>> x[3].round(2).tolist(), info.converged
    ([1.0, 1.0, 5.0, 5.0], True)
    """

    def __init__(
        self,
        grid: BilateralGrid,
        smoothness: float = 4.0,
        *,
        tolerance: float = 1e-3,
        max_iterations: int | None = None,
        preconditioner: str = "multigrid",
        initial: str | None = None,
        method: str | None = None,
    ) -> None:
        if not isinstance(grid, BilateralGrid):
            raise TypeError(
                f"grid: expected a BilateralGrid, got {type(grid).__name__}. "
                f"Make one with bilateral.BilateralGrid(reference)."
            )
        self.grid = grid
        self._last: Last | None = None
        self.smoothness = checks.positive("smoothness", smoothness)
        self.tolerance = checks.not_negative("tolerance", tolerance)
        self.preconditioner = checks.choice("preconditioner", preconditioner, PRECONDITIONERS)
        self.initial = None if initial is None else checks.choice("initial", initial, INITIALS)
        self._fixed_steps = method is not None
        if method is not None:
            checks.choice("method", method, METHODS)
            checks.choice(
                "preconditioner (method='paper')", preconditioner, ("pyramid", "multigrid")
            )
            checks.choice("initial (method='paper')", self.initial or "pyramid", ("pyramid",))
            self.preconditioner = self.initial = "pyramid"
        self._precise = not self._fixed_steps and self.tolerance < _FLOAT32_TOLERANCE
        usual = 25 if self._fixed_steps else 100
        self.max_iterations = (
            usual if max_iterations is None else checks.count("max_iterations", max_iterations, 0)
        )

    @overload
    def solve(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = ...,
        *,
        smooth: tuple[float, float] | None = ...,
        rank_tolerance: float | None = ...,
        warm_start: ArrayLike | None = ...,
        callback: Callback | None = ...,
        return_info: Literal[False] = ...,
        dtype: DTypeLike | None = ...,
    ) -> Array: ...
    @overload
    def solve(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = ...,
        *,
        smooth: tuple[float, float] | None = ...,
        rank_tolerance: float | None = ...,
        warm_start: ArrayLike | None = ...,
        callback: Callback | None = ...,
        return_info: Literal[True],
        dtype: DTypeLike | None = ...,
    ) -> tuple[Array, SolveInfo]: ...
    def solve(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = None,
        *,
        smooth: tuple[float, float] | None = None,
        rank_tolerance: float | None = None,
        warm_start: ArrayLike | None = None,
        callback: Callback | None = None,
        return_info: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array | tuple[Array, SolveInfo]:
        """Smooth a target.

        Parameters
        ----------
        target : (H, W) or (H, W, K) array
            What to smooth. A pixel with a value that is not finite counts as unknown.
        confidence : (H, W) array, optional
            How much to trust each pixel, 0 for unknown; 1 everywhere if left out.
        smooth : (sigma_xy, sigma_rgb), optional
            Filter the result by `domain_transform` with these sigmas, in pixels and in 8-bit grey
            levels: it takes away the blocks that the grid's cells leave, and keeps the edges.
        rank_tolerance : float, optional
            For many channels in one unit, such as class probabilities: solve for as few
            combinations of them as hold all but this part of the target's variance, and expand
            (supplement, section 4). 0.01 is the paper's choice. None: solve for every channel.
        warm_start : array like target or "last", optional
            An earlier solution to start from, or this solver's last one, whichever thread it was
            called from, without a pass over pixels. Both save steps where much stayed the same.
        callback : function of (step, residual), optional
            Called after each step (of each group of at most eight channels); a true result ends
            the solve there.
        return_info : bool
            Return ``(x, info)``.
        dtype : dtype, optional
            The result's, if not the target's. Integer results are rounded.

        Returns
        -------
        x : array
            Of the target's shape, finite everywhere. A part of the grid that is connected to no
            known pixel gets its value from coarser surroundings.
        info : SolveInfo
            Only with ``return_info=True``.
        """
        x, info = self._solve(
            target, confidence, smooth, rank_tolerance, warm_start, callback, dtype, stacklevel=3
        )
        return (x, info) if return_info else x

    def _solve(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None,
        smooth: tuple[float, float] | None,
        rank_tolerance: float | None,
        warm_start: ArrayLike | None,
        callback: Callback | None,
        dtype: DTypeLike | None,
        stacklevel: int,
    ) -> tuple[Array, SolveInfo]:
        began, grid = time.perf_counter(), self.grid
        wanted, weights = self._check(grid, target, confidence, dtype)
        sigmas = checks.smooth(smooth, grid._reference)
        if rank_tolerance is not None:
            checks.fraction("rank_tolerance", rank_tolerance)
        earlier = self._earlier(grid, warm_start, wanted)
        checks.callback(callback)
        problem = self._observe(grid, wanted.values, weights)
        few = None if rank_tolerance is None else lowrank.reduce(problem, rank_tolerance)
        y = self._start(grid, problem, earlier, few)
        solver = system.Solver(grid, self._options)
        outcome = solver.solve(
            problem if few is None else few.system, y, callback, warm=earlier is not None
        )
        self._warn(outcome, stacklevel + 1)
        residuals, converged = outcome.residuals, outcome.converged
        if self._fixed_steps or self.max_iterations == 0:
            converged = bool(residuals) and residuals[-1] <= self.tolerance
        vertices = system.values(problem, y) if few is None else few.expand(y)
        x = _pixels(grid, vertices, wanted, sigmas)
        self._last = Last(grid, vertices)
        return x, _info(grid, residuals, converged, began, rank=y.shape[1])

    def _check(
        self,
        grid: BilateralGrid,
        target: ArrayLike,
        confidence: ArrayLike | None,
        dtype: DTypeLike | None,
    ) -> tuple[checks.Target, Array | None]:
        wanted = checks.target(target, grid.shape, dtype, self._precise)
        weights = checks.confidence(confidence, grid.shape, wanted.values.dtype)
        if weights is not None:
            wanted = wanted._replace(values=wanted.values.astype(weights.dtype, copy=False))
        return wanted, weights

    def _earlier(
        self, grid: BilateralGrid, warm_start: ArrayLike | None, wanted: checks.Target
    ) -> Array | None:
        """An earlier solution at the grid's vertices, in the target's own unit."""
        if warm_start is None:
            return None
        if not isinstance(warm_start, str) or warm_start != "last":
            return system.vertex_means(grid, checks.warm_start(warm_start, wanted))
        last = self._last
        checks.last_solution(None if last is None else last.shape, wanted)
        if last is None:
            return None
        last = self._last = last.on(grid)  # the grid of the last frame is of no use any more
        return last.y

    def _observe(self, grid: BilateralGrid, values: Array, weights: Array | None) -> system.System:
        return checks.some_data(system.observe(grid, values, weights, self.smoothness))

    def _start(
        self,
        grid: BilateralGrid,
        problem: system.System,
        earlier: Array | None,
        few: lowrank.Reduced | None = None,
    ) -> Array:
        y = None if earlier is None else system.start_at(problem, earlier)
        if few is not None:
            problem, y = few.system, None if y is None else few.project(y)
        if y is None:
            return system.start(grid, problem, self._options)
        gaps = np.isnan(y).any(axis=1)
        if gaps.any():
            y[gaps] = system.start(grid, problem, self._options)[gaps]
        return y

    @property
    def _options(self) -> system.Options:
        tolerance = -1.0 if self._fixed_steps else self.tolerance
        return system.Options(self.preconditioner, self.initial, self.max_iterations, tolerance)

    def _warn(self, outcome: cpu.Outcome, stacklevel: int) -> None:
        steps = len(outcome.residuals)
        if outcome.converged or self._fixed_steps or self.tolerance == 0 or steps == 0:
            return
        if steps < self.max_iterations:  # ended by a callback
            return
        residual = outcome.residuals[-1]
        warnings.warn(
            f"the solve stopped after max_iterations={self.max_iterations} steps with an estimated "
            f"error of {residual:.2g} of the target's range, above tolerance={self.tolerance:g}. "
            f"Raise max_iterations or tolerance; more known pixels or a smaller smoothness "
            f"(now {self.smoothness:g}) make the problem easier.",
            ConvergenceWarning,
            stacklevel,
        )

    @overload
    def solve_robust(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = ...,
        loss: losses.Loss = ...,
        iterations: int = ...,
        *,
        weights: str = ...,
        min_change: float = ...,
        smooth: tuple[float, float] | None = ...,
        warm_start: ArrayLike | None = ...,
        callback: Callback | None = ...,
        return_info: Literal[False] = ...,
        dtype: DTypeLike | None = ...,
    ) -> Array: ...
    @overload
    def solve_robust(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = ...,
        loss: losses.Loss = ...,
        iterations: int = ...,
        *,
        weights: str = ...,
        min_change: float = ...,
        smooth: tuple[float, float] | None = ...,
        warm_start: ArrayLike | None = ...,
        callback: Callback | None = ...,
        return_info: Literal[True],
        dtype: DTypeLike | None = ...,
    ) -> tuple[Array, SolveInfo]: ...
    def solve_robust(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None = None,
        loss: losses.Loss = _GEMAN_MCCLURE,
        iterations: int = 32,
        *,
        weights: str = "joint",
        min_change: float = 0.0,
        smooth: tuple[float, float] | None = None,
        warm_start: ArrayLike | None = None,
        callback: Callback | None = None,
        return_info: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array | tuple[Array, SolveInfo]:
        """Smooth a target that has outliers (supplement, Algorithm 3).

        Each round solves with the confidences ``loss.weight(x - target)`` of the last solution x,
        the first with `confidence`. That lowers, round by round,
        ``smoothness / 2 * sum_ij W_ij (x_i - x_j)^2 + sum_i loss.rho(x_i - t_i)`` with every pair
        of pixels counted once.

        Parameters
        ----------
        target : (H, W) or (H, W, K) array
            What to smooth. A pixel with a value that is not finite counts as unknown in all rounds.
        confidence : (H, W) array, optional
            How much to trust each pixel in the first round, and only there; 1 everywhere if left
            out.
        loss : Loss
            Such as `GemanMcClure`, `Charbonnier`, `Cauchy`, `Welsch`, `Huber`, `Barron`, or any
            object with their methods ``rho(e)`` and ``weight(e)``. Its scale is in the target's
            unit.
        iterations : int
            Number of rounds, at most.
        weights : {"joint", "channel"}
            With several channels: one weight per pixel from its distance over all of them, or one
            for each channel, as if it were solved alone.
        min_change : float
            A round that moves the solution by no more than this, RMS over the pixels and relative
            to the range of the known values, is the last.
        smooth : (sigma_xy, sigma_rgb), optional
            As for `solve`.
        warm_start : array like target or "last", optional
            An earlier solution for the first round to start from, as for `solve`.
        callback : function of (round, movement), optional
            Called after each round (of each channel, with ``weights="channel"``) with how far it
            moved the solution, as for `min_change`; a true result makes it the last.
        return_info : bool
            Return ``(x, info)``.
        dtype : dtype, optional
            The result's, if not the target's. Integer results are rounded.

        Returns
        -------
        x : array
            Of the target's shape, finite everywhere.
        info : SolveInfo
            Only with ``return_info=True``. `iterations` counts rounds, `residuals` holds how far
            each of them moved the solution, and `converged` says whether the last one moved it by
            no more than the solver's tolerance.

        Examples
        --------
        >>> import numpy as np
        >>> from bilateral import BilateralGrid, BilateralSolver, GemanMcClure
        >>> solver = BilateralSolver(BilateralGrid(np.zeros((16, 16), np.uint8)), smoothness=4)
        >>> target = np.full((16, 16), 3.0)
        >>> target[::4, ::2] = 90  # one pixel in eight is wrong
        >>> round(float(solver.solve(target).max()), 2)
        13.88
        >>> round(float(solver.solve_robust(target, loss=GemanMcClure(2.0)).max()), 2)
        3.0
        """
        x, info = self._solve_robust(
            target,
            confidence,
            loss,
            iterations,
            weights,
            min_change,
            smooth,
            warm_start,
            callback,
            dtype,
            stacklevel=3,
        )
        return (x, info) if return_info else x

    def _solve_robust(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None,
        loss: losses.Loss,
        iterations: int,
        weights: str,
        min_change: float,
        smooth: tuple[float, float] | None,
        warm_start: ArrayLike | None,
        callback: Callback | None,
        dtype: DTypeLike | None,
        stacklevel: int,
    ) -> tuple[Array, SolveInfo]:
        began, grid = time.perf_counter(), self.grid
        wanted, initial = self._check(grid, target, confidence, dtype)
        sigmas = checks.smooth(smooth, grid._reference)
        earlier = self._earlier(grid, warm_start, wanted)
        checks.loss(loss)
        checks.count("iterations", iterations, 1)
        checks.choice("weights", weights, WEIGHTS)
        checks.not_negative("min_change", min_change)
        checks.callback(callback)
        channels = wanted.values.shape[-1]
        parts = [slice(None)] if weights == "joint" else [slice(k, k + 1) for k in range(channels)]
        solutions, movements = [], np.zeros(0)
        for part in parts:
            values = np.ascontiguousarray(wanted.values[..., part])
            before = None if earlier is None else earlier[:, part]
            problem = self._observe(grid, values, initial)
            rounds = robust.solve(
                grid,
                values,
                problem,
                self._start(grid, problem, before),
                loss,
                iterations,
                min_change,
                self.smoothness,
                self._options,
                callback,
            )
            self._warn(rounds.last, stacklevel + 1)
            solutions.append(system.values(rounds.problem, rounds.y))
            movements = _largest(movements, np.array(rounds.movements))
        y = solutions[0] if len(solutions) == 1 else np.concatenate(solutions, axis=1)
        x = _pixels(grid, y, wanted, sigmas)
        self._last = Last(grid, y)
        converged = bool(movements[-1] <= self.tolerance)
        return x, _info(grid, movements.tolist(), converged, began, channels)

    def variance(
        self, confidence: ArrayLike | None = None, *, probes: int = 16, seed: int = 0
    ) -> NDArray[np.float64]:
        """Estimate how unsure the solution is at each pixel: the diagonal of S^T A^-1 S.

        A = smoothness * (D_m - D_n B-bar D_n) + diag(S c) is the matrix of Eq. 6. The objective f
        of a solve is the squared distance from its solution in A's norm. Take f / 2 as a negative
        log-likelihood: then the confidence is 1 / the variance of each pixel's noise, the
        smoothness is in the same unit, and the result is the posterior variance of the solution,
        whatever the target. Where confidence and smoothness are right only up to a common factor,
        such as 1 for known pixels whose noise has the variance v, multiply the result by v.

        Parameters
        ----------
        confidence : (H, W) array, optional
            As for `solve`: 0 where the target is unknown; 1 everywhere if left out.
        probes : int
            Number of random right-hand sides. Each pixel's estimate is right on average, with a
            relative standard error of at most ``sqrt(2 / probes)``, 35 % for 16 of them (18 % for
            its square root, the standard deviation). Pixels near each other err alike. Time is
            that of as many channels of a solve.
        seed : int
            Another one gives other random numbers. The same gives the same result, for any number
            of threads.

        Returns
        -------
        (H, W) float64 array
            Above 0; infinite in parts of the grid that are connected to no known pixel.

        Examples
        --------
        >>> import numpy as np
        >>> from bilateral import BilateralGrid, BilateralSolver
        >>> photo = np.repeat(np.uint8([[20, 20, 20, 200]]), 4, axis=0)
        >>> solver = BilateralSolver(BilateralGrid(photo, sigma_xy=1), smoothness=2)
        >>> known = np.zeros((4, 4))
        >>> known[0, 0] = 100  # noise of variance 0.01
        >>> v = solver.variance(known, probes=256)
        >>> bool(v[0, 0] < v[1, 1] < v[3, 2]), v[0, 3]
        (True, np.float64(inf))
        """
        grid = self.grid
        checks.count("probes", probes, 1)
        checks.count("seed", seed, 0)
        # Single precision is far better than the estimate, if it can hold the numbers.
        single = np.dtype(np.float32)
        weights = checks.confidence(confidence, grid.shape, single)
        nothing = np.zeros((*grid.shape, 1), single if weights is None else weights.dtype)
        problem = system.observe(grid, nothing, weights, self.smoothness)
        if problem is None:
            return np.full(grid.shape, np.inf)
        vertices = variance.estimate(grid, problem, probes, seed, stacklevel=3)
        return cpu.slice_(grid._core, vertices, grid.shape)

    def update(self, reference: ArrayLike) -> None:
        """Go on to another reference: the next frame of a video.

        The solver gets a new grid with the sigmas, blur and `reference_max` of its last one and
        keeps all else. If the size is the same, ``warm_start="last"`` starts the next solve from
        the last solution where the picture stayed much the same, and anew where something moved.

        Parameters
        ----------
        reference : (H, W) or (H, W, 3) array
            As for `BilateralGrid`. If it is wrong, the solver stays as it was.

        Examples
        --------
        >>> import numpy as np
        >>> from bilateral import BilateralGrid, BilateralSolver
        >>> photo = np.repeat(np.uint8([[20, 20, 200, 200]]), 4, axis=0)
        >>> depth = np.where(photo > 100, 5.0, 1.0)
        >>> solver = BilateralSolver(BilateralGrid(photo, sigma_xy=1))
        >>> for step in range(3):
        ...     frame = np.roll(photo, step, axis=1)
        ...     if step > 0:
        ...         solver.update(frame)
        ...     warm_start = "last" if step > 0 else None
        ...     x = solver.solve(np.roll(depth, step, axis=1), warm_start=warm_start)
        >>> x[0].round(2).tolist()
        [5.0, 5.0, 1.0, 1.0]
        """
        self.grid = self.grid._like(reference)


def _pixels(
    grid: BilateralGrid, y: Array, wanted: checks.Target, sigmas: tuple[float, float] | None
) -> Array:
    pixels = cpu.slice_(grid._core, y, grid.shape)
    if sigmas is not None and grid._reference is not None:
        guide, highest = grid._reference
        frames = pixels[np.newaxis] if pixels.ndim == 3 else pixels
        guides = guide.reshape(*frames.shape[:3], -1)
        for i, frame in enumerate(guides):
            frames[i] = domain_transform(frames[i], frame, *sigmas, reference_max=highest)
    return checks.as_dtype(pixels.reshape(wanted.shape), wanted.dtype)


def _info(
    grid: BilateralGrid, residuals: Sequence[float], converged: bool, began: float, rank: int
) -> SolveInfo:
    steps, seconds = tuple(residuals), time.perf_counter() - began
    return SolveInfo(len(steps), converged, steps, grid.n_vertices, seconds, rank)


def _largest(a: Array, b: Array) -> Array:
    """The larger of each two entries, the shorter array followed by zeros."""
    size = max(a.size, b.size)
    larger: Array = np.maximum(np.pad(a, (0, size - a.size)), np.pad(b, (0, size - b.size)))
    return larger
