# ruff: noqa: E402
"""The CUDA operations against those of the CPU.

Without a GPU they run in Triton's interpreter, one number at a time: so the pictures are tiny.
"""

import os
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
COMPILED = torch.cuda.is_available()
if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
    pytest.skip("no GPU that PyTorch can use, and no interpreter", allow_module_level=True)
pytest.importorskip("triton", reason="the kernels need Triton")

import bilateral
from bilateral import color
from bilateral.ops import cpu
from bilateral.ops.cuda import components, diffusion, hierarchy, pcg, splatting, sums
from bilateral.ops.cuda.grid import build_grid
from bilateral.ops.cuda.preconditioner import Preconditioner
from bilateral.ops.cuda.survey import count_poor, survey
from bilateral.torch import (
    device,
    device_operators,
    graphs,
    kept,
    operators,
    recording,
    replay,
    shapes,
)
from edges import packed, table

DEVICE = "cuda" if COMPILED else "cpu"
BLUR = (2.0, 1.0, 0.125)
HALF = tuple(weight / 2 for weight in BLUR)  # as the core gets it


class Both:
    """Grids of one batch by both, and how to translate between their vertices."""

    def __init__(self, pixels, sigma_xy=3.0, sigma=8.0, highest=255.0):
        images, self.height, self.width, channels = pixels.shape
        matrix, offset = color.feature_map(channels, highest)
        self.grid = build_grid(
            torch.from_numpy(pixels).permute(0, 3, 1, 2).to(DEVICE),
            matrix.tolist(),
            offset.tolist(),
            [sigma] * channels,
            highest,
            sigma_xy,
        )
        self.cpus = [
            bilateral.BilateralGrid(p, sigma_xy, sigma, sigma, BLUR, reference_max=highest)
            for p in pixels
        ]
        self.starts = self.grid.first_vertex.tolist()
        vertex = self.grid.parent.cpu().numpy().reshape(images, -1)
        self.own = []  # the CPU's number of each vertex, image by image
        for image, grid in enumerate(self.cpus):
            there = grid.slice(np.arange(grid.n_vertices, dtype=float)).astype(int).ravel()
            pairs = {*zip((vertex[image] - self.starts[image]).tolist(), there, strict=True)}
            assert len(pairs) == grid.n_vertices == self.starts[image + 1] - self.starts[image]
            self.own.append(np.array([b for _, b in sorted(pairs)]))

    def here(self, of_images):
        """Values at the CPU's vertices, for the device."""
        mine = [np.asarray(v)[own] for v, own in zip(of_images, self.own, strict=True)]
        return torch.from_numpy(np.concatenate(mine)).to(DEVICE)

    def there(self, values):
        """And back."""
        out = []
        for image, own in enumerate(self.own):
            part = values[self.starts[image] : self.starts[image + 1]].cpu().numpy()
            back = np.empty_like(part)
            back[own] = part
            out.append(back)
        return out


def pictures(seed, images, height, width, channels=3, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (images, height, width, channels)) * 45
    return values.astype(dtype)


CASES = [
    ((1, 7, 9, 3), 3.0, np.uint8),
    ((2, 5, 8, 1), 2.5, np.float32),
    ((1, 1, 13, 3), 4.0, np.uint8),
    ((3, 4, 3, 3), 0.5, np.float64),
    ((1, 12, 10, 3), 64.0, np.uint8),
    ((1, 14, 13, 3), 12.0, np.uint8),  # tiles of many pixels
    ((2, 18, 17, 3), 64.0, np.uint8),  # tiles whose pixels are sorted
]


@pytest.mark.parametrize(("shape", "sigma", "dtype"), CASES)
def test_vertices_and_edges_are_the_cpus(shape, sigma, dtype):
    both = Both(pictures(0, *shape, dtype), sigma)
    rng = np.random.default_rng(1)
    values = [rng.normal(size=grid.n_vertices) for grid in both.cpus]
    x, found = both.here(values), table(both.grid.edges).long()
    weights = [1.0] * 4 + [0.125] * (2 * shape[3])
    blurred = 2 * x
    for weight, neighbour in zip(weights, found, strict=True):
        blurred += weight * torch.where(neighbour >= 0, x[neighbour.clamp(min=0)], 0)
    for mine, grid, v in zip(both.there(blurred), both.cpus, values, strict=True):
        assert_allclose(mine, grid.blur(v), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("room", "total"), [(1, 1), (256, 256), (300, 257), (700, 512), (5, 9)])
@pytest.mark.parametrize("directions", [6, 10])
def test_edges_are_packed(room, total, directions, monkeypatch):
    from bounds import within_bounds

    rng = np.random.default_rng(room)
    for part in (0.0, 0.4, 1.0):
        shape = directions, room
        made = np.where(rng.random(shape) < part, rng.integers(0, room, shape), -1)
        given = torch.from_numpy(made.astype(np.int32)).to(DEVICE)
        count = torch.tensor([total], dtype=torch.int32, device=DEVICE)
        with within_bounds(monkeypatch):
            edges = packed(given, count)
        expected = given.clone()
        expected[:, total:] = -1
        assert torch.equal(table(edges), expected)
        assert not edges.words[total:].any()
        # One after the other, without gaps.
        for block in range(0, min(room, total), 256):
            mine = expected[:, block : block + 256].T
            there = edges.to[block // 256].flatten()
            assert torch.equal(there[: (mine >= 0).sum()], mine[mine >= 0])


@pytest.mark.parametrize(("shape", "sigma", "dtype"), CASES)
def test_splat_slice_and_pyramid_are_the_cpus(shape, sigma, dtype):
    both = Both(pictures(2, *shape, dtype), sigma)
    rng = np.random.default_rng(3)
    pixels = rng.normal(size=(*shape[:3], 2))
    flat = torch.from_numpy(pixels.reshape(-1, 2)).to(DEVICE)
    splat = splatting.splat(both.grid, flat)
    for mine, grid, p in zip(both.there(splat), both.cpus, pixels, strict=True):
        assert_allclose(mine, grid.splat(p), rtol=1e-12, atol=1e-12)
    sliced = splatting.slice_(both.grid, splat).cpu().numpy().reshape(pixels.shape)
    for mine, grid, p in zip(sliced, both.cpus, pixels, strict=True):
        assert_allclose(mine, grid.slice(grid.splat(p)), rtol=1e-12, atol=1e-12)
    lifted = sums.push_pull(both.grid, splat)
    for mine, grid, p in zip(both.there(lifted), both.cpus, pixels, strict=True):
        assert_allclose(mine, cpu.push_pull(grid._core, grid.splat(p)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("values", [(-40.0, 300.0), (0.0, 1e7), (1e-9, 1e-8)])
def test_values_beyond_the_usual_range_are_the_cpus(values):
    rng = np.random.default_rng(11)
    both = Both(rng.choice(np.linspace(*values, 5), (1, 6, 7, 1)), 2.0)
    splat = splatting.splat(both.grid, torch.ones(42, 1, device=DEVICE, dtype=torch.float64))
    (mine,), grid = both.there(splat), both.cpus[0]
    assert_array_equal(mine[:, 0], grid.splat(np.ones((6, 7))))


def test_pixels_of_the_greatest_key_are_counted():
    rng = np.random.default_rng(18)
    colours = np.array([[0.0, 0.0, 0.0], [3e9, 1e9, 3e9]])  # the other's cells are the last ones
    both = Both(colours[rng.integers(0, 2, (1, 5, 7))], 8.0)
    assert both.grid.colours.keys.max() == 2**63 - 1
    (mass,), grid = both.there(both.grid.mass), both.cpus[0]
    assert_array_equal(mass, grid.splat(np.ones((5, 7))))


def coordinates(grid, field):
    """(vertices, 3 + C): image, y, x and the features' cells."""
    tiles, colour = grid.tiles, grid.order.colour.cpu().long()
    tile, key = (v.cpu().long()[colour] for v in (grid.colours.tile, grid.colours.keys))
    y = tiles.row_cell.cpu()[tile // tiles.columns % tiles.rows]
    x = tiles.column_cell.cpu()[tile % tiles.columns]
    cells = [key >> (field * k) & ((1 << field) - 1) for k in range(grid.features)]
    return torch.stack([tile // tiles.tiles, y, x, *cells], 1).numpy()


ORDERS = [
    ((2, 5, 7, 3), (2.0, 8.0), 255.0, 5, 1, torch.int32),
    ((3, 5, 9, 1), (0.7, 8.0), 255.0, 5, 1, torch.int32),
    ((2, 9, 11, 3), (2.0, 0.26), 255.0, 10, 1, torch.int64),
    ((2, 5, 7, 1), (2.0, 8.0), 1e6, 21, 1, torch.int32),
    ((2, 5, 7, 3), (2.0, 8.0), 1e6, 21, 2, torch.int64),
]


@pytest.mark.parametrize(("shape", "sigmas", "most", "field", "words", "dtype"), ORDERS)
def test_order_keeps_together_what_is_below_a_coarse_vertex(
    shape, sigmas, most, field, words, dtype
):
    rng = np.random.default_rng(19)
    grid = Both(rng.choice([0.0, 20.0, 90.0, 95.0, most], shape), *sigmas).grid
    assert (grid.order.codes.shape[0], grid.order.codes.dtype) == (words, dtype)
    at = coordinates(grid, field)
    assert_array_equal(at[:, 0], np.sort(at[:, 0]))
    coarse = []  # how many there are at each level
    for level in range(1, 2 + grid.pyramid.ancestors.shape[0]):
        above = np.column_stack([at[:, 0], at[:, 1:] >> level])
        coarse.append(1 + (above[1:] != above[:-1]).any(axis=1).sum())
        assert coarse[-1] == len(np.unique(above, axis=0))
    assert [coarse[0], sum(coarse[1:])] == [int(total) for total in grid.pyramid.totals]
    parity = grid.order.parity.cpu().numpy()
    assert_array_equal(parity, at[:, 1:].sum(axis=1) % 2)


def test_two_vertices_of_one_code_are_a_level():
    both = Both(np.array([[[[0], [8]]], [[[8], [8]]]], np.uint8), 1.0)
    codes = both.grid.order.codes[0]
    assert codes[0] == codes[1]
    values = torch.tensor([[1.0], [3.0], [4.0], [7.0]], dtype=torch.float64, device=DEVICE)
    lifted = sums.push_pull(both.grid, splatting.splat(both.grid, values))
    for mine, grid, v in zip(both.there(lifted), both.cpus, values.view(2, 1, 2), strict=True):
        assert_allclose(mine[:, 0], cpu.push_pull(grid._core, grid.splat(v.cpu().numpy())))


def fits(grid):
    totals = *grid.total.tolist(), *map(int, grid.pyramid.totals)
    return all(n <= room for n, room in zip(totals, grid.rooms, strict=True))


@pytest.mark.parametrize("shape", [(1, 9, 7, 3), (5, 6, 8, 1), (2, 20, 18, 3)])
def test_more_room_changes_nothing(shape):
    images, height, width, _ = shape
    sigma = 32.0 if height == 20 else 2.0  # the former sorts pixels
    options = device.Options((sigma, 8.0, 8.0), BLUR, None, 1e-3, 5, "pyramid", False)
    reference = torch.from_numpy(pictures(12, *shape).transpose(0, 3, 1, 2).copy()).to(DEVICE)
    tight = device.space(reference, options)
    rooms = [n + 37 for n in tight.grid.rooms]
    wide = device.space(reference, options, rooms)
    assert fits(wide.grid)
    count = tight.grid.room
    assert torch.equal(tight.grid.parent, wide.grid.parent)
    assert torch.equal(table(tight.grid.edges), table(wide.grid.edges)[:, :count])
    values = torch.rand(images * height * width, 2, device=DEVICE)
    a, b = (sums.push_pull(g, splatting.splat(g, values)) for g in (tight.grid, wide.grid))
    assert torch.equal(a, b[:count])
    n = [where.balanced(torch.float32) for where in (tight, wide)]
    assert torch.equal(n[0], n[1][:count])
    for k in range(3):
        less = [r - (i == k) * 38 for i, r in enumerate(rooms)]
        if less[k] > 0:
            assert not fits(device.space(reference, options, less).grid)


@pytest.mark.parametrize("weighed", [True, False])
def test_a_survey_knows_ranges_and_what_is_wrong(weighed):
    rng = np.random.default_rng(13)
    values = rng.normal(size=(2, 33, 3))
    values[1, :, 2] = 5
    c = rng.random((2, 33)) * (rng.random((2, 33)) < 0.6) if weighed else np.ones((2, 33))
    flat = torch.from_numpy(values.reshape(-1, 3)).to(DEVICE)
    weights = torch.from_numpy(c.reshape(-1, 1)).to(DEVICE) if weighed else None
    seen = survey(flat, weights, 2)
    for k, image in enumerate(values):
        known = image[c[k] > 0]
        expected = [*np.ptp(known, axis=0)[:2], 5 if k else np.ptp(known[:, 2])]
        assert_allclose(seen.scale[k].cpu(), expected)
    assert_allclose(seen.total.cpu(), c.sum(1))
    assert not seen.invalid.any()
    assert not seen.unknown.any()
    flat[3, 1], flat[40, 0] = np.inf, np.nan
    assert survey(flat, weights, 2).unknown.tolist() == [1, 1]
    if weights is not None:
        weights[2], weights[50], weights[51] = -1, np.nan, np.inf
        assert survey(flat, weights, 2).invalid.tolist() == [1, 2]


def test_pixels_far_from_data_are_counted():
    both, rng = Both(pictures(16, 1, 9, 10, 1), 2.0), np.random.default_rng(17)
    grid, count = both.grid, both.grid.room
    weight = torch.from_numpy(rng.choice([0, 0, 0.01, 5.0], count)).to(DEVICE)
    mass, w, near = (v.cpu().numpy() for v in (grid.mass, weight, table(grid.edges)))
    poor = 2.0 / 4 * mass > w
    far = [poor[i] and all(poor[j] for j in near[:, i] if j >= 0) for i in range(count)]
    two = torch.tensor(2.0, dtype=torch.float64, device=DEVICE)
    assert count_poor(grid, weight, two, 4.0).tolist() == [(w == 0).sum(), mass[far].sum()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bistochastization_balances(dtype):
    both = Both(pictures(4, 2, 6, 7))
    n = diffusion.bistochastize(both.grid, HALF, dtype)
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


@pytest.mark.parametrize("kind", ["pyramid", "jacobi"])
def test_a_few_steps_are_the_cpus(kind):
    pixels = pictures(7, 2, 6, 8)
    both, rng = Both(pixels), np.random.default_rng(8)
    target, c = rng.normal(size=(2, 6, 8)), rng.uniform(0.1, 1, (2, 6, 8))
    n = diffusion.bistochastize(both.grid, HALF, torch.float64)
    flat = np.stack([c, c * target], axis=3).reshape(-1, 2)
    seen = splatting.splat(both.grid, torch.from_numpy(flat).to(DEVICE))
    weight, b = seen[:, 0].contiguous(), seen[:, 1:].contiguous()
    three = torch.tensor(3.0, dtype=torch.float64, device=DEVICE)
    A = diffusion.Matrix(both.grid, n, HALF, weight, three)
    H = sums.push_pull(both.grid, seen)
    x = H[:, 1:] / H[:, :1]
    scale = torch.ones(2, 1, dtype=torch.float64, device=DEVICE)
    pcg.solve(A, Preconditioner(A, kind), b, x, scale, None, 3, -1.0)
    y = splatting.slice_(both.grid, x).cpu().numpy().reshape(2, 6, 8)
    for mine, grid, t, w in zip(y, both.cpus, target, c, strict=True):
        solver = bilateral.BilateralSolver(
            grid, 3.0, preconditioner=kind, initial="pyramid", max_iterations=3, tolerance=0
        )
        assert_allclose(mine, solver.solve(t, w), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["pyramid", "multigrid"])
@pytest.mark.parametrize(
    ("images", "references", "confidences", "dense"),
    [(2, 2, 2, True), (2, 1, 1, True), (2, 1, 2, False), (1, 1, 1, False), (2, 2, 0, True)],
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
    config = (3.0, 64.0, 64.0), BLUR, None, 1e-9, 60, kind, False
    problem = reference, target, confidence, smoothness
    y, handle = operators.kernels["solve"](*problem, None, *config)
    replay._seen.clear()  # recordings do not look for gaps

    def move(tensors):
        return [t.to(DEVICE) if isinstance(t, torch.Tensor) else t for t in tensors]

    mine, own = device_operators.solve(fail, *move(problem), None, *config)
    assert_allclose(mine.cpu(), y, atol=1e-7)
    assert_array_equal(own > 0, handle > 0)
    wanted = [True, confidence is not None, True]
    around = reference, h, confidence, smoothness, target
    expected = operators.kernels["gradients"](handle, *around, y, wanted, *config)
    found = device_operators.gradients(fail, own, *move(around), mine, wanted, *config)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.cpu(), b, atol=1e-6)
    matrix = reference, h, confidence, smoothness
    for transposed in (False, True):
        expected = operators.kernels["surroundings"](handle, *matrix, transposed, *config)
        found = device_operators.surroundings(fail, own, *move(matrix), transposed, *config)
        assert_allclose(found.cpu(), expected, atol=1e-9)
    assert_allclose(
        device_operators.apply_inverse(fail, own, *move(matrix), *config).cpu(),
        operators.kernels["apply_inverse"](handle, *matrix, *config),
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
    config = (2.0, 64.0, 64.0), BLUR, None, 1e-6, 60, kind, False
    _, first = device_operators.solve(fail, reference, t[0], c[0], one, None, *config)
    x, second = device_operators.solve(fail, reference, t[1], c[1], one, first, *config)
    assert kept.find(second)[0].space is kept.find(first)[0].space
    expected, _ = device_operators.solve(fail, reference, t[1], c[1], one, None, *config)
    assert torch.equal(x, expected)


@pytest.fixture
def no_graphs(monkeypatch):
    """Recordings without a device: what would be recorded is run, and a replay does nothing."""

    class Nothing:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def __getattr__(self, _):
            return lambda *_, **__: None

    for name in ("CUDAGraph", "Event", "Stream", "current_stream", "graph", "stream"):
        monkeypatch.setattr(torch.cuda, name, Nothing)


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.usefixtures("no_graphs")
def test_a_recording_is_the_same_solve(monkeypatch, sparse):
    monkeypatch.setattr(graphs, "_FIRST", dict.fromkeys(graphs._FIRST, 40))  # all, at once
    rng = np.random.default_rng(14)
    reference = torch.from_numpy(pictures(15, 1, 6, 9, 1).transpose(0, 3, 1, 2).copy())
    values = torch.from_numpy(rng.normal(size=(54, 1)))
    c = rng.uniform(0.5, 1, (54, 1)) * ((rng.random((54, 1)) < 0.2) | (not sparse))
    weights = torch.from_numpy(c)
    options = device.Options((3.0, 64.0, 64.0), BLUR, None, 1e-6, 40, "multigrid", False)
    where = device.space(reference, options)
    expected, problem, outcome = device.solve(where, values, weights, 1.0, options)
    assert problem.kind == ("multigrid" if sparse else "pyramid")
    recorder = replay.Recorder(options)
    inputs = reference, values, weights
    found = recorder.solve(*inputs, 1.0)
    assert list(recorder.recordings) == (["pyramid", "multigrid"] if sparse else ["pyramid"])
    x, again, ticket = found
    assert again.converged
    assert outcome.converged
    assert_array_equal(x, expected)
    h = torch.from_numpy(rng.normal(size=(54, 1)))
    wanted = True, True, True
    z, outcome = problem.inverse(h, options.tolerance)
    assert outcome.converged
    expected = device.gradients(problem, z, values, weights, wanted)
    with ticket.recording(*inputs, 1.0) as made:
        assert made is recorder.recordings[problem.kind]
        z, again = made.inverse(h)
        assert again.converged
        for one, other in zip(
            device.gradients(made.problem, z, values, weights, wanted), expected, strict=True
        ):
            assert_array_equal(one, other)
    y = made.problem.y
    made._go_on(1)
    assert made.problem.y is y  # which a replay reads, whatever was recorded last
    values[3] = np.nan
    assert recorder.solve(*inputs, 1.0) is not None  # the recording did not see that
    assert made._judge([*made.rooms.grid, 1, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert made._judge([*made.rooms.grid, 0, 0, 0, 0, 0, 50.0, 0, 1], 1.0) is None
    assert made._judge([9**9, *made.rooms.grid[1:], 0, 0, 0, 0, 0, 50.0, 0, 0], 1.0) is None
    assert made.outgrown


@pytest.mark.skipif(COMPILED, reason="a real recording is made instead")
@pytest.mark.usefixtures("no_graphs")
def test_a_recording_outlives_inference_mode():
    options = device.Options((3.0, 64.0, 64.0), BLUR, None, 1e-3, 1, "pyramid", False)
    recorder = replay.Recorder(options)
    with torch.inference_mode():
        reference = torch.zeros(1, 1, 2, 3, dtype=torch.uint8)
        values = torch.arange(6.0)[:, None]
        found = recorder.solve(reference, values, None, 1.0)
    with found.ticket.recording(reference, values, None, 1.0) as made:
        made.inverse(values.clone())
    assert recorder.solve(reference.clone(), values.clone(), None, 2.0) is not None
    with torch.inference_mode():
        assert recorder.solve(reference, values, None, 3.0) is not None


@pytest.mark.skipif(COMPILED, reason="only the interpreter can look at addresses")
@pytest.mark.parametrize(("kind", "seed"), [("pyramid", 0), ("multigrid", 1)])
@pytest.mark.usefixtures("no_graphs")
def test_a_recording_that_is_outgrown_stays_within_its_memory(monkeypatch, kind, seed):
    """It tells so afterwards: before, everything was computed, and had to stay in bounds."""
    from bounds import within_bounds

    monkeypatch.setattr(recording, "_LEAST_ROOM", 4)
    monkeypatch.setattr(hierarchy, "_ALONE", 6)
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:14, :18]

    def inputs(noise):
        picture = 60 + 2 * x + y + rng.normal(0, noise, (1, 3, 14, 18))
        values, weights = rng.random((2, 14 * 18, 1))
        made = picture.clip(0, 255).astype(np.uint8), values, weights * (weights > 0.9)
        return tuple(map(torch.from_numpy, made))

    options = device.Options((4.0, 8.0, 8.0), BLUR, None, 1e-3, 1, kind, False)
    with within_bounds(monkeypatch):
        made = recording.Recording(*inputs(2), options, kind, None)
        for there, given in zip(
            (made._reference, made._values, made._weights), inputs(20), strict=True
        ):
            there.copy_(given)
        made._build_grid()
        made._complete_space()
        made._take_values()
        made._begin(1)
        *facts, _ = made._report.tolist()[: recording.FACTS]
    assert made._judge(facts, 1.0) is None
    assert made.outgrown


def test_errors_name_the_argument():
    reference = torch.zeros(2, 3, 4, 4, device=DEVICE)
    target = torch.zeros(2, 1, 4, 4, device=DEVICE)
    one = torch.tensor(1.0, dtype=torch.float64)
    config = (2.0, 8.0, 8.0), BLUR, None, 1e-3, 10, "pyramid", False
    c = torch.ones(2, 1, 4, 4, device=DEVICE)
    c[1, 0, 2, 2] = -1
    with pytest.raises(ValueError, match="confidence: expected finite numbers, 0 or above"):
        device_operators.solve(fail, reference, target, c, one, None, *config)
    c[1] = 0
    with pytest.raises(ValueError, match="at least one pixel with a finite value") as error:
        device_operators.solve(fail, reference, target, c, one, None, *config)
    assert error.value.__notes__ == ["In image 1 of the batch."]
    reference[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="reference: expected finite values"):
        device_operators.solve(fail, reference, target, None, one, None, *config)


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
class TestOnAGpu:
    """What only the real thing can show."""

    def test_public_function_agrees_and_repeats(self):
        import bilateral.torch

        torch.manual_seed(0)
        reference = (torch.rand(3, 3, 97, 130) * 255).to(torch.uint8) // 32 * 32
        target, c = torch.randn(3, 2, 97, 130), torch.rand(3, 1, 97, 130)
        for weights in (None, c, c * (c > 0.97)):
            on = [None if t is None else t.cuda() for t in (reference, target, weights)]
            x = bilateral.torch.solve(reference, target, weights, tolerance=1e-6)
            y = bilateral.torch.solve(*on, tolerance=1e-6)
            assert y.is_cuda
            assert (x - y.cpu()).norm() < 1e-4 * x.norm()
            assert torch.equal(y, bilateral.torch.solve(*on, tolerance=1e-6))

    def test_recordings_are_the_plain_solve(self):
        import bilateral.torch

        torch.manual_seed(1)
        noise = torch.rand(2, 1, 3, 140, 190, device="cuda") * 255
        references = noise.to(torch.uint8) // 16 * 16
        target, c = torch.rand(2, 1, 1, 140, 190, device="cuda")
        few, holes = (c > 0.97).float(), torch.ones_like(c)
        holes[..., 30:90, 40:120] = 0
        calls = list(product(references, [target], (c, few, holes)))
        plain = []
        for call in calls:
            replay._seen.clear()
            plain.append(bilateral.torch.solve(*call))
        for _ in range(3):  # all by the same recorder
            for call, expected in zip(calls, plain, strict=True):
                assert torch.equal(bilateral.torch.solve(*call), expected)
        (recorder,) = replay._seen.values()
        assert set(recorder.recordings) == {"pyramid", "multigrid"}

    def test_calls_like_one_before_take_a_shorter_way(self, monkeypatch):
        import bilateral.torch
        from bilateral.torch import shortcut

        torch.manual_seed(6)
        reference = (torch.rand(2, 3, 50, 60, device="cuda") * 255).to(torch.uint8) // 32 * 32
        target, c = torch.rand(2, 2, 1, 50, 60, device="cuda")
        calls = [
            {"target": target, "confidence": c},
            {"target": target},
            {"target": target[:, 0], "reference": reference[:1]},
            {"target": target, "confidence": c[:, 0]},
            {"target": target, "confidence": c, "smoothness": 9.0},
            {"target": target, "confidence": c, "smoothness": torch.tensor(4.0)},
            {"target": target.expand(-1, 3, -1, -1), "confidence": c},
            {"target": target.double(), "confidence": c.double()},
            {"target": (9 * target).int()},
            {"target": target, "reference": reference / 255.0, "confidence": c},
        ]
        calls = [{"reference": reference, **call} for call in calls]
        shortcut._ways.clear()
        taken = []
        for call in calls:
            with monkeypatch.context() as patch:  # never the way of a call before
                patch.setattr(shortcut.Call, "of", lambda *_: None)
                expected = bilateral.torch.solve(**call)
            for _ in range(3):
                found = bilateral.torch.solve(**call)
                assert found.dtype == expected.dtype
                assert torch.equal(found, expected)
            with monkeypatch.context() as patch:
                patch.setattr(shapes, "batch", None)  # which the usual way would call
                try:
                    assert torch.equal(bilateral.torch.solve(**call), expected)
                except TypeError:
                    taken.append(False)
                else:
                    taken.append(True)
        assert taken == [True, True, False, True, True, False, False, True, False, True]

    def test_recorded_gradients_are_the_plain_ones(self):
        import bilateral.torch

        torch.manual_seed(3)
        reference = (torch.rand(1, 3, 90, 120, device="cuda") * 255).to(torch.uint8) // 32 * 32
        c, h = torch.rand(2, 1, 1, 90, 120, device="cuda")
        holes = torch.ones_like(c)
        holes[..., 30:80, 40:110] = 0
        targets = torch.rand(2, 1, 1, 90, 120, device="cuda")

        def solved(target, weights, robust):
            inputs = target.clone(), weights.clone(), torch.tensor(3.0).cuda()
            *maps, factor = inputs = [value.requires_grad_() for value in inputs]
            more = {"iterations": 3} if robust else {}
            solve = bilateral.torch.solve_robust if robust else bilateral.torch.solve
            return inputs, solve(reference, *maps, smoothness=factor, **more)

        def gradients(inputs, y):
            return torch.autograd.grad(y, inputs, h)

        for weights in (c, (c > 0.95).float(), holes):
            for robust in (False, True):
                plain = []
                for target in targets:
                    replay._seen.clear()
                    plain.append(gradients(*solved(target, weights, robust)))
                for order in ((0, 1), (1, 0), (1, 0)):  # of backwards, after both forwards
                    made = [solved(target, weights, robust) for target in targets]
                    for i in order:
                        for one, other in zip(gradients(*made[i]), plain[i], strict=True):
                            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_training_follows_inference_mode(self):
        import bilateral.torch

        torch.manual_seed(7)
        reference, target = torch.rand(1, 1, 40, 50).cuda(), torch.rand(1, 1, 40, 50).cuda()
        replay._seen.clear()
        for _ in range(2):
            with torch.inference_mode():
                expected = [bilateral.torch.solve(reference, target) for _ in range(2)][-1]
            for smoothness in (4.0, 5.0):
                given = target.clone().requires_grad_()
                y = bilateral.torch.solve(reference, given, smoothness=smoothness)
                assert smoothness != 4 or torch.equal(y, expected)
                y.sum().backward()
                assert torch.isfinite(given.grad).all()

    def test_recorded_solves_have_second_derivatives(self):
        import bilateral.torch

        torch.manual_seed(4)
        reference = (torch.rand(1, 3, 6, 7, device="cuda") * 255).to(torch.uint8) // 64 * 64
        like = {"dtype": torch.float64, "device": "cuda"}
        target = torch.randn(1, 1, 6, 7, **like, requires_grad=True)
        c = torch.rand(1, 1, 6, 7, **like).add(0.1).requires_grad_()

        def solve(target, c):
            return bilateral.torch.solve(reference, target, c, sigma_xy=3, tolerance=1e-12)

        solve(target, c)
        assert torch.autograd.gradgradcheck(solve, (target, c))

    def test_values_that_are_not_finite_are_recorded_too(self):
        import bilateral.torch

        torch.manual_seed(5)
        reference = torch.rand(1, 1, 50, 60).cuda()
        target = torch.rand(1, 1, 50, 60).cuda()
        target[..., 10:20, 10:20] = torch.nan
        replay._seen.clear()
        plain = bilateral.torch.solve(reference, target)
        for _ in range(3):
            assert torch.equal(bilateral.torch.solve(reference, target), plain)
        (recorder,) = replay._seen.values()
        assert recorder.recordings

    def test_many_sizes(self):
        import bilateral.torch

        torch.manual_seed(2)
        for i in range(16):
            size = 40 + 3 * i, 75 - 2 * i
            reference = (torch.rand(1, 3, *size) * 255).to(torch.uint8) // 32 * 32
            target = torch.rand(1, 1, *size)
            x = bilateral.torch.solve(reference, target, tolerance=1e-6)
            y = bilateral.torch.solve(reference.cuda(), target.cuda(), tolerance=1e-6)
            assert (x - y.cpu()).norm() < 1e-4 * x.norm()

    def test_too_little_memory_is_torchs_error_and_the_next_call_works(self):
        import bilateral.torch

        replay._seen.clear()
        torch.cuda.empty_cache()
        reference, target = torch.rand(1, 3, 64, 64).cuda(), torch.rand(1, 1, 64, 64).cuda()
        expected = bilateral.torch.solve(reference, target)
        large = torch.rand(1, 1, 2048, 2048).cuda()
        room = torch.cuda.memory_reserved() + 2**24
        torch.cuda.set_per_process_memory_fraction(room / torch.cuda.mem_get_info()[1])
        try:
            for _ in range(3):
                with pytest.raises(torch.OutOfMemoryError):
                    bilateral.torch.solve(large, large)
            assert torch.equal(bilateral.torch.solve(reference, target), expected)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def test_recordings_give_way(self):
        import bilateral.torch

        replay.forget()
        large = torch.rand(1, 1, 1024, 1024).cuda()
        expected = bilateral.torch.solve(large, large)
        replay._seen.clear()
        for side in (1023, 1022, 1021):
            image = large[..., :side, :side].contiguous()
            for _ in range(2):
                bilateral.torch.solve(image, image)
        torch.cuda.empty_cache()
        limit = torch.cuda.memory_reserved() + 2**20
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
        try:
            assert torch.equal(bilateral.torch.solve(large, large), expected)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)

    def test_gradcheck(self):
        import bilateral.torch

        torch.manual_seed(0)
        reference = (torch.rand(2, 3, 6, 7, device="cuda") * 255).to(torch.uint8) // 64 * 64
        like = {"dtype": torch.float64, "device": "cuda"}
        target = torch.randn(2, 2, 6, 7, **like, requires_grad=True)
        c = torch.rand(2, 1, 6, 7, **like).add(0.1).requires_grad_()
        smoothness = torch.tensor(2.0, **like, requires_grad=True)

        def solve(target, c, smoothness):
            return bilateral.torch.solve(
                reference, target, c, sigma_xy=3, smoothness=smoothness, tolerance=1e-12
            )

        assert torch.autograd.gradcheck(solve, (target, c, smoothness))
