"""The oracle's pyramid, preconditioners and conjugate gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference import (
    Array,
    Grid,
    collapse,
    direct_solve,
    flat_start,
    has_data,
    jacobi,
    lift,
    pcg,
    pyramid_preconditioner,
    pyramid_start,
    solve,
    solve_paper,
    system,
)
from oracles.tiny_problems import Problem, photo, problems
from support.examples import examples

# The pyramid


def dense_pyramid(grid: Grid) -> list[Array]:
    """Return each level as a 0/1 matrix (n_level, n_vertices), from the cells V // 2^k."""
    levels = []
    for k in range(len(grid.levels) + 1):
        parents = [(y >> k, x >> k, *(c >> k for c in color)) for x, y, *color in grid.V.tolist()]
        distinct = sorted(set(parents))
        levels.append(np.array([[float(d == parent) for parent in parents] for d in distinct]))
    return levels


@given(problems(), st.integers(0, 2**32 - 1))
def test_collapse_is_the_adjoint_of_lift(problem: Problem, seed: int) -> None:
    grid, rng = problem.grid, np.random.default_rng(seed)
    y = rng.normal(size=len(grid.V))
    lifted = lift(grid, y)
    z = [rng.normal(size=len(level)) for level in lifted]
    inner = sum(float(a @ b) for a, b in zip(lifted, z, strict=True))
    np.testing.assert_allclose(inner, y @ collapse(grid, z), atol=1e-10)


@given(problems())
def test_pyramid_halves_cells_until_one_is_left(problem: Problem) -> None:
    grid = problem.grid
    sizes = [len(grid.V), *(S_k.shape[0] for S_k in grid.levels)]
    assert sizes[-1] == 1
    assert 1 not in sizes[:-1]
    y = np.random.default_rng(0).normal(size=len(grid.V))
    for level, z in zip(dense_pyramid(grid), lift(grid, y), strict=True):
        np.testing.assert_allclose(z, level @ y, atol=1e-12)


@given(problems())
def test_starts_and_preconditioners_are_the_papers(problem: Problem) -> None:
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    top, bottom, M = np.zeros_like(b), np.zeros_like(Sc), np.zeros(A.shape)
    diagonal = A.diagonal()
    for k, P in enumerate(dense_pyramid(grid)):
        counts = P.sum(axis=1)
        top += (1 if k == 0 else 4.0**-k) * P.T @ (P @ b / counts[:, None])
        bottom += (1 if k == 0 else 4.0**-k) * P.T @ (P @ Sc / counts)
        inverse = [n / d if d > 0 else 0 for n, d in zip(counts, P @ diagonal, strict=True)]
        M += (1 if k == 0 else 2.0 ** -(5 + k)) * P.T @ np.diag(inverse) @ P
    hier = top / bottom[:, None]
    np.testing.assert_allclose(pyramid_start(grid, b, Sc), hier, rtol=1e-10, atol=1e-12)
    flat = np.array([b[i] / Sc[i] if Sc[i] > 0 else hier[i] for i in range(len(Sc))])
    np.testing.assert_allclose(flat_start(grid, b, Sc), flat, rtol=1e-10, atol=1e-12)
    r = np.random.default_rng(0).normal(size=b.shape)
    np.testing.assert_allclose(pyramid_preconditioner(grid, A)(r), M @ r, rtol=1e-9, atol=1e-9)
    diagonal_inverse = [1 / d if d > 0 else 0 for d in diagonal]
    np.testing.assert_allclose(jacobi(A)(r), np.diag(diagonal_inverse) @ r, rtol=1e-12)


# Conjugate gradients


@pytest.mark.parametrize("initial", ["pyramid", "flat"])
@pytest.mark.parametrize("preconditioner", ["pyramid", "jacobi"])
@examples(50)
@given(problem=problems())
def test_pcg_reaches_the_direct_solution(
    problem: Problem, preconditioner: str, initial: str
) -> None:
    inputs = problem.reference, problem.target, problem.confidence
    x = solve_paper(
        *inputs,
        smoothness=problem.smoothness,
        steps=150,
        preconditioner=preconditioner,
        initial=initial,
        **problem.options,
    )
    exact = solve(*inputs, smoothness=problem.smoothness, **problem.options)
    np.testing.assert_allclose(x, exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("preconditioner", ["pyramid", "jacobi"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_each_pcg_step_is_optimal_in_the_krylov_space(preconditioner: str, steps: int) -> None:
    # Definition of Algorithm 2 in exact arithmetic: after k steps the error has the least A-norm in
    # x_0 + span{M^-1 r_0, (M^-1 A) M^-1 r_0, ...}, for each channel by itself.
    problem = photo()
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    active = has_data(grid, Sc)
    M = pyramid_preconditioner(grid, A) if preconditioner == "pyramid" else jacobi(A)
    start = flat_start(grid, b, Sc)
    x = pcg(A, b, start, M, steps, active)
    for channel in range(2):
        r = np.where(active, (b - A @ start)[:, channel], 0)
        basis = np.zeros((len(b), 0))
        direction = np.where(active, M(r), 0)
        for _ in range(steps):
            basis = np.linalg.qr(np.column_stack([basis, direction]))[0]
            direction = np.where(active, M(A @ basis[:, -1]), 0)
        z = np.linalg.solve(basis.T @ (A @ basis), basis.T @ r)
        np.testing.assert_allclose(x[:, channel], start[:, channel] + basis @ z, atol=1e-9)


def test_solve_paper_takes_25_steps_from_the_pyramid_by_default() -> None:
    problem = photo()
    inputs = problem.reference, problem.target, problem.confidence
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    start, M = pyramid_start(grid, b, Sc), pyramid_preconditioner(grid, A)
    expected = grid.S.T @ pcg(A, b, start, M, 25, has_data(grid, Sc))
    x = solve_paper(*inputs, **problem.options)
    np.testing.assert_array_equal(x, expected.reshape(problem.target.shape))


def test_pcg_stays_at_a_solution() -> None:
    problem = photo()
    grid = problem.grid
    A, b, _ = system(grid, np.zeros_like(problem.target), None, 4.0)
    np.testing.assert_array_equal(pcg(A, b, np.zeros_like(b), jacobi(A), 10), 0)
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    M, active = pyramid_preconditioner(grid, A), has_data(grid, Sc)
    exact = direct_solve(grid, A, b, Sc)
    np.testing.assert_allclose(pcg(A, b, exact, M, 1000, active), exact, atol=1e-10)


def test_regions_without_data_keep_the_pyramid_start() -> None:
    problem = photo()
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    active, start = has_data(grid, Sc), pyramid_start(grid, b, Sc)
    empty = ~active
    assert empty.any()
    assert np.ptp(start[empty], axis=0).min() > 0.01
    np.testing.assert_array_equal(direct_solve(grid, A, b, Sc)[empty], start[empty])
    np.testing.assert_array_equal(flat_start(grid, b, Sc)[empty], start[empty])
    for M in (jacobi(A), pyramid_preconditioner(grid, A)):
        x = pcg(A, b, start, M, 25, active)
        np.testing.assert_array_equal(x[empty], start[empty])
        assert np.abs(x - start)[active].max() > 0.01


def test_region_without_data_by_hand() -> None:
    # Black cells x = 0, 1 hold 2 and 6; the white cell x = 3 is alone and meets them only at the
    # pyramid's top: it gets their mean.
    reference = np.array([[0, 0, 0, 255]], dtype=np.uint8)
    target, confidence = np.array([[2.0, 6.0, 9.0, 9.0]]), np.array([[1.0, 1.0, 0.0, 0.0]])
    x = solve(reference, target, confidence, sigma_xy=1)
    assert x[0, 3] == pytest.approx(4, rel=1e-12)
