"""The oracle's system, compared with the paper's problem over pixels, built densely."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference import (
    direct_solve,
    has_data,
    image_grid,
    solve,
    solve_paper,
    system,
)
from oracles.tiny_problems import Problem, affinity, connected, photo, pixel_loss, problems

# The system


@given(problems())
def test_system_is_symmetric_and_definite_exactly_where_there_is_data(problem: Problem) -> None:
    grid = problem.grid
    A, _, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    A, active = A.toarray(), has_data(grid, Sc)
    np.testing.assert_allclose(A, A.T, rtol=1e-14)
    assert np.linalg.eigvalsh(A).min() > -1e-12 * np.abs(A).max()
    assert np.linalg.eigvalsh(A[active][:, active]).min() > 1e-8 * np.abs(A).max()
    # Without data a constant is free: the rows sum to 0.
    np.testing.assert_allclose(A[~active].sum(axis=1), 0, atol=1e-12 * np.abs(A).max())
    np.testing.assert_array_equal(A[~active][:, active], 0)


@given(problems())
def test_active_vertices_hold_the_pixels_connected_to_data(problem: Problem) -> None:
    grid, (c, _) = problem.grid, problem.data
    active = has_data(grid, grid.S @ c)
    np.testing.assert_array_equal(active @ grid.S, connected(affinity(grid), c))


@given(problems())
def test_quadratic_form_is_half_the_pixel_loss(problem: Problem) -> None:
    # Eq. 6 drops a factor of 2 from Eq. 1; at any y, not only at the solution.
    grid, (c, t) = problem.grid, problem.data
    A, b, _ = system(grid, problem.target, problem.confidence, problem.smoothness)
    y = np.random.default_rng(0).normal(size=b.shape)
    constant = 0.5 * c @ t**2
    form = 0.5 * np.sum(y * (A @ y), axis=0) - np.sum(b * y, axis=0) + constant
    loss = pixel_loss(affinity(grid), grid.S.T @ y, c, t, problem.smoothness)
    np.testing.assert_allclose(2 * form, loss, rtol=1e-9, atol=1e-9 * (1 + constant.max()))


@given(problems())
def test_solution_minimizes_the_pixel_loss_over_sliced_vectors(problem: Problem) -> None:
    # Eq. 1 as a dense least-squares problem in y, with x = S^T y: one row for each pair of pixels,
    # one for each pixel. Regions without data have no unique minimizer and are left out.
    grid, (c, t) = problem.grid, problem.data
    W, slice_, smoothness = affinity(grid), grid.S.T.toarray(), problem.smoothness
    pairs = (slice_[:, None] - slice_[None]) * np.sqrt(smoothness / 2 * W)[..., None]
    rows = np.concatenate([pairs.reshape(-1, slice_.shape[1]), np.sqrt(c)[:, None] * slice_])
    right = np.concatenate([np.zeros((W.size, t.shape[1])), np.sqrt(c)[:, None] * t])
    expected = slice_ @ np.linalg.lstsq(rows, right, rcond=1e-12)[0]

    x = solve(
        problem.reference,
        problem.target,
        problem.confidence,
        smoothness=smoothness,
        **problem.options,
    )
    assert x.shape == problem.target.shape
    assert np.isfinite(x).all()
    near, x = connected(W, c), x.reshape(t.shape)
    np.testing.assert_allclose(x[near], expected[near], rtol=1e-7, atol=1e-7)
    gradient = grid.S @ (smoothness * (x - W @ x) + c[:, None] * (x - t))
    scale = smoothness * grid.m.max() + c.sum()
    np.testing.assert_allclose(gradient[has_data(grid, grid.S @ c)], 0, atol=1e-9 * scale)


@given(problems())
def test_solution_is_the_pixel_minimizer_when_each_vertex_has_one_target(problem: Problem) -> None:
    # If c = S^T c_v and t = S^T t_v, then with x = S^T y and S S^T = D_m
    #   (lambda (I - W-hat) + diag(c)) x - c t = S^T D_m^-1 (A y - b),
    # so the minimizer of Eq. 1 over all x, not only over slices, is S^T A^-1 b.
    grid, (c, t) = problem.grid, problem.data
    first = grid.S.toarray().argmax(axis=1)
    c, t = grid.S.T @ c[first], grid.S.T @ t[first]
    c[grid.S[[0]].toarray()[0] > 0] += 1
    A, b, Sc = system(grid, t, c, problem.smoothness)
    x = grid.S.T @ direct_solve(grid, A, b, Sc)
    W = affinity(grid)
    near = connected(W, c)
    H = problem.smoothness * (np.eye(len(W)) - W) + np.diag(c)
    expected = np.linalg.solve(H[near][:, near], (c[:, None] * t)[near])
    np.testing.assert_allclose(x[near], expected, rtol=1e-7, atol=1e-7)


def test_two_targets_on_one_vertex_by_hand() -> None:
    # One vertex, c = 1: over slices x = mean(t) = 1/2, whatever lambda. Over all x the minimizer
    # is x_i = (lambda mean(x) + t_i) / (lambda + 1), which is not a slice.
    reference, target = np.zeros((1, 2), dtype=np.uint8), np.array([[0.0, 1.0]])
    np.testing.assert_allclose(solve(reference, target, smoothness=4), [[0.5, 0.5]])
    W = affinity(image_grid(reference))
    np.testing.assert_allclose(W, np.full((2, 2), 0.5))
    free = np.linalg.solve(4 * (np.eye(2) - W) + np.eye(2), target[0])
    np.testing.assert_allclose(free, [0.4, 0.6])


def test_two_vertices_by_hand() -> None:
    # Two neighbours with one pixel each: n^2 (2 + 1) = 1, so A = lambda/3 [[1, -1], [-1, 1]] + I.
    reference, target = np.zeros((1, 2), dtype=np.uint8), np.array([[0.0, 1.0]])
    x = solve(reference, target, smoothness=3, sigma_xy=1)
    np.testing.assert_allclose(x, [[1 / 3, 2 / 3]])
    x = solve(reference, target, np.array([[0.0, 5.0]]), smoothness=3, sigma_xy=1)
    np.testing.assert_allclose(x, [[1, 1]])


@given(problems(), st.floats(-100, 100))
def test_constants_are_preserved(problem: Problem, value: float) -> None:
    target = np.where(np.isfinite(problem.target), value, np.nan)
    for solver in (solve, solve_paper):
        x = solver(problem.reference, target, problem.confidence, smoothness=4, **problem.options)
        np.testing.assert_allclose(x, value, rtol=1e-9, atol=1e-12)


def test_non_finite_targets_never_matter() -> None:
    problem = photo()
    bad = np.random.default_rng(1).uniform(size=problem.target.shape[:2]) < 0.3
    assert problem.confidence is not None
    assert np.any(problem.confidence[bad] > 0)
    target = problem.target.copy()
    target[bad, 0] = np.resize([np.nan, np.inf, -np.inf], int(bad.sum()))
    seen = np.where(bad, 0, problem.confidence)
    for solver in (solve, solve_paper):
        x = solver(problem.reference, target, problem.confidence, **problem.options)
        expected = solver(problem.reference, problem.target, seen, **problem.options)
        np.testing.assert_array_equal(x, expected)


def test_no_confidence_means_one() -> None:
    problem = photo()
    ones = np.ones(problem.target.shape[:2])
    x = solve(problem.reference, problem.target, **problem.options)
    expected = solve(problem.reference, problem.target, ones, **problem.options)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("solver", [solve, solve_paper])
def test_defaults(solver: Any) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 60, (20, 20, 3)).astype(np.uint8)
    target = rng.normal(size=(20, 20))
    sigmas = {"sigma_xy": 8, "sigma_luma": 8, "sigma_chroma": 8}
    expected = solver(reference, target, smoothness=4.0, blur="paper", **sigmas)
    np.testing.assert_array_equal(solver(reference, target), expected)


@pytest.mark.parametrize("solver", [solve, solve_paper])
def test_no_data_and_no_smoothness_are_errors(solver: Any) -> None:
    reference, target = np.zeros((2, 3), dtype=np.uint8), np.ones((2, 3))
    with pytest.raises(ValueError, match="no data"):
        solver(reference, target, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no data"):
        solver(reference, np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="smoothness"):
        solver(reference, target, smoothness=0)
