"""Solve any number of targets on one grid: the class `BilateralSolver`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import losses, validation
from bilateral.grid import BilateralGrid, rebuild
from bilateral.info import SolveInfo
from bilateral.numerics import policy, system
from bilateral.numerics import variance as probing
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.pcg import Callback
from bilateral.numerics.solve import Solve
from bilateral.numerics.warm_start import WarmStart

Array = NDArray[Any]

STATE_VERSION = 1
"""Changes whenever an entry of a pickled solver changes its meaning."""

_GEMAN_MCCLURE = losses.GemanMcClure(1.0)


class BilateralSolver:
    """Solves any number of targets on one grid.

    The output minimizes ``smoothness / 2 * sum_ij W_ij (x_i - x_j)^2 + sum_i c_i (x_i - t_i)^2``
    (Eq. 1 of the paper) over images that are constant on each vertex of the grid. W is the
    bistochastized bilateral affinity. A solver can be pickled and copied, with its last solution.

    Parameters
    ----------
    grid : BilateralGrid
    smoothness : float or "auto"
        The paper's lambda, relative to a confidence of 1: larger is smoother. "auto" chooses it for
        each target by the number of known pixels and their noise: 0.02 for few exact values, about
        4 for a complete map, more for noisy ones; in the unit of the confidence.
    tolerance : float
        Stop when the estimated RMS error falls below this fraction of the range of the known
        values. 0: continue until steps change nothing, at most `max_iterations` times. Below 1e-5
        the solve runs in float64.
    max_iterations : int, optional
        Largest number of steps; 100 by default, 25 for ``method="paper"``.
    preconditioner : {"multigrid", "pyramid", "jacobi"}
        "multigrid" converges in a handful of steps on any problem. Where every vertex has data and
        the smoothness is moderate, "pyramid", the paper's, is cheaper and used instead.
    initial : {"pyramid", "nested", "flat"}, optional
        Start of the iteration: a push-pull over the grid's pyramid, the solutions of coarser
        multigrid levels, or the mean of each vertex. Default: "nested" with multigrid, else
        "pyramid".
    method : {"paper"}, optional
        Exactly the paper: pyramid preconditioner and start, and a fixed number of steps whatever
        the tolerance.
    model : {"constant", "planar"}
        What a vertex of the grid holds: one value, or a plane over x and y (and t). Planes follow
        slanted surfaces, where constants make stairs, and continue them into holes. Metric depth
        should go in as its inverse, since planes of the world are planes in disparity.
    slope_smoothness : float
        Planar model: how strongly neighbouring planes are made parallel.
    slope_ridge : float or None
        Planar model: how strongly slopes are pulled to 0. 0 reproduces any affine target, a large
        number gives the constant model. None: both numbers rise with the noise of the target.
    clamp : bool
        Planar model: keep the result within the range of the known values and 5 % of it on both
        sides.

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

    @validation.keywords()
    def __init__(
        self,
        grid: BilateralGrid,
        smoothness: float | str = policy.SMOOTHNESS,
        *,
        tolerance: float = 1e-3,
        max_iterations: int | None = None,
        preconditioner: str = "multigrid",
        initial: str | None = None,
        method: str | None = None,
        model: str = "constant",
        slope_smoothness: float = policy.SLOPE_SMOOTHNESS,
        slope_ridge: float | None = policy.SLOPE_RIDGE,
        clamp: bool = True,
    ) -> None:
        validation.instance("grid", grid, BilateralGrid, "bilateral.BilateralGrid(reference)")
        self.grid = grid
        self._last: WarmStart | None = None
        self._fixed_steps = method is not None
        self.smoothness = validation.smoothness("smoothness", smoothness)
        options = SolveOptions.checked_with_method(locals())
        self.tolerance = options.tolerance
        self.max_iterations = options.max_iterations
        self.preconditioner = options.preconditioner
        self.initial = options.initial
        self.model = options.model
        self.slope_smoothness = options.slope_smoothness
        self.slope_ridge = options.slope_ridge
        self.clamp = options.clamp

    def __getstate__(self) -> dict[str, Any]:
        last = None if self._last is None else tuple(self._last)
        return {"version": STATE_VERSION, **vars(self), "_last": last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name, options = "BilateralSolver", ("smoothness", "_fixed_steps", *SolveOptions.checks)
        restored = validation.state(name, state, STATE_VERSION, ("grid", "_last", *options))
        if not isinstance(restored["grid"], BilateralGrid):
            raise validation.damaged_state(name, "expected a BilateralGrid")
        try:
            validation.smoothness("smoothness", restored["smoothness"])
            SolveOptions.checked(restored)
        except (TypeError, ValueError) as error:
            raise validation.damaged_state(name, str(error).rstrip(".")) from None
        if restored["_last"] is not None:
            restored["_last"] = WarmStart.from_state(restored["_last"])
        vars(self).update(restored)

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
    @validation.keywords(depth="target")
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
            The map to smooth. A pixel with a non-finite value counts as unknown.
        confidence : (H, W) array, optional
            Trust in each pixel, 0 for unknown; 1 everywhere by default.
        smooth : (sigma_xy, sigma_rgb), optional
            Filter the result by `domain_transform` with these sigmas, in pixels and in 8-bit grey
            levels. The filter removes the blocks of the grid's cells and keeps the edges.
        rank_tolerance : float, optional
            For many channels in one unit, such as class probabilities: solve for the fewest
            combinations of channels that hold all but this fraction of the target's variance, and
            expand (supplement, section 4). The paper uses 0.01. None: solve for every channel.
        warm_start : array like target or "last", optional
            Start from an earlier solution. "last" is this solver's last solution, from whichever
            thread, and needs no pass over pixels. A warm start saves steps where little changed.
        callback : function of (step, residual), optional
            Called after each step (of each group of at most eight channels); a true result ends
            the solve.
        return_info : bool
            Return ``(x, info)``.
        dtype : dtype, optional
            Dtype of the result; the target's by default. Integer results are rounded.

        Returns
        -------
        x : array
            The smooth map, in the target's shape, finite everywhere. A part of the grid that is
            connected to no known pixel gets its value from coarser surroundings.
        info : SolveInfo
            Only with ``return_info=True``.
        """
        return_info = validation.flag("return_info", return_info)
        x, info = solve_once(
            self, target, confidence, smooth, rank_tolerance, warm_start, callback, dtype, 4
        )
        return (x, info) if return_info else x

    def _prepare(
        self,
        target: ArrayLike,
        confidence: ArrayLike | None,
        smooth: tuple[float, float] | None,
        warm_start: ArrayLike | None,
        callback: Callback | None,
        dtype: DTypeLike | None,
    ) -> Solve:
        options = replace(SolveOptions.checked(vars(self)), fixed_steps=self._fixed_steps)
        return Solve(
            self.grid,
            self.smoothness,
            options,
            target,
            confidence,
            smooth,
            warm_start,
            self._last,
            callback,
            dtype,
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
    @validation.keywords(depth="target")
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

        The first round solves with `confidence`, each later round with the confidences
        ``loss.weight(x - target)`` of the last solution x. Every round lowers
        ``smoothness / 2 * sum_ij W_ij (x_i - x_j)^2 + sum_i loss.rho(x_i - t_i)``, where every pair
        of pixels counts once.

        Parameters
        ----------
        target : (H, W) or (H, W, K) array
            The map to smooth. A pixel with a non-finite value counts as unknown in all rounds.
        confidence : (H, W) array, optional
            Trust in each pixel in the first round only; 1 everywhere by default.
        loss : Loss
            `GemanMcClure`, `Charbonnier`, `Cauchy`, `Welsch`, `Huber`, `Barron`, or any object with
            the methods ``rho(e)`` and ``weight(e)``. Its scale is in the target's unit.
        iterations : int
            Largest number of rounds.
        weights : {"joint", "channel"}
            With several channels: one weight per pixel from its distance over all channels, or one
            weight per channel, as if each channel were solved alone.
        min_change : float
            Stop after a round that moves the solution by no more than this: RMS over the pixels,
            relative to the range of the known values.
        smooth : (sigma_xy, sigma_rgb), optional
            As for `solve`.
        warm_start : array like target or "last", optional
            Start of the first round, as for `solve`.
        callback : function of (round, movement), optional
            Called after each round (of each channel, with ``weights="channel"``) with the distance
            it moved the solution, in the unit of `min_change`; a true result ends the rounds.
        return_info : bool
            Return ``(x, info)``.
        dtype : dtype, optional
            Dtype of the result; the target's by default. Integer results are rounded.

        Returns
        -------
        x : array
            The smooth map, in the target's shape, finite everywhere.
        info : SolveInfo
            Only with ``return_info=True``. `iterations` counts rounds, `residuals` lists the
            distance each round moved the solution, and `converged` says whether the last round
            moved it by no more than the solver's tolerance.

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
        return_info = validation.flag("return_info", return_info)
        call = self._prepare(target, confidence, smooth, warm_start, callback, dtype)
        x, info, self._last = call.robust(loss, iterations, weights, min_change, stacklevel=3)
        return (x, info) if return_info else x

    def variance(
        self, confidence: ArrayLike | None = None, *, probes: int = 16, seed: int = 0
    ) -> NDArray[np.float64]:
        """Estimate the variance of the solution at each pixel: the diagonal of S^T A^-1 S.

        A = smoothness * (D_m - D_n B-bar D_n) + diag(S c) is the matrix of Eq. 6. The objective f
        of a solve is the squared distance from its solution in the norm of A. Take f / 2 as a
        negative log-likelihood. Then the confidence is 1 / the noise variance of each pixel, the
        smoothness has the same unit, and the result is the posterior variance of the solution,
        whatever the target. If confidence and smoothness are right only up to a common factor,
        such as a confidence of 1 for noise of variance v, multiply the result by v.

        Parameters
        ----------
        confidence : (H, W) array, optional
            As for `solve`: 0 where the target is unknown; 1 everywhere by default.
        probes : int
            Number of random right-hand sides. The estimate is unbiased, with a relative standard
            error of at most ``sqrt(2 / probes)``: 35 % for 16 probes, or 18 % for the standard
            deviation. The errors of nearby pixels are correlated. The cost is that of a solve with
            as many channels.
        seed : int
            Seed of the random numbers. The same seed gives the same result for any number of
            threads.

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
        validation.count("probes", probes, 1)
        validation.count("seed", seed, 0)
        smoothness = validation.smoothness_number(self.smoothness, "variance")
        # float32 is far more exact than the estimate, if it can hold the numbers.
        single = np.dtype(np.float32)
        weights = validation.confidence(confidence, grid.shape, single)
        zeros = np.zeros((*grid.shape, 1), single if weights is None else weights.dtype)
        if self.model == "planar":
            options = SolveOptions.checked(vars(self))
            call = grid, zeros, weights, smoothness, options
            return probing.estimate_planar(*call, probes, seed, stacklevel=3)
        observed = system.observe(grid, zeros, weights, smoothness)
        if observed is None:
            return np.full(grid.shape, np.inf)
        vertices = probing.estimate(grid, observed, probes, seed, stacklevel=3)
        return system.slice_vertices(grid, vertices)

    @validation.keywords(photo="reference")
    def update(self, reference: ArrayLike) -> None:
        """Replace the reference, for instance by the next frame of a video.

        The new grid has the sigmas, blur and `reference_max` of the old one; all other options
        stay. If the size stays, ``warm_start="last"`` starts the next solve from the last solution
        where the picture changed little, and afresh where something moved.

        Parameters
        ----------
        reference : (H, W) or (H, W, 3) array
            As for `BilateralGrid`. If it is invalid, the solver stays unchanged.

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
        self.grid = rebuild(self.grid, reference)


def solve_once(
    solver: BilateralSolver,
    target: ArrayLike,
    confidence: ArrayLike | None,
    smooth: tuple[float, float] | None,
    rank_tolerance: float | None,
    warm_start: ArrayLike | None,
    callback: Callback | None,
    dtype: DTypeLike | None,
    stacklevel: int,
) -> tuple[Array, SolveInfo]:
    """Solve as `BilateralSolver.solve` does; a warning points `stacklevel` frames up."""
    call = solver._prepare(target, confidence, smooth, warm_start, callback, dtype)
    x, info, solver._last = call.plain(rank_tolerance, stacklevel)
    return x, info
