"""Kernels of the grid match the CPU: vertices, edges, splat, slice, pyramid and order.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from support.kernel_device import DEVICE

# isort: split
import torch

from bilateral import color
from bilateral.backends import cpu
from bilateral.backends.cuda.grid import keys as tile_keys
from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.grid.grid import build_grid
from bilateral.numerics.policy import EDGE_GUARD
from bilateral.torch.cuda.batch_grid import build_batch_grid
from support.device_grids import CASES, Both, pictures
from support.edge_tables import packed, table
from support.layers import layer_options

pytestmark = pytest.mark.interpreter


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
def test_colours_may_be_sorted_instead(shape, sigma, dtype, rooms, monkeypatch):
    pixels = torch.from_numpy(pictures(4, *shape, dtype)).permute(0, 3, 1, 2).to(DEVICE)
    highest = 255.0 if dtype == np.uint8 else 1.0
    matrix, offset = color.feature_map(shape[3], highest)
    arguments = matrix.tolist(), offset.tolist(), [8.0] * shape[3], highest, sigma, rooms
    one = build_grid(pixels, *arguments, edge_guard=EDGE_GUARD)
    monkeypatch.setattr(tile_keys, "MAX_PIXELS", 0)
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
    tiles, colour = grid.tiles, grid.order.key_of_vertex.cpu().long()
    tile, key = (v.cpu().long()[colour] for v in (grid.tile_keys.tile, grid.tile_keys.keys))
    y = tiles.row_cell.cpu()[tile // tiles.columns % tiles.rows]
    x = tiles.column_cell.cpu()[tile % tiles.columns]
    cells = [key >> (field * k) & ((1 << field) - 1) for k in range(grid.features)]
    return torch.stack([tile // tiles.count, y, x, *cells], 1).numpy()


ORDERS = [
    ((2, 5, 7, 3), (2.0, 8.0), 255.0, 10, 1, torch.int32),
    ((3, 5, 9, 1), (0.7, 8.0), 255.0, 10, 1, torch.int32),
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
    tight = build_batch_grid(reference, options)
    rooms = [n + 37 for n in tight.grid.rooms]
    wide = build_batch_grid(reference, options, rooms)
    assert fits(wide.grid)
    count = tight.grid.room
    assert torch.equal(tight.grid.parent, wide.grid.parent)
    assert torch.equal(table(tight.grid.edges), table(wide.grid.edges)[:, :count])
    values = torch.rand(images * height * width, 2, device=DEVICE)
    a, b = (
        pyramid_transfer.push_pull(g, splatting.splat(g, values)) for g in (tight.grid, wide.grid)
    )
    assert torch.equal(a, b[:count])
    n = [batch_grid.bistochastized(torch.float32) for batch_grid in (tight, wide)]
    assert torch.equal(n[0], n[1][:count])
    for k in range(3):
        less = [r - (i == k) * 38 for i, r in enumerate(rooms)]
        if less[k] > 0:
            assert not fits(build_batch_grid(reference, options, less).grid)
