"""Callbacks: called after every step; they may end a solve, raise errors and solve."""

from dataclasses import replace

import numpy as np
import pytest

from bilateral import BilateralSolver
from support.photo_problem import assert_close, photo
from support.strategies import Array


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
def test_a_callback_that_returns_true_ends_the_solve(last: int, channels: tuple[int, ...]) -> None:
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
    grid = problem.grid()
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
