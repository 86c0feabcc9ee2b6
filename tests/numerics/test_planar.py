"""The planar model against its oracle, and what it promises: affine maps, steps, starts."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import bilateral
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure
from bilateral.numerics import policy, slope_rule
from oracles import planar, planar_rule, reference

Array = NDArray[Any]


def photo(shape: tuple[int, ...], seed: int = 0, noise: int = 12) -> NDArray[np.uint8]:
    """Two shades with noise: a grid of many small parts and two large ones."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, noise, (*shape, 3))
    image[..., shape[-1] // 2 :, :] += 120
    return image.astype(np.uint8)


def ramp(shape: tuple[int, ...]) -> Array:
    """An affine map."""
    axes = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    return np.asarray(sum((k + 1) * 0.3 * axis for k, axis in enumerate(axes)) + 5.0)


def image_model(image: NDArray[np.uint8], sigma_xy: float) -> planar.Model:
    grid = reference.image_grid(image, sigma_xy)
    return planar.model(grid, planar.positions(image.shape[:2], sigma_xy))


def exact(grid: BilateralGrid, smoothness: float, **options: Any) -> BilateralSolver:
    options = {
        "model": "planar",
        "clamp": False,
        "tolerance": 1e-9,
        "max_iterations": 300,
    } | options
    return BilateralSolver(grid, smoothness, **options)


@pytest.mark.parametrize(("dtype", "most"), [(np.float64, 1e-5), (np.float32, 1e-4)])
@pytest.mark.parametrize("known", [0.05, 0.4, 1.0])
@pytest.mark.parametrize(("mu", "eps"), [(3.0, 1e-3), (30.0, 1e-2), (0.5, 1.0)])
def test_the_solution_is_the_oracles(
    dtype: Any, most: float, known: float, mu: float, eps: float
) -> None:
    rng = np.random.default_rng(4)
    image = photo((34, 40), noise=40)
    target = (ramp((34, 40))[..., np.newaxis] + rng.normal(size=(34, 40, 2))).astype(dtype)
    confidence = rng.uniform(0.1, 2, (34, 40)) * (rng.uniform(size=(34, 40)) < known)
    penalties = {"slope_smoothness": mu, "slope_ridge": eps}
    model = image_model(image, 5)
    for smoothness in (0.03, 4.0):
        expected = planar.solve(model, target, confidence, smoothness=smoothness, **penalties)
        tolerance = 1e-9 if dtype == np.float64 else 1e-5
        solver = exact(BilateralGrid(image, 5), smoothness, tolerance=tolerance, **penalties)
        x = solver.solve(target, confidence.astype(dtype))
        seen = np.isfinite(expected.x)
        assert seen.mean() > 0.5
        error = np.abs(x - expected.x)[seen] / np.ptp(target[confidence > 0])
        assert np.sqrt(np.mean(error**2)) < most
        assert error.max() < (most if dtype == np.float64 else 5 * most)
        assert np.isfinite(x).all()


def test_videos_and_features_have_planes_over_space_and_time() -> None:
    rng = np.random.default_rng(0)
    shape, sigmas = (5, 12, 14), (2.0, 3.0, 4.0)
    features = rng.integers(0, 2, (*shape, 1)).astype(np.float64)
    position = planar.positions(shape, sigmas)
    cells = np.column_stack([np.floor(position).astype(np.int64), features.ravel().astype(int)])
    model = planar.model(reference.grid_from_coordinates(cells, n_space=3), position)
    target = ramp(shape) + rng.normal(size=shape)
    grid = BilateralGrid.from_features(features, 1.0, sigmas)
    x = exact(grid, 2.0).solve(target)
    expected = planar.solve(model, target, smoothness=2.0).x
    assert np.abs(x - expected).max() < 1e-5 * np.ptp(target)


@given(
    height=st.integers(24, 60),
    width=st.integers(24, 60),
    sigma=st.integers(4, 12),
    noise=st.integers(1, 90),
    seed=st.integers(0, 99),
)
def test_a_plane_comes_back_from_few_pixels(
    height: int, width: int, sigma: int, noise: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    plane = ramp((height, width))
    known = rng.uniform(size=plane.shape) < 0.02
    known[[0, -1, 0], [0, 0, -1]] = True  # three corners span the plane
    grid = BilateralGrid(photo(plane.shape, seed, noise), sigma)
    x = exact(grid, 0.03, slope_ridge=0).solve(np.where(known, plane, np.nan))
    assert np.sqrt(np.mean((x - plane) ** 2)) < 1e-3 * np.ptp(plane)


def test_adding_an_affine_map_adds_it_to_the_solution() -> None:
    rng = np.random.default_rng(1)
    target, extra = rng.normal(size=(40, 50)), ramp((40, 50))
    solver = exact(BilateralGrid(photo((40, 50))), 2.0, slope_ridge=0)
    difference = solver.solve(target + extra) - solver.solve(target)
    assert np.abs(difference - extra).max() < 1e-6 * np.ptp(extra)


def test_a_large_ridge_is_the_constant_model() -> None:
    rng = np.random.default_rng(1)
    target = rng.normal(size=(40, 50))
    grid = BilateralGrid(photo((40, 50)))
    flat = BilateralSolver(grid, 2.0, tolerance=1e-9).solve(target)
    x = exact(grid, 2.0, slope_ridge=1e9).solve(target)
    assert np.abs(x - flat).max() < 1e-6


def test_results_are_clamped_to_the_known_values() -> None:
    rng = np.random.default_rng(3)
    target = np.where(rng.uniform(size=(60, 60)) < 0.01, ramp((60, 60)), np.nan)
    low, high = np.nanmin(target), np.nanmax(target)
    options = {"model": "planar", "smoothness": 0.03, "slope_ridge": 0}
    x = bilateral.solve(photo((60, 60), noise=30), target, **options)
    assert low - 0.05 * (high - low) - 1e-9 <= x.min()
    assert x.max() <= high + 0.05 * (high - low) + 1e-9
    free = bilateral.solve(photo((60, 60), noise=30), target, clamp=False, **options)
    assert free.min() < x.min() or free.max() > x.max()


def test_steps_are_about_those_of_constants() -> None:
    rng = np.random.default_rng(0)
    shape = (240, 320)
    grid = BilateralGrid(photo(shape, noise=24))
    truth = ramp(shape) * np.where(np.arange(320) < 160, 1.0, 0.4)
    holes = truth.copy()
    holes[60:140, 40:120] = np.nan
    cases = [
        (np.where(rng.uniform(size=shape) < 0.01, truth, np.nan), 0.03, 4),
        (holes, 0.03, 4),
        (truth + rng.normal(size=shape), 4.0, 2),
    ]
    for target, smoothness, most in cases:
        solver = BilateralSolver(grid, smoothness, model="planar")
        _, info = solver.solve(target, return_info=True)
        assert info.converged
        assert info.iterations <= most


@pytest.mark.parametrize("kind", ["noise", "clean", "confidence", "video", "weak part"])
def test_dense_data_are_solved_to_the_tolerance_without_levels(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = []

    def recorded(**inputs: Any) -> bool:
        choices.append(choose(**inputs))
        return choices[-1]

    choose = policy.sweeps_are_enough
    monkeypatch.setattr(policy, "sweeps_are_enough", recorded)
    rng = np.random.default_rng(0)
    shape = (6, 40, 50) if kind == "video" else (160, 200)
    grid = BilateralGrid(photo(shape, noise=40), sigma_t=3 if kind == "video" else None)
    target = ramp(shape) * np.where(np.arange(shape[-1]) < shape[-1] // 2, 1.0, 0.4)
    if kind != "clean":
        target += 3 * rng.normal(size=shape)
    confidence = np.ones(shape)
    if kind == "confidence":
        confidence = rng.uniform(0.2, 1, shape)
    if kind == "weak part":
        confidence[40:80, 40:80] = 1e-3
    for smoothness in (0.03, 4.0):
        close = exact(grid, smoothness, tolerance=1e-3)
        x, info = close.solve(target, confidence, return_info=True)
        error = x - exact(grid, smoothness).solve(target, confidence)
        assert info.converged
        assert np.sqrt(np.mean(error**2)) < 1e-3 * np.ptp(target)
    easy = kind != "weak part"
    assert choices[2:] == [easy, False]  # at smoothness 4; a tight tolerance needs multigrid


def test_a_warm_start_saves_steps() -> None:
    rng = np.random.default_rng(0)
    target = np.where(rng.uniform(size=(80, 90)) < 0.05, ramp((80, 90)), np.nan)
    solver = BilateralSolver(BilateralGrid(photo((80, 90))), 0.03, model="planar")
    x, first = solver.solve(target, return_info=True)
    for start in ("last", x):
        again, info = solver.solve(target, warm_start=start, return_info=True)
        assert info.iterations <= first.iterations + 1
        assert np.abs(again - x).max() < 0.01 * np.ptp(ramp((80, 90)))
    solver.update(photo((80, 90), seed=1))
    assert np.isfinite(solver.solve(target, warm_start="last")).all()


def test_robust_rounds_ignore_outliers() -> None:
    rng = np.random.default_rng(0)
    plane = ramp((80, 90))
    target = plane + 0.05 * rng.normal(size=plane.shape)
    target[rng.uniform(size=plane.shape) < 0.1] = 200
    solver = BilateralSolver(BilateralGrid(photo(plane.shape)), 4.0, model="planar")
    rounds = []
    x, info = solver.solve_robust(
        target, loss=GemanMcClure(1.0), callback=lambda n, _: rounds.append(n), return_info=True
    )
    assert np.abs(x - plane).mean() < 0.1
    assert np.abs(solver.solve(target) - plane).mean() > 1
    assert rounds == list(range(1, info.iterations + 1))
    two = np.stack([target, target], axis=-1)
    apart = solver.solve_robust(two, loss=GemanMcClure(1.0), weights="channel")
    assert np.abs(apart - x[..., np.newaxis]).max() < 1e-3


def test_the_variance_is_the_oracles() -> None:
    rng = np.random.default_rng(0)
    image = photo((12, 14), noise=30)
    confidence = rng.uniform(0.5, 2, (12, 14)) * (rng.uniform(size=(12, 14)) < 0.5)
    model = image_model(image, 4)
    A, _ = planar.system(model, np.zeros((12, 14)), confidence, smoothness=2.0)
    active = reference.has_data(model.grid, model.grid.S @ confidence.ravel())
    expected = planar.variance(model, A, active).reshape(12, 14)
    solver = BilateralSolver(BilateralGrid(image, 4), 2.0, model="planar")
    found = solver.variance(confidence, probes=4096)
    assert (np.isinf(found) == np.isinf(expected)).all()
    seen = np.isfinite(expected)
    assert np.abs(found[seen] / expected[seen] - 1).max() < 0.15


@pytest.mark.parametrize("noise", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("known", [0.02, 1.0])
def test_the_rule_is_the_oracles(noise: float, known: float) -> None:
    rng = np.random.default_rng(5)
    image = photo((40, 48), noise=30)
    target = ramp((40, 48)) + noise * rng.normal(size=(40, 48))
    target = np.where(rng.uniform(size=target.shape) < known, target, np.nan)
    model = image_model(image, 8)
    position = planar.positions((40, 48), 8.0)
    expected = planar_rule.strength(model, position, target, None, 0.3)
    grid = BilateralGrid(image, 8)
    found = slope_rule.factor(grid, target[..., np.newaxis], None, 0.3)
    assert found == pytest.approx(expected, rel=1e-6)
    x = bilateral.solve(image, target, smoothness=0.3, model="planar", slope_ridge=None)
    penalties = {"slope_smoothness": 3.0 * found, "slope_ridge": 1e-3 * found}
    y = bilateral.solve(image, target, smoothness=0.3, model="planar", **penalties)
    assert np.array_equal(x, y)


def test_any_magnitude_and_number_of_channels() -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(size=(30, 40, 3))
    image = photo((30, 40))
    usual = bilateral.solve(image, target, model="planar")
    for factor in (1e-150, 1e150):
        scaled = bilateral.solve(image, target * factor, model="planar")
        assert np.abs(scaled / factor - usual).max() < 1e-2
    one = bilateral.solve(image, target[..., 1], model="planar")
    assert np.abs(one - usual[..., 1]).max() < 1e-2


def test_arguments_that_do_not_go_together() -> None:
    image, target = photo((20, 20)), np.zeros((20, 20))
    for wrong in (
        {"preconditioner": "jacobi"},
        {"initial": "flat"},
        {"method": "paper"},
        {"rank_tolerance": 0.01},
        {"slope_smoothness": 0},
        {"slope_ridge": -1},
        {"model": "plane"},
    ):
        name = next(iter(wrong))
        with pytest.raises(ValueError, match=name if name != "method" else "model"):
            bilateral.solve(image, target, **({"model": "planar"} | wrong))


def test_threads_do_not_change_the_result() -> None:
    rng = np.random.default_rng(0)
    target = np.where(rng.uniform(size=(300, 400)) < 0.05, ramp((300, 400)), np.nan)
    image = photo((300, 400), noise=40)
    threads = bilateral.get_num_threads()
    results = []
    try:
        for count in (1, 3):
            bilateral.set_num_threads(count)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                results.append(bilateral.solve(image, target, smoothness=0.03, model="planar"))
    finally:
        bilateral.set_num_threads(threads)
    assert np.array_equal(*results)


@pytest.mark.parametrize("seed", [0, 11, 90])
def test_large_confidences_do_not_hide_the_ridge_of_float32(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = rng.random((7, 10)).astype(np.float32)
    confidence = 1e5 * rng.random((7, 10)) * (rng.random((7, 10)) < 0.5)
    grid = BilateralGrid(photo((7, 10)), 4)
    confidence = confidence.astype(np.float32)
    x, info = exact(grid, 0.05, slope_ridge=1e-3, tolerance=1e-3).solve(
        target, confidence, return_info=True
    )
    precise = exact(grid, 0.05, slope_ridge=1e-3).solve(target.astype(np.float64), confidence)
    assert info.converged
    assert np.sqrt(np.mean((x - precise) ** 2)) <= 3e-3 * np.ptp(target)
