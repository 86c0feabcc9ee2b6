"""The notebook's classes against its algorithm, written with SciPy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import linalg

from bilateral import compat
from oracles import reference as oracle

Array = NDArray[Any]
PARAMS = {"lam": 128, "A_diag_min": 1e-5, "cg_tol": 1e-5, "cg_maxiter": 25}
SIGMAS = (7, 4, 4)


def notebook_cells(image: Array, sigma_spatial: float, luma: float, chroma: float) -> Array:
    """Cells x, y, l, u, v as the notebook rounds them: towards zero, in double precision."""
    yuv = np.tensordot(image, oracle.RGB_TO_YUV, ([2], [1])) + np.array([0, 128.0, 128.0])
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    cells = [x / sigma_spatial, y / sigma_spatial, yuv[..., 0] / luma]
    cells += [yuv[..., 1] / chroma, yuv[..., 2] / chroma]
    return np.dstack(cells).reshape(-1, 5).astype(np.int64)


def smooth(grid: oracle.Grid, x: Array, w: Array, lam: float, steps: int) -> Array:
    """Conjugate gradients from the mean of each vertex, by SciPy."""
    A, b, Sc = oracle.system(grid, x, w, lam)
    start = oracle.flat_start(grid, b, Sc)
    M = linalg.LinearOperator(A.shape, matvec=oracle.jacobi(A))
    columns = [
        linalg.cg(A, b[:, k], x0=start[:, k], M=M, maxiter=steps, rtol=1e-5)[0]
        for k in range(b.shape[1])
    ]
    return np.asarray(grid.S.T @ np.stack(columns, axis=1))


def test_vertices_are_the_notebooks(image: Array) -> None:
    cells = notebook_cells(image, *SIGMAS)
    grid = compat.BilateralGrid(image, *SIGMAS)
    assert (grid.npixels, grid.dim) == (len(cells), 5)
    assert grid.nvertices == len(np.unique(cells, axis=0))
    _, vertex = np.unique(cells, axis=0, return_inverse=True)
    ours = grid.slice(np.arange(grid.nvertices))
    for i in range(grid.nvertices):
        assert len(np.unique(ours[vertex.ravel() == i])) == 1


def test_operators_are_the_notebooks(image: Array) -> None:
    grid = compat.BilateralGrid(image, *SIGMAS)
    rng = np.random.default_rng(0)
    x, y = rng.random((grid.npixels, 2)), rng.random(grid.nvertices)
    np.testing.assert_allclose(grid.splat(x), grid.S @ x)
    np.testing.assert_array_equal(grid.slice(y), grid.S.T @ y)
    expected = 10 * y + sum(blur @ y for blur in grid.blurs)
    np.testing.assert_allclose(grid.blur(y), expected)
    ones = np.ones_like(x)
    blurred = [grid.S.T @ grid.blur(grid.S @ v) for v in (x, ones)]
    np.testing.assert_allclose(grid.filter(x), blurred[0] / blurred[1])


def test_bistochastize_makes_rows_sum_to_m(image: Array) -> None:
    grid = compat.BilateralGrid(image, *SIGMAS)
    Dn, Dm = compat.bistochastize(grid)
    n, m = Dn.diagonal(), Dm.diagonal()
    np.testing.assert_allclose(m, n * grid.blur(n))
    np.testing.assert_allclose(m, grid.splat(np.ones(grid.npixels)), rtol=0.01)
    solver = compat.BilateralSolver(grid, PARAMS)
    np.testing.assert_array_equal(solver.Dn.diagonal(), n)
    np.testing.assert_array_equal(solver.Dm.diagonal(), m)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("steps", [3, 25])
def test_solutions_are_the_notebooks(image: Array, channels: int, steps: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((image.shape[0] * image.shape[1], channels))
    w = rng.random((len(x), 1)) + 0.01
    truth = oracle.grid_from_coordinates(notebook_cells(image, *SIGMAS), "uniform")
    expected = smooth(truth, x, w, 128, steps)
    grid = compat.BilateralGrid(image, *SIGMAS)
    params = {**PARAMS, "cg_maxiter": steps}
    found = compat.BilateralSolver(grid, params).solve(x, w)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    flat = compat.BilateralSolver(grid, params).solve(x, w[:, 0])
    np.testing.assert_array_equal(flat, found)


def test_values_far_from_zero_keep_their_digits(image: Array) -> None:
    """Such values are solved in double precision, others in single precision."""
    rng = np.random.default_rng(3)
    grid = compat.BilateralGrid(image, *SIGMAS)
    x, w = rng.random((grid.npixels, 1)), rng.random((grid.npixels, 1)) + 0.01
    solver = compat.BilateralSolver(grid, PARAMS)
    near, far = solver.solve(x, w), solver.solve(x + 1e9, w)
    np.testing.assert_allclose(far - 1e9, near, atol=5e-6)
    assert near.dtype == far.dtype == np.float64


def test_no_confidence_gives_finite_values_in_the_range(image: Array) -> None:
    grid = compat.BilateralGrid(image, *SIGMAS)
    x = np.random.default_rng(2).random((grid.npixels, 1))
    w = np.zeros_like(x)
    w[:40] = 1
    found = compat.BilateralSolver(grid, PARAMS).solve(x, w)
    assert np.isfinite(found).all()
    assert x[:40].min() - 1e-9 <= found.min() <= found.max() <= x[:40].max() + 1e-9


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"im: expected an RGB image"):
        compat.BilateralGrid(np.zeros((4, 5)))
    grid = compat.BilateralGrid(np.zeros((4, 5, 3)))
    with pytest.raises(ValueError, match=r"params: expected the key 'lam'"):
        compat.BilateralSolver(grid, {"cg_maxiter": 25})
    solver = compat.BilateralSolver(grid, PARAMS)
    with pytest.raises(ValueError, match=r"x: expected shape \(20,\) or \(20, K\)"):
        solver.solve(np.zeros((4, 5)), np.ones((20, 1)))
    with pytest.raises(ValueError, match=r"w: expected one confidence per pixel"):
        solver.solve(np.zeros((20, 1)), np.ones((20, 2)))
    with pytest.raises(ValueError, match=r"im: .*finite"):
        compat.BilateralGrid(np.full((4, 5, 3), np.nan))
