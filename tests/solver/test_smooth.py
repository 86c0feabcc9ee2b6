"""The option `smooth` filters a solution with the domain transform."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import bilateral
from bilateral import BilateralGrid, BilateralSolver, domain_transform
from support.strategies import Array, Problem, problems, white

PAIR = (4.0, 12.0)
REFERENCE = np.tile(np.uint8([20, 60, 200, 90]), (12, 6))
TARGET = np.random.default_rng(0).normal(size=REFERENCE.shape)


@pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
@given(problems(stiff=False))
def test_a_smooth_solve_is_filtered_by_its_reference(problem: Problem) -> None:
    x = problem.solve()
    expected = domain_transform(x, problem.reference, *PAIR, reference_max=white(problem.reference))
    np.testing.assert_array_equal(problem.solve(smooth=PAIR), expected)


@pytest.mark.parametrize("kind", ["solve", "solve_robust"])
@pytest.mark.parametrize("reference", [REFERENCE, REFERENCE * np.uint16(257), REFERENCE / 255])
def test_plain_and_robust_solves_are_filtered(kind: str, reference: Array) -> None:
    solver = BilateralSolver(BilateralGrid(reference))
    plain, expected = getattr(solver, kind)(TARGET, return_info=True)
    found, info = getattr(solver, kind)(TARGET, smooth=PAIR, return_info=True)
    np.testing.assert_array_equal(found, domain_transform(plain, reference, *PAIR))
    assert (info.iterations, info.residuals) == (expected.iterations, expected.residuals)


def test_the_filter_uses_the_grids_reference_max() -> None:
    reference = REFERENCE.astype(float)
    found = bilateral.solve(reference, TARGET, smooth=PAIR, reference_max=255)
    plain = bilateral.solve(reference, TARGET, reference_max=255)
    np.testing.assert_array_equal(found, domain_transform(plain, REFERENCE, *PAIR))


def test_integers_are_rounded_once() -> None:
    target = np.rint(100 + 20 * TARGET).astype(np.uint8)
    exact = bilateral.solve(REFERENCE, target, smooth=PAIR, dtype=np.float64)
    found = bilateral.solve(REFERENCE, target, smooth=PAIR)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, np.rint(exact))


def test_several_channels() -> None:
    target = np.dstack([TARGET, 2 * TARGET, -TARGET])
    found = bilateral.solve(REFERENCE, target, smooth=PAIR)
    for k in range(3):
        plain = bilateral.solve(REFERENCE, target[..., k], smooth=PAIR)
        np.testing.assert_allclose(found[..., k], plain, atol=0.01)


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (4, TypeError, "4"),
        ((4,), TypeError, "(4,)"),
        ((4, 4, 4), TypeError, "(4, 4, 4)"),
        ("44", TypeError, "'44'"),
        ((0, 4), ValueError, "smooth[0]"),
        ((4, -1), ValueError, "smooth[1]"),
        ((4, np.nan), ValueError, "nan"),
        ((4, "4"), TypeError, "smooth[1]"),
    ],
)
def test_a_wrong_value_of_smooth_is_named(value: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=r"^smooth") as caught:
        bilateral.solve(REFERENCE, TARGET, smooth=value)
    assert told in str(caught.value)
