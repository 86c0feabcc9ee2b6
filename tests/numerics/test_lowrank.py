"""Low-rank solves of many channels differ from full solves by at most the tolerance."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.strategies import Array, seeds

SHAPE = 40, 56
EXACTLY: dict[str, Any] = {"tolerance": 0, "max_iterations": 3000}


def grid_of(seed: int) -> BilateralGrid:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    side = x * rng.normal() + y * rng.normal() > rng.normal()
    return BilateralGrid(np.where(side, 0.2, 0.7) + rng.normal(0, 0.02, SHAPE).clip(-0.1, 0.1))


def mixed(channels: int, rank: int, seed: int) -> Array:
    """Return `channels` mixtures of `rank` fields, each with an offset of its own."""
    rng = np.random.default_rng(seed)
    fields = rng.normal(size=(*SHAPE, rank))
    return fields @ rng.normal(size=(rank, channels)) + rng.normal(0, 10, channels)


def probabilities(channels: int, seed: int) -> Array:
    """Return class probabilities that are large for two classes only."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 0.3, (*SHAPE, channels)) - 6
    x = np.arange(SHAPE[1])
    logits[:, :, 3] += 7 + 0.1 * (x - 20)
    logits[:, :, 1] += 7 - 0.1 * (x - 20)
    values = np.exp(logits)
    return np.asarray(values / values.sum(axis=2, keepdims=True))


@given(seeds, st.integers(1, 4), st.integers(6, 30))
def test_mixtures_of_few_fields_are_found(seed: int, rank: int, channels: int) -> None:
    target = mixed(channels, rank, seed)
    confidence = np.random.default_rng(seed).uniform(0, 1, SHAPE)
    solver = BilateralSolver(grid_of(seed), **EXACTLY)
    x, info = solver.solve(target, confidence, rank_tolerance=1e-12, return_info=True)
    assert info.rank <= rank
    np.testing.assert_allclose(x, solver.solve(target, confidence), atol=1e-4)


@given(seeds, st.sampled_from([0.3, 0.1, 0.01, 1e-3]), st.booleans())
def test_the_tolerance_bounds_the_lost_energy(seed: int, tolerance: float, holes: bool) -> None:
    # A solve never increases the confidence-weighted energy of a part of the target.
    rng = np.random.default_rng(seed)
    target = mixed(12, 5, seed) * (0.5 ** np.arange(12)) + rng.normal(0, 0.1, (*SHAPE, 12))
    confidence = rng.uniform(0, 1, SHAPE)
    if holes:
        confidence[rng.uniform(size=SHAPE) < 0.5] = 0
    solver = BilateralSolver(grid_of(seed), **EXACTLY)
    x, info = solver.solve(target, confidence, rank_tolerance=tolerance, return_info=True)
    w = confidence[..., np.newaxis]
    mean = (w * target).sum(axis=(0, 1)) / w.sum()
    lost = np.sum(w * (x - solver.solve(target, confidence)) ** 2)
    assert info.rank <= 12
    assert lost <= 1.001 * tolerance * np.sum(w * (target - mean) ** 2)


@given(seeds)
@example(29082)  # a seed with 1 % of changed labels
def test_probabilities_still_sum_to_one_and_keep_their_order_but_for_ties(seed: int) -> None:
    target, tolerance = probabilities(21, seed), 0.01
    solver = BilateralSolver(grid_of(seed), **EXACTLY)
    x, info = solver.solve(target, rank_tolerance=tolerance, return_info=True)
    assert info.rank <= 2
    np.testing.assert_allclose(x.sum(axis=2), 1, atol=1e-6)
    whole = solver.solve(target)
    # If errors e change the label from a to b, then a led by at most |e_a| + |e_b|.
    lead = whole.max(axis=2) - np.take_along_axis(whole, x.argmax(axis=2)[..., None], 2)[..., 0]
    spread = np.sum((target - target.mean(axis=(0, 1))) ** 2)
    assert np.sum(lead**2) <= 2 * 1.001 * tolerance * spread


@pytest.mark.parametrize("seed", range(10))
def test_low_rank_keeps_almost_all_labels(seed: int) -> None:
    target = probabilities(21, seed)
    solver = BilateralSolver(grid_of(seed), **EXACTLY)
    few, all_ = (solver.solve(target, rank_tolerance=rank) for rank in (0.01, None))
    assert np.mean(few.argmax(axis=2) == all_.argmax(axis=2)) >= 0.995


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_the_result_has_the_targets_dtype(dtype: str) -> None:
    target = (200 * probabilities(21, 0)).astype(dtype)
    solver = BilateralSolver(grid_of(0))
    x = solver.solve(target, rank_tolerance=0.01)
    assert x.dtype == np.dtype(dtype)
    error = x.astype(float) - solver.solve(target).astype(float)
    assert np.sqrt(np.mean(error**2)) <= 0.1 * np.std(target.astype(float))


def test_rank_of_every_kind_of_solve() -> None:
    solver = BilateralSolver(grid_of(0))
    noise = np.random.default_rng(0).normal(size=(*SHAPE, 9))
    for target, options, rank in [
        (noise, {}, 9),
        (noise, {"rank_tolerance": 0}, 9),
        (noise[..., 0], {}, 1),
        (noise[..., 0], {"rank_tolerance": 0.01}, 1),
        (noise[..., :2], {"rank_tolerance": 0.9}, 2),  # too few channels to gain anything
    ]:
        x, info = solver.solve(target, return_info=True, **options)
        assert info.rank == rank
        np.testing.assert_array_equal(x, solver.solve(target))


def test_channels_that_are_all_constant() -> None:
    target = np.broadcast_to(np.arange(9.0), (*SHAPE, 9))
    solver = BilateralSolver(grid_of(0))
    x, info = solver.solve(target, rank_tolerance=0.01, return_info=True)
    assert info.rank == 1
    np.testing.assert_allclose(x, target, atol=1e-12)


@given(seeds)
def test_unknown_pixels_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = probabilities(12, seed)
    unknown = rng.uniform(size=SHAPE) < 0.4
    one, two = target.copy(), target.copy()
    one[unknown] = np.nan
    two[unknown] = np.inf
    solver = BilateralSolver(grid_of(seed))
    x = solver.solve(one, rank_tolerance=0.01)
    assert np.isfinite(x).all()
    np.testing.assert_array_equal(x, solver.solve(two, rank_tolerance=0.01))


@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e20, 1e200])
def test_any_unit(unit: float) -> None:
    target = probabilities(12, 0)
    solver = BilateralSolver(grid_of(0), **EXACTLY)
    expected = solver.solve(target, rank_tolerance=0.01)
    x = solver.solve(target * unit, rank_tolerance=0.01)
    np.testing.assert_allclose(x / unit, expected, atol=1e-6)


def test_a_warm_start_at_the_solution_takes_fewer_steps() -> None:
    target = probabilities(12, 0)
    confidence = (np.random.default_rng(0).uniform(size=SHAPE) < 0.01).astype(float)
    solver = BilateralSolver(grid_of(0), tolerance=1e-5, max_iterations=3000)
    options: dict[str, Any] = {"rank_tolerance": 0.01, "return_info": True}
    x, cold = solver.solve(target, confidence, **options)
    again, warm = solver.solve(target, confidence, warm_start=x, **options)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(again, x, atol=1e-3)


def test_solve_takes_the_rank_tolerance() -> None:
    reference = np.zeros(SHAPE, np.uint8)
    target = probabilities(12, 0)
    x, info = bilateral.solve(reference, target, rank_tolerance=0.01, return_info=True)
    solver = BilateralSolver(BilateralGrid(reference))
    np.testing.assert_array_equal(x, solver.solve(target, rank_tolerance=0.01))
    assert info.rank < 12


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-0.1, ValueError),
        (1.0, ValueError),
        (np.nan, ValueError),
        ("x", TypeError),
        ([], TypeError),
    ],
)
def test_a_wrong_tolerance_is_named(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^rank_tolerance: expected"):
        BilateralSolver(grid_of(0)).solve(np.ones((*SHAPE, 9)), rank_tolerance=value)
