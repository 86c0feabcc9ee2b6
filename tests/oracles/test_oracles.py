"""The oracle against the paper's pixel-space problem, built densely, and against hand counts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oracles.reference import (
    Array,
    Grid,
    Image,
    Mask,
    collapse,
    direct_solve,
    flat_start,
    grid_coordinates,
    grid_from_coordinates,
    has_data,
    image_grid,
    jacobi,
    lift,
    pcg,
    pyramid_preconditioner,
    pyramid_start,
    solve,
    solve_paper,
    system,
    yuv,
)
from support.examples import examples

BLURS = ["paper", "uniform", (3.0, 0.5, 0.25), (2.0, 1.0, 0.0)]


@dataclass
class Problem:
    """A tiny image with everything `solve` takes."""

    reference: Image
    target: Array
    confidence: Array | None
    smoothness: float
    options: dict[str, Any]

    @property
    def grid(self) -> Grid:
        """The oracle's grid."""
        return image_grid(self.reference, **self.options)

    @property
    def cells(self) -> list[tuple[int, ...]]:
        """Each pixel's cell (x, y, l[, u, v])."""
        sigmas = [self.options[f"sigma_{name}"] for name in ("xy", "luma", "chroma")]
        return [tuple(row) for row in grid_coordinates(self.reference, *sigmas).tolist()]

    @property
    def data(self) -> tuple[Array, Array]:
        """Vectors c (n_pixels) and t (n_pixels, K), both 0 where the target is not finite."""
        n_pixels = self.reference.shape[0] * self.reference.shape[1]
        t = self.target.reshape(n_pixels, -1).copy()
        c = np.ones(n_pixels) if self.confidence is None else self.confidence.reshape(-1).copy()
        for i in range(n_pixels):
            if not all(np.isfinite(value) for value in t[i]):
                c[i], t[i] = 0, 0
        return c, t


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    channels: tuple[int, ...] = draw(st.sampled_from([(), (1,), (3,)]))
    levels = draw(st.sampled_from([st.integers(0, 255), st.sampled_from([0, 40, 250])]))
    reference = draw(hnp.arrays(np.uint8, shape + channels, elements=levels))
    value = st.floats(-10, 10, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])
    target = draw(hnp.arrays(np.float64, shape + draw(st.sampled_from([(), (2,)])), elements=value))
    weight = st.sampled_from([0.0, 0.0, 0.1, 1.0, 7.5])
    confidence = draw(st.none() | hnp.arrays(np.float64, shape, elements=weight))
    seen = draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))
    target[seen] = draw(st.floats(-10, 10, width=32))
    if confidence is not None:
        confidence[seen] = 1.0
    options = {
        "sigma_xy": draw(st.sampled_from([1, 1.5, 2, 8])),
        "sigma_luma": draw(st.sampled_from([8, 40, 300])),
        "sigma_chroma": draw(st.sampled_from([8, 40, 300])),
        "blur": draw(st.sampled_from(BLURS)),
    }
    return Problem(reference, target, confidence, draw(st.sampled_from([0.1, 4, 128])), options)


def photo() -> Problem:
    """Return a fixed problem: 2 channels, sparse data, components with and without data."""
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 32, (12, 14)).astype(np.uint8)
    reference[3:9, 5:] = 56
    reference[9:, :4] = 250
    confidence = rng.uniform(0, 2, (12, 14)) * (rng.uniform(size=(12, 14)) < 0.3)
    confidence[reference >= 32] = 0
    target = rng.normal(size=(12, 14, 2))
    options = {"sigma_xy": 2, "sigma_luma": 16, "sigma_chroma": 16, "blur": "paper"}
    return Problem(reference, target, confidence, 4.0, options)


def affinity(grid: Grid) -> Array:
    """Return W-hat of Eq. 4, a dense (n_pixels, n_pixels) matrix."""
    S, B = grid.S.toarray(), grid.B.toarray()
    D = np.diag(grid.n / grid.m)
    return np.asarray(S.T @ D @ B @ D @ S)


def connected(W: Array, c: Array) -> Mask:
    """Mark the pixels that reach a pixel with confidence along positive affinities."""
    reach = np.linalg.matrix_power((W > 0).astype(float), len(W)) > 0
    return np.array([bool(np.any(c[row] > 0)) for row in reach])


def pixel_loss(W: Array, x: Array, c: Array, t: Array, smoothness: float) -> Array:
    """Eq. 1, per channel."""
    difference = x[:, None, :] - x[None, :, :]
    smooth = np.einsum("ij,ijk->k", W, difference**2)
    return np.asarray(smoothness / 2 * smooth + c @ (x - t) ** 2)


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
    # Exactly, whatever is left of the iteration: the smoothness term of a constant is 0.
    np.testing.assert_array_equal(grid.m, grid.n * (grid.B @ grid.n))


# The system


@given(problems())
def test_system_is_symmetric_and_definite_exactly_where_there_is_data(problem: Problem) -> None:
    grid = problem.grid
    A, _, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    A, active = A.toarray(), has_data(grid, Sc)
    np.testing.assert_allclose(A, A.T, rtol=1e-14)
    assert np.linalg.eigvalsh(A).min() > -1e-12 * np.abs(A).max()
    assert np.linalg.eigvalsh(A[active][:, active]).min() > 1e-8 * np.abs(A).max()
    # Without data a constant is free: the rows sum to 0.
    np.testing.assert_allclose(A[~active].sum(axis=1), 0, atol=1e-12 * np.abs(A).max())
    np.testing.assert_array_equal(A[~active][:, active], 0)


@given(problems())
def test_active_vertices_hold_the_pixels_connected_to_data(problem: Problem) -> None:
    grid, (c, _) = problem.grid, problem.data
    active = has_data(grid, grid.S @ c)
    np.testing.assert_array_equal(active @ grid.S, connected(affinity(grid), c))


@given(problems())
def test_quadratic_form_is_half_the_pixel_loss(problem: Problem) -> None:
    # Eq. 6 drops a factor of 2 from Eq. 1; at any y, not only at the solution.
    grid, (c, t) = problem.grid, problem.data
    A, b, _ = system(grid, problem.target, problem.confidence, problem.smoothness)
    y = np.random.default_rng(0).normal(size=b.shape)
    constant = 0.5 * c @ t**2
    form = 0.5 * np.sum(y * (A @ y), axis=0) - np.sum(b * y, axis=0) + constant
    loss = pixel_loss(affinity(grid), grid.S.T @ y, c, t, problem.smoothness)
    np.testing.assert_allclose(2 * form, loss, rtol=1e-9, atol=1e-9 * (1 + constant.max()))


@given(problems())
def test_solution_minimizes_the_pixel_loss_over_sliced_vectors(problem: Problem) -> None:
    # Eq. 1 as a dense least-squares problem in y, with x = S^T y: one row for each pair of pixels,
    # one for each pixel. Regions without data have no unique minimizer and are left out.
    grid, (c, t) = problem.grid, problem.data
    W, slice_, smoothness = affinity(grid), grid.S.T.toarray(), problem.smoothness
    pairs = (slice_[:, None] - slice_[None]) * np.sqrt(smoothness / 2 * W)[..., None]
    rows = np.concatenate([pairs.reshape(-1, slice_.shape[1]), np.sqrt(c)[:, None] * slice_])
    right = np.concatenate([np.zeros((W.size, t.shape[1])), np.sqrt(c)[:, None] * t])
    expected = slice_ @ np.linalg.lstsq(rows, right, rcond=1e-12)[0]

    x = solve(
        problem.reference,
        problem.target,
        problem.confidence,
        smoothness=smoothness,
        **problem.options,
    )
    assert x.shape == problem.target.shape
    assert np.isfinite(x).all()
    near, x = connected(W, c), x.reshape(t.shape)
    np.testing.assert_allclose(x[near], expected[near], rtol=1e-7, atol=1e-7)
    gradient = grid.S @ (smoothness * (x - W @ x) + c[:, None] * (x - t))
    scale = smoothness * grid.m.max() + c.sum()
    np.testing.assert_allclose(gradient[has_data(grid, grid.S @ c)], 0, atol=1e-9 * scale)


@given(problems())
def test_solution_is_the_pixel_minimizer_when_each_vertex_has_one_target(problem: Problem) -> None:
    # If c = S^T c_v and t = S^T t_v, then with x = S^T y and S S^T = D_m
    #   (lambda (I - W-hat) + diag(c)) x - c t = S^T D_m^-1 (A y - b),
    # so the minimizer of Eq. 1 over all x, not only over slices, is S^T A^-1 b.
    grid, (c, t) = problem.grid, problem.data
    first = grid.S.toarray().argmax(axis=1)
    c, t = grid.S.T @ c[first], grid.S.T @ t[first]
    c[grid.S[[0]].toarray()[0] > 0] += 1
    A, b, Sc = system(grid, t, c, problem.smoothness)
    x = grid.S.T @ direct_solve(grid, A, b, Sc)
    W = affinity(grid)
    near = connected(W, c)
    H = problem.smoothness * (np.eye(len(W)) - W) + np.diag(c)
    expected = np.linalg.solve(H[near][:, near], (c[:, None] * t)[near])
    np.testing.assert_allclose(x[near], expected, rtol=1e-7, atol=1e-7)


def test_two_targets_on_one_vertex_by_hand() -> None:
    # One vertex, c = 1: over slices x = mean(t) = 1/2, whatever lambda. Over all x the minimizer
    # is x_i = (lambda mean(x) + t_i) / (lambda + 1), which is not a slice.
    reference, target = np.zeros((1, 2), dtype=np.uint8), np.array([[0.0, 1.0]])
    np.testing.assert_allclose(solve(reference, target, smoothness=4), [[0.5, 0.5]])
    W = affinity(image_grid(reference))
    np.testing.assert_allclose(W, np.full((2, 2), 0.5))
    free = np.linalg.solve(4 * (np.eye(2) - W) + np.eye(2), target[0])
    np.testing.assert_allclose(free, [0.4, 0.6])


def test_two_vertices_by_hand() -> None:
    # Two neighbours with one pixel each: n^2 (2 + 1) = 1, so A = lambda/3 [[1, -1], [-1, 1]] + I.
    reference, target = np.zeros((1, 2), dtype=np.uint8), np.array([[0.0, 1.0]])
    x = solve(reference, target, smoothness=3, sigma_xy=1)
    np.testing.assert_allclose(x, [[1 / 3, 2 / 3]])
    x = solve(reference, target, np.array([[0.0, 5.0]]), smoothness=3, sigma_xy=1)
    np.testing.assert_allclose(x, [[1, 1]])


@given(problems(), st.floats(-100, 100))
def test_constants_are_preserved(problem: Problem, value: float) -> None:
    target = np.where(np.isfinite(problem.target), value, np.nan)
    for solver in (solve, solve_paper):
        x = solver(problem.reference, target, problem.confidence, smoothness=4, **problem.options)
        np.testing.assert_allclose(x, value, rtol=1e-9, atol=1e-12)


def test_non_finite_targets_never_matter() -> None:
    problem = photo()
    bad = np.random.default_rng(1).uniform(size=problem.target.shape[:2]) < 0.3
    assert problem.confidence is not None
    assert np.any(problem.confidence[bad] > 0)
    target = problem.target.copy()
    target[bad, 0] = np.resize([np.nan, np.inf, -np.inf], int(bad.sum()))
    seen = np.where(bad, 0, problem.confidence)
    for solver in (solve, solve_paper):
        x = solver(problem.reference, target, problem.confidence, **problem.options)
        expected = solver(problem.reference, problem.target, seen, **problem.options)
        np.testing.assert_array_equal(x, expected)


def test_no_confidence_means_one() -> None:
    problem = photo()
    ones = np.ones(problem.target.shape[:2])
    x = solve(problem.reference, problem.target, **problem.options)
    expected = solve(problem.reference, problem.target, ones, **problem.options)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("solver", [solve, solve_paper])
def test_defaults(solver: Any) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 60, (20, 20, 3)).astype(np.uint8)
    target = rng.normal(size=(20, 20))
    sigmas = {"sigma_xy": 8, "sigma_luma": 8, "sigma_chroma": 8}
    expected = solver(reference, target, smoothness=4.0, blur="paper", **sigmas)
    np.testing.assert_array_equal(solver(reference, target), expected)


@pytest.mark.parametrize("solver", [solve, solve_paper])
def test_no_data_and_no_smoothness_are_errors(solver: Any) -> None:
    reference, target = np.zeros((2, 3), dtype=np.uint8), np.ones((2, 3))
    with pytest.raises(ValueError, match="no data"):
        solver(reference, target, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no data"):
        solver(reference, np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="smoothness"):
        solver(reference, target, smoothness=0)


# The pyramid


def dense_pyramid(grid: Grid) -> list[Array]:
    """Return each level as a 0/1 matrix (n_level, n_vertices), from the cells V // 2^k."""
    levels = []
    for k in range(len(grid.levels) + 1):
        parents = [(y >> k, x >> k, *(c >> k for c in color)) for x, y, *color in grid.V.tolist()]
        distinct = sorted(set(parents))
        levels.append(np.array([[float(d == parent) for parent in parents] for d in distinct]))
    return levels


@given(problems(), st.integers(0, 2**32 - 1))
def test_collapse_is_the_adjoint_of_lift(problem: Problem, seed: int) -> None:
    grid, rng = problem.grid, np.random.default_rng(seed)
    y = rng.normal(size=len(grid.V))
    lifted = lift(grid, y)
    z = [rng.normal(size=len(level)) for level in lifted]
    inner = sum(float(a @ b) for a, b in zip(lifted, z, strict=True))
    np.testing.assert_allclose(inner, y @ collapse(grid, z), atol=1e-10)


@given(problems())
def test_pyramid_halves_cells_until_one_is_left(problem: Problem) -> None:
    grid = problem.grid
    sizes = [len(grid.V), *(S_k.shape[0] for S_k in grid.levels)]
    assert sizes[-1] == 1
    assert 1 not in sizes[:-1]
    y = np.random.default_rng(0).normal(size=len(grid.V))
    for level, z in zip(dense_pyramid(grid), lift(grid, y), strict=True):
        np.testing.assert_allclose(z, level @ y, atol=1e-12)


@given(problems())
def test_starts_and_preconditioners_are_the_papers(problem: Problem) -> None:
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    top, bottom, M = np.zeros_like(b), np.zeros_like(Sc), np.zeros(A.shape)
    diagonal = A.diagonal()
    for k, P in enumerate(dense_pyramid(grid)):
        counts = P.sum(axis=1)
        top += (1 if k == 0 else 4.0**-k) * P.T @ (P @ b / counts[:, None])
        bottom += (1 if k == 0 else 4.0**-k) * P.T @ (P @ Sc / counts)
        inverse = [n / d if d > 0 else 0 for n, d in zip(counts, P @ diagonal, strict=True)]
        M += (1 if k == 0 else 2.0 ** -(5 + k)) * P.T @ np.diag(inverse) @ P
    hier = top / bottom[:, None]
    np.testing.assert_allclose(pyramid_start(grid, b, Sc), hier, rtol=1e-10, atol=1e-12)
    flat = np.array([b[i] / Sc[i] if Sc[i] > 0 else hier[i] for i in range(len(Sc))])
    np.testing.assert_allclose(flat_start(grid, b, Sc), flat, rtol=1e-10, atol=1e-12)
    r = np.random.default_rng(0).normal(size=b.shape)
    np.testing.assert_allclose(pyramid_preconditioner(grid, A)(r), M @ r, rtol=1e-9, atol=1e-9)
    diagonal_inverse = [1 / d if d > 0 else 0 for d in diagonal]
    np.testing.assert_allclose(jacobi(A)(r), np.diag(diagonal_inverse) @ r, rtol=1e-12)


# Conjugate gradients


@pytest.mark.parametrize("initial", ["pyramid", "flat"])
@pytest.mark.parametrize("preconditioner", ["pyramid", "jacobi"])
@examples(50)
@given(problem=problems())
def test_pcg_reaches_the_direct_solution(
    problem: Problem, preconditioner: str, initial: str
) -> None:
    inputs = problem.reference, problem.target, problem.confidence
    x = solve_paper(
        *inputs,
        smoothness=problem.smoothness,
        steps=150,
        preconditioner=preconditioner,
        initial=initial,
        **problem.options,
    )
    exact = solve(*inputs, smoothness=problem.smoothness, **problem.options)
    np.testing.assert_allclose(x, exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("preconditioner", ["pyramid", "jacobi"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_each_pcg_step_is_optimal_in_the_krylov_space(preconditioner: str, steps: int) -> None:
    # What defines Algorithm 2 in exact arithmetic: after k steps the error has the least A-norm in
    # x_0 + span{M^-1 r_0, (M^-1 A) M^-1 r_0, ...}, for each channel by itself.
    problem = photo()
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, problem.smoothness)
    active = has_data(grid, Sc)
    M = pyramid_preconditioner(grid, A) if preconditioner == "pyramid" else jacobi(A)
    start = flat_start(grid, b, Sc)
    x = pcg(A, b, start, M, steps, active)
    for channel in range(2):
        r = np.where(active, (b - A @ start)[:, channel], 0)
        basis = np.zeros((len(b), 0))
        direction = np.where(active, M(r), 0)
        for _ in range(steps):
            basis = np.linalg.qr(np.column_stack([basis, direction]))[0]
            direction = np.where(active, M(A @ basis[:, -1]), 0)
        z = np.linalg.solve(basis.T @ (A @ basis), basis.T @ r)
        np.testing.assert_allclose(x[:, channel], start[:, channel] + basis @ z, atol=1e-9)


def test_solve_paper_takes_25_steps_from_the_pyramid_by_default() -> None:
    problem = photo()
    inputs = problem.reference, problem.target, problem.confidence
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    start, M = pyramid_start(grid, b, Sc), pyramid_preconditioner(grid, A)
    expected = grid.S.T @ pcg(A, b, start, M, 25, has_data(grid, Sc))
    x = solve_paper(*inputs, **problem.options)
    np.testing.assert_array_equal(x, expected.reshape(problem.target.shape))


def test_pcg_stays_at_a_solution() -> None:
    problem = photo()
    grid = problem.grid
    A, b, _ = system(grid, np.zeros_like(problem.target), None, 4.0)
    np.testing.assert_array_equal(pcg(A, b, np.zeros_like(b), jacobi(A), 10), 0)
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    M, active = pyramid_preconditioner(grid, A), has_data(grid, Sc)
    exact = direct_solve(grid, A, b, Sc)
    np.testing.assert_allclose(pcg(A, b, exact, M, 1000, active), exact, atol=1e-10)


def test_regions_without_data_keep_the_pyramid_start() -> None:
    problem = photo()
    grid = problem.grid
    A, b, Sc = system(grid, problem.target, problem.confidence, 4.0)
    active, start = has_data(grid, Sc), pyramid_start(grid, b, Sc)
    empty = ~active
    assert empty.any()
    assert np.ptp(start[empty], axis=0).min() > 0.01
    np.testing.assert_array_equal(direct_solve(grid, A, b, Sc)[empty], start[empty])
    np.testing.assert_array_equal(flat_start(grid, b, Sc)[empty], start[empty])
    for M in (jacobi(A), pyramid_preconditioner(grid, A)):
        x = pcg(A, b, start, M, 25, active)
        np.testing.assert_array_equal(x[empty], start[empty])
        assert np.abs(x - start)[active].max() > 0.01


def test_region_without_data_by_hand() -> None:
    # Black cells x = 0, 1 hold 2 and 6; the white cell x = 3 is alone and meets them only at the
    # pyramid's top: it gets their mean.
    reference = np.array([[0, 0, 0, 255]], dtype=np.uint8)
    target, confidence = np.array([[2.0, 6.0, 9.0, 9.0]]), np.array([[1.0, 1.0, 0.0, 0.0]])
    x = solve(reference, target, confidence, sigma_xy=1)
    assert x[0, 3] == pytest.approx(4, rel=1e-12)
