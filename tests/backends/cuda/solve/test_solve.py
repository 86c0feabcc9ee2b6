"""Kernels of a solve match the CPU: statistics, steps, solutions and gradients.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

import bilateral
from bilateral import validation
from bilateral.backends import cpu
from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.grid.bistochastize import bistochastize
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.solve import components, pcg
from bilateral.backends.cuda.solve.input_stats import compute_input_stats, count_loose
from bilateral.backends.cuda.solve.iteration import Iteration
from bilateral.backends.cuda.solve.preconditioner import Preconditioner
from bilateral.numerics.policy import LOWEST_EIGENVALUE
from bilateral.torch import handles as kept
from bilateral.torch import operators
from bilateral.torch.cuda import operators as cuda_operators
from bilateral.torch.cuda import recording_cache, system
from support.device_grids import HALF, Both, pictures
from support.edge_tables import table
from support.layers import layer_options
from support.memory_check import within_bounds

pytestmark = pytest.mark.interpreter


@pytest.mark.smoke
@pytest.mark.parametrize("weighed", [True, False])
def test_input_stats_have_ranges_and_what_is_wrong(weighed):
    rng = np.random.default_rng(13)
    values = rng.normal(size=(2, 33, 3))
    values[1, :, 2] = 5
    c = rng.random((2, 33)) * (rng.random((2, 33)) < 0.6) if weighed else np.ones((2, 33))
    flat = torch.from_numpy(values.reshape(-1, 3)).to(DEVICE)
    weights = torch.from_numpy(c.reshape(-1, 1)).to(DEVICE) if weighed else None
    seen = compute_input_stats(flat, weights, 2)
    for k, image in enumerate(values):
        known = image[c[k] > 0]
        expected = [*np.ptp(known, axis=0)[:2], 5 if k else np.ptp(known[:, 2])]
        assert_allclose(seen.scale[k].cpu(), expected)
        assert_array_equal(seen.low[k].cpu(), known.min(axis=0))
        assert_array_equal(seen.high[k].cpu(), known.max(axis=0))
    assert_allclose(seen.weight_sum.cpu(), c.sum(1))
    assert not seen.invalid_weights.any()
    assert not seen.nonfinite_values.any()
    flat[3, 1], flat[40, 0] = np.inf, np.nan
    assert compute_input_stats(flat, weights, 2).nonfinite_values.tolist() == [1, 1]
    if weights is not None:
        weights[2], weights[50], weights[51] = -1, np.nan, np.inf
        assert compute_input_stats(flat, weights, 2).invalid_weights.tolist() == [1, 2]


@pytest.mark.smoke
def test_pixels_far_from_data_are_counted():
    both, rng = Both(pictures(16, 1, 9, 10, 1), 2.0), np.random.default_rng(17)
    grid, count = both.grid, both.grid.room
    weight = torch.from_numpy(rng.choice([0, 0, 0.01, 5.0], count)).to(DEVICE)
    mass, w, near = (v.cpu().numpy() for v in (grid.mass, weight, table(grid.edges)))
    poor = 2.0 / 4 * mass > w
    ties = [[j for j in near[:, i] if j >= 0] for i in range(count)]
    far = [poor[i] and len(ties[i]) > 0 and all(poor[j] for j in ties[i]) for i in range(count)]
    two = torch.tensor(2.0, dtype=torch.float64, device=DEVICE)
    assert count_loose(grid, weight, two, 4.0).tolist() == [(w == 0).sum(), mass[far].sum()]


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bistochastization_balances(dtype):
    both = Both(pictures(4, 2, 6, 7))
    n = bistochastize(both.grid, HALF, dtype, LOWEST_EIGENVALUE)
    for mine, grid in zip(both.there(n), both.cpus, strict=True):
        sums_ = mine * grid.blur(mine) / 2  # B-bar here has the weights / 2
        expected = grid.splat(np.ones(grid.shape))
        assert_allclose(sums_, expected, rtol=1e-11 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 1.0])
def test_parts_with_data_are_the_cpus(part):
    both = Both(pictures(5, 2, 8, 9), 2.0)
    rng = np.random.default_rng(6)
    weights = [(rng.random(grid.n_vertices) < part).astype(float) for grid in both.cpus]
    found = components.with_data(both.grid, both.here(weights))
    for mine, grid, weight in zip(both.there(found), both.cpus, weights, strict=True):
        assert_array_equal(mine, cpu.with_data(grid._core, weight))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["pyramid", "jacobi"])
def test_a_few_steps_are_the_cpus(kind):
    pixels = pictures(7, 2, 6, 8)
    both, rng = Both(pixels), np.random.default_rng(8)
    target, c = rng.normal(size=(2, 6, 8)), rng.uniform(0.1, 1, (2, 6, 8))
    n = bistochastize(both.grid, HALF, torch.float64, LOWEST_EIGENVALUE)
    flat = np.stack([c, c * target], axis=3).reshape(-1, 2)
    seen = splatting.splat(both.grid, torch.from_numpy(flat).to(DEVICE))
    weight, b = seen[:, 0].contiguous(), seen[:, 1:].contiguous()
    three = torch.tensor(3.0, dtype=torch.float64, device=DEVICE)
    A = Laplacian(both.grid, n, HALF, weight, three)
    H = pyramid_transfer.push_pull(both.grid, seen)
    x = H[:, 1:] / H[:, :1]
    scale = torch.ones(2, 1, dtype=torch.float64, device=DEVICE)
    pcg.solve(A, Preconditioner(A, kind), b, x, scale, None, system.pcg_options(3, -1.0))
    bounds = (getattr(torch.from_numpy(target), name)((1, 2))[:, None] for name in ("amin", "amax"))
    y = splatting.slice_(both.grid, x, *(bound.to(DEVICE) for bound in bounds))
    y = y.cpu().numpy().reshape(2, 6, 8)
    for mine, grid, t, w in zip(y, both.cpus, target, c, strict=True):
        solver = bilateral.BilateralSolver(
            grid, 3.0, preconditioner=kind, initial="pyramid", max_iterations=3, tolerance=0
        )
        assert_allclose(mine, solver.solve(t, w), rtol=1e-9, atol=1e-9)


@pytest.mark.smoke
@pytest.mark.parametrize("channels", [1, 2])
def test_slices_are_clipped_to_the_bounds_of_their_image(channels):
    both, rng = Both(pictures(5, 2, 6, 7)), np.random.default_rng(6)
    vertices = torch.from_numpy(rng.normal(size=(both.grid.room, channels))).to(DEVICE)
    low = torch.tensor([[-0.5, -0.1], [0.0, 0.2]], dtype=torch.float64, device=DEVICE)
    low, high = (bound[:, :channels] for bound in (low, low + 0.3))
    out = splatting.slice_(both.grid, vertices, low, high).cpu().view(2, -1, channels)
    plain = splatting.slice_(both.grid, vertices).cpu().view(2, -1, channels)
    assert_array_equal(out, plain.clamp(low.cpu()[:, None], high.cpu()[:, None]))


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["pyramid", "jacobi"])
def test_multigrid_checks_errors_that_other_preconditioners_miss(kind):
    rng = np.random.default_rng(3)
    reference = torch.from_numpy(rng.integers(0, 2, (1, 1, 5, 6)).astype(np.float64))
    target = torch.from_numpy(rng.random((1, 1, 5, 6)))
    confidence = torch.from_numpy(10 ** rng.uniform(-8, -5, (1, 1, 5, 6)))
    confidence[..., reference[0, 0] > 0] = 1
    smoothness = torch.tensor(4.0, dtype=torch.float64)
    options = layer_options((1.0, 64.0, 64.0), 1e-3, 300, kind)
    problem = reference, target, confidence, smoothness
    exact = operators.kernels["solve"](
        *problem, None, *layer_options((1.0, 64.0, 64.0), 1e-10, 300, "multigrid").arguments
    )[0]
    recording_cache.forget()
    moved = [t.to(DEVICE) for t in problem]
    mine, _ = cuda_operators.solve(fail, *moved, None, *options.arguments)
    assert ((mine.cpu() - exact) ** 2).mean().sqrt() <= 3e-3


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shifts_of_components_leave_residuals_of_mean_0(dtype):
    both = Both(pictures(23, 2, 8, 9), 2.0)
    rng, count = np.random.default_rng(24), both.grid.room
    weight = torch.from_numpy(rng.random(count) * (rng.random(count) < 0.4)).to(DEVICE, dtype)
    b, x = (torch.from_numpy(rng.normal(size=(count, 2))).to(DEVICE, dtype) for _ in range(2))
    b *= weight[:, None]
    parts, before = components.Components(both.grid), x.clone()
    of = components.find_components(both.grid.edges).cpu().numpy()
    scale = torch.full((2, 2), 3.0, dtype=torch.float64, device=DEVICE)
    largest = parts.shift(weight, b, x, scale)
    shift = (x - before).cpu().double().numpy()
    residual = (b - weight[:, None] * x).cpu().double().numpy()
    for part in np.unique(of):
        chosen = of == part
        assert_allclose(residual[chosen].sum(0), 0, atol=1e-5)
        if weight.cpu().numpy()[chosen].sum() == 0:
            assert_array_equal(shift[chosen], 0)
        assert_allclose(np.ptp(shift[chosen], axis=0), 0, atol=1e-6)
    mass, first = both.grid.mass.cpu().numpy(), int(both.grid.first_vertex[1])
    squares = mass[:, None] * shift**2
    rms = np.sqrt([squares[:first].sum(0) / 72, squares[first:].sum(0) / 72])
    assert_allclose(largest, rms.max() / 3, rtol=1e-5)
    assert parts.shift(weight, b, x, None) <= 1e-6


def shades(seed, images=1):
    """A gray reference of two shades, whose parts are not connected."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 2, (images, 1, 4, 5)).astype(np.uint8) * 200)


@pytest.mark.parametrize("kind", ["multigrid", "pyramid", "jacobi"])
@pytest.mark.parametrize(
    ("smoothness", "unit"),
    [(1e9, 1.0), (1e16, 1.0), (1e28, 1.0), (4.0, 1e-25)],
)
def test_the_means_of_stiff_problems_are_the_cpus(smoothness, unit, kind):
    rng = np.random.default_rng(20)
    reference, confidence = shades(21, 2), rng.random((2, 1, 4, 5))
    target, h = (torch.from_numpy(rng.random((2, 2, 4, 5))) for _ in range(2))
    confidence = torch.from_numpy(unit * confidence * (confidence < 0.4))
    options = layer_options((2.0, 64.0, 64.0), 1e-3, 100, kind)
    problem = reference, target, confidence, torch.tensor(smoothness, dtype=torch.float64)
    expected, handle = operators.kernels["solve"](*problem, None, *options.arguments)
    recording_cache.forget()
    moved = [t.to(DEVICE) for t in problem]
    mine, own = cuda_operators.solve(fail, *moved, None, *options.arguments)
    assert_allclose(mine.cpu(), expected, atol=2e-3)
    if smoothness / unit > 1e20:  # adjoint solves diverge
        return
    around = reference, h, confidence, problem[3]
    gradient = operators.kernels["apply_adjoint"](handle, *around, *options.arguments)
    moved = [t.to(DEVICE) for t in around]
    found = cuda_operators.apply_adjoint(fail, own, *moved, *options.arguments)
    assert_allclose(found.cpu(), gradient, atol=0.03 * float(gradient.abs().max()))


@pytest.mark.smoke
def test_no_step_is_the_start_of_a_stiff_problem():
    target = torch.rand(1, 1, 4, 5, generator=torch.Generator().manual_seed(0)).double()
    options = layer_options((2.0, 64.0, 64.0), 1e-3, 0, "pyramid")
    found = []
    for smoothness in (1e3, 1e28):
        factor = torch.tensor(smoothness, dtype=torch.float64)
        problem = [t.to(DEVICE) for t in (shades(22), target, torch.ones_like(target), factor)]
        arguments = *problem, None, *options.arguments
        found.append(cuda_operators.solve(lambda *_: None, *arguments)[0])
    assert torch.equal(*found)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["pyramid", "jacobi"])
def test_images_that_diverge_keep_their_best_step(kind):
    both, rng = Both(pictures(7, 2, 6, 8)), np.random.default_rng(8)
    n = bistochastize(both.grid, HALF, torch.float64, LOWEST_EIGENVALUE)
    weight = torch.from_numpy(rng.uniform(0.1, 1, both.grid.room)).to(DEVICE)
    b = torch.from_numpy(rng.normal(size=(both.grid.room, 2))).to(DEVICE)
    one = torch.ones((), dtype=torch.float64, device=DEVICE)
    A = Laplacian(both.grid, n, HALF, weight, one)
    options = system.pcg_options(7, -1.0)._replace(keep_from=3)

    def iterate(spoil):
        x = torch.zeros_like(b)
        iteration = Iteration(A, Preconditioner(A, kind), b, x, one.expand(2, 2), None, options)
        results = []
        for step in range(7):
            if step == 5 and spoil:
                begin = int(both.grid.first_vertex[1])
                for v in (iteration._r, iteration._u):
                    v[begin:, 1] *= 1e9
            iteration.step()
            iteration.finish()
            results.append(x.clone())
        return begin if spoil else 0, results, iteration.diverged.view(2, 2).tolist()

    _, healthy, diverged = iterate(spoil=False)
    assert diverged == [[0, 0], [0, 0]]
    begin, spoiled, diverged = iterate(spoil=True)
    assert diverged == [[0, 0], [0, 1]]
    assert torch.equal(spoiled[-1][:begin], healthy[-1][:begin])
    assert torch.equal(spoiled[-1][begin:, 0], healthy[-1][begin:, 0])
    assert any(torch.equal(spoiled[-1][begin:, 1], x[begin:, 1]) for x in healthy[2:5])


@pytest.mark.smoke
def test_a_solve_that_diverged_warns():
    options = layer_options((2.0, 64.0, 64.0), 0.0, 60, "pyramid")
    with pytest.warns(bilateral.ConvergenceWarning, match=r"diverged within 2 steps.*smoothness"):
        operators.warn_of(pcg.Outcome([0.5, 0.0], False, True), options)


@pytest.mark.parametrize("kind", ["pyramid", "jacobi"])
@pytest.mark.parametrize("seed", [8, 37])
def test_steps_beyond_rounding_errors_stay_near_the_solution(seed, kind):
    rng = np.random.default_rng(seed)
    shape = 1, 1, *rng.integers(4, 7, 2)
    reference = torch.from_numpy((rng.integers(0, 6, shape) * 40).astype(np.uint8))
    target = torch.from_numpy(rng.random(shape))
    smoothness = torch.tensor(1e28, dtype=torch.float64)
    options = layer_options((2.0, 64.0, 64.0), 0.0, 60, kind)
    recording_cache.forget()
    moved = [t.to(DEVICE) for t in (reference, target, torch.ones_like(target), smoothness)]
    x, _ = cuda_operators.solve(lambda *_: None, *moved, None, *options.arguments)
    # So smooth a solution is the mean of each connected part.
    nearly = {"sigma_xy": 2, "sigma_luma": 64, "smoothness": 1e6, "tolerance": 1e-8}
    precise = bilateral.solve(reference[0, 0].numpy(), target[0, 0].numpy(), **nearly)
    assert np.sqrt(np.mean((x[0, 0].cpu().numpy() - precise) ** 2)) <= 0.01


@pytest.mark.parametrize("kind", ["pyramid", "multigrid"])
@pytest.mark.parametrize(
    ("images", "references", "confidences", "dense"),
    [
        (2, 2, 2, True),
        pytest.param(2, 1, 1, True, marks=pytest.mark.smoke),
        (2, 1, 2, False),
        (1, 1, 1, False),
        (2, 2, 0, True),
    ],
)
def test_solution_and_gradients_are_the_cpus(images, references, confidences, dense, kind):
    rng = np.random.default_rng(9)
    # Gray, of few vertices: they are solved in few steps.
    reference = torch.from_numpy(pictures(10, references, 3, 5, 1).transpose(0, 3, 1, 2).copy())
    target, h = (torch.from_numpy(rng.normal(size=(images, 2, 3, 5))) for _ in range(2))
    confidence = None
    if confidences:
        c = rng.uniform(0.5, 1, (confidences, 1, 3, 5))
        if not dense:
            c *= rng.random(c.shape) < 0.15
            c[:, 0, 1, 1] = 1
        confidence = torch.from_numpy(c)
    smoothness = torch.tensor(0.7, dtype=torch.float64)
    options = layer_options((3.0, 64.0, 64.0), 1e-9, 60, kind)
    problem = reference, target, confidence, smoothness
    y, handle = operators.kernels["solve"](*problem, None, *options.arguments)
    recording_cache.forget()  # recordings do not look for gaps

    def move(tensors):
        return [t.to(DEVICE) if isinstance(t, torch.Tensor) else t for t in tensors]

    mine, own = cuda_operators.solve(fail, *move(problem), None, *options.arguments)
    assert_allclose(mine.cpu(), y, atol=1e-7)
    assert_array_equal(own > 0, handle > 0)
    wanted = [True, confidence is not None, True]
    around = reference, h, confidence, smoothness, target
    expected = operators.kernels["gradients"](handle, *around, y, wanted, *options.arguments)
    found = cuda_operators.gradients(fail, own, *move(around), mine, wanted, *options.arguments)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.cpu(), b, atol=1e-6)
    matrix = reference, h, confidence, smoothness
    for transposed in (False, True):
        expected = operators.kernels["surroundings"](
            handle, *matrix, transposed, *options.arguments
        )
        found = cuda_operators.surroundings(
            fail, own, *move(matrix), transposed, *options.arguments
        )
        assert_allclose(found.cpu(), expected, atol=1e-9)
    assert_allclose(
        cuda_operators.apply_adjoint(fail, own, *move(matrix), *options.arguments).cpu(),
        operators.kernels["apply_adjoint"](handle, *matrix, *options.arguments),
        atol=1e-6,
    )


def fail(outcome, options):
    assert outcome.converged, (outcome, options)


@pytest.mark.parametrize("kind", ["pyramid", "multigrid"])
def test_a_grid_serves_again(kind):
    rng = np.random.default_rng(18)
    reference = torch.from_numpy(pictures(19, 1, 4, 6, 1).transpose(0, 3, 1, 2).copy()).to(DEVICE)
    t = torch.from_numpy(rng.normal(size=(2, 1, 1, 4, 6))).to(DEVICE)
    c = torch.from_numpy((rng.random((2, 1, 1, 4, 6)) < 0.5) * 1.0).to(DEVICE)
    one = torch.tensor(1.0, dtype=torch.float64)
    options = layer_options((2.0, 64.0, 64.0), 1e-6, 60, kind)
    _, first = cuda_operators.solve(fail, reference, t[0], c[0], one, None, *options.arguments)
    x, second = cuda_operators.solve(fail, reference, t[1], c[1], one, first, *options.arguments)
    assert kept.find(second)[0].batch_grid is kept.find(first)[0].batch_grid
    expected, _ = cuda_operators.solve(fail, reference, t[1], c[1], one, None, *options.arguments)
    assert torch.equal(x, expected)


@pytest.mark.skipif(COMPILED, reason="the interpreter checks addresses")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("space", [1e-19, 1e-320])
def test_tiny_weights_of_the_blur(space, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    reference = torch.from_numpy(rng.integers(0, 256, (1, 3, 4, 6)).astype(np.uint8))
    target = torch.full((1, 1, 4, 6), 1.5, dtype=dtype)
    confidence = torch.from_numpy(rng.random((1, 1, 4, 6)) < 0.3).to(dtype)
    options = layer_options((2.0, 40.0, 40.0), 1e-3, 50, "multigrid")
    weights = validation.blur((1, space, 0.1), 5)
    options = replace(options, grid=replace(options.grid, blur=weights))
    for smoothness in (1e-9, 4.0):
        recording_cache.forget()
        factor = torch.tensor(smoothness, dtype=torch.float64)
        with within_bounds(monkeypatch):
            x, _ = cuda_operators.solve(
                fail, reference, target, confidence, factor, None, *options.arguments
            )
        assert_allclose(x, 1.5, rtol=1e-3)


@pytest.mark.smoke
def test_errors_name_the_argument():
    reference = torch.zeros(2, 3, 4, 4, device=DEVICE)
    target = torch.zeros(2, 1, 4, 4, device=DEVICE)
    one = torch.tensor(1.0, dtype=torch.float64)
    options = layer_options((2.0, 8.0, 8.0), 1e-3, 10, "pyramid")
    c = torch.ones(2, 1, 4, 4, device=DEVICE)
    c[1, 0, 2, 2] = -1
    with pytest.raises(ValueError, match="confidence: expected finite numbers, 0 or above"):
        cuda_operators.solve(fail, reference, target, c, one, None, *options.arguments)
    c[1] = 0
    with pytest.raises(ValueError, match="at least one pixel with a finite value") as error:
        cuda_operators.solve(fail, reference, target, c, one, None, *options.arguments)
    assert error.value.__notes__ == ["In image 1 of the batch."]
    reference[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="reference: expected finite values"):
        cuda_operators.solve(fail, reference, target, None, one, None, *options.arguments)
    reference[0, 0, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="reference: expected finite values"):
        cuda_operators.solve(fail, reference, target, None, one, None, *options.arguments)


@pytest.mark.smoke
@pytest.mark.parametrize("sigma", [8.0, 0.01])  # keys of 32 and of 64 bits
@pytest.mark.parametrize(("value", "told"), [(255.0, "Divide it by 255"), (-2.0, "Undo")])
def test_the_scale_of_a_reference_is_checked(sigma, value, told):
    reference = torch.zeros(1, 3, 4, 4, device=DEVICE)
    reference[0, 1, 2, 3] = value
    target = torch.zeros(1, 1, 4, 4, device=DEVICE)
    one = torch.tensor(1.0, dtype=torch.float64)
    options = layer_options((2.0, sigma, sigma), 1e-3, 10, "pyramid")
    with pytest.raises(ValueError, match=f"^reference: .*{told}"):
        cuda_operators.solve(fail, reference, target, None, one, None, *options.arguments)
    believed = replace(options, grid=replace(options.grid, reference_max=1.0))
    cuda_operators.solve(fail, reference, target, None, one, None, *believed.arguments)
