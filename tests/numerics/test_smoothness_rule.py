"""The rule behind smoothness="auto": units, continuity, bounds, and that it helps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import bilateral
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure
from bilateral.numerics import policy, smoothness_rule

Array = NDArray[Any]

Y, X = np.mgrid[:96, :128]
NEAR = (X > 40) & (X < 90) & (Y > 30)
PHOTO = np.where(NEAR, 200, 60).astype(np.uint8)
TRUTH = np.where(NEAR, 30.0, 10.0) + 0.05 * X
GRID = BilateralGrid(PHOTO)


def target(density: float, noise: float = 0.0, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    known = rng.random(TRUTH.shape) < density
    known[0, 0] = True
    return np.where(known, TRUTH + noise * rng.normal(size=TRUTH.shape), np.nan)


def chosen(values: Array, confidence: Array | None = None, planar: bool = False) -> float:
    return smoothness_rule.choose(GRID, values[..., np.newaxis], confidence, planar)


@settings(max_examples=20)
@given(
    st.floats(0.002, 1),
    st.floats(0, 5),
    st.booleans(),
    st.floats(1e-6, 1e6),
    st.floats(1e-3, 1e3),
    st.floats(-100, 100),
)
def test_units_do_not_matter(
    density: float, noise: float, planar: bool, weight: float, scale: float, shift: float
) -> None:
    values = target(density, noise)
    confidence = np.random.default_rng(1).uniform(0.1, 1, TRUTH.shape)
    expected = chosen(values, confidence, planar)
    assert chosen(values, weight * confidence, planar) == pytest.approx(weight * expected, rel=1e-3)
    assert chosen(scale * values + shift, confidence, planar) == pytest.approx(expected, rel=1e-3)


@settings(max_examples=8)
@given(st.floats(1e-3, 1e3), st.sampled_from(["constant", "planar"]), st.floats(0.01, 1))
def test_the_solution_does_not_depend_on_the_unit_of_the_confidence(
    factor: float, model: str, density: float
) -> None:
    values = target(density, 1.0)
    confidence = np.random.default_rng(1).uniform(0.1, 1, TRUTH.shape)
    solver = BilateralSolver(GRID, "auto", model=model, tolerance=1e-5)
    x = solver.solve(values, confidence)
    y, info = solver.solve(values, factor * confidence, return_info=True)
    assert info.smoothness == pytest.approx(
        factor * chosen(values, confidence, model == "planar"), rel=1e-6
    )
    np.testing.assert_allclose(x, y, atol=2e-3)


@pytest.mark.parametrize("planar", [False, True])
def test_bounds_and_the_default(planar: bool) -> None:
    assert chosen(TRUTH, planar=planar) == pytest.approx(policy.SMOOTHNESS)
    assert chosen(target(1e-3), planar=planar) == pytest.approx(policy.SPARSE_SMOOTHNESS, rel=0.01)
    pure_noise = np.random.default_rng(0).normal(size=TRUTH.shape)
    assert 4 < chosen(pure_noise, planar=planar) <= policy.LARGEST_AUTO_SMOOTHNESS
    assert chosen(np.full(TRUTH.shape, 7.0), planar=planar) == pytest.approx(policy.SMOOTHNESS)
    assert chosen(1e300 * TRUTH, planar=planar) == pytest.approx(policy.SMOOTHNESS)
    assert chosen(TRUTH, np.full(TRUTH.shape, 1e-200), planar) == pytest.approx(4e-200)


def test_noise_raises_the_smoothness() -> None:
    numbers = [chosen(target(0.3, noise)) for noise in (0, 1, 2, 4, 8)]
    assert numbers == sorted(numbers)
    assert numbers[-1] > 10 * numbers[0]


def test_few_pixels_that_vanish_change_little() -> None:
    """Confidences that fall to 0 lead to the smoothness without the pixels."""
    values, keep = target(1.0, 1.0), np.isfinite(target(0.05, seed=3))
    last = chosen(np.where(keep, values, np.nan))
    fading = chosen(values, np.where(keep, 1, 1e-6))
    assert fading == pytest.approx(last, rel=0.02)


@pytest.mark.parametrize("model", ["constant", "planar"])
@pytest.mark.parametrize(("density", "noise"), [(0.005, 0), (0.05, 0), (0.05, 2), (0.3, 4)])
def test_auto_is_near_the_best_smoothness(model: str, density: float, noise: float) -> None:
    values = target(density, noise)

    def error(smoothness: float | str) -> float:
        x = bilateral.solve(PHOTO, values, smoothness=smoothness, model=model)
        return float(np.abs(x - TRUTH).mean())

    best = min(error(s) for s in (0.01, 0.1, 1, 4, 16, 64))
    assert error("auto") < 1.7 * best + 0.01


def test_default_is_the_same_as_before() -> None:
    values = target(0.05)
    _, info = bilateral.solve(PHOTO, values, return_info=True)
    assert info.smoothness == 4.0
    x, info = bilateral.solve(PHOTO, values, smoothness="auto", return_info=True)
    np.testing.assert_array_equal(x, bilateral.solve(PHOTO, values, smoothness=info.smoothness))


@pytest.mark.parametrize("model", ["constant", "planar"])
def test_robust_rounds(model: str) -> None:
    values = target(0.05)
    values[::17, ::13] = 90
    solver = BilateralSolver(GRID, "auto", model=model)
    x, info = solver.solve_robust(values, loss=GemanMcClure(2.0), return_info=True)
    fixed = BilateralSolver(GRID, info.smoothness, model=model)
    np.testing.assert_array_equal(x, fixed.solve_robust(values, loss=GemanMcClure(2.0)))


def test_errors() -> None:
    with pytest.raises(TypeError, match="smoothness: expected a number above 0 or 'auto'"):
        BilateralSolver(GRID, "none")
    with pytest.raises(ValueError, match=r"smoothness: expected a number for variance"):
        BilateralSolver(GRID, "auto").variance()
    with pytest.raises(ValueError, match="target: expected at least one pixel"):
        BilateralSolver(GRID, "auto").solve(np.full(TRUTH.shape, np.nan))
