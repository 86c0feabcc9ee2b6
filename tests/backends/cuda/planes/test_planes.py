"""Kernels of the planar model match the core's operations.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from support.kernel_device import DEVICE

# isort: split
import torch

from bilateral.backends import cpu
from bilateral.backends.cuda.grid.bistochastize import bistochastize
from bilateral.backends.cuda.multigrid.graph import grid_graph
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.planes.diagonals import Diagonals
from bilateral.backends.cuda.planes.fill import Fill
from bilateral.backends.cuda.planes.geometry import Geometry
from bilateral.backends.cuda.planes.levels import Level, find_residual
from bilateral.backends.cuda.planes.positions import find_positions
from bilateral.backends.cuda.planes.small_parts import SmallParts
from bilateral.backends.cuda.planes.splat import pixel_sums, slice_planes, splat_planes
from bilateral.backends.cuda.planes.vcycle import VCycle
from bilateral.backends.cuda.solve.components import find_components
from bilateral.grid import planes_of
from bilateral.numerics import policy
from oracles import planar as oracle
from oracles import reference as oracle_grid
from support.device_grids import HALF, Both, pictures

pytestmark = pytest.mark.interpreter

TRIANGLE = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]


def on_device(values, dtype=torch.float64):
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE, dtype)


def blocks(numbers):
    """Symmetric 3 x 3 matrices of their lower triangles."""
    out = np.zeros((len(numbers), 3, 3))
    for n, (i, j) in enumerate(TRIANGLE):
        out[:, i, j] = out[:, j, i] = numbers[:, n]
    return out


@pytest.mark.smoke
@pytest.mark.parametrize("sigma_xy", [3.0, 64.0])  # tiles by their ranks, and sorted
@pytest.mark.parametrize("weighed", [True, False])
def test_splats_and_slices_are_the_cores(sigma_xy, weighed):
    shape = (2, 6, 7) if sigma_xy < 9 else (1, 34, 33)
    both = Both(pictures(3, *shape), sigma_xy)
    rng, positions = np.random.default_rng(4), find_positions(both.grid, sigma_xy)
    target = rng.normal(size=(*shape, 2))
    c = rng.random(shape) * (rng.random(shape) < 0.6)
    weights = on_device(c.reshape(-1, 1)) if weighed else None
    flat, nothing = on_device(target.reshape(-1, 2)), torch.zeros(shape[0], 2).double().to(DEVICE)
    splatted = splat_planes(both.grid, positions, flat, weights, nothing, nothing + 1)
    sums = pixel_sums(both.grid, positions, flat)
    x = rng.normal(size=(both.grid.room, 2, 3))
    sliced = slice_planes(both.grid, positions, on_device(x))
    sliced = sliced.cpu().numpy().reshape(*shape, 2)
    parts = zip(*(both.there(v) for v in (positions.centre, *splatted, sums, x_of(x))), strict=True)
    for k, (centre, moments, weighted, plain, planes) in enumerate(parts):
        there = planes_of(both.cpus[k])
        assert_allclose(centre, cpu.centres(there), atol=1e-12)
        expected = cpu.splat_planes(there, target[k], c[k] if weighed else None, centred=False)
        assert_allclose(moments, expected.moments, atol=1e-12)
        assert_allclose(weighted.swapaxes(0, 1), expected.weighted, atol=1e-12)
        expected = cpu.splat_planes(there, target[k], None, centred=False)
        assert_allclose(plain.swapaxes(0, 1), expected.weighted, atol=1e-12)
        ordered = np.ascontiguousarray(planes.swapaxes(0, 1))
        assert_allclose(sliced[k], cpu.slice_planes(there, ordered, shape[1:]), atol=1e-12)


def x_of(x):
    return on_device(x)


class Problem:
    """A grid with its hierarchy, and random moments of its vertices."""

    def __init__(self, known=0.4, shape=(10, 12), sigma_xy=2.0, dtype=torch.float64):
        self.both = Both(pictures(5, 1, *shape, 1), sigma_xy)
        grid = self.grid = self.both.grid
        self.n = bistochastize(grid, HALF, dtype, policy.LOWEST_EIGENVALUE)
        self.hierarchy = Hierarchy(grid.edges, self.n, HALF, grid.first_vertex)
        self.positions = find_positions(grid, sigma_xy)
        rng = np.random.default_rng(6)
        target, c = rng.normal(size=shape), rng.random(shape) * (rng.random(shape) < known)
        c[0, 0] = 1
        self.target, self.c = target, c
        one = torch.ones(1, 1, dtype=torch.float64, device=DEVICE)
        flat = (on_device(v.reshape(-1, 1), dtype) for v in (target, c))
        self.moments, self.b = splat_planes(grid, self.positions, *flat, 0 * one, one)

    def vcycle(self, smoothness, slopes=(3.0, 1e-3), *, all_levels=True, first_small=1):
        hierarchy = self.hierarchy if all_levels else None
        graph = grid_graph(self.grid.edges, self.n, HALF, self.grid.first_vertex)
        graph = self.hierarchy.graphs[0] if all_levels else graph
        geometry = Geometry(graph, hierarchy, self.positions)
        stiffness = policy.PLANE_LEVEL_STIFFNESS
        penalties = [slopes[0]], [slopes[1]]
        diagonals = Diagonals(geometry, self.moments, smoothness, *penalties, stiffness)
        return VCycle(geometry, diagonals, self.grid.order.parity, first_small)

    def matrix(self, smoothness, slopes=(3.0, 1e-3)):
        """The oracle's matrix, in the order of the device's vertices."""
        cpu_grid = self.both.cpus[0]
        grid = oracle_grid.image_grid(
            pictures(5, 1, *self.c.shape, 1)[0], sigma_xy=2.0, sigma_luma=8.0, sigma_chroma=8.0
        )
        model = oracle.model(grid, oracle.positions(self.c.shape, 2.0))
        A, _ = oracle.system(model, self.target[..., None], self.c, smoothness, *slopes)
        vertex = np.asarray(grid.S.argmax(axis=0)).ravel()
        mine = self.grid.parent.cpu().numpy()
        order = np.empty(cpu_grid.n_vertices, int)
        order[mine] = vertex
        unknowns = (3 * order[:, None] + np.arange(3)).ravel()
        return sparse.csr_array(A)[unknowns][:, unknowns].toarray()


def columns(vcycle, count, function):
    """The matrix of a function of vectors (room, K, 3)."""
    size = 3 * count
    eye = np.eye(size).reshape(count, 3, size).swapaxes(1, 2)
    out = torch.zeros(count, size, 3, dtype=torch.float64, device=DEVICE)
    function(on_device(eye), out)
    return out.cpu().numpy().swapaxes(1, 2).reshape(size, size)


@pytest.mark.smoke
def test_the_product_is_the_oracles():
    problem = Problem(shape=(5, 6))
    level = problem.vcycle(0.7).grid
    A = columns(level, problem.grid.room, lambda x, out: minus_residual(level, x, out))
    assert_allclose(A, problem.matrix(0.7), atol=1e-9)


def minus_residual(level, x, out):
    find_residual(level, torch.zeros_like(x), x, out, as_parent=False)
    out.neg_()


@pytest.mark.smoke
@pytest.mark.parametrize("all_levels", [True, False])
def test_a_cycle_is_symmetric_and_positive_definite(all_levels):
    problem = Problem(known=1.0, shape=(7, 8))
    vcycle, A = problem.vcycle(0.7, all_levels=all_levels), problem.matrix(0.7)
    colours = problem.grid.order.parity.cpu().numpy().repeat(3)

    def apply(r, out):
        r = r.clone()
        r[problem.grid.order.parity == 0] = 0  # as conjugate gradients keep it
        vcycle.apply(r, out)

    M = columns(vcycle, problem.grid.room, apply)
    part = M[colours == 1][:, colours == 1]
    assert_allclose(part, part.T, rtol=1e-6, atol=1e-9)
    assert np.linalg.eigvalsh(part).min() > 0
    # The Schur complement of colour 1 is the matrix that conjugate gradients see.
    one, zero = colours == 1, colours == 0
    inner = np.linalg.solve(A[zero][:, zero], A[zero][:, one])
    schur = A[one][:, one] - A[one][:, zero] @ inner
    eigenvalues = np.linalg.eigvals(part @ schur).real
    # Sweeps alone reduce smooth errors slowly, but never amplify one.
    assert eigenvalues.min() > (0.1 if all_levels else 0)
    assert eigenvalues.max() < (1.8 if all_levels else 1 + 1e-9)


def test_sweeps_are_the_cores():
    problem = Problem(known=1.0, shape=(7, 8))
    vcycle, everywhere = problem.vcycle(0.7, all_levels=False), problem.moments[:, 0] > 0
    x = vcycle.start(problem.b)
    parts = SmallParts(find_components(problem.grid.edges), problem.grid.room)
    parts.solve(vcycle.grid, problem.b, x, everywhere)
    found = slice_planes(problem.grid, problem.positions, x).cpu().numpy()
    planes = planes_of(problem.both.cpus[0])
    sums = cpu.splat_planes(planes, problem.target[..., None], problem.c, centred=False)
    solver = cpu.PlaneSolver.make(planes, (3.0, 1e-3), np.dtype(float), all_levels=False)
    start = np.empty_like(sums.weighted)
    more = {"movement_fraction": 0.0, "step_noise": 0.0, "error_window": 9, "callback": None}
    limits = {"min_iterations": 1, "max_iterations": 0, "tolerance": 0.0}
    arguments = sums.moments, sums.weighted, start, [1.0]
    solver.solve(*arguments, nested=True, smoothness=0.7, **limits, **more)
    expected = cpu.slice_planes(planes, start, problem.c.shape)
    assert_allclose(found, expected.reshape(-1, 1), atol=1e-5)  # factors of sweeps are in float32


@pytest.mark.smoke
def test_small_parts_are_solved_directly():
    problem = Problem(known=0.5, shape=(6, 7))
    root = find_components(problem.grid.edges)
    parts = SmallParts(root, problem.grid.room)
    x, active = torch.zeros_like(problem.b), torch.ones(problem.grid.room, dtype=torch.bool)
    weight = problem.moments[:, 0]
    marks = torch.zeros_like(weight).index_add(0, root.long(), weight)[root.long()]
    active = (marks > 0).to(DEVICE)
    left = parts.solve(problem.vcycle(0.7).grid, problem.b, x, active).cpu().numpy()
    sizes = np.bincount(root.cpu().numpy())[root.cpu().numpy()]
    solved = active.cpu().numpy() & ~left
    assert_array_equal(solved, active.cpu().numpy() & (sizes <= 16))
    assert solved.any()
    A, b = problem.matrix(0.7), problem.b.cpu().numpy().ravel()
    rows = solved.repeat(3)
    exact = np.linalg.solve(A[rows][:, rows], b[rows])
    assert_allclose(x.cpu().numpy().ravel()[rows], exact, rtol=1e-7, atol=1e-9)
    assert not x.cpu().numpy().ravel()[~rows].any()


@pytest.mark.smoke
def test_fills_are_the_cores():
    both = Both(pictures(8, 2, 6, 7), 2.0)
    rng = np.random.default_rng(9)
    positions = find_positions(both.grid, 2.0)
    active = [rng.random(grid.n_vertices) < 0.3 for grid in both.cpus]
    x = rng.normal(size=(both.grid.room, 2, 3))
    fill = Fill(both.grid, positions, both.here(active))
    y, z = on_device(x), on_device(x)
    fill.fill(y)
    fill.fill_transposed(z)
    again = on_device(rng.normal(size=x.shape)) * both.here(active)[:, None, None]
    filled = again.clone()
    fill.fill(filled)
    # The transpose: <F a, x> = <a, F^T x>
    assert_allclose(float((filled * on_device(x)).sum()), float((again * z).sum()), rtol=1e-10)
    for own, mine, start, grid in zip(
        active, both.there(z), both.there(on_device(x)), both.cpus, strict=True
    ):
        expected = np.ascontiguousarray(start.swapaxes(0, 1))
        cpu.fill_transposed(planes_of(grid), own, expected)
        assert_allclose(mine.swapaxes(0, 1), expected, atol=1e-12)


def test_blocks_are_inverses_of_the_diagonal():
    problem = Problem(known=1.0, shape=(5, 6))
    level: Level = problem.vcycle(0.7).grid
    A = problem.matrix(0.7)
    found = blocks(level.inverse.cpu().numpy())
    for v, inverse in enumerate(found):
        own = A[3 * v : 3 * v + 3, 3 * v : 3 * v + 3]
        assert_allclose(inverse @ own, np.eye(3), atol=1e-8)
