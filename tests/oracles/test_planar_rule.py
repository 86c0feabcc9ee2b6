"""The rule for the penalties of the slopes: what it measures, and what it must not depend on."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from oracles import planar, planar_rule
from oracles.reference import Array, grid_from_coordinates

SHAPE, SIGMA = (48, 64), 8.0


@cache
def scene(shape: tuple[int, ...] = SHAPE) -> tuple[planar.Model, Array, Array]:
    """Two slanted planes that meet at a jump, with two colours: model, positions and truth."""
    position = planar.positions(shape, SIGMA)
    right = position[:, 0] > position[:, 0].max() / 2
    cells = np.column_stack([np.floor(position).astype(np.int64), right])
    grid = grid_from_coordinates(cells, n_space=len(shape))
    truth = np.where(right, 20 + 2 * position[:, 1], 5 - position[:, 0]).reshape(shape)
    return planar.model(grid, position), position, truth


def sparse(truth: Array, known: float, noise: float, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    noisy = truth + noise * rng.normal(size=truth.shape)
    return np.asarray(np.where(rng.uniform(size=truth.shape) < known, noisy, np.nan))


@pytest.mark.parametrize("known", [1.0, 0.1, 0.03])
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_noise_is_found_at_any_density(known: float, sigma: float) -> None:
    model, position, truth = scene()
    target = sparse(truth, known, sigma)
    found = planar_rule.noise(model, position, target, None)[0] ** 0.5
    assert 0.6 * sigma < found < 1.7 * sigma


@pytest.mark.parametrize("known", [1.0, 0.1, 0.03])
def test_clean_planes_have_no_noise_and_keep_the_defaults(known: float) -> None:
    model, position, truth = scene()
    target = sparse(truth, known, 0.0)
    assert planar_rule.noise(model, position, target, None)[0] < 1e-12
    assert planar_rule.strength(model, position, target, None, 0.03) == 1


def test_noise_of_a_video() -> None:
    model, position, truth = scene((6, 32, 40))
    found = planar_rule.noise(model, position, sparse(truth, 0.3, 0.5), None)[0] ** 0.5
    assert 0.3 < found < 0.8


def test_noise_of_scan_lines() -> None:
    # Known pixels on one line per cell determine one slope, not two.
    model, position, truth = scene()
    target = sparse(truth, 1.0, 0.5)
    target[np.arange(SHAPE[0]) % 16 != 4] = np.nan
    found = planar_rule.noise(model, position, target, None)[0] ** 0.5
    assert 0.4 < found < 0.6


def test_strength_rises_with_noise_and_falls_with_smoothness() -> None:
    model, position, truth = scene()
    by_noise = [
        planar_rule.strength(model, position, sparse(truth, 0.2, sigma), None, 0.3)
        for sigma in (0.0, 1.0, 4.0, 40.0)
    ]
    assert by_noise == sorted(by_noise)
    assert by_noise[0] == 1
    assert by_noise[-1] == planar_rule.LARGEST
    target = sparse(truth, 0.2, 3.0)
    by_smoothness = [
        planar_rule.strength(model, position, target, None, s) for s in (0.03, 0.3, 1, 4)
    ]
    assert by_smoothness == sorted(by_smoothness, reverse=True)
    assert by_smoothness[-1] == 1 < by_smoothness[1] < planar_rule.LARGEST


def test_strength_depends_neither_on_units_nor_on_the_scale_of_the_confidence() -> None:
    model, position, truth = scene()
    target = sparse(truth, 0.2, 1.5)
    confidence = np.random.default_rng(1).uniform(0.5, 2, truth.shape)
    expected = planar_rule.strength(model, position, target, confidence, 0.1)
    assert 1 < expected < planar_rule.LARGEST
    moved = planar_rule.strength(model, position, 1000 - 50 * target, confidence, 0.1)
    scaled = planar_rule.strength(model, position, target, 7 * confidence, 7 * 0.1)
    tilted = planar_rule.noise(model, position, target + 3 * position[:, :1].reshape(SHAPE), None)
    np.testing.assert_allclose([moved, scaled], expected, rtol=1e-6)
    np.testing.assert_allclose(tilted, planar_rule.noise(model, position, target, None), rtol=1e-6)


def test_few_outliers_hardly_change_the_noise() -> None:
    model, position, truth = scene()
    target = sparse(truth, 0.2, 0.3)
    clean, _ = planar_rule.noise(model, position, target, None)
    bad = np.random.default_rng(2).uniform(size=SHAPE) < 0.02
    spoiled, _ = planar_rule.noise(model, position, np.where(bad, target + 30, target), None)
    assert spoiled < 2 * clean


def test_too_few_or_constant_data_keep_the_defaults() -> None:
    model, position, truth = scene()
    few = np.full(SHAPE, np.nan)
    few[::12, ::24] = truth[::12, ::24]
    assert planar_rule.strength(model, position, few, None, 0.03) == 1
    assert planar_rule.strength(model, position, np.full(SHAPE, 3.0), None, 0.03) == 1
    pure_noise = np.random.default_rng(3).normal(size=SHAPE)
    assert planar_rule.strength(model, position, pure_noise, None, 0.03) == planar_rule.LARGEST


def test_wilson_hilferty_is_close_to_the_quantile() -> None:
    freedom = np.array([1.0, 2.0, 5.0, 60.0])
    expected = chi2.ppf(0.25, freedom) / freedom
    np.testing.assert_allclose(planar_rule.chi_square_quantile(freedom, 0.25), expected, rtol=0.05)


def test_few_cells_speak_less_for_noise() -> None:
    # Five cells of the same noise as many: the factor 1 - 2 / sqrt(n) is about 0.1.
    model, position, truth = scene()
    many = sparse(truth, 1.0, 3.0)
    few = np.full(SHAPE, np.nan)
    few[:8, :40] = many[:8, :40]
    variance, cells = planar_rule.noise(model, position, few, None)
    assert cells < 10
    assert 1 < variance**0.5 < 9
    strengths = [
        planar_rule.strength(model, position, target, None, 0.05) for target in (few, many)
    ]
    assert strengths[0] < strengths[1]
