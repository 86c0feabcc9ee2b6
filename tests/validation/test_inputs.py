"""Inputs of any memory layout and dtype; results of the target's shape and dtype."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver
from support.layouts import LAYOUTS
from support.strategies import Problem, problems, white

may_stop_early = pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_a_reference_of_any_layout(channels: tuple[int, ...], dtype: str, layout: str) -> None:
    rng = np.random.default_rng(0)
    white = {"uint8": 255, "uint16": 65535}.get(dtype, 1)
    reference = (white * rng.uniform(size=(11, 14, *channels))).astype(dtype)
    expected = BilateralGrid(reference, sigma_xy=3).coordinates()
    grid = BilateralGrid(LAYOUTS[layout](reference), sigma_xy=3)
    np.testing.assert_array_equal(grid.coordinates(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
@pytest.mark.parametrize("channels", [(), (1,), (2,), (9,)])
def test_a_target_a_confidence_and_a_warm_start_of_any_layout(
    channels: tuple[int, ...], dtype: str, layout: str
) -> None:
    rng = np.random.default_rng(0)
    solver = BilateralSolver(BilateralGrid(rng.uniform(size=(11, 14)), sigma_xy=3, sigma_luma=64))
    target = (100 * rng.normal(size=(11, 14, *channels))).astype(dtype)
    confidence, warm_start = rng.uniform(size=(11, 14)), rng.normal(size=target.shape)
    expected = solver.solve(target, confidence, warm_start=warm_start)
    change = LAYOUTS[layout]
    x = solver.solve(change(target), change(confidence), warm_start=change(warm_start))
    assert x.dtype == change(target).dtype
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_splat_slice_and_blur_of_any_layout(layout: str) -> None:
    rng = np.random.default_rng(0)
    grid = BilateralGrid(rng.uniform(size=(11, 14)), sigma_xy=3, sigma_luma=64)
    pixels, vertices = rng.normal(size=(11, 14, 3)), rng.normal(size=(grid.n_vertices, 3))
    change = LAYOUTS[layout]
    np.testing.assert_array_equal(grid.splat(change(pixels)), grid.splat(pixels))
    np.testing.assert_array_equal(grid.slice(change(vertices)), grid.slice(vertices))
    np.testing.assert_array_equal(grid.blur(change(vertices)), grid.blur(vertices))


@may_stop_early
@given(problems(12))
def test_mirrored_inputs_give_another_grid_but_a_consistent_one(problem: Problem) -> None:
    # Views with negative strides are read in index order, not in memory order.
    flipped = Problem(
        problem.reference[::-1, ::-1],
        problem.target[::-1, ::-1],
        None if problem.confidence is None else problem.confidence[::-1, ::-1],
        problem.smoothness,
        problem.options,
    )
    copied = Problem(
        flipped.reference.copy(),
        flipped.target.copy(),
        None if flipped.confidence is None else flipped.confidence.copy(),
        problem.smoothness,
        problem.options,
    )
    np.testing.assert_array_equal(flipped.solve(), copied.solve())


def test_lists_and_numbers() -> None:
    reference, target = [[0.0, 0.1], [0.9, 1.0]], [[1, 2], [3, 4]]
    confidence = [[1, 0], [True, 2.5]]
    x = bilateral.solve(reference, target, confidence)
    expected = bilateral.solve(*(np.array(a) for a in (reference, target, confidence)))
    assert x.dtype == np.array(target).dtype
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "float32", "float64"])
def test_a_confidence_of_any_dtype(dtype: str) -> None:
    rng = np.random.default_rng(0)
    reference, target = rng.uniform(size=(10, 12)), rng.normal(size=(10, 12))
    confidence = rng.integers(0, 2, (10, 12)).astype(dtype)
    x = bilateral.solve(reference, target, confidence)
    np.testing.assert_array_equal(
        x, bilateral.solve(reference, target, confidence.astype(np.float64))
    )
    with_axis = bilateral.solve(reference, target, confidence[..., np.newaxis])
    np.testing.assert_array_equal(x, with_axis)


@pytest.mark.parametrize("dtype", ["float16", "longdouble"])
def test_references_of_other_floating_point_dtypes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    reference = rng.uniform(size=(10, 12, 3)).astype(np.float16)
    expected = BilateralGrid(reference.astype(np.float64)).coordinates()
    np.testing.assert_array_equal(BilateralGrid(reference.astype(dtype)).coordinates(), expected)


# Results


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("channels", [(), (1,), (2,)])
def test_integers_come_back_rounded(channels: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    reference = rng.uniform(size=(10, 12))
    target = rng.integers(0, 100, (10, 12, *channels)).astype(dtype)
    options = {"sigma_xy": 3, "sigma_luma": 128}
    x = bilateral.solve(reference, target, **options)
    assert x.shape == target.shape
    assert x.dtype == dtype
    real = bilateral.solve(reference, target, dtype=np.float64, **options)
    assert real.dtype == np.float64
    assert np.abs(real - np.rint(real)).max() > 0.1
    off = np.abs(x.astype(np.float64) - real)  # nearest, up to the precision of the solve
    assert off.max() <= 0.5 + 1e-3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ">f4"])
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_floats_come_back_as_they_came(channels: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    reference, target = rng.uniform(size=(10, 12)), rng.normal(size=(10, 12, *channels))
    x = bilateral.solve(reference, target.astype(dtype), tolerance=1e-5)
    assert x.shape == target.shape
    assert x.dtype == np.dtype(dtype)
    expected = bilateral.solve(reference, target.astype(dtype).astype(float), tolerance=1e-5)
    np.testing.assert_allclose(x.astype(float), expected, atol=1e-2 if "16" in dtype else 1e-4)


def test_masks_come_back_as_masks() -> None:
    reference = np.zeros((12, 12), np.uint8)
    reference[:, 6:] = 200
    target = reference > 100
    target[3, 3] = True
    x = bilateral.solve(reference, target)
    assert x.dtype == bool
    np.testing.assert_array_equal(x, reference > 100)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_constants_at_the_ends_of_an_integer_type(dtype: str) -> None:
    reference = np.random.default_rng(0).uniform(size=(8, 9))
    # Beyond 2^53 not every integer is a float64.
    for value in max(np.iinfo(dtype).min, -(2**53)), min(np.iinfo(dtype).max, 2**53):
        x = bilateral.solve(reference, np.full((8, 9), value, dtype))
        assert x.dtype == dtype
        np.testing.assert_array_equal(x, value)


@pytest.mark.parametrize("value", [2**24 + 1, 2**31 - 1, -(2**31), 123_456_789])
@pytest.mark.parametrize("options", [{}, {"method": "paper"}, {"tolerance": 1e-6}])
def test_integers_beyond_float32_are_exact(value: int, options: dict[str, Any]) -> None:
    reference = np.random.default_rng(0).integers(0, 256, (20, 30, 3)).astype(np.uint8)
    x = bilateral.solve(reference, np.full((20, 30), value, np.int32), **options)
    np.testing.assert_array_equal(x, value)


@pytest.mark.parametrize("given_", ["uint8", "int64", "float32", "float64"])
@pytest.mark.parametrize("wanted", ["bool", "uint8", "int16", "float16", "float32", "float64"])
def test_dtype_overrides_the_targets(wanted: str, given_: str) -> None:
    rng = np.random.default_rng(0)
    reference = rng.uniform(size=(10, 12))
    target = rng.integers(0, 2, (10, 12)).astype(given_)
    x = bilateral.solve(reference, target, dtype=wanted, tolerance=1e-5)
    assert x.dtype == wanted
    real = bilateral.solve(reference, target.astype(np.float64), tolerance=1e-5)
    if wanted == "bool" or "int" in wanted:
        real = np.rint(real)
    np.testing.assert_allclose(x.astype(float), real, atol=1e-3)


def test_dtype_of_a_solver_object_and_out_of_range_results() -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros((4, 4), np.uint8)))
    for value, expected in ((-7.0, 0), (3.5, 4), (300.0, 255)):
        x = solver.solve(np.full((4, 4), value), dtype=np.uint8)
        np.testing.assert_array_equal(x, np.full((4, 4), expected, np.uint8))


@may_stop_early
@given(problems(12), st.sampled_from(["float32", "float64"]))
def test_inputs_are_never_modified(problem: Problem, dtype: str) -> None:
    ones = np.ones(problem.target.shape[:2])
    given_ = {
        "reference": problem.reference,
        "target": problem.target.astype(dtype),
        "confidence": ones if problem.confidence is None else problem.confidence.astype(dtype),
        "warm_start": np.ones(problem.target.shape, dtype),
    }
    before = {name: array.copy() for name, array in given_.items()}
    options = problem.options | {"reference_max": white(problem.reference)}
    x = bilateral.solve(**given_, smoothness=problem.smoothness, **options)
    for name, array in given_.items():
        np.testing.assert_array_equal(array, before[name])
        assert not np.shares_memory(x, array)


def test_a_result_is_writable_and_shares_no_memory() -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros((6, 6), np.uint8), sigma_xy=2))
    target = np.random.default_rng(0).normal(size=(6, 6))
    first = solver.solve(target)
    kept = first.copy()
    second = solver.solve(-target)
    np.testing.assert_array_equal(first, kept)
    second[...] = 0
    np.testing.assert_array_equal(solver.solve(target), kept)


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize("tiny", [1e-36, 1e-39, 1e-44])
def test_tiny_confidences_do_no_harm(tiny: float, preconditioner: str) -> None:
    photo = np.zeros((8, 16), np.uint8)
    photo[:, 8:] = 200
    target = np.where(photo > 0, 40, 5).astype(np.float32)
    confidence = np.where(photo > 0, 0, 1).astype(np.float32)
    confidence[3, 12] = tiny
    x = bilateral.solve(photo, target, confidence, smoothness=64, preconditioner=preconditioner)
    assert ((x > 4.99) & (x < 40.01)).all()
