"""The multigrid preconditioner and the nested start: convergence and unusual grids."""

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import splu

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from oracles import reference as oracle
from support.boxes import SHAPE, confidence, scene
from support.examples import examples
from support.strategies import Array, Problem, problems

KNOWN = (0.001, 0.01, 0.1, 1.0, "scribbles")
SMOOTHNESSES = (0.25, 4, 128, 10_000)
BLURS = ("paper", "uniform")
SIGMAS = ((4, 4, 4), (8, 8, 8), (16, 8, 8), (8, 4, 3))
MULTIGRID = {"preconditioner": "multigrid", "initial": "nested"}


@functools.cache
def oracle_grid(sigmas: tuple[float, float, float], blur: str) -> oracle.Grid:
    """Return the oracle's grid of the scene."""
    return oracle.image_grid(scene().photo, *sigmas, blur)


class Truth(NamedTuple):
    """The oracle's system and its solution at the vertices with data."""

    A: Any
    y: Array
    active: Array


@functools.cache
def truth(
    sigmas: tuple[float, float, float], blur: str, known: float | str, smoothness: float
) -> Truth:
    """Solve the scene's system directly."""
    grid = oracle_grid(sigmas, blur)
    A, b, Sc = oracle.system(grid, scene().depth, confidence(known), smoothness)
    active = oracle.has_data(grid, Sc)
    y = np.zeros(len(Sc))
    y[active] = splu(A[active][:, active].tocsc()).solve(b[active, 0])
    return Truth(A, y, active)


def solver(sigmas: tuple[float, float, float], blur: str, **options: Any) -> BilateralSolver:
    """Return a solver of the scene."""
    return BilateralSolver(BilateralGrid(scene().photo, *sigmas, blur), **options)


# Convergence


GRIDS = [*itertools.product(SIGMAS, BLURS)]
ONE_GRID = ((8, 8, 8), "paper")
one_smoke_grid = pytest.mark.parametrize(
    ("sigmas", "blur"),
    [pytest.param(*grid, marks=pytest.mark.smoke if grid == ONE_GRID else ()) for grid in GRIDS],
)


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
@one_smoke_grid
def test_ten_steps_are_enough_for_any_system(sigmas: tuple[float, float, float], blur: str) -> None:
    grid = oracle_grid(sigmas, blur)
    for known, smoothness in itertools.product(KNOWN, SMOOTHNESSES):
        limited = solver(sigmas, blur, smoothness=smoothness, tolerance=1e-12, max_iterations=10)
        x = limited.solve(scene().depth, confidence(known))
        exact = truth(sigmas, blur, known, smoothness)
        e = (grid.S @ x.ravel() / grid.S.sum(axis=1) - exact.y) * exact.active
        error = np.sqrt((e @ (exact.A @ e)) / (exact.y @ (exact.A @ exact.y)))
        assert error <= 1e-3, (known, smoothness)


@pytest.mark.stress
@pytest.mark.parametrize(
    "grids",
    [
        pytest.param([ONE_GRID], id="one grid", marks=pytest.mark.smoke),
        pytest.param(GRIDS, id="all"),
    ],
)
def test_the_error_of_a_solve_is_within_its_tolerance(grids: list[Any]) -> None:
    ratios: dict[str, list[float]] = {"float32": [], "float64": []}
    cases = itertools.product(grids, KNOWN, SMOOTHNESSES)
    for ((sigmas, blur), known, smoothness), dtype in itertools.product(cases, ratios):
        grid, exact = oracle_grid(sigmas, blur), truth(sigmas, blur, known, smoothness)
        with_data = (grid.S.T @ exact.active).astype(bool).reshape(SHAPE)
        usual = solver(sigmas, blur, smoothness=smoothness)
        x, info = usual.solve(scene().depth.astype(dtype), confidence(known), return_info=True)
        assert info.converged
        e = (x - (grid.S.T @ exact.y).reshape(SHAPE))[with_data]
        spread = np.ptp(scene().depth[confidence(known) > 0])
        ratios[dtype].append(np.sqrt(np.sum(e**2) / x.size) / spread / usual.tolerance)
    for of_dtype in ratios.values():
        assert max(of_dtype) <= 3
        assert np.mean(np.array(of_dtype) <= 1) >= 0.8


def test_the_nested_start_is_close() -> None:
    grid = oracle_grid((8, 8, 8), "paper")
    exact = truth((8, 8, 8), "paper", 0.01, 128)
    errors = {}
    for initial in ("nested", "pyramid", "flat"):
        given_ = solver((8, 8, 8), "paper", smoothness=128, initial=initial, max_iterations=0)
        x = given_.solve(scene().depth, confidence(0.01))
        e = (grid.S @ x.ravel() / grid.S.sum(axis=1) - exact.y) * exact.active
        errors[initial] = np.sqrt((e @ (exact.A @ e)) / (exact.y @ (exact.A @ exact.y)))
    assert errors["nested"] <= 0.1
    assert errors["nested"] <= 0.1 * min(errors["pyramid"], errors["flat"])


@pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
@pytest.mark.parametrize("known", [0.01, 0.1])
def test_the_v_cycle_is_symmetric_and_positive(known: float) -> None:
    # One step from 0 gives alpha_j M r_j on the colour that conjugate gradients keep, so that
    # r_i . x_j = alpha_j M_ij: equal products around a triangle mean that M is symmetric.
    grid = oracle_grid((8, 8, 8), "paper")
    rng = np.random.default_rng(0)
    target = rng.normal(size=(*SHAPE, 3))
    c = confidence(known)
    # Results stay within the range of the known values: make it wide.
    target[0, :2], c[0, :2] = [[1e6] * 3, [-1e6] * 3], 1e-30
    A, b, _ = oracle.system(grid, target, c, 4)
    x = solver((8, 8, 8), "paper", max_iterations=1, tolerance=1e-12, **MULTIGRID).solve(
        target, c, warm_start=np.zeros_like(target)
    )
    y = (grid.S @ x.reshape(-1, 3)) / grid.S.sum(axis=1)[:, None]
    for colour in (0, 1):
        later = grid.V.sum(axis=1) % 2 == colour
        eliminated = oracle.ratio(b[~later], A.diagonal()[~later, None])
        r = b[later] - A[later][:, ~later] @ eliminated
        X = r.T @ y[later]
        around = X[0, 1] * X[1, 2] * X[2, 0], X[0, 2] * X[2, 1] * X[1, 0]
        if np.isclose(*around, rtol=1e-9):
            assert (np.diag(X) > 0).all()
            return
    pytest.fail("M is not symmetric")


def test_easy_problems_are_left_to_the_pyramid() -> None:
    photo, depth = scene()
    dense, sparse = confidence(1.0), confidence(0.01)
    for smoothness, weights, other in ((1, dense, "pyramid"), (1, sparse, "multigrid")):
        x = bilateral.solve(photo, depth, weights, smoothness=smoothness)
        initial = "pyramid" if other == "pyramid" else "nested"
        options = {"preconditioner": other, "initial": initial}
        expected = bilateral.solve(photo, depth, weights, smoothness=smoothness, **options)
        np.testing.assert_array_equal(x, expected)


# Independence of threads, earlier solves and precision


@pytest.mark.parametrize("channels", [1, 3, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_number_of_threads_gives_the_same_bits(
    dtype: str, channels: int, keep_num_threads: None
) -> None:
    shape = (300, 400)
    photo, depth = scene(shape)
    target = np.stack([depth * (k + 1) for k in range(channels)], axis=2).astype(dtype)
    results = []
    for threads in (1, 2, 5):
        bilateral.set_num_threads(threads)
        grid = BilateralGrid(photo, 4, 4, 4)
        assert grid.n_vertices > 5 * 4096
        results.append(BilateralSolver(grid, **MULTIGRID).solve(target, confidence(0.01, shape)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_grid_serves_several_confidences_and_smoothnesses() -> None:
    photo, depth = scene()
    grid = BilateralGrid(photo)
    for known, smoothness in ((0.01, 4.0), (0.1, 128.0), (0.01, 4.0)):
        x = BilateralSolver(grid, smoothness).solve(depth, confidence(known))
        expected = bilateral.solve(photo, depth, confidence(known), smoothness=smoothness)
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("smoothness", [0.25, 4, 128])
def test_float32_is_close_to_float64(smoothness: float) -> None:
    photo, depth = scene()
    options = {"smoothness": smoothness, "tolerance": 1e-4, **MULTIGRID}
    double = bilateral.solve(photo, depth + 100, confidence(0.1), **options)
    single = bilateral.solve(photo, (depth + 100).astype(np.float32), confidence(0.1), **options)
    assert single.dtype == np.float32
    assert np.sqrt(np.mean((single - double) ** 2)) <= 2e-4 * np.ptp(depth)


# Unusual grids


@examples(200)
@given(problems(stiff=False), st.sampled_from(["nested", "pyramid", "flat"]))
def test_solution_matches_the_oracle(problem: Problem, initial: str) -> None:
    options = {"preconditioner": "multigrid", "initial": initial, "tolerance": 0}
    x = problem.solve(**options, max_iterations=3000)
    assert np.isfinite(x).all()
    assert np.abs(x - problem.exact()).max() <= 1e-9 * problem.size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_single_vertex(dtype: str) -> None:
    target = np.arange(16, dtype=dtype).reshape(4, 4)
    x = bilateral.solve(np.zeros((4, 4), np.uint8), target, **MULTIGRID)
    np.testing.assert_allclose(x, 7.5, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vertices_without_neighbours_keep_their_own_mean(dtype: str) -> None:
    # A checkerboard of colours far apart: no vertex has a neighbour.
    i, j = np.indices((6, 6))
    photo = (60 * ((i + 2 * j) % 4)).astype(np.uint8)
    target = np.random.default_rng(0).normal(size=(6, 6)).astype(dtype)
    x = bilateral.solve(photo, target, sigma_xy=1, sigma_luma=4, smoothness=100, **MULTIGRID)
    np.testing.assert_allclose(x, target, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_without_data_change_nothing_elsewhere(dtype: str) -> None:
    # Black and white halves share no edge; only the black one has data.
    photo = np.zeros((20, 40), np.uint8)
    photo[:, 20:] = 255
    target = np.random.default_rng(0).normal(size=(20, 40)).astype(dtype)
    weights = np.zeros((20, 40))
    weights[::3, :20:2] = 1
    options = {"sigma_xy": 2, "tolerance": 1e-5, **MULTIGRID}
    x = bilateral.solve(photo, target, weights, **options)
    alone = bilateral.solve(photo[:, :20], target[:, :20], weights[:, :20], **options)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x[:, :20], alone, atol=1e-4)
    start = bilateral.solve(photo, target, weights, sigma_xy=2, initial="pyramid", max_iterations=0)
    np.testing.assert_array_equal(x[:, 20:], start[:, 20:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("space", [1e-19, 1e-21, 1e-44, 1e-100, 1e-320])
def test_tiny_weights_of_the_blur(space: float, dtype: str) -> None:
    # Matching compares weights in float32, where such weights are 0.
    rng = np.random.default_rng(0)
    grid = BilateralGrid(rng.integers(0, 256, (30, 40, 3), np.uint8), 5, 40, 40, (1, space, 0.1))
    target = np.where(rng.uniform(size=(30, 40)) < 0.5, np.nan, 1.5).astype(dtype)
    for smoothness in (1e-9, 4.0):
        x = BilateralSolver(grid, smoothness, **MULTIGRID).solve(target)
        np.testing.assert_allclose(x, 1.5, rtol=1e-3)
