"""The planar oracle, compared with the ordinary oracle and with its energy, written per pixel."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import planar, reference
from oracles.reference import Array, Grid, grid_from_coordinates
from oracles.tiny_problems import Problem, photo, problems

SHAPES = {"image": (5, 7), "video": (4, 5, 6), "features": (6, 5)}
SIGMAS = {"image": (3.0, 3.0), "video": (2.0, 2.5, 2.5), "features": (2.0, 3.0)}


class Case(NamedTuple):
    """A random problem; `model` is the planar one on `grid`."""

    grid: Grid
    model: planar.Model
    position: Array
    target: Array
    confidence: Array


def case(kind: str, known: float = 0.7, colours: int = 2, seed: int = 0) -> Case:
    """Return a problem with two channels on a grid with one range column or, for features, two."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[kind]
    position = planar.positions(shape, SIGMAS[kind])
    columns = 2 if kind == "features" else 1
    features = rng.integers(0, colours, (len(position), columns))
    grid = grid_from_coordinates(
        np.column_stack([np.floor(position).astype(np.int64), features]), n_space=len(shape)
    )
    target = rng.normal(size=(*shape, 2))
    confidence = rng.uniform(0.1, 2, shape) * (rng.uniform(size=shape) < known)
    confidence.flat[0] = 1.0
    return Case(grid, planar.model(grid, position), position, target, confidence)


def energy(case: Case, z: Array, smoothness: float, mu: float, eps: float) -> float:
    """E by its formula, in loops over edges, vertices and pixels, summed over the channels."""
    grid, total = case.grid, 0.0
    pixels = [case.grid.S[[v]].indices for v in range(len(grid.m))]
    centre = [case.position[i].mean(axis=0) for i in pixels]
    w = np.diag(grid.n) @ grid.B.toarray() @ np.diag(grid.n)
    for u in range(len(grid.m)):
        total += smoothness * eps * grid.m[u] * float(np.sum(z[u, 1:] ** 2))
        for v in range(u + 1, len(grid.m)):
            d = centre[v] - centre[u]
            jump = (z[u, 0] + d @ z[u, 1:] / 2) - (z[v, 0] - d @ z[v, 1:] / 2)
            bend = np.sum((z[u, 1:] - z[v, 1:]) ** 2)
            total += smoothness * w[u, v] * float(np.sum(jump**2) + mu * bend)
    t = case.target.reshape(len(case.position), -1)
    for v, members in enumerate(pixels):
        for i in members:
            x = z[v, 0] + (case.position[i] - centre[v]) @ z[v, 1:]
            total += case.confidence.flat[i] * float(np.sum((x - t[i]) ** 2))
    return total


@pytest.mark.parametrize("kind", SHAPES)
def test_energy_is_stationary_at_the_solution(kind: str) -> None:
    # E is quadratic, so central differences are exact up to rounding at any step.
    problem, parameters = case(kind, colours=1), (0.7, 2.0, 0.05)
    names = ("smoothness", "slope_smoothness", "slope_ridge")
    options: dict[str, Any] = dict(zip(names, parameters, strict=True))
    z, active = planar.solve_vertices(problem.model, problem.target, problem.confidence, **options)
    assert active.all()
    least, rng = energy(problem, z, *parameters), np.random.default_rng(1)
    for _ in range(10):
        step = rng.normal(size=z.shape)
        up, down = (energy(problem, z + s * step, *parameters) for s in (1.0, -1.0))
        assert abs(up - down) < 1e-10 * up
        assert min(up, down) > least


@pytest.mark.parametrize("kind", SHAPES)
def test_system_is_half_the_gradient_of_the_energy(kind: str) -> None:
    problem, rng = case(kind, known=0.3), np.random.default_rng(2)
    A, b = planar.system(problem.model, problem.target, problem.confidence, 0.7, 2.0, 0.05)
    z, step = rng.normal(size=(2, *b.shape))
    blocks = (len(problem.grid.m), problem.model.block, -1)
    sides = [energy(problem, (z + s * step).reshape(blocks), 0.7, 2.0, 0.05) for s in (1, -1)]
    np.testing.assert_allclose((sides[0] - sides[1]) / 4, np.sum(step * (A @ z - b)), rtol=1e-9)
    np.testing.assert_allclose((A - A.T).toarray(), 0, atol=1e-12)


def test_form_per_edge() -> None:
    problem, lam, mu, eps = case("video", known=0.3), 0.7, 2.0, 0.05
    model, block = problem.model, problem.model.block
    A, _ = planar.system(model, problem.target, problem.confidence, lam, mu, eps)
    by_edge = np.zeros((len(model.centres), block, len(model.centres), block))
    J = np.diag([0.0] + [1.0] * (block - 1))
    w = np.diag(problem.grid.n) @ problem.grid.B.toarray() @ np.diag(problem.grid.n)
    for u, v in np.argwhere(np.triu(w, 1)):
        h = (model.centres[v] - model.centres[u]) / 2
        f = {u: np.r_[1, h], v: np.r_[1, -h]}
        for i, j in ((u, u), (v, v), (u, v), (v, u)):
            sign = 1 if i == j else -1
            by_edge[i, :, j] += sign * lam * w[u, v] * (np.outer(f[i], f[j]) + mu * J)
    for v in range(len(model.centres)):
        by_edge[v, :, v] += lam * eps * problem.grid.m[v] * J
        for i in problem.grid.S[[v]].indices:
            f_i = np.r_[1, problem.position[i] - model.centres[v]]
            by_edge[v, :, v] += problem.confidence.flat[i] * np.outer(f_i, f_i)
    np.testing.assert_allclose(A.toarray(), by_edge.reshape(A.shape), atol=1e-12)


def image_model(problem: Problem) -> planar.Model:
    shape = problem.reference.shape[:2]
    return planar.model(problem.grid, planar.positions(shape, problem.options["sigma_xy"]))


@given(problems())
def test_infinite_ridge_is_the_ordinary_solver(problem: Problem) -> None:
    grid = problem.grid
    A, b, Sc = reference.system(grid, problem.target, problem.confidence, problem.smoothness)
    y = reference.direct_solve(grid, A, b, Sc)
    planes = planar.solve(
        image_model(problem),
        problem.target,
        problem.confidence,
        smoothness=problem.smoothness,
        slope_ridge=1e10,
    )
    active = reference.has_data(grid, Sc)
    np.testing.assert_array_equal(planes.active, active)
    seen = (active @ grid.S) > 0
    expected = np.asarray(grid.S.T @ y)[seen]
    np.testing.assert_allclose(
        planes.x.reshape(len(seen), -1)[seen], expected, rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(planes.z[active][:, 1:], 0, atol=1e-6)
    assert np.isnan(planes.x.reshape(len(seen), -1)[~seen]).all()


@pytest.mark.parametrize("kind", ["video", "features"])
def test_infinite_ridge_is_the_ordinary_solver_on_other_grids(kind: str) -> None:
    problem = case(kind)
    A, b, Sc = reference.system(problem.grid, problem.target, problem.confidence, 0.3)
    expected = problem.grid.S.T @ reference.direct_solve(problem.grid, A, b, Sc)
    options: dict[str, Any] = {"smoothness": 0.3, "slope_ridge": 1e10}
    planes = planar.solve(problem.model, problem.target, problem.confidence, **options)
    seen = (planes.active @ problem.grid.S) > 0
    np.testing.assert_allclose(planes.x.reshape(expected.shape)[seen], expected[seen], atol=1e-7)


def affine(position: Array, seed: int = 3) -> Array:
    """Return two random affine maps of the position, (n_pixels, 2)."""
    rng = np.random.default_rng(seed)
    return np.asarray(position @ rng.normal(size=(position.shape[1], 2)) + rng.normal(size=2))


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("smoothness", [0.03, 4.0])
def test_affine_maps_are_reproduced_without_a_ridge(kind: str, smoothness: float) -> None:
    problem = case(kind, known=0.4)
    target = affine(problem.position).reshape(problem.target.shape)
    planes = planar.solve(
        problem.model, target, problem.confidence, smoothness=smoothness, slope_ridge=0.0
    )
    seen = ((planes.active @ problem.grid.S) > 0).reshape(target.shape[:-1])
    np.testing.assert_allclose(planes.x[seen], target[seen], atol=1e-6)


@pytest.mark.parametrize("kind", SHAPES)
def test_an_affine_map_added_to_the_target_is_added_to_the_solution(kind: str) -> None:
    problem = case(kind, colours=1)
    added = affine(problem.position).reshape(problem.target.shape)
    planes, moved = (
        planar.solve(problem.model, target, problem.confidence, smoothness=0.5, slope_ridge=0.0)
        for target in (problem.target, problem.target + added)
    )
    np.testing.assert_allclose(moved.x, planes.x + added, atol=1e-7)


@given(problems(), st.floats(-100, 100), st.floats(0.1, 10))
def test_solution_is_linear_and_constants_are_preserved(
    problem: Problem, value: float, factor: float
) -> None:
    model, target = image_model(problem), problem.target
    z, active = planar.solve_vertices(model, target, problem.confidence)
    moved, _ = planar.solve_vertices(model, factor * target + value, problem.confidence)
    expected = factor * z[active]
    expected[:, 0] += value
    np.testing.assert_allclose(moved[active], expected, rtol=1e-6, atol=1e-6)


def test_too_few_data_give_the_least_slopes() -> None:
    # One known pixel: every plane through it has energy 0, and the flattest is a constant. Two
    # along x leave the slope along y free: it is 0.
    grid = grid_from_coordinates(np.indices((3, 3)).reshape(2, -1).T[:, ::-1] // 2)
    model = planar.model(grid, planar.positions((3, 3), 2.0))
    target = np.full((3, 3), np.nan)
    target[0, 0] = 5.0
    flat = planar.solve(model, target, slope_ridge=0.0)
    np.testing.assert_allclose(flat.x, 5, atol=1e-9)
    target[0, 2] = 7.0
    ramp = planar.solve(model, target, slope_ridge=0.0)
    np.testing.assert_allclose(ramp.x, np.tile([5.0, 6.0, 7.0], (3, 1)), atol=1e-6)
    near = planar.solve(model, target, slope_ridge=1e-7)
    np.testing.assert_allclose(near.x, ramp.x, atol=1e-5)


def test_one_pixel_per_vertex_takes_its_slope_from_the_neighbours() -> None:
    grid = grid_from_coordinates(np.indices((1, 4)).reshape(2, -1).T[:, ::-1])
    model = planar.model(grid, planar.positions((1, 4), 1.0))
    planes = planar.solve(model, np.array([[0.0, 1.0, 2.0, 3.0]]), slope_ridge=0.0)
    np.testing.assert_allclose(planes.z[:, :, 0], [[x, 1, 0] for x in range(4)], atol=1e-6)


def test_positions_are_in_sigmas_of_their_axes() -> None:
    position = planar.positions((3, 4, 5), (2.0, 4.0, 8.0))
    np.testing.assert_array_equal(position[-1], [4 / 8, 3 / 4, 2 / 2])
    np.testing.assert_array_equal(position[1], [1 / 8, 0, 0])


def test_parts_without_data_are_marked_and_non_finite_targets_never_matter() -> None:
    problem = photo()
    model, target = image_model(problem), problem.target.copy()
    assert problem.confidence is not None
    planes = planar.solve(model, target, problem.confidence)
    assert 0 < planes.active.sum() < len(planes.active)
    seen = ((planes.active @ problem.grid.S) > 0).reshape(target.shape[:2])
    assert np.isfinite(planes.x[seen]).all()
    assert np.isnan(planes.x[~seen]).all()
    bad = np.random.default_rng(1).uniform(size=seen.shape) < 0.3
    target[bad, 0] = np.nan
    without = planar.solve(model, problem.target, np.where(bad, 0, problem.confidence))
    np.testing.assert_array_equal(planar.solve(model, target, problem.confidence).x, without.x)


def test_clamp_keeps_the_range_of_the_known_values() -> None:
    problem = case("image")
    target, confidence = problem.target.copy(), problem.confidence.copy()
    target[0, 1], confidence[0, 1] = 1e6, 0.0
    x = planar.clamp(problem.model, 100 * problem.target, target, confidence)
    known = target[confidence > 0]
    low, high = known.min(axis=0), known.max(axis=0)
    np.testing.assert_allclose(x.min(axis=(0, 1)), low - 0.05 * (high - low))
    np.testing.assert_allclose(x.max(axis=(0, 1)), high + 0.05 * (high - low))


def test_robust_rounds_leave_an_outlier_behind() -> None:
    problem = case("image", known=1.0, colours=1)
    target = affine(problem.position).reshape(problem.target.shape)
    spoiled = target.copy()
    spoiled[2, 3] += 50
    planes = planar.solve_robust(
        problem.model,
        spoiled,
        None,
        lambda e: 1 / (1 + (e / 0.5) ** 2) ** 2,
        30,
        smoothness=0.1,
        slope_ridge=0.0,
    )
    np.testing.assert_allclose(planes.x, target, atol=1e-3)


def test_variance_is_the_solution_at_a_unit_impulse() -> None:
    # A pixel's answer to its own target, per unit of confidence, is f^T A^-1 f.
    problem = case("image", colours=1)
    A, _ = planar.system(problem.model, problem.target, problem.confidence, 0.5, 3.0, 0.1)
    active = np.ones(len(problem.grid.m), bool)
    variance = planar.variance(problem.model, A, active)
    for i in np.flatnonzero(problem.confidence)[[0, 5]]:
        impulse = np.zeros(problem.confidence.shape)
        impulse.flat[i] = 1 / problem.confidence.flat[i]
        options: dict[str, Any] = {"smoothness": 0.5, "slope_ridge": 0.1}
        answer = planar.solve(problem.model, impulse, problem.confidence, **options)
        np.testing.assert_allclose(answer.x.flat[i], variance[i])
    assert np.isinf(planar.variance(problem.model, A, ~active)).all()
