"""Properties of every solve: constants, units, channels, unknown pixels, extreme numbers."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralSolver, ConvergenceWarning
from oracles import reference as oracle
from support.photo_problem import EXACTLY, assert_close, may_stop_early, photo
from support.strategies import Problem, problems, seeds


@may_stop_early
@given(problems(), st.floats(-1e3, 1e3), st.sampled_from(["float32", "float64"]))
def test_constants_are_preserved(problem: Problem, value: float, dtype: str) -> None:
    target = np.where(np.isfinite(problem.target), value, np.nan).astype(dtype)
    close = {"rtol": 1e-5, "atol": 1e-30} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-30}
    for options in ({}, {"method": "paper"}, {"initial": "flat", "preconditioner": "jacobi"}):
        x = problem.solve(target=target, **options)
        np.testing.assert_allclose(x, dtype_of(value, dtype), **close)


def dtype_of(value: float, dtype: str) -> Any:
    """Round a number to a dtype."""
    return np.dtype(dtype).type(value)


@given(problems(), st.floats(-10, 10), st.floats(0.01, 100) | st.floats(-100, -0.01))
def test_shift_and_scale_of_the_target_carry_over(
    problem: Problem, shift: float, scale: float
) -> None:
    x = problem.solve(**EXACTLY)
    with np.errstate(invalid="ignore"):
        target = scale * problem.target + shift * problem.size
    moved = problem.solve(target=target, **EXACTLY)
    size = (abs(scale) + abs(shift)) * problem.size
    assert np.abs(moved - (scale * x + shift * problem.size)).max() <= 1e-6 * size


@given(problems(stiff=False), st.sampled_from([1e-30, 1e-6, 0.3, 7.0, 1e6, 1e30]))
def test_confidence_and_smoothness_in_any_unit(problem: Problem, unit: float) -> None:
    ones = np.ones(problem.target.shape[:2])
    confidence = unit * (ones if problem.confidence is None else problem.confidence)
    given_ = {"confidence": confidence, "smoothness": unit * problem.smoothness}
    for method in ({"method": "paper"}, EXACTLY):
        assert_close(problem.solve(**given_, **method), problem.solve(**method), problem, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("unit", [1e-60, 1e-40, 1e40, 1e60])
def test_confidence_has_any_scale_whatever_the_targets_dtype(dtype: str, unit: float) -> None:
    problem = photo((30, 40))
    assert problem.confidence is not None
    x = problem.solve(
        target=problem.target.astype(dtype), confidence=unit * problem.confidence, smoothness=unit
    )
    expected = problem.solve(smoothness=1)
    assert_close(x, expected, problem, 1e-4)


EXTREMES = {
    "large targets": {"target": np.resize([-1.7e308, 1.7e308, 0], (12, 12))},
    "large float32 targets": {"target": np.resize(np.float32([-3.4e38, 3.4e38, 0]), (12, 12))},
    "tiny targets": {"target": np.linspace(0, 5e-322, 144).reshape(12, 12)},
    "large products": {
        "target": np.linspace(-1e200, 1e200, 144).reshape(12, 12),
        "confidence": np.full((12, 12), 1e200),
    },
    "large confidence": {"confidence": np.full((12, 12), 1.7e308)},
    "tiny confidence": {"confidence": np.full((12, 12), 5e-324)},
    "large float32 confidence": {
        "target": np.linspace(0, 1, 144, dtype=np.float32).reshape(12, 12),
        "confidence": np.full((12, 12), 3.4e38, np.float32),
    },
    "tiny float32 confidence": {
        "target": np.linspace(0, 1, 144, dtype=np.float32).reshape(12, 12),
        "confidence": np.full((12, 12), 1e-45, np.float32),
    },
    "large smoothness": {"smoothness": 1e300},
    "large smoothness, float32": {
        "target": np.linspace(0, 1, 144, dtype=np.float32).reshape(12, 12),
        "smoothness": 1e300,
    },
    "tiny smoothness": {"smoothness": 5e-324},
    "large centre": {"blur": (1e300, 1, 1)},
    "tiny centre": {"blur": (1e-300, 1, 1)},
}


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("method", [None, "paper"])
def test_extreme_numbers_give_output_within_the_targets_range_or_an_error(
    case: str, method: str | None
) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 256, (12, 12)).astype(np.uint8)
    given_: dict[str, Any] = {"target": np.linspace(0, 1, 144).reshape(12, 12)} | EXTREMES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            x = bilateral.solve(reference, **given_, sigma_xy=4, sigma_luma=64, method=method)
        except ValueError as error:
            x, named = given_["target"], str(error).partition(":")[0]
        else:
            named = "target"
    assert named in given_
    assert np.isfinite(x).all()
    low, high = float(given_["target"].min()), float(given_["target"].max())
    slack = 1e-3 * (high / 2 - low / 2)
    assert low - slack <= float(x.min())
    assert float(x.max()) <= high + slack


@given(problems(), st.sampled_from([2, 3, 4, 5, 8, 9]), seeds)
def test_channels_are_independent(problem: Problem, channels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (*problem.target.shape[:2], channels)
    target = rng.normal(size=shape) * 10 ** rng.uniform(-3, 3, channels)
    target[~problem.known] = np.nan
    together = problem.solve(target=target, **EXACTLY)
    for k in range(channels):
        alone = problem.solve(target=target[..., k], **EXACTLY)
        size = np.abs(target[problem.known, k]).max()
        assert np.abs(together[..., k] - alone).max() <= 1e-6 * size


def test_a_constant_channel_does_not_disturb_others() -> None:
    problem = photo((40, 50), 0.1)
    target = np.stack([problem.target, np.full_like(problem.target, 7), problem.target], axis=2)
    x = problem.solve(target=target, **EXACTLY)
    np.testing.assert_allclose(x[..., 1], 7, rtol=1e-12)
    np.testing.assert_array_equal(x[..., 0], x[..., 2])
    assert_close(x[..., 0], problem.exact(), problem, 1e-8)


@may_stop_early
@given(problems(), seeds)
def test_values_without_confidence_never_matter(problem: Problem, seed: int) -> None:
    rng, unknown = np.random.default_rng(seed), ~problem.known
    confidence = np.where(problem.known, 1.0, 0.0)
    if problem.confidence is not None:
        confidence = confidence * problem.confidence
    plain = np.where(unknown.reshape(unknown.shape + (1,) * (problem.target.ndim - 2)), 0, 1)
    clean = np.where(plain == 1, problem.target, 0.0)
    for fill in (np.nan, np.inf, -np.inf, 1e30, rng.normal()):
        for dtype in ("float32", "float64"):
            dirty = np.where(plain == 1, problem.target, fill).astype(dtype)
            x = problem.solve(target=dirty, confidence=confidence)
            expected = problem.solve(target=clean.astype(dtype), confidence=confidence)
            np.testing.assert_array_equal(x, expected)


@may_stop_early
@given(problems())
def test_a_value_that_is_not_finite_counts_as_unknown(problem: Problem) -> None:
    ones = np.ones(problem.target.shape[:2])
    confidence = ones if problem.confidence is None else problem.confidence
    x = problem.solve(confidence=confidence)
    expected = problem.solve(confidence=np.where(problem.known, confidence, 0))
    np.testing.assert_array_equal(x, expected)


@may_stop_early
@given(problems())
def test_no_confidence_means_one(problem: Problem) -> None:
    ones = np.ones(problem.target.shape[:2])
    x, expected = (problem.solve(confidence=c) for c in (None, ones))
    np.testing.assert_array_equal(x, expected)


@given(problems())
def test_output_is_finite_and_within_the_known_values(problem: Problem) -> None:
    x, info = problem.solve(**EXACTLY, return_info=True)
    assert np.isfinite(x).all()
    assert info.converged
    known = problem.target[problem.known]
    slack = 1e-6 * problem.size
    assert (x >= known.min(axis=0) - slack).all()
    assert (x <= known.max(axis=0) + slack).all()


@given(problems(stiff=False), st.sampled_from(["float32", "float64"]))
def test_components_without_data_get_the_pyramid_start(problem: Problem, dtype: str) -> None:
    grid = oracle.image_grid(problem.reference, **problem.options)
    _, b, Sc = oracle.system(grid, problem.target, problem.confidence, problem.smoothness)
    empty = (grid.S.T @ ~oracle.has_data(grid, Sc)).astype(bool).reshape(problem.known.shape)
    start = (grid.S.T @ oracle.pyramid_start(grid, b, Sc)).reshape(problem.target.shape)
    target = problem.target.astype(dtype)
    unchanged = problem.solve(target=target, max_iterations=0, initial="pyramid")
    assert_close(unchanged, start, problem, 1e-12 if dtype == "float64" else 1e-5)
    anything = np.full(target.shape, 1e3, dtype)
    for options in (
        {},
        {"method": "paper"},
        {"preconditioner": "multigrid", "initial": "nested", "max_iterations": 1},
        {"max_iterations": 1, "tolerance": 1e-3, "initial": "flat", "preconditioner": "jacobi"},
        {"warm_start": anything, "max_iterations": 200},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            x = problem.solve(target=target, **options)
        known = target[problem.known]  # the start may leave their range by a rounding error
        expected = np.clip(unchanged, known.min(axis=0), known.max(axis=0))
        np.testing.assert_array_equal(x[empty], expected[empty])


def test_a_region_without_data_takes_the_mean_of_its_surroundings() -> None:
    # Black cells x = 0, 1 hold 2 and 6; the white cell x = 3 is alone and meets them only at the
    # pyramid's top: it gets their mean.
    reference = np.array([[0, 0, 0, 255]], np.uint8)
    target, confidence = np.array([[2.0, 6.0, 9.0, 9.0]]), np.array([[1.0, 1.0, 0.0, 0.0]])
    x = bilateral.solve(reference, target, confidence, sigma_xy=1)
    assert x[0, 3] == pytest.approx(4, rel=1e-12)


def test_two_vertices_by_hand() -> None:
    # Two neighbours with one pixel each: n^2 (2 + 1) = 1, so A = lambda/3 [[1, -1], [-1, 1]] + I.
    reference, target = np.zeros((1, 2), np.uint8), np.array([[0.0, 1.0]])
    x = bilateral.solve(reference, target, smoothness=3, sigma_xy=1, tolerance=0)
    np.testing.assert_allclose(x, [[1 / 3, 2 / 3]], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_edges_of_a_wide_image_do_not_mix(dtype: str) -> None:
    # 2100 / 8 > 255 cells: keys of base 255 would join the right edge to the left one.
    reference = np.full((64, 2100), 128, np.uint8)
    target, confidence = np.zeros((64, 2100), dtype), np.zeros((64, 2100))
    target[:, 0] = 1
    confidence[:, [0, 1050]] = 1
    x = bilateral.solve(reference, target, confidence, tolerance=1e-7, max_iterations=3000)
    assert np.abs(x[:, 1050:]).max() < 0.05
    assert x[:, 0].min() > 0.9


@may_stop_early
@given(problems(), st.sampled_from([{}, {"method": "paper"}]))
def test_a_solve_repeats_bit_for_bit(problem: Problem, options: dict[str, Any]) -> None:
    x, again = (problem.solve(**options) for _ in range(2))
    np.testing.assert_array_equal(x, again)


@may_stop_early
@given(problems())
def test_one_solver_for_many_targets(problem: Problem) -> None:
    solver = BilateralSolver(problem.grid(), problem.smoothness)
    double, single = problem.target, problem.target.astype(np.float32)
    for target in (double, single, double):
        x = solver.solve(target, problem.confidence)
        np.testing.assert_array_equal(x, problem.solve(target=target))
