# ruff: noqa: E402
"""The CUDA operations against those of the CPU.

Without a GPU they run in Triton's interpreter, one number at a time: so the pictures are tiny.
"""

import os

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
from bilateral.backends import cpu
from bilateral.backends.cuda.grid import keys as tile_keys
from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.grid.bistochastize import bistochastize
from bilateral.backends.cuda.grid.grid import build_grid
from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.solve import components, pcg
from bilateral.backends.cuda.solve.input_stats import compute_input_stats, count_faint
from bilateral.backends.cuda.solve.preconditioner import Preconditioner
from bilateral.numerics.policy import EDGE_GUARD
from bilateral.torch import handles as kept
from bilateral.torch import operators
from bilateral.torch.cuda import operators as device_operators
from bilateral.torch.cuda import recording_cache as replay
from bilateral.torch.cuda import system as device
from support.edge_tables import packed, table

DEVICE = "cuda" if COMPILED else "cpu"
BLUR = (2.0, 1.0, 0.125)
HALF = tuple(weight / 2 for weight in BLUR)  # as the core gets it
pytestmark = pytest.mark.interpreter


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
            edge_guard=EDGE_GUARD,
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
    ((2, 18, 17, 3), 64.0, np.uint8),  # of very many
]


@pytest.mark.smoke
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


@pytest.mark.parametrize("rooms", [None, (400, 400, 400), (20, 400, 400)])
@pytest.mark.parametrize(("shape", "sigma", "dtype"), [CASES[1], CASES[3], CASES[6]])
def test_keys_may_be_sorted_instead(shape, sigma, dtype, rooms, monkeypatch):
    pixels = torch.from_numpy(pictures(4, *shape, dtype)).permute(0, 3, 1, 2).to(DEVICE)
    highest = 255.0 if dtype == np.uint8 else 1.0
    matrix, offset = color.feature_map(shape[3], highest)
    arguments = matrix.tolist(), offset.tolist(), [8.0] * shape[3], highest, sigma, rooms
    one = build_grid(pixels, *arguments, edge_guard=EDGE_GUARD)
    monkeypatch.setattr(tile_keys, "_MAX_PIXELS", 0)
    monkeypatch.setattr(splatting, "_PART", 16)
    other = build_grid(pixels, *arguments, edge_guard=EDGE_GUARD)
    assert one.tile_keys.ranks is not None
    assert other.tile_keys.sorted_pixels is not None
    total = min(int(one.total), one.room)
    for name in ("keys", "tile", "pixel_count"):
        mine, theirs = (getattr(grid.tile_keys, name)[:total] for grid in (one, other))
        if (
            rooms == (20, 400, 400) and name == "pixel_count"
        ):  # the last one has what there was no room for
            mine, theirs = mine[:-1], theirs[:-1]
        assert torch.equal(mine, theirs)
    assert not other.tile_keys.pixel_count[total:].any()
    for name in ("first_of_tile", "first_of_image", "total"):
        assert torch.equal(getattr(one.tile_keys, name), getattr(other.tile_keys, name))
    if rooms is None or rooms[0] > total:
        assert torch.equal(one.parent, other.parent)
        assert torch.equal(table(one.edges), table(other.edges))
        rng = np.random.default_rng(5)
        values = torch.from_numpy(rng.normal(size=(one.parent.shape[0], 3))).to(DEVICE)
        weights = torch.from_numpy(rng.uniform(size=(len(values), 1))).to(DEVICE)
        for mine, theirs in zip(
            splatting.splat_weighted(one, values, weights),
            splatting.splat_weighted(other, values, weights),
            strict=True,
        ):
            torch.testing.assert_close(mine[:total], theirs[:total], rtol=1e-12, atol=1e-12)


@pytest.mark.smoke
@pytest.mark.parametrize(("room", "total"), [(1, 1), (256, 256), (300, 257), (700, 512), (5, 9)])
@pytest.mark.parametrize("directions", [6, 10])
def test_edges_are_packed(room, total, directions, monkeypatch):
    from support.memory_check import within_bounds

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
def test_splat_slice_and_pyramid_are_the_cpus(shape, sigma, dtype, monkeypatch):
    monkeypatch.setattr(splatting, "_PART", 16)
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
    lifted = pyramid_transfer.push_pull(both.grid, splat)
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
    assert both.grid.tile_keys.keys.max() == 2**63 - 1
    (mass,), grid = both.there(both.grid.mass), both.cpus[0]
    assert_array_equal(mass, grid.splat(np.ones((5, 7))))


def coordinates(grid, field):
    """(vertices, 3 + C): image, y, x and the features' cells."""
    tiles, own = grid.tiles, grid.order.key_of_vertex.cpu().long()
    tile, key = (v.cpu().long()[own] for v in (grid.tile_keys.tile, grid.tile_keys.keys))
    y = tiles.row_cell.cpu()[tile // tiles.columns % tiles.rows]
    x = tiles.column_cell.cpu()[tile % tiles.columns]
    cells = [key >> (field * k) & ((1 << field) - 1) for k in range(grid.features)]
    return torch.stack([tile // tiles.count, y, x, *cells], 1).numpy()


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
    lifted = pyramid_transfer.push_pull(both.grid, splatting.splat(both.grid, values))
    for mine, grid, v in zip(both.there(lifted), both.cpus, values.view(2, 1, 2), strict=True):
        assert_allclose(mine[:, 0], cpu.push_pull(grid._core, grid.splat(v.cpu().numpy())))


def fits(grid):
    totals = *grid.total.tolist(), *map(int, grid.pyramid.totals)
    return all(n <= room for n, room in zip(totals, grid.rooms, strict=True))


@pytest.mark.parametrize("shape", [(1, 9, 7, 3), (5, 6, 8, 1), (2, 20, 18, 3)])
def test_more_room_changes_nothing(shape):
    images, height, width, _ = shape
    sigma = 32.0 if height == 20 else 2.0  # the former sorts pixels
    options = layer_options((sigma, 8.0, 8.0), 1e-3, 5, "pyramid")
    reference = torch.from_numpy(pictures(12, *shape).transpose(0, 3, 1, 2).copy()).to(DEVICE)
    tight = device.space(reference, options)
    rooms = [n + 37 for n in tight.grid.rooms]
    wide = device.space(reference, options, rooms)
    assert fits(wide.grid)
    count = tight.grid.room
    assert torch.equal(tight.grid.parent, wide.grid.parent)
    assert torch.equal(table(tight.grid.edges), table(wide.grid.edges)[:, :count])
    values = torch.rand(images * height * width, 2, device=DEVICE)
    a, b = (
        pyramid_transfer.push_pull(g, splatting.splat(g, values)) for g in (tight.grid, wide.grid)
    )
    assert torch.equal(a, b[:count])
    n = [where.balanced(torch.float32) for where in (tight, wide)]
    assert torch.equal(n[0], n[1][:count])
    for k in range(3):
        less = [r - (i == k) * 38 for i, r in enumerate(rooms)]
        if less[k] > 0:
            assert not fits(device.space(reference, options, less).grid)


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
    far = [poor[i] and all(poor[j] for j in near[:, i] if j >= 0) for i in range(count)]
    two = torch.tensor(2.0, dtype=torch.float64, device=DEVICE)
    assert count_faint(grid, weight, two, 4.0).tolist() == [(w == 0).sum(), mass[far].sum()]


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bistochastization_balances(dtype):
    both = Both(pictures(4, 2, 6, 7))
    n = bistochastize(both.grid, HALF, dtype)
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
    n = bistochastize(both.grid, HALF, torch.float64)
    flat = np.stack([c, c * target], axis=3).reshape(-1, 2)
    seen = splatting.splat(both.grid, torch.from_numpy(flat).to(DEVICE))
    weight, b = seen[:, 0].contiguous(), seen[:, 1:].contiguous()
    three = torch.tensor(3.0, dtype=torch.float64, device=DEVICE)
    A = Laplacian(both.grid, n, HALF, weight, three)
    H = pyramid_transfer.push_pull(both.grid, seen)
    x = H[:, 1:] / H[:, :1]
    scale = torch.ones(2, 1, dtype=torch.float64, device=DEVICE)
    pcg.solve(A, Preconditioner(A, kind), b, x, scale, None, device.pcg_options(3, -1.0))
    y = splatting.slice_(both.grid, x).cpu().numpy().reshape(2, 6, 8)
    for mine, grid, t, w in zip(y, both.cpus, target, c, strict=True):
        solver = bilateral.BilateralSolver(
            grid, 3.0, preconditioner=kind, initial="pyramid", max_iterations=3, tolerance=0
        )
        assert_allclose(mine, solver.solve(t, w), rtol=1e-9, atol=1e-9)


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
    replay._seen.clear()  # recordings do not look for gaps

    def move(tensors):
        return [t.to(DEVICE) if isinstance(t, torch.Tensor) else t for t in tensors]

    mine, own = device_operators.solve(fail, *move(problem), None, *options.arguments)
    assert_allclose(mine.cpu(), y, atol=1e-7)
    assert_array_equal(own > 0, handle > 0)
    wanted = [True, confidence is not None, True]
    around = reference, h, confidence, smoothness, target
    expected = operators.kernels["gradients"](handle, *around, y, wanted, *options.arguments)
    found = device_operators.gradients(fail, own, *move(around), mine, wanted, *options.arguments)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a.cpu(), b, atol=1e-6)
    matrix = reference, h, confidence, smoothness
    for transposed in (False, True):
        expected = operators.kernels["surroundings"](
            handle, *matrix, transposed, *options.arguments
        )
        found = device_operators.surroundings(
            fail, own, *move(matrix), transposed, *options.arguments
        )
        assert_allclose(found.cpu(), expected, atol=1e-9)
    assert_allclose(
        device_operators.apply_adjoint(fail, own, *move(matrix), *options.arguments).cpu(),
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
    _, first = device_operators.solve(fail, reference, t[0], c[0], one, None, *options.arguments)
    x, second = device_operators.solve(fail, reference, t[1], c[1], one, first, *options.arguments)
    assert kept.find(second)[0].space is kept.find(first)[0].space
    expected, _ = device_operators.solve(fail, reference, t[1], c[1], one, None, *options.arguments)
    assert torch.equal(x, expected)


@pytest.mark.smoke
def test_errors_name_the_argument():
    reference = torch.zeros(2, 3, 4, 4, device=DEVICE)
    target = torch.zeros(2, 1, 4, 4, device=DEVICE)
    one = torch.tensor(1.0, dtype=torch.float64)
    options = layer_options((2.0, 8.0, 8.0), 1e-3, 10, "pyramid")
    c = torch.ones(2, 1, 4, 4, device=DEVICE)
    c[1, 0, 2, 2] = -1
    with pytest.raises(ValueError, match="confidence: expected finite numbers, 0 or above"):
        device_operators.solve(fail, reference, target, c, one, None, *options.arguments)
    c[1] = 0
    with pytest.raises(ValueError, match="at least one pixel with a finite value") as error:
        device_operators.solve(fail, reference, target, c, one, None, *options.arguments)
    assert error.value.__notes__ == ["In image 1 of the batch."]
    reference[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="reference: expected finite values"):
        device_operators.solve(fail, reference, target, None, one, None, *options.arguments)
