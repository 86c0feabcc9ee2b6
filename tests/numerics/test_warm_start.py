"""Warm starts from the last solution, on the same grid and on the next frame of a video."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.boxes import SHAPE, confidence, scene
from support.strategies import Array, Problem, problems

EXACTLY: dict[str, Any] = {"tolerance": 0, "max_iterations": 3000}


def solver_of(shape: tuple[int, int] = SHAPE, **options: Any) -> BilateralSolver:
    return BilateralSolver(BilateralGrid(scene(shape).photo), **options)


# The same grid


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_the_last_solution_is_found_again_in_two_steps(
    channels: tuple[int, ...], preconditioner: str
) -> None:
    target = np.multiply.outer(scene(SHAPE).depth, np.arange(1.0, 1 + (sum(channels) or 1)))
    target = target.reshape(*SHAPE, *channels)
    options = {"tolerance": 1e-5, "max_iterations": 3000, "preconditioner": preconditioner}
    solver = solver_of(smoothness=128, **options)
    x, cold = solver.solve(target, confidence(0.01), return_info=True)
    again, warm = solver.solve(target, confidence(0.01), warm_start="last", return_info=True)
    assert warm.converged
    # With other preconditioners, multigrid takes one more step to check the error.
    assert warm.iterations <= (2 if preconditioner == "multigrid" else 3) < cold.iterations
    np.testing.assert_allclose(again, x, atol=1e-3)


@given(problems(), problems())
def test_any_last_solution_leads_to_the_same_result(problem: Problem, other: Problem) -> None:
    grid = problem.grid()
    solver = BilateralSolver(grid, problem.smoothness, **EXACTLY)
    rng = np.random.default_rng(0)
    solver.solve(other.size * rng.normal(size=problem.target.shape))
    x = solver.solve(problem.target, problem.confidence, warm_start="last")
    assert np.abs(x - problem.exact()).max() <= 1e-5 * max(problem.size, other.size)


def test_the_state_of_the_vertices_is_kept_exactly() -> None:
    solver = solver_of(tolerance=1e-3, max_iterations=0)
    x = solver.solve(scene(SHAPE).depth, confidence(0.1))
    again = solver.solve(np.zeros(SHAPE), warm_start="last")
    np.testing.assert_array_equal(again, x)
    rounded = solver.solve(np.zeros(SHAPE), warm_start="last", dtype=np.uint8)
    np.testing.assert_array_equal(rounded, np.rint(x))
    np.testing.assert_array_equal(solver.solve(np.zeros(SHAPE), warm_start="last"), x)


def test_every_kind_of_solve_keeps_its_solution() -> None:
    target = np.random.default_rng(0).normal(size=(*SHAPE, 9)) @ np.ones((9, 9))
    solver = solver_of()
    look: dict[str, Any] = {"warm_start": "last", "dtype": float}
    for solve, options in (
        (solver.solve, {"rank_tolerance": 0.01}),
        (solver.solve, {"smooth": (4, 4)}),
        (solver.solve_robust, {"iterations": 3}),
        (solver.solve_robust, {"iterations": 2, "weights": "channel"}),
        (solver.solve_robust, {"iterations": 2, "weights": "channel", "warm_start": "last"}),
        (solver.solve, {"rank_tolerance": 0.01, "warm_start": "last"}),
    ):
        x = solve(target, **options)
        still = BilateralSolver(solver.grid, max_iterations=0)
        still._last = solver._last
        if "smooth" not in options:
            np.testing.assert_array_equal(still.solve(target, **look), x)


@pytest.mark.parametrize("before", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("after", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("new_frame", [False, True])
def test_any_units(before: float, after: float, new_frame: bool) -> None:
    solver = solver_of()
    expected = solver.solve(scene(SHAPE).depth * after)
    solver.solve(scene(SHAPE).depth * before)
    if new_frame:
        solver.update(scene(SHAPE).photo)
    x = solver.solve(scene(SHAPE).depth * after, warm_start="last")
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x / after, expected / after, atol=0.05)


def test_float32_after_large_float64() -> None:
    solver = solver_of()
    solver.solve(np.full(SHAPE, 1e300))
    x = solver.solve(scene(SHAPE).depth.astype(np.float32), warm_start="last")
    assert np.isfinite(x).all()


def test_a_missing_last_solution_is_an_error_with_a_remedy() -> None:
    solver = solver_of()
    target = scene(SHAPE).depth
    with pytest.raises(ValueError, match=r"^warm_start: .*got none yet.*first"):
        solver.solve(target, warm_start="last")
    with pytest.raises(ValueError, match=r"^warm_start: .*got none yet"):
        bilateral.solve(scene(SHAPE).photo, target, warm_start="last")
    solver.solve(target)
    with pytest.raises(ValueError, match=r"^warm_start: .*\(120, 160, 2\), got one of .*160, 1\)"):
        solver.solve(np.dstack([target, target]), warm_start="last")
    with pytest.raises(TypeError, match=r"^warm_start: expected an array like target or 'last'"):
        solver.solve(target, warm_start="first")
    failed = solver_of()
    with pytest.raises(ValueError, match="confidence above 0"):
        failed.solve(np.full(SHAPE, np.nan))
    with pytest.raises(ValueError, match="none yet"):
        failed.solve(target, warm_start="last")


def test_from_several_python_threads_at_once() -> None:
    solver = solver_of(tolerance=1e-4)
    frames = [scene(SHAPE).photo, scene(SHAPE).photo[:, ::-1].copy()]
    targets = [scale * scene(SHAPE).depth for scale in (1.0, 2.0, 3.0)]
    expected = [solver.solve(target) for target in targets]

    def work(i: int) -> tuple[int, Array]:
        return i % 3, solver.solve(targets[i % 3], warm_start="last")

    with ThreadPoolExecutor(6) as pool:
        for i, x in pool.map(work, range(30)):
            np.testing.assert_allclose(x, expected[i], atol=0.02)
        # The frame changes during the solves: each solve uses one frame only.
        changes = [pool.submit(solver.update, frames[i % 2]) for i in range(10)]
        for _, x in pool.map(work, range(30)):
            assert np.isfinite(x).all()
        for change in changes:
            change.result()


# The next frame


def pan(frames: int, speed: int = 1, shape: tuple[int, int] = (240, 320)) -> list[Any]:
    """Return photo, depth and sparse confidence of a view that moves over a scene."""
    wide = (shape[0], shape[1] + 40)
    whole = (*scene(wide, 60), confidence(0.01, wide))
    cuts = [slice(i * speed, i * speed + shape[1]) for i in range(frames)]
    return [tuple(part[:, cut] for part in whole) for cut in cuts]


# With such sparse data the pyramid underestimates its error.
@pytest.mark.parametrize(("preconditioner", "most"), [("multigrid", 1), ("pyramid", 5)])
def test_a_pan_needs_half_the_steps(preconditioner: str, most: float) -> None:
    options: dict[str, Any] = {"preconditioner": preconditioner, "max_iterations": 1000}
    solver: BilateralSolver | None = None
    cold_steps = warm_steps = 0
    for photo, depth, known in pan(8):
        anew = BilateralSolver(BilateralGrid(photo), 128, **options)
        _, cold = anew.solve(depth, known, return_info=True)
        if solver is None:
            solver = anew
            continue
        solver.update(photo)
        x, warm = solver.solve(depth, known, warm_start="last", return_info=True)
        assert warm.converged
        exact = BilateralSolver(anew.grid, 128, tolerance=1e-8).solve(depth, known)
        error = np.sqrt(np.mean((x - exact) ** 2)) / np.ptp(depth[known > 0])
        assert error <= most * solver.tolerance
        cold_steps += cold.iterations
        warm_steps += warm.iterations
    assert warm_steps <= cold_steps / 2


def test_a_moved_object_leaves_no_values_behind() -> None:
    # A bright square moves by its width: its old and new place share no pixel.
    photos, depths = [], []
    for left in (16, 32):
        photo, depth = np.full((64, 64), 40, np.uint8), np.ones((64, 64))
        photo[16:32, left : left + 16], depth[16:32, left : left + 16] = 220, 9
        photos.append(photo)
        depths.append(depth)
    solver = BilateralSolver(BilateralGrid(photos[0]), max_iterations=0, initial="flat")
    np.testing.assert_allclose(solver.solve(depths[0]), depths[0], atol=0.01)
    solver.update(photos[1])
    x = solver.solve(depths[1], warm_start="last")
    np.testing.assert_allclose(x[photos[1] == 40], 1, atol=0.01)
    plain = solver.solve(depths[1], warm_start=depths[0])
    assert np.abs(plain[photos[1] == 40] - 1).max() > 1


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3])
def test_references_of_any_kind(dtype: str, channels: int) -> None:
    top = np.iinfo(dtype).max if dtype.startswith("u") else 1
    target = scene(SHAPE).depth
    photos = [(p[..., :channels] / 255 * top).astype(dtype) for p, _, _ in pan(3, 1, SHAPE)]
    solver = BilateralSolver(BilateralGrid(photos[0]), tolerance=1e-4)
    solver.solve(target)
    for photo in [*photos[1:], photos[0][..., 0], photos[0].astype(np.float32) / np.float32(top)]:
        solver.update(photo)
        expected = BilateralSolver(BilateralGrid(photo), tolerance=1e-4).solve(target)
        np.testing.assert_allclose(solver.solve(target, warm_start="last"), expected, atol=0.01)


def test_a_cut_to_another_scene() -> None:
    photo, target = scene(SHAPE).photo, scene(SHAPE).depth
    solver = BilateralSolver(BilateralGrid(np.full_like(photo, 255)), tolerance=1e-4)
    solver.solve(target)
    solver.update(photo // 2)
    expected = BilateralSolver(solver.grid, tolerance=1e-4).solve(target)
    np.testing.assert_allclose(solver.solve(target, warm_start="last"), expected, atol=0.01)


def test_the_new_grid_is_like_the_old_one() -> None:
    photos = [photo / 100 for photo, _, _ in pan(2, 1, SHAPE)]
    options: dict[str, Any] = {"reference_max": 2.5}
    sigmas = 5, 7, 9, (3.0, 0.5, 0.25)
    solver = BilateralSolver(BilateralGrid(photos[0], *sigmas, **options), 7.0)
    solver.update(photos[1])
    expected = BilateralGrid(photos[1], *sigmas, **options)
    np.testing.assert_array_equal(solver.grid.coordinates(), expected.coordinates())
    values = np.random.default_rng(0).normal(size=expected.n_vertices)
    np.testing.assert_array_equal(solver.grid.blur(values), expected.blur(values))
    target = scene(SHAPE).depth
    np.testing.assert_array_equal(
        solver.solve(target), BilateralSolver(expected, 7.0).solve(target)
    )


def test_a_frame_of_another_size_starts_anew() -> None:
    solver = solver_of()
    solver.solve(scene(SHAPE).depth)
    solver.update(scene((60, 80)).photo)
    with pytest.raises(ValueError, match=r"^warm_start: .*\(60, 80, 1\), got one of \(120, 160"):
        solver.solve(scene((60, 80)).depth, warm_start="last")
    solver.solve(scene((60, 80)).depth)
    solver.solve(scene((60, 80)).depth, warm_start="last")


@pytest.mark.parametrize("wrong", [np.zeros((3, 3, 2)), np.full(SHAPE, np.nan), "photo"])
def test_a_wrong_frame_leaves_the_solver_as_it_was(wrong: Any) -> None:
    solver = solver_of()
    expected = solver.solve(scene(SHAPE).depth)
    grid = solver.grid
    with pytest.raises((ValueError, TypeError), match=r"^reference: expected"):
        solver.update(wrong)
    assert solver.grid is grid
    np.testing.assert_array_equal(solver.solve(scene(SHAPE).depth), expected)
    solver.solve(scene(SHAPE).depth, warm_start="last")


# A callback that ends a solve


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid"])
def test_a_cancelled_solve_returns_its_steps_and_may_continue(preconditioner: str) -> None:
    depth, known = scene(SHAPE).depth, confidence(0.01)
    options: dict[str, Any] = {"preconditioner": preconditioner, "smoothness": 128}
    exact = solver_of(tolerance=1e-9, smoothness=128).solve(depth, known)
    errors = []
    for last in (1, 2, 4, 6):
        solver = solver_of(tolerance=1e-7, max_iterations=1000, **options)
        x, info = solver.solve(
            depth, known, callback=lambda step, _, last=last: step == last, return_info=True
        )
        assert info.iterations == last
        assert not info.converged
        errors.append(float(np.sqrt(np.mean((x - exact) ** 2))))
        y = solver.solve(depth, known, warm_start="last")
        np.testing.assert_allclose(y, exact, atol=1e-4)
    if preconditioner == "multigrid":
        assert all(later < sooner for sooner, later in pairwise(errors))
    else:
        assert errors[-1] < errors[0]
