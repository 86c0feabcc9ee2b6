"""Solutions compared with the oracle, step by step and after convergence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver, ConvergenceWarning
from oracles import reference as oracle
from support.examples import examples
from support.photo_problem import EXACTLY, assert_close, photo
from support.strategies import Problem, picture, problems

STARTS = [(p, i) for p in ("pyramid", "jacobi") for i in ("pyramid", "flat")]


@examples(200)
@given(problems())
def test_solution_matches_the_oracle(problem: Problem) -> None:
    x = problem.solve(**EXACTLY)
    assert x.dtype == np.float64
    assert_close(x, problem.exact(), problem, 1e-5)


@given(problems(stiff=False))
def test_solution_matches_the_oracle_in_double_precision(problem: Problem) -> None:
    assert_close(problem.solve(**EXACTLY), problem.exact(), problem, 1e-9)


@given(problems())
def test_solution_of_float32_matches_the_oracle(problem: Problem) -> None:
    x = problem.solve(target=problem.target.astype(np.float32), **EXACTLY)
    assert x.dtype == np.float32
    assert_close(x, problem.exact(), problem, 1e-4)


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("known", [1.0, 0.1])
def test_solution_of_a_photograph_matches_the_oracle(known: float, preconditioner: str) -> None:
    problem = photo((60, 70), known)
    x = problem.solve(preconditioner=preconditioner, **EXACTLY)
    assert_close(x, problem.exact(), problem, 1e-8)


@given(problems(stiff=False))
def test_float32_reaches_the_tolerance(problem: Problem) -> None:
    # The solve stays in float32, since the tolerance is not below 1e-5.
    x = problem.solve(target=problem.target.astype(np.float32), tolerance=1e-5, max_iterations=3000)
    assert_close(x, problem.exact(), problem, 0.01)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("known", [1.0, 0.02])
@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1e-2, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["ramp", "textured"])
def test_converged_means_close_to_the_solution(
    kind: str, scale: float, known: float, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    reference = np.rint(255 * picture(kind, (24, 24), rng)).astype(np.uint8)
    target = rng.normal(1, 1, (24, 24))
    confidence = scale * (rng.uniform(size=(24, 24)) < known)
    options = {"sigma_xy": 2, "sigma_luma": 16}
    exact = oracle.solve(reference, target, confidence, **options)
    solver = BilateralSolver(BilateralGrid(reference, **options), tolerance=1e-5)
    solver.max_iterations = 3000
    x, info = solver.solve(target.astype(dtype), confidence, return_info=True)
    assert info.converged
    # The solver estimates its error: allow a factor of 30.
    rms = np.sqrt(np.mean((x - exact) ** 2)) / np.ptp(target[confidence > 0])
    assert rms <= 30e-5


@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1e-2, 1.0, 1e6])
def test_the_papers_steps_in_float32_for_confidences_of_any_scale(scale: float) -> None:
    # Small grids converge in fewer than 25 steps; the others must not diverge again.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        target = rng.normal(size=(1, rng.integers(4, 30)))
        reference, confidence = np.zeros(target.shape, np.uint8), np.full(target.shape, scale)
        options = {"sigma_xy": 2, "smoothness": 40, "method": "paper"}
        single = bilateral.solve(reference, target.astype(np.float32), confidence, **options)
        double = bilateral.solve(reference, target, confidence, **options)
        assert np.abs(single - double).max() <= 1e-2


@given(problems(stiff=False))
def test_method_paper_matches_the_oracle_algorithm(problem: Problem) -> None:
    assert_close(problem.solve(method="paper"), problem.paper(), problem, 1e-9)


@given(problems(stiff=False))
def test_method_paper_in_float32(problem: Problem) -> None:
    x = problem.solve(method="paper", target=problem.target.astype(np.float32))
    assert x.dtype == np.float32
    # On a hard problem, 25 steps do not converge and amplify rounding errors.
    assert_close(x, problem.paper(), problem, 1e-3 if problem.smoothness <= 4 else 0.05)


@given(problems(stiff=False), st.integers(0, 30))
def test_method_paper_with_a_number_of_steps(problem: Problem, steps: int) -> None:
    x = problem.solve(method="paper", max_iterations=steps)
    assert_close(x, problem.paper(steps=steps), problem, 1e-9)


@pytest.mark.parametrize(("preconditioner", "initial"), STARTS)
@examples(40)
@given(problem=problems(stiff=False), steps=st.sampled_from([0, 1, 2, 3, 5, 15]))
def test_each_step_matches_the_oracle(
    problem: Problem, steps: int, preconditioner: str, initial: str
) -> None:
    options = {"preconditioner": preconditioner, "initial": initial}
    x = problem.solve(tolerance=0, max_iterations=steps, **options)
    assert_close(x, problem.paper(steps=steps, **options), problem, 1e-9)


@pytest.mark.parametrize(("preconditioner", "initial"), STARTS)
@pytest.mark.parametrize("known", [1.0, 0.05])
def test_each_step_on_a_photograph(known: float, preconditioner: str, initial: str) -> None:
    problem = photo((60, 70), known)
    options = {"preconditioner": preconditioner, "initial": initial}
    for steps in (0, 1, 4, 25):
        x = problem.solve(tolerance=0, max_iterations=steps, **options)
        assert_close(x, problem.paper(steps=steps, **options), problem, 1e-8)


def test_method_paper_takes_25_steps_and_never_warns() -> None:
    problem = photo(known=0.002)
    x, info = problem.solve(method="paper", return_info=True)
    assert info.iterations == len(info.residuals) == 25
    assert not info.converged
    explicit = {"preconditioner": "pyramid", "initial": "pyramid", "tolerance": 1e-300}
    with pytest.warns(ConvergenceWarning):
        same = problem.solve(max_iterations=25, **explicit)
    np.testing.assert_array_equal(x, same)
    _, info = problem.solve(method="paper", max_iterations=15, return_info=True)
    assert info.iterations == 15


def test_defaults_of_the_grid_and_the_smoothness() -> None:
    problem = photo((40, 50))
    given_ = problem.reference, problem.target
    exact = oracle.solve(*given_, smoothness=4, sigma_xy=8, sigma_luma=8, sigma_chroma=8)
    x = bilateral.solve(*given_, tolerance=0)
    assert_close(x, exact, problem, 1e-8)
    x = BilateralSolver(BilateralGrid(problem.reference), tolerance=0).solve(problem.target)
    assert_close(x, exact, problem, 1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_default_tolerance_is_enough_for_a_photograph(dtype: str) -> None:
    problem = photo((60, 70))
    x, info = problem.solve(target=problem.target.astype(dtype), return_info=True)
    assert info.converged
    error = np.sqrt(np.mean((x - problem.exact()) ** 2)) / np.ptp(problem.target)
    assert error < 1e-3
