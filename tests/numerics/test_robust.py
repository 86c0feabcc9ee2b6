"""The robust solver matches the oracle's Algorithm 3; properties of its rounds."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import (
    Barron,
    BilateralGrid,
    BilateralSolver,
    Cauchy,
    Charbonnier,
    GemanMcClure,
    Huber,
    Welsch,
)
from oracles import reference as oracle
from support.examples import examples
from support.strategies import Array, Problem, problems, seeds

EXACTLY = {"tolerance": 0, "max_iterations": 3000}
LOSSES: dict[str, Any] = {
    "Geman-McClure": GemanMcClure,
    "Charbonnier": Charbonnier,
    "Cauchy": Cauchy,
    "Welsch": Welsch,
    "Huber": Huber,
    "Barron 1.5": lambda scale: Barron(1.5, scale),
    "Barron -4": lambda scale: Barron(-4.0, scale),
    "Barron 2": lambda scale: Barron(2.0, scale),
}
CONVEX_OR_PAPER = ("Charbonnier", "Huber", "Barron 1.5", "Barron 2", "Geman-McClure")

losses = st.sampled_from(sorted(LOSSES))


@dataclass(frozen=True)
class Foreign:
    """A loss of a class outside the library: only its two methods are known."""

    inside: Any

    def rho(self, e: Array) -> Array:
        return np.asarray(self.inside.rho(e))

    def weight(self, e: Array) -> Array:
        return np.asarray(self.inside.weight(e))


def solver_of(problem: Problem, **options: Any) -> BilateralSolver:
    grid = problem.grid()
    return BilateralSolver(grid, problem.smoothness, **options)


def size(problem: Problem) -> float:
    """Return the largest value of all pixels: the confidence counts in the first round only."""
    return float(np.abs(problem.target[np.isfinite(problem.target)]).max()) or 1.0


def spread(problem: Problem) -> float:
    """Return a typical size of the residuals, as a scale for losses."""
    return float(np.std(problem.target[np.isfinite(problem.target)])) or size(problem)


def rounds_of_oracle(problem: Problem, loss: Any, rounds: int) -> Array:
    given = problem.reference, problem.target, problem.confidence
    options = {"smoothness": problem.smoothness, **problem.options}
    return oracle.solve_robust(*given, loss.weight, rounds, **options)


def objective(problem: Problem, x: Array, loss: Any) -> float:
    options = {"smoothness": problem.smoothness, **problem.options}
    return oracle.robust_objective(problem.reference, problem.target, x, loss.rho, **options)


def noisy(shape: tuple[int, ...] = (40, 56), seed: int = 0) -> tuple[Array, Array]:
    """Return a gray reference of two tones and a noisy target along it."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    side = x + y > sum(shape[:2]) / 2
    clean = np.where(side, 10.0, 20.0).reshape(*side.shape, *[1] * (len(shape) - 2))
    target = clean + rng.normal(0, 1, shape)
    target[rng.uniform(size=side.shape) < 0.1] += 15
    return np.where(side, np.uint8(60), np.uint8(180)), target


# Against the oracle


@examples(150)
@given(problems(largest=16, stiff=False), losses, st.integers(1, 5))
def test_rounds_match_the_oracle(problem: Problem, name: str, rounds: int) -> None:
    loss = LOSSES[name](spread(problem))
    solver = solver_of(problem, **EXACTLY)
    x = solver.solve_robust(problem.target, problem.confidence, loss, rounds)
    assert np.isfinite(x).all()
    error = np.abs(x - rounds_of_oracle(problem, loss, rounds)).max()
    assert error <= 1e-7 * size(problem)


@given(problems(largest=16, stiff=False), losses)
def test_rounds_in_float32_match_the_oracle(problem: Problem, name: str) -> None:
    loss = LOSSES[name](spread(problem))
    solver = solver_of(problem, tolerance=1e-6, max_iterations=3000)
    target = problem.target.astype(np.float32)
    x = solver.solve_robust(target, problem.confidence, loss, 3)
    assert x.dtype == np.float32
    rms = np.sqrt(np.mean((x - rounds_of_oracle(problem, loss, 3)) ** 2))
    assert rms <= 2e-3 * size(problem)


@given(problems(largest=20), losses)
def test_a_loss_of_another_class_gives_the_same(problem: Problem, name: str) -> None:
    loss = LOSSES[name](spread(problem))
    solver = solver_of(problem, **EXACTLY)
    known = solver.solve_robust(problem.target, problem.confidence, loss, 3)
    foreign = solver.solve_robust(problem.target, problem.confidence, Foreign(loss), 3)
    assert np.abs(known - foreign).max() <= 1e-6 * size(problem)


# Descent


@examples(200)
@given(
    problems(largest=16),
    st.sampled_from(CONVEX_OR_PAPER),
    st.floats(-3, 3),
    st.sampled_from([0, 1]),
)
def test_the_objective_never_increases(
    problem: Problem, name: str, magnitude: float, exact: int
) -> None:
    loss = LOSSES[name](spread(problem) * 10.0**magnitude)
    solver = solver_of(problem, tolerance=0 if exact else 1e-3, max_iterations=3000)
    values = []
    for rounds in range(1, 8):
        x = solver.solve_robust(problem.target, problem.confidence, loss, rounds)
        values.append(objective(problem, x, loss))
    tiny = 1e-13 * size(problem)
    rounding = 1e-9 * max(values) + x.size * (loss.rho(tiny) + problem.smoothness * tiny**2)
    assert (np.diff(values) <= rounding).all()


# Outliers


def scene(seed: int) -> tuple[Array, Array, Array]:
    """Return a picture of overlapping rectangles, its clean map and one with 30 % gross errors."""
    rng = np.random.default_rng(seed)
    shape = 96, 128
    tones = rng.permutation(12) * 20 + 5
    picture, clean = np.full(shape, tones[0], np.uint8), np.full(shape, 10.0)
    for tone in tones[1:7]:
        top, left = rng.integers(0, 70), rng.integers(0, 90)
        height, width = rng.integers(20, 60, 2)
        part = np.s_[top : top + height, left : left + width]
        picture[part], clean[part] = tone, rng.uniform(0, 100)
    spoiled = clean.copy()
    wrong = rng.uniform(size=shape) < 0.3
    spoiled[wrong] = rng.uniform(-100, 200, int(wrong.sum()))
    return picture, clean, spoiled


@pytest.mark.parametrize("smoothness", [1, 4])
@pytest.mark.parametrize("scale", [5, 10, 20])
@pytest.mark.parametrize("seed", range(8))
def test_outliers_hardly_change_the_result(seed: int, scale: float, smoothness: float) -> None:
    picture, clean, spoiled = scene(seed)
    solver = BilateralSolver(BilateralGrid(picture), smoothness)
    span = np.ptp(clean)
    least_squares = np.abs(solver.solve(spoiled) - clean)
    robust = np.abs(solver.solve_robust(spoiled, loss=GemanMcClure(scale)) - clean)
    assert np.sqrt(np.mean(least_squares**2)) > 0.05 * span
    assert robust.max() < 0.01 * span


# Channels


@pytest.mark.parametrize("name", ["Geman-McClure", "Huber"])
def test_weights_by_channel_are_separate_solves(name: str) -> None:
    reference, target = noisy((40, 56, 3))
    loss = LOSSES[name](1.0)
    solver = BilateralSolver(BilateralGrid(reference))
    x = solver.solve_robust(target, None, loss, 6, weights="channel")
    for k in range(3):
        np.testing.assert_array_equal(x[..., k], solver.solve_robust(target[..., k], None, loss, 6))


@given(seeds)
def test_joint_weights_do_not_depend_on_the_axes(seed: int) -> None:
    reference, target = noisy((20, 24, 3), seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    solver = BilateralSolver(BilateralGrid(reference), **EXACTLY)
    x = solver.solve_robust(target, iterations=5)
    turned = solver.solve_robust(target @ turn, iterations=5)
    np.testing.assert_allclose(turned, x @ turn, atol=1e-6)


def test_joint_weights_of_one_channel() -> None:
    reference, target = noisy()
    solver = BilateralSolver(BilateralGrid(reference))
    expected = solver.solve_robust(target)
    for weights in ("joint", "channel"):
        x = solver.solve_robust(target[..., np.newaxis], weights=weights)
        np.testing.assert_array_equal(x[..., 0], expected)


# Inputs


def test_one_round_is_a_plain_solve() -> None:
    reference, target = noisy()
    confidence = np.random.default_rng(1).uniform(size=target.shape)
    solver = BilateralSolver(BilateralGrid(reference))
    x, info = solver.solve_robust(target, confidence, iterations=1, return_info=True)
    np.testing.assert_array_equal(x, solver.solve(target, confidence))
    assert info.iterations == 1


def test_the_confidence_counts_in_the_first_round_only() -> None:
    # A convex loss has one minimum, whatever the start.
    reference, target = noisy()
    confidence = np.random.default_rng(1).uniform(size=target.shape)
    solver = BilateralSolver(BilateralGrid(reference), tolerance=1e-6, max_iterations=3000)
    given: dict[str, Any] = {"loss": Charbonnier(1.0), "iterations": 200}
    x = solver.solve_robust(target, confidence, **given)
    np.testing.assert_allclose(x, solver.solve_robust(target, **given), atol=1e-3)


@given(problems(largest=16, stiff=False), seeds)
def test_a_value_that_is_not_finite_never_matters(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = problem.target.copy()
    unknown = ~np.isfinite(other)
    other[unknown] = rng.choice([np.nan, np.inf, -np.inf], int(unknown.sum()))
    solver = solver_of(problem, max_iterations=3000)
    loss = GemanMcClure(spread(problem))
    x = solver.solve_robust(problem.target, problem.confidence, loss, 3)
    assert np.isfinite(x).all()
    again = solver.solve_robust(other, problem.confidence, loss, 3)
    np.testing.assert_array_equal(x, again)


@pytest.mark.parametrize("unit", [1e-150, 1e-30, 1e-8, 1.0, 1e8, 1e30, 1e150])
@pytest.mark.parametrize("name", ["Geman-McClure", "Welsch", "Huber"])
def test_any_unit(unit: float, name: str) -> None:
    reference, target = noisy()
    grid = BilateralGrid(reference)
    plain = BilateralSolver(grid, 4.0, **EXACTLY)
    expected = plain.solve_robust(target, None, LOSSES[name](1.0), 4)
    # A loss's weight is in 1 / unit^2, and the smoothness is relative to it.
    solver = BilateralSolver(grid, 4.0 / unit / unit, **EXACTLY)
    c = np.full(target.shape, 1 / unit / unit)
    x = solver.solve_robust(target * unit, c, LOSSES[name](unit), 4)
    np.testing.assert_allclose(x / unit, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32", "float64"])
def test_the_result_has_the_targets_dtype(dtype: str) -> None:
    reference, target = noisy()
    given = np.rint(target).clip(0).astype(dtype)
    solver = BilateralSolver(BilateralGrid(reference))
    x = solver.solve_robust(given)
    assert x.dtype == np.dtype(dtype)
    exact = solver.solve_robust(given.astype(np.float64))
    assert np.abs(x - exact).max() <= 0.5 + 0.05
    assert solver.solve_robust(given, dtype="float64").dtype == np.float64


def test_a_loss_that_gives_no_pixel_weight_stops_the_rounds() -> None:
    # Two distant clusters in each vertex: at their mean, this loss gives both no weight.
    target = np.where(np.indices((16, 16)).sum(axis=0) % 2, 0.0, 1e6)
    solver = BilateralSolver(BilateralGrid(np.zeros((16, 16), np.uint8)))
    x, info = solver.solve_robust(target, loss=Welsch(1.0), return_info=True)
    np.testing.assert_allclose(x, 5e5)
    assert info.iterations == 1


# Stopping


def test_min_change_ends_the_rounds() -> None:
    reference, target = noisy()
    solver = BilateralSolver(BilateralGrid(reference))
    x, info = solver.solve_robust(target, min_change=1e-3, iterations=100, return_info=True)
    assert 2 <= info.iterations < 100
    assert info.residuals[-1] <= 1e-3 < min(info.residuals[1:-1], default=1.0)
    assert info.converged
    np.testing.assert_array_equal(x, solver.solve_robust(target, iterations=info.iterations))


def test_without_min_change_all_rounds_are_done() -> None:
    reference, target = noisy()
    solver = BilateralSolver(BilateralGrid(reference))
    _, info = solver.solve_robust(target, iterations=9, return_info=True)
    assert info.iterations == len(info.residuals) == 9


def test_the_callback_sees_every_round_and_may_end_them() -> None:
    reference, target = noisy()
    solver = BilateralSolver(BilateralGrid(reference))
    seen: list[tuple[int, float]] = []

    def callback(step: int, movement: float) -> bool:
        seen.append((step, movement))
        return step == 3

    x, info = solver.solve_robust(target, callback=callback, return_info=True)
    assert seen == list(enumerate(info.residuals, start=1))
    assert info.iterations == 3
    np.testing.assert_array_equal(x, solver.solve_robust(target, iterations=3))


def test_a_warm_start_at_the_solution_moves_less() -> None:
    reference, target = noisy()
    solver = BilateralSolver(BilateralGrid(reference))
    x = solver.solve(target)
    _, cold = solver.solve_robust(target, iterations=2, return_info=True)
    _, warm = solver.solve_robust(target, iterations=2, warm_start=x, return_info=True)
    assert warm.residuals[0] < cold.residuals[0]


# Errors


@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [
        ("loss", None, TypeError, "None"),
        ("loss", GemanMcClure, TypeError, "GemanMcClure()"),
        ("loss", "huber", TypeError, "'huber'"),
        ("iterations", 0, ValueError, "0"),
        ("iterations", 2.5, TypeError, "2.5"),
        ("weights", "both", ValueError, "'both'"),
        ("min_change", -1, ValueError, "-1"),
        ("min_change", np.nan, ValueError, "nan"),
        ("callback", 3, TypeError, "3"),
        ("target", np.zeros((3, 3)), ValueError, "(3, 3)"),
        ("confidence", np.full((6, 8), -1.0), ValueError, "-1"),
        ("warm_start", np.zeros((3, 3)), ValueError, "(3, 3)"),
        ("target", np.full((6, 8), np.nan), ValueError, "none"),
    ],
)
def test_a_wrong_argument_is_named(
    argument: str, value: Any, error: type[Exception], told: str
) -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros((6, 8), np.uint8)))
    arguments: dict[str, Any] = {"target": np.ones((6, 8))} | {argument: value}
    with pytest.raises(error, match=f"^{argument}") as caught:
        solver.solve_robust(**arguments)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (lambda e: 1 / e, "inf"),
        (lambda e: e - 1, "-1.0"),
        (lambda e: e[0], "(8,)"),
        (lambda e: e.astype(str), "<U"),
    ],
)
def test_wrong_weights_of_another_loss_are_an_error(weight: Any, told: str) -> None:
    class Wrong:
        def rho(self, e: Array) -> Array:
            return e

        def weight(self, e: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.asarray(weight(e))

    solver = BilateralSolver(BilateralGrid(np.zeros((6, 8), np.uint8)))
    with pytest.raises((ValueError, TypeError), match=r"^loss\.weight: ") as caught:
        solver.solve_robust(np.ones((6, 8)), loss=Wrong())
    assert told in str(caught.value)


def test_an_error_inside_a_loss_reaches_the_caller() -> None:
    class Broken(GemanMcClure):
        def weight(self, _: Any) -> Any:
            raise RuntimeError("broken on purpose")

    solver = BilateralSolver(BilateralGrid(np.zeros((6, 8), np.uint8)))
    with pytest.raises(RuntimeError, match="on purpose"):
        solver.solve_robust(np.ones((6, 8)), loss=Broken())


def test_threads_do_not_change_the_result(keep_num_threads: None) -> None:
    reference, target = noisy((300, 400))
    results = []
    for n in (1, 2, 3):
        bilateral.set_num_threads(n)
        grid = BilateralGrid(reference, sigma_xy=2)
        results.append(BilateralSolver(grid).solve_robust(target.astype(np.float32)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_weights_that_almost_vanish_give_numbers(
    seed: int, dtype: Any, preconditioner: str
) -> None:
    # The inverse of a denormal number may be infinite.
    rng = np.random.default_rng(seed)
    photo = rng.integers(0, 256, (12, 10, 3)).astype(np.uint8)
    spread = 3000 if dtype == np.float32 else 9000
    target = (20_000 + spread * rng.random((12, 10))).astype(dtype)
    solver = BilateralSolver(
        BilateralGrid(photo, 16), 16, max_iterations=1, preconditioner=preconditioner
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
        x = solver.solve_robust(target, loss=Welsch(1.0), iterations=2)
    assert np.isfinite(x).all()
    assert x.min() >= target.min()
    assert x.max() <= target.max()
