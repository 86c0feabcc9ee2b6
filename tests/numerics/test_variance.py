"""The variance matches the exact inverse within the documented statistical error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from oracles import reference as oracle
from support.examples import examples
from support.strategies import (
    CONFIDENCES,
    Array,
    grid_options,
    picture,
    references,
    seeds,
    weights,
    white,
)

SHAPE = (24, 30)


def exact(photo: Array, confidence: Array | None, smoothness: float, **options: Any) -> Array:
    """Return diag(S^T A^-1 S), infinite where there is no data."""
    grid = oracle.image_grid(photo, **options)
    A, _, Sc = oracle.system(grid, np.zeros(photo.shape[:2]), confidence, smoothness)
    known = oracle.has_data(grid, Sc)
    diagonal = np.full(len(Sc), np.inf)
    diagonal[known] = np.diag(np.linalg.inv(A.toarray()[np.ix_(known, known)]))
    return np.asarray(diagonal[grid.S.tocsc().indices].reshape(photo.shape[:2]))


def example(kind: str = "sparse", seed: int = 0) -> tuple[Array, Array]:
    """Return a photo-like reference and a confidence."""
    rng = np.random.default_rng(seed)
    photo = 0.7 * picture("two-tone", SHAPE, rng) + rng.uniform(0, 0.1, SHAPE)
    confidence = weights(kind, SHAPE, rng)
    assert confidence is not None
    return photo, confidence


def standard_errors(found: Array, expected: Array, probes: int) -> Array:
    """Return the differences in standard errors at the pixels with finite variance."""
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    finite = np.isfinite(expected)
    return np.abs(found[finite] / expected[finite] - 1) / np.sqrt(2 / probes)


@examples(40)
@given(
    references(16, dtypes=("uint8", "float64")),
    grid_options(),
    st.sampled_from(CONFIDENCES),
    st.sampled_from([0.1, 4.0, 1000.0]),
    seeds,
)
def test_the_exact_inverse_within_the_statistical_error(
    photo: Array, options: dict[str, Any], kind: str, smoothness: float, seed: int
) -> None:
    confidence = weights(kind, photo.shape[:2], np.random.default_rng(seed))
    grid = BilateralGrid(photo, **options, reference_max=white(photo))
    found = BilateralSolver(grid, smoothness).variance(confidence, probes=400, seed=seed)
    assert (found > 0).all()
    expected = exact(photo, confidence, smoothness, **options)
    assert standard_errors(found, expected, 400).max(initial=0) <= 7


def test_confidences_of_many_magnitudes_need_no_warning() -> None:
    luma = [200, 200, 198, 194, 199, 191, 194, 191, 189, 183, 187, 183]
    photo = np.array(luma, np.uint8)[:, np.newaxis]
    confidence = np.full((12, 1), 1e-5)
    confidence[[3, 4, 9, 10], 0] = 6e-3, 400, 7e-3, 0.3
    grid = BilateralGrid(photo, sigma_xy=1, sigma_luma=1)
    found = BilateralSolver(grid, 1000).variance(confidence, probes=400)
    expected = exact(photo, confidence, 1000, sigma_xy=1, sigma_luma=1)
    assert standard_errors(found, expected, 400).max() <= 7


@pytest.mark.parametrize("smoothness", [0.25, 4, 1000])
def test_the_mean_and_the_spread_over_seeds(smoothness: float) -> None:
    photo, confidence = example("dense")
    expected = exact(photo, confidence, smoothness, sigma_xy=4)
    solver = BilateralSolver(BilateralGrid(photo, 4), smoothness)
    runs, probes = 150, 16
    found = np.array(
        [solver.variance(confidence, probes=probes, seed=seed) for seed in range(runs)]
    )
    assert standard_errors(found.mean(axis=0), expected, runs * probes).max() <= 5
    assert (found.std(axis=0) / expected).max() <= 1.25 * np.sqrt(2 / probes)


def test_more_probes_are_better() -> None:
    photo, confidence = example()
    expected = exact(photo, confidence, 4.0, sigma_xy=4)
    solver = BilateralSolver(BilateralGrid(photo, 4), 4.0)
    errors = []
    for probes in (16, 256, 4096):
        found = solver.variance(confidence, probes=probes)
        errors.append(np.sqrt(np.mean((found / expected - 1) ** 2)))
        assert errors[-1] <= 2 * np.sqrt(2 / probes)
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_a_pixel_without_neighbours_is_exact() -> None:
    photo = np.uint8([[0, 255], [255, 0]])
    confidence = np.array([[0.5, 2.0], [0.0, 10.0]])
    solver = BilateralSolver(BilateralGrid(photo, 1))
    np.testing.assert_allclose(
        solver.variance(confidence, probes=1), [[2, 0.5], [np.inf, 0.1]], rtol=1e-6
    )


@pytest.mark.parametrize("probes", [1, 7, 8, 9, 65])
def test_any_number_of_probes(probes: int) -> None:
    photo, confidence = example()
    found = BilateralSolver(BilateralGrid(photo, 4)).variance(confidence, probes=probes)
    assert found.shape == SHAPE
    assert found.dtype == np.float64
    assert (found >= 0).all()
    assert np.median(found / exact(photo, confidence, 4.0, sigma_xy=4)) == pytest.approx(1, abs=0.9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "many magnitudes"])
@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
def test_any_unit(kind: str, unit: float) -> None:
    photo, confidence = example(kind)
    grid = BilateralGrid(photo, 4)
    expected = exact(photo, confidence, 4.0, sigma_xy=4)
    found = BilateralSolver(grid, 4.0 * unit).variance(confidence * unit, probes=256)
    assert standard_errors(found * unit, expected, 256).max() <= 6


@pytest.mark.parametrize("smoothness", [1e-150, 1e-20, 1e12, 1e15, 1e20, 1e150])
def test_any_ratio_of_smoothness_and_confidence(smoothness: float) -> None:
    photo, confidence = example("dense")
    found = BilateralSolver(BilateralGrid(photo, 4), smoothness).variance(confidence, probes=256)
    clipped = float(np.clip(smoothness, 1e-9, 1e9))  # beyond, nothing changes
    expected = exact(photo, confidence, clipped, sigma_xy=4)
    assert standard_errors(found, expected, 256).max() <= 6


def test_the_same_seed_gives_the_same_on_any_number_of_threads(keep_num_threads: None) -> None:
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (200, 300, 3), np.uint8)
    confidence = (rng.uniform(size=(200, 300)) < 0.1).astype(float)
    found = []
    for threads in (1, 2, 5):
        bilateral.set_num_threads(threads)
        grid = BilateralGrid(photo, 4, 32, 32)
        assert grid.n_vertices > 20_000
        found.append(BilateralSolver(grid).variance(confidence, probes=9, seed=3))
        np.testing.assert_array_equal(found[-1], found[0])
    other = BilateralSolver(grid).variance(confidence, probes=9, seed=4)
    assert np.mean(other[np.isfinite(other)] != found[0][np.isfinite(other)]) > 0.5


def test_the_variance_does_not_depend_on_the_solvers_options() -> None:
    photo, confidence = example()
    grid = BilateralGrid(photo, 4)
    expected = BilateralSolver(grid).variance(confidence)
    for options in ({"method": "paper"}, {"preconditioner": "jacobi", "max_iterations": 0}):
        solver = BilateralSolver(grid, **options)  # type: ignore[arg-type]
        np.testing.assert_array_equal(solver.variance(confidence), expected)


def test_no_data_at_all_is_infinite() -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros(SHAPE, np.uint8)))
    assert np.isinf(solver.variance(np.zeros(SHAPE))).all()


def test_the_spread_of_solutions_of_noisy_targets() -> None:
    # Meaning of the variance: if pixels have noise of variance 1 / confidence, solutions
    # spread as A^-1 S c S^T A^-1; the prior of the smoothness term only adds to it.
    photo, confidence = example("dense")
    solver = BilateralSolver(BilateralGrid(photo, 4), 1e5, tolerance=1e-5)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(*SHAPE, 400)) / np.sqrt(confidence)[..., np.newaxis]
    spread = np.square(solver.solve(noise, confidence)).mean(axis=2)
    assert np.mean(spread / solver.variance(confidence, probes=400)) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"probes": 0}, ValueError, "probes: expected at least 1, got 0"),
        ({"probes": 2.5}, TypeError, "probes: expected a whole number"),
        ({"seed": -1}, ValueError, "seed: expected at least 0, got -1"),
        ({"seed": None}, TypeError, "seed: expected a whole number"),
        ({"confidence": np.ones((3, 3))}, ValueError, "confidence: expected one number per pixel"),
        ({"confidence": -np.ones(SHAPE)}, ValueError, "confidence: expected finite numbers, 0 or"),
        ({"confidence": np.full(SHAPE, np.nan)}, ValueError, "confidence: expected finite"),
        ({"confidence": "a"}, TypeError, "confidence: expected real numbers"),
    ],
)
def test_a_wrong_argument_is_named(options: Any, error: type[Exception], told: str) -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros(SHAPE, np.uint8)))
    with pytest.raises(error, match=f"^{told}"):
        solver.variance(**options)
