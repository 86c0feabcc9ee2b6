"""Convergence: information about a solve, warnings, warm starts and iteration counts."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import bilateral
from bilateral import BilateralGrid, BilateralSolver, ConvergenceWarning
from oracles import reference as oracle
from support.photo_problem import EXACTLY, assert_close, photo
from support.strategies import Problem, problems, seeds

# Information about a solve


@pytest.mark.parametrize("channels", [(), (1,), (3,), (8,), (9,)])
def test_info(channels: tuple[int, ...]) -> None:
    problem = photo((60, 70), 0.3, channels)
    began = time.perf_counter()
    x, info = problem.solve(tolerance=1e-4, return_info=True)
    elapsed = time.perf_counter() - began
    np.testing.assert_array_equal(x, problem.solve(tolerance=1e-4))
    assert info.converged is True
    assert isinstance(info.iterations, int)
    assert 2 <= info.iterations == len(info.residuals)
    assert all(isinstance(r, float) and r >= 0 for r in info.residuals)
    assert info.residuals[-1] <= 1e-4 < info.residuals[-2]
    assert info.n_vertices == problem.grid().n_vertices
    assert 0 < info.seconds <= elapsed


def test_info_of_a_solve_on_a_grid() -> None:
    problem = photo((30, 40))
    grid = problem.grid()
    x, info = BilateralSolver(grid).solve(problem.target, return_info=True)
    assert info.n_vertices == grid.n_vertices
    assert info.converged
    assert x.shape == problem.target.shape
    with pytest.raises(AttributeError):
        info.iterations = 3


def test_residuals_estimate_the_error() -> None:
    # Against the error after each step, relative to the range of the known values.
    problem = photo((60, 70), 0.3)
    exact, spread = problem.exact(), np.ptp(problem.target[problem.known])
    for steps in (2, 4, 8):
        with pytest.warns(ConvergenceWarning):
            x, info = problem.solve(tolerance=1e-9, max_iterations=steps, return_info=True)
        error = np.sqrt(np.mean((x - exact) ** 2)) / spread
        assert error / 10 <= info.residuals[-1] <= 10 * error


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_residuals_do_not_depend_on_the_unit_and_offset_of_the_target(dtype: str) -> None:
    problem = photo((30, 40), 0.3)
    _, info = problem.solve(target=problem.target.astype(dtype), return_info=True)
    # Powers of two scale without rounding.
    for unit in (2.0**-20, 2.0**20):
        _, other = problem.solve(target=(unit * problem.target).astype(dtype), return_info=True)
        assert other.residuals == info.residuals
    shifted, other = problem.solve(target=(problem.target + 64).astype(dtype), return_info=True)
    np.testing.assert_allclose(other.residuals, info.residuals, rtol=0.02)
    assert shifted.min() > 60


def test_a_solve_that_runs_out_of_steps_warns_with_numbers() -> None:
    problem = photo(known=0.01)
    with pytest.warns(ConvergenceWarning) as caught:
        x, info = problem.solve(tolerance=1e-6, max_iterations=3, return_info=True)
    (warning,) = caught
    message = str(warning.message)
    assert "max_iterations=3" in message
    assert "tolerance=1e-06" in message
    assert f"{info.residuals[-1]:.2g}" in message
    assert not info.converged
    assert info.iterations == 3
    assert info.residuals[-1] > 1e-6
    assert np.isfinite(x).all()


def test_the_warning_points_at_the_callers_line() -> None:
    problem = photo(known=0.01)
    with pytest.warns(ConvergenceWarning) as caught:
        bilateral.solve(problem.reference, problem.target, tolerance=1e-6, max_iterations=1)
    assert caught[0].filename == __file__
    solver = BilateralSolver(BilateralGrid(problem.reference), tolerance=1e-6, max_iterations=1)
    with pytest.warns(ConvergenceWarning) as caught:
        solver.solve(problem.target)
    assert caught[0].filename == __file__


def test_no_steps() -> None:
    problem = photo(known=0.01)
    x, info = problem.solve(max_iterations=0, initial="pyramid", return_info=True)
    assert (info.iterations, info.residuals, info.converged) == (0, (), False)
    assert_close(x, problem.paper(steps=0), problem, 1e-12)


@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 2**63, 10**30])
def test_a_huge_limit_of_steps(most: int) -> None:
    problem = photo((30, 40))
    np.testing.assert_array_equal(problem.solve(max_iterations=most), problem.solve())


@pytest.mark.parametrize("offset", [0, 1e3, 1e6, -1e9])
@pytest.mark.parametrize("scale", [1e-4, 1.0])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 0), ("float32", 0), ("float32", 1e-3)]
)
def test_a_solve_ends_when_steps_no_longer_change_anything(
    dtype: str, tolerance: float, scale: float, offset: float
) -> None:
    # With a large offset, the range of the target is close to rounding errors.
    problem = photo((60, 70), 0.01)
    assert problem.confidence is not None
    x, info = problem.solve(
        target=(problem.target + offset).astype(dtype),
        confidence=scale * problem.confidence,
        tolerance=tolerance,
        max_iterations=20_000,
        return_info=True,
    )
    assert info.converged
    assert info.iterations < 2000
    exact = replace(problem, confidence=scale * problem.confidence).exact()
    rounding = 4 * np.finfo(dtype).eps * abs(offset)
    assert np.abs(x - (exact + offset)).max() <= 10 * tolerance * problem.size + rounding + 1e-5


# Warm starts


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_warm_start_at_the_solution_takes_two_steps(
    channels: tuple[int, ...], preconditioner: str
) -> None:
    problem = photo((60, 70), 0.1, channels)
    options = {"preconditioner": preconditioner, "max_iterations": 3000, "tolerance": 1e-6}
    x, cold = problem.solve(**options, return_info=True)
    exact = problem.exact()
    again, warm = problem.solve(**options, warm_start=exact, return_info=True)
    assert warm.converged
    # With other preconditioners, multigrid takes one more step to check the error.
    assert warm.iterations <= (2 if preconditioner == "multigrid" else 3) < cold.iterations
    assert_close(again, exact, problem, 1e-6)
    assert_close(again, x, problem, 1e-4)


@given(problems(), seeds)
def test_any_warm_start_leads_to_the_same_solution(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    warm_start = problem.size * rng.normal(size=problem.target.shape)
    x = problem.solve(warm_start=warm_start, **EXACTLY)
    assert_close(x, problem.exact(), problem, 1e-5)


def test_a_warm_start_is_averaged_over_each_vertex() -> None:
    problem = photo((20, 30))
    rng = np.random.default_rng(0)
    warm_start = rng.normal(size=(20, 30))
    x = problem.solve(warm_start=warm_start, max_iterations=0)
    S = oracle.image_grid(problem.reference, **problem.options).S
    mean = (S @ warm_start.ravel()) / S.sum(axis=1)
    np.testing.assert_allclose(x.ravel(), S.T @ mean, rtol=1e-12, atol=1e-12)


# Iteration counts show a worse preconditioner; time is never measured.


CEILINGS = [
    # known pixels, smoothness, preconditioner, steps to an error of 1e-6 (measured, + 5 %)
    (1.0, 4, "pyramid", 11),
    (1.0, 4, "jacobi", 12),
    (1.0, 128, "pyramid", 47),
    (1.0, 128, "jacobi", 62),
    (0.01, 4, "pyramid", 96),
    (0.01, 4, "jacobi", 125),
    (0.01, 128, "pyramid", 193),
    (0.01, 128, "jacobi", 253),
]


@pytest.mark.parametrize(("known", "smoothness", "preconditioner", "ceiling"), CEILINGS)
def test_steps_to_convergence(
    known: float, smoothness: float, preconditioner: str, ceiling: int
) -> None:
    problem = replace(photo(known=known), smoothness=smoothness)
    exact, spread = problem.exact(), np.ptp(problem.target[problem.known])
    options = {"preconditioner": preconditioner, "return_info": True}
    x, _ = problem.solve(tolerance=0, max_iterations=ceiling, **options)
    assert np.sqrt(np.mean((x - exact) ** 2)) <= 1e-6 * spread
    # The solve stops soon after it has reached the tolerance.
    _, info = problem.solve(tolerance=1e-6, max_iterations=1000, **options)
    assert info.converged
    assert info.iterations <= 1.3 * ceiling
