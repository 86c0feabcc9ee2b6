"""The solver against the oracle, and the properties every solve has."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver, ConvergenceWarning
from oracles import reference as oracle
from support.examples import examples
from support.strategies import Array, Problem, picture, problems, seeds

EXACTLY = {"tolerance": 0, "max_iterations": 3000}
may_stop_early = pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
STARTS = [(p, i) for p in ("pyramid", "jacobi") for i in ("pyramid", "flat")]


def photo(
    shape: tuple[int, int] = (96, 128), known: float = 1.0, channels: tuple[int, ...] = ()
) -> Problem:
    """Return a fixed problem: a noisy map of a photograph of three surfaces, with `known` data."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
    surface = (x + 0.3 * y > 0.5).astype(int) + (np.hypot(x - 0.6, y - 0.4) < 0.2)
    shade = 60 + 70 * surface + 30 * x + rng.normal(0, 3, shape)
    tint = np.array([1.0, 0.9, 0.7]) * shade[..., None] + np.array([0, 8, 20])
    depth = 2.0 + surface + 0.5 * y + rng.normal(0, 0.2, shape)
    target = np.stack([depth * (k + 1) for k in range(*channels)], axis=2) if channels else depth
    confidence = (rng.uniform(size=shape) < known).astype(float)
    image = np.clip(np.rint(tint), 0, 255).astype(np.uint8)
    return Problem(image, target, confidence, 4.0, {"sigma_xy": 4, "sigma_luma": 8})


def assert_close(found: Array, expected: Array, problem: Problem, tolerance: float) -> None:
    """Compare in units of the largest known value."""
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() <= tolerance * problem.size


# Against the oracle


@examples(200)
@given(problems())
def test_solution_is_the_oracles(problem: Problem) -> None:
    x = problem.solve(**EXACTLY)
    assert x.dtype == np.float64
    assert_close(x, problem.exact(), problem, 1e-5)


@given(problems(stiff=False))
def test_solution_is_the_oracles_in_double_precision(problem: Problem) -> None:
    assert_close(problem.solve(**EXACTLY), problem.exact(), problem, 1e-9)


@given(problems())
def test_solution_of_float32_is_the_oracles(problem: Problem) -> None:
    x = problem.solve(target=problem.target.astype(np.float32), **EXACTLY)
    assert x.dtype == np.float32
    assert_close(x, problem.exact(), problem, 1e-4)


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("known", [1.0, 0.1])
def test_solution_of_a_photograph_is_the_oracles(known: float, preconditioner: str) -> None:
    problem = photo((60, 70), known)
    x = problem.solve(preconditioner=preconditioner, **EXACTLY)
    assert_close(x, problem.exact(), problem, 1e-8)


@given(problems(stiff=False))
def test_float32_within_a_tolerance(problem: Problem) -> None:
    # Really in float32: the tolerance is not below 1e-5.
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
    # The error is estimated: allow a factor of 30.
    rms = np.sqrt(np.mean((x - exact) ** 2)) / np.ptp(target[confidence > 0])
    assert rms <= 30e-5


@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1e-2, 1.0, 1e6])
def test_the_papers_steps_in_float32_for_confidences_of_any_scale(scale: float) -> None:
    # Small grids: 25 steps are more than it takes, and must not lead away again.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        target = rng.normal(size=(1, rng.integers(4, 30)))
        reference, confidence = np.zeros(target.shape, np.uint8), np.full(target.shape, scale)
        options = {"sigma_xy": 2, "smoothness": 40, "method": "paper"}
        single = bilateral.solve(reference, target.astype(np.float32), confidence, **options)
        double = bilateral.solve(reference, target, confidence, **options)
        assert np.abs(single - double).max() <= 1e-2


@given(problems(stiff=False))
def test_method_paper_is_the_oracles_algorithm(problem: Problem) -> None:
    assert_close(problem.solve(method="paper"), problem.paper(), problem, 1e-9)


@given(problems(stiff=False))
def test_method_paper_in_float32(problem: Problem) -> None:
    x = problem.solve(method="paper", target=problem.target.astype(np.float32))
    assert x.dtype == np.float32
    # Before they converge, 25 steps on a hard problem amplify rounding.
    assert_close(x, problem.paper(), problem, 1e-3 if problem.smoothness <= 4 else 0.05)


@given(problems(stiff=False), st.integers(0, 30))
def test_method_paper_with_a_number_of_steps(problem: Problem, steps: int) -> None:
    x = problem.solve(method="paper", max_iterations=steps)
    assert_close(x, problem.paper(steps=steps), problem, 1e-9)


@pytest.mark.parametrize(("preconditioner", "initial"), STARTS)
@examples(40)
@given(problem=problems(stiff=False), steps=st.sampled_from([0, 1, 2, 3, 5, 15]))
def test_each_step_is_the_oracles(
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


# Properties


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
        np.testing.assert_array_equal(x[empty], unchanged[empty])


def test_a_region_without_data_takes_its_surroundings_value() -> None:
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
    # 2100 / 8 > 255 cells: packed in base 255, the right edge would meet the left one's 1.
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
    solver = BilateralSolver(
        BilateralGrid(problem.reference, **problem.options), problem.smoothness
    )
    double, single = problem.target, problem.target.astype(np.float32)
    for target in (double, single, double):
        x = solver.solve(target, problem.confidence)
        np.testing.assert_array_equal(x, problem.solve(target=target))


# What is told about a solve


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
    assert info.n_vertices == BilateralGrid(problem.reference, **problem.options).n_vertices
    assert 0 < info.seconds <= elapsed


def test_info_of_a_solve_on_a_grid() -> None:
    problem = photo((30, 40))
    grid = BilateralGrid(problem.reference, **problem.options)
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
def test_residuals_do_not_depend_on_the_targets_unit_and_zero(dtype: str) -> None:
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
def test_any_number_of_steps_may_be_allowed(most: int) -> None:
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
    # Far from 0 the target's range is small against rounding.
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


# Callbacks


@pytest.mark.parametrize("channels", [(), (3,), (8,)])
@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_the_callback_sees_every_step(scale: float, channels: tuple[int, ...]) -> None:
    problem = photo((60, 70), 0.1, channels)
    problem = replace(problem, smoothness=problem.smoothness / scale)
    calls: list[tuple[int, float]] = []

    def callback(step: int, residual: float) -> None:
        calls.append((step, residual))

    x, info = problem.solve(callback=callback, return_info=True)
    assert calls == list(enumerate(info.residuals, start=1))
    np.testing.assert_array_equal(x, problem.solve())


def test_the_callback_with_more_channels_than_one_group() -> None:
    problem = photo((30, 40), 0.1, (9,))
    steps: list[int] = []
    problem.solve(callback=lambda step, _: steps.append(step))
    starts = [i for i, step in enumerate(steps) if step == 1]
    assert len(starts) == 2
    for first, end in zip(starts, [*starts[1:], len(steps)], strict=True):
        assert steps[first:end] == list(range(1, end - first + 1))


@pytest.mark.parametrize("channels", [(), (3,), (9,)])
@pytest.mark.parametrize("last", [1, 3])
def test_a_true_result_ends_the_solve(last: int, channels: tuple[int, ...]) -> None:
    problem = photo((60, 70), 0.01, channels)
    paper = {"preconditioner": "pyramid", "tolerance": 1e-6, "return_info": True}
    x, info = problem.solve(callback=lambda step, _: step == last, **paper)
    assert info.iterations == last
    assert not info.converged
    assert np.isfinite(x).all()
    if len(channels) == 0:
        expected = problem.paper(steps=last)
        assert_close(x, expected, problem, 1e-8)


def test_an_exception_in_the_callback_reaches_the_caller() -> None:
    problem = photo((60, 70), 0.1)
    grid = BilateralGrid(problem.reference, **problem.options)
    solver = BilateralSolver(grid)
    expected = solver.solve(problem.target, problem.confidence)

    class OwnError(Exception):
        pass

    def fail(step: int, residual: float) -> None:
        calls.append(step)
        if step == 2:
            raise OwnError("from the callback")

    for _ in range(3):
        calls: list[int] = []
        with pytest.raises(OwnError, match="from the callback"):
            solver.solve(problem.target, problem.confidence, callback=fail)
        assert calls == [1, 2]
        np.testing.assert_array_equal(solver.solve(problem.target, problem.confidence), expected)


def test_a_result_without_truth_value_is_an_error_of_the_callback() -> None:
    problem = photo((30, 40), 0.1)
    with pytest.raises(ValueError, match="truth value"):
        problem.solve(callback=lambda *_: np.ones(2))


def test_a_callback_may_solve() -> None:
    problem = photo((30, 40), 0.1)
    inner: list[Array] = []
    outer = problem.solve(callback=lambda *_: inner.append(problem.solve()))
    assert len(inner) >= 2
    for x in inner:
        np.testing.assert_array_equal(x, outer)


# Warm starts


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_solution_is_a_good_warm_start(channels: tuple[int, ...], preconditioner: str) -> None:
    problem = photo((60, 70), 0.1, channels)
    options = {"preconditioner": preconditioner, "max_iterations": 3000, "tolerance": 1e-6}
    x, cold = problem.solve(**options, return_info=True)
    exact = problem.exact()
    again, warm = problem.solve(**options, warm_start=exact, return_info=True)
    assert warm.converged
    assert warm.iterations <= 2 < cold.iterations
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


# Iteration counts: a preconditioner that gets worse shows here, not on a clock.


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
    # Neither does a solve go on for long after that.
    _, info = problem.solve(tolerance=1e-6, max_iterations=1000, **options)
    assert info.converged
    assert info.iterations <= 1.3 * ceiling
