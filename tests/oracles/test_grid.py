"""The oracle's colours, cells, splat, slice and blur, compared with counts by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.reference import (
    grid_coordinates,
    grid_from_coordinates,
    yuv,
)
from oracles.tiny_problems import Problem, affinity, problems

# Colors and cells


def test_gray_values_as_rgb_fall_in_the_cells_of_their_grey_level() -> None:
    k = np.arange(256)
    reference = np.repeat(k[None, :, None], 3, axis=2).astype(np.uint8)
    x, y, luma, u, v = grid_coordinates(reference, 8, 8, 8).T
    np.testing.assert_array_equal(x, k // 8)
    np.testing.assert_array_equal(y, 0)
    np.testing.assert_array_equal(luma, k // 8)
    np.testing.assert_array_equal(u, 16)
    np.testing.assert_array_equal(v, 16)


def test_cells_of_a_small_gray_image() -> None:
    reference = np.array([[0, 7, 8], [9, 16, 255]], dtype=np.uint8)
    expected = [[0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1], [0, 0, 2], [1, 0, 31]]
    np.testing.assert_array_equal(grid_coordinates(reference, 2, 8, 8), expected)
    assert grid_coordinates(reference, 2, 8, 8).dtype == np.int64


def test_cells_use_each_sigma_for_its_own_columns() -> None:
    reference = np.zeros((4, 1, 3), dtype=np.uint8)
    reference[3] = [255, 0, 0]
    *_, last = grid_coordinates(reference, 1.5, 10, 50)
    np.testing.assert_array_equal(last, [0, 2, 7, 1, 5])


@pytest.mark.parametrize("columns", [(0,), (0, 1, 2)])
def test_negative_cells_are_shifted_to_start_at_0(columns: tuple[int, ...]) -> None:
    reference = np.array([[[-0.2, -0.3, 0.3], [0.9, 2.0, -0.1], [1.8, -0.3, 2.0]]])[..., columns]
    cells = grid_coordinates(reference, 1, 8, 8)
    raw = np.floor(yuv(reference)[0] / 8 + 1e-9)
    assert (raw < 0).any()
    np.testing.assert_array_equal(cells[:, 2:], raw - np.minimum(raw.min(axis=0), 0))


def test_yuv_of_primaries() -> None:
    rgb = np.eye(3)[None] * 255
    expected = [[76.245, 84.97232, 255.5], [149.685, 43.52768, 21.23456], [29.07, 255.5, 107.26544]]
    np.testing.assert_allclose(yuv(rgb.astype(np.uint8))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (4, 5, 3)])
def test_yuv_of_every_type_agrees(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    expected = yuv(image)
    assert expected.shape == (4, 5, 3 if shape[2:] == (3,) else 1)
    np.testing.assert_allclose(yuv(image.astype(np.uint16) * np.uint16(257)), expected, rtol=1e-12)
    np.testing.assert_allclose(yuv(image / 255), expected, rtol=1e-12)
    np.testing.assert_allclose(yuv(image * 4.0, 1020), expected, rtol=1e-12)


# The grid


@given(problems())
def test_vertices_are_the_distinct_cells_sorted_by_y_x_and_range(problem: Problem) -> None:
    vertices = [tuple(v) for v in problem.grid.V.tolist()]
    assert vertices == sorted(set(problem.cells), key=lambda v: (v[1], v[0], *v[2:]))


@given(problems(), st.integers(0, 2**32 - 1))
def test_splat_sums_each_cells_pixels_and_slice_is_its_adjoint(problem: Problem, seed: int) -> None:
    grid, rng = problem.grid, np.random.default_rng(seed)
    x, y = rng.normal(size=len(problem.cells)), rng.normal(size=len(grid.V))
    vertex = {tuple(v): i for i, v in enumerate(grid.V.tolist())}
    sliced = np.array([y[vertex[cell]] for cell in problem.cells])
    np.testing.assert_array_equal(grid.S.T @ y, sliced)
    np.testing.assert_allclose((grid.S @ x) @ y, x @ sliced, atol=1e-12)


@given(problems())
def test_blur_joins_vertices_one_step_apart(problem: Problem) -> None:
    grid = problem.grid
    B, D = grid.B.toarray(), grid.V.shape[1]
    names = {"paper": (2, 1, 1 / 8), "uniform": (2 * D, 1, 1)}
    blur = problem.options["blur"]
    centre, space, range_ = names.get(blur, blur)
    for i, v in enumerate(grid.V):
        for j, w in enumerate(grid.V):
            in_space, in_range = np.abs(v - w)[:2].sum(), np.abs(v - w)[2:].sum()
            weights = {(0, 0): centre, (1, 0): space, (0, 1): range_}
            assert B[i, j] == weights.get((in_space, in_range), 0)


def test_grid_of_a_volume_with_one_range_column() -> None:
    cells = np.array([[0, 0, 1, 5], [1, 0, 0, 5], [0, 1, 0, 5], [0, 0, 0, 5], [0, 0, 0, 6]])
    grid = grid_from_coordinates(cells, "paper", n_space=3)
    np.testing.assert_array_equal(grid.V, cells[[3, 4, 1, 2, 0]])
    first = [2, 1 / 8, 1, 1, 1]
    np.testing.assert_array_equal(grid.B.toarray()[0], first)
    np.testing.assert_array_equal(grid.B.toarray()[1:, 1:], 2 * np.eye(4))


@given(problems())
def test_affinity_is_bistochastic_and_symmetric(problem: Problem) -> None:
    grid = problem.grid
    W = affinity(grid)
    assert W.min() >= 0
    np.testing.assert_allclose(W, W.T, rtol=1e-12)
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose((grid.S @ grid.S.T).toarray(), np.diag(grid.m), rtol=1e-10)
    # Exactly, even if the iteration has not converged: a constant has no smoothness term.
    np.testing.assert_array_equal(grid.m, grid.n * (grid.B @ grid.n))
