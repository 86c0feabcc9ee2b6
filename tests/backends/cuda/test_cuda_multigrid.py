# ruff: noqa: E402
"""The multigrid preconditioner on CUDA devices: its graphs, its cycles, and how fast they are.

Without a GPU its kernels run in Triton's interpreter, one number at a time: so the grids are tiny.
"""

import functools
import os
import warnings
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

torch = pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
COMPILED = torch.cuda.is_available()
if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
    pytest.skip("no GPU that PyTorch can use, and no interpreter", allow_module_level=True)
pytest.importorskip("triton", reason="the kernels need Triton")

from bilateral.backends.cuda.multigrid.coarsening import coarsen
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import components
from support.edge_tables import packed

DEVICE = "cuda" if COMPILED else "cpu"
BLUR = (1.0, 0.5, 0.0625)
DTYPES = [torch.float32, torch.float64]
pytestmark = pytest.mark.interpreter


class Scene(NamedTuple):
    """Grids of a batch, as far as multigrid needs them."""

    vertex: np.ndarray  # of each pixel
    neighbours: np.ndarray
    n: np.ndarray
    colour: np.ndarray
    first_vertex: np.ndarray

    @property
    def count(self):
        return int(self.first_vertex[-1])

    @property
    def weights(self):
        """Of the graph's edges."""
        column, i = np.nonzero(self.neighbours >= 0)
        j = self.neighbours[column, i]
        factor = np.where(column < 4, BLUR[1], BLUR[2])
        values = factor * self.n[i] * self.n[j]
        return csr_matrix((values, (i, j)), (self.count, self.count))

    def edges(self, more=0):
        neighbours = np.pad(self.neighbours, ((0, 0), (0, more)), constant_values=7)
        return packed(
            on_device(neighbours.astype(np.int32)),
            on_device(self.first_vertex[-1:].astype(np.int32)),
        )

    def hierarchy(self, dtype=torch.float64, rooms=None, first_small=None, more=0):
        """With room for more vertices than there are, of nonsense."""
        n = np.pad(self.n, (0, more), constant_values=np.nan)
        return Hierarchy(
            self.edges(more),
            on_device(n).to(dtype),
            BLUR,
            on_device(self.first_vertex.astype(np.int32)),
            rooms,
            first_small,
        )

    def vcycle(self, hierarchy, weight, smoothness, degree=2):
        graph = hierarchy.graphs[0]
        more = graph.room - self.count
        return make_vcycle(
            hierarchy,
            on_device(np.pad(weight, (0, more), constant_values=np.nan)).to(graph.degree.dtype),
            torch.tensor(smoothness, dtype=torch.float64, device=DEVICE),
            on_device(np.pad(self.colour, (0, more)).astype(np.int32)),
            degree,
        )

    def matrix(self, weight, smoothness):
        """A."""
        W = self.weights
        return (diags(smoothness * W.sum(1).A1 + weight) - smoothness * W).tocsr()


def make_vcycle(*arguments):
    return VCycle(
        *arguments,
        level_stiffness=policy.LEVEL_STIFFNESS,
        faint_epsilons=policy.FAINT_EPSILONS,
    )


def on_device(values):
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE)


def make_scene(photo, sigma_xy=4.0, sigma=24.0):
    """The grid of a photo (H, W, C), in NumPy."""
    y, x = np.mgrid[: photo.shape[0], : photo.shape[1]]
    cells = [
        np.round(y / sigma_xy),
        np.round(x / sigma_xy),
        *np.round(photo / sigma).T.swapaxes(1, 2),
    ]
    keys = np.stack(cells, 2).reshape(y.size, -1).astype(int) + 1
    keys -= keys.min(0) - 1
    sides = keys.max(0) + 2
    codes, first, vertex, mass = np.unique(
        np.ravel_multi_index(keys.T, sides),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    of_vertex = keys[first]
    axes = np.eye(len(sides), dtype=int)[[1, 0, *range(2, len(sides))]]
    neighbours = []
    for step in (s * axis for axis in axes for s in (1, -1)):
        wanted = np.ravel_multi_index((of_vertex + step).T, sides)
        at = np.searchsorted(codes, wanted).clip(max=len(codes) - 1)
        neighbours.append(np.where(codes[at] == wanted, at, -1))
    scene = Scene(
        vertex.ravel(),
        np.array(neighbours),
        np.ones(len(codes)),
        of_vertex.sum(1) % 2,
        np.array([0, len(codes)]),
    )
    n, B = scene.n, scene.weights
    for _ in range(60):
        n = np.sqrt(n * mass / (BLUR[0] * n + B @ n))
    return scene._replace(n=n)


@functools.cache
def photo_scene(seed=0, height=48, width=64):
    """Shading, two objects, and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    disc = (x - 0.6 * width) ** 2 + (y - 0.4 * height) ** 2 < (0.2 * width) ** 2
    photo = np.stack([2 * x + 30 * np.sin(y / 9), 3 * y + 60 * (x > width / 2), 90 + 80 * disc], 2)
    return make_scene(photo + rng.normal(0, 2, photo.shape))


@functools.cache
def parts_scene(seed=1):
    """Few vertices, in several parts, some of them single."""
    rng = np.random.default_rng(seed)
    return make_scene(rng.integers(0, 3, (6, 8, 3)) * [24.0, 0, 16], 2.0)


@functools.cache
def dense_scene():
    """Vertices with neighbours in all directions."""
    rng = np.random.default_rng(14)
    return make_scene(rng.integers(0, 3, (16, 20, 3)) * 24.0, 8.0)


def together(*scenes):
    """A batch."""
    starts = np.cumsum([0, *(scene.count for scene in scenes)])
    neighbours = [
        np.where(scene.neighbours >= 0, scene.neighbours + start, -1)
        for scene, start in zip(scenes, starts, strict=False)
    ]
    return Scene(
        np.concatenate([s.vertex + start for s, start in zip(scenes, starts, strict=False)]),
        np.concatenate(neighbours, 1),
        np.concatenate([s.n for s in scenes]),
        np.concatenate([s.colour for s in scenes]),
        starts,
    )


def confidence(scene, part, seed=2):
    """Sums over vertices of c, known at a part of the pixels, and of c times a noisy target."""
    rng = np.random.default_rng(seed)
    c = (rng.random(scene.vertex.size) < part).astype(float)
    target = scene.vertex / scene.count + rng.normal(0, 0.2, c.shape)
    return (np.bincount(scene.vertex, v, scene.count) for v in (c, c * target))


def laplacian(graph):
    """The weights of a coarse graph, in NumPy."""
    rows = min(int(graph.total), graph.room)
    first, last, to, weight = (
        t.cpu().numpy() for t in (graph.first, graph.last, graph.to, graph.weight)
    )
    counts = (last - first)[:rows]
    entries = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])[
        : counts.sum()
    ]
    row = np.repeat(np.arange(rows), counts)
    W = coo_matrix((weight[entries], (row, to[entries])), (rows, rows))
    assert len(set(zip(W.row.tolist(), W.col.tolist(), strict=True))) == W.nnz
    assert_allclose(graph.degree.cpu().numpy()[:rows], W.sum(1).A1, rtol=1e-6)
    return W.tocsr()


@pytest.mark.parametrize(
    ("dtype", "more"), [pytest.param(torch.float32, 0, marks=pytest.mark.smoke), (torch.float64, 9)]
)
def test_coarse_graphs_are_those_of_connected_aggregates(dtype, more):
    scene = together(dense_scene(), parts_scene())
    hierarchy = scene.hierarchy(dtype, more=more)
    assert not bool(hierarchy.overflow)
    W, tolerance = scene.weights, {"rtol": 1e-5 if dtype == torch.float32 else 1e-12}
    for graph, way in zip(hierarchy.graphs[1:], hierarchy.transfers, strict=True):
        of = way.parent.cpu().numpy()[: W.shape[0]]
        assert_array_equal(of < 0, W.getnnz(1) == 0)
        rows = np.nonzero(of >= 0)[0]
        P = csr_matrix((np.ones(rows.size), (rows, of[rows])), (W.shape[0], graph.room))
        inside = W.multiply(P @ P.T)
        assert connected_components(inside[rows][:, rows])[0] == graph.room
        assert_array_equal(
            way.members.cpu().numpy()[: rows.size], rows[np.argsort(of[rows], kind="stable")]
        )
        coarse = (P.T @ W @ P).toarray()
        np.fill_diagonal(coarse, 0)
        W = laplacian(graph)
        assert_allclose(W.toarray(), coarse, atol=1e-12, **tolerance)
    assert W.nnz == 0
    starts = hierarchy.graphs[1].starts.tolist()
    assert starts[0] == 0
    assert starts[1] == hierarchy.transfers[0].parent[: scene.first_vertex[1]].max() + 1
    assert starts[2] == hierarchy.graphs[1].room


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_many_links(dtype):
    count, rng = 60, np.random.default_rng(15)
    W = np.triu(rng.integers(1, 4, (count, count)), 1) * (rng.random((count, count)) < 0.9)
    W = W + W.T + np.diag(np.ones(count - 1), 1) + np.diag(np.ones(count - 1), -1)
    graph = all_in_one(W, dtype)
    coarse, way = coarsen(graph, None)
    links = (way.bounds >> 32).diff()
    assert links.min() < 128 < links.max()  # several blocks
    P = np.eye(coarse.room)[way.parent.cpu()]
    W = P.T @ W @ P
    np.fill_diagonal(W, 0)
    assert_array_equal(laplacian(coarse).toarray(), W)
    assert_array_equal(coarse.degree.cpu(), W.sum(1))
    assert_array_equal(coarse.least.cpu(), W.max(1) / 2)
    row = np.arange(coarse.room)
    mixed = ((row[:, None] ^ row) * -1640531535).astype(np.int32)
    mixed = np.where(W.max(1, keepdims=True) == W, mixed, np.iinfo(np.int32).min)
    assert_array_equal(coarse.nearest.cpu(), mixed.argmax(1))


def all_in_one(W, dtype):
    """The graph of a dense matrix of weights, as those of aggregates."""
    row, to = np.nonzero(W)
    bounds = np.searchsorted(row, np.arange(len(W) + 1)).astype(np.int32)
    return Graph(
        len(W),
        on_device(np.array([len(W)], np.int32)),
        on_device(np.array([0, len(W)], np.int32)),
        on_device(to.astype(np.int32)),
        None,
        None,
        on_device(W[row, to]).to(dtype),
        on_device(bounds[:-1]),
        on_device(bounds[1:]),
        on_device(W.sum(1)).to(dtype),
        on_device(W.argmax(1).astype(np.int32)),
        on_device(W.max(1) / 2).float(),
    )


@pytest.mark.parametrize(
    ("alone", "degree"), [(1, 1), pytest.param(2, 2, marks=pytest.mark.smoke), (99, 1), (99, 3)]
)
def test_a_cycle_is_symmetric_and_positive_definite(alone, degree):
    scene = parts_scene()
    weight, _ = confidence(scene, 0.2)
    known = with_data(scene, weight)
    assert 0 < known.sum() < scene.count
    vcycle = scene.vcycle(scene.hierarchy(first_small=first_small), weight, 3.0, degree)
    # Nothing comes from parts without data.
    M = vcycle.apply(on_device(np.diag(known.astype(float)))).cpu().numpy()
    assert_allclose(M, M.T, atol=1e-13)
    assert not M[~known].any()
    M = M[known][:, known]
    assert np.linalg.eigvalsh(M).min() > 0
    A = scene.matrix(weight, 3.0).toarray()[known][:, known]
    eigenvalues = np.linalg.eigvals(M @ A).real
    assert eigenvalues.min() > 0.15
    assert eigenvalues.max() < 1.6


def with_data(scene, weight):
    count, label = connected_components(scene.weights)
    return np.bincount(label, weight, count)[label] > 0


@pytest.mark.parametrize("first_small", [1, 2, 99])
def test_parts_with_data(first_small):
    scene = together(parts_scene(4), parts_scene(5))
    hierarchy = scene.hierarchy(first_small=first_small)
    for part in (0.0, 0.02, 0.2, 1.0):
        weight, _ = confidence(scene, part)
        found = scene.vcycle(hierarchy, weight, 1.0).with_data
        assert_array_equal(found.cpu(), with_data(scene, weight))
        grid = SimpleNamespace(edges=scene.edges())
        assert_array_equal(found.cpu(), components.with_data(grid, on_device(weight)).cpu())


@functools.cache
def photo_hierarchy(dtype):
    return photo_scene().hierarchy(dtype, first_small=None if dtype == torch.float64 else 3)


@pytest.mark.parametrize("part", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("smoothness", [0.25, 4.0, 128.0, 10_000.0])
def test_a_few_steps_suffice(part, smoothness):
    assert steps(part, smoothness, torch.float64) <= 6


# With smoother and fewer data, the mean drowns in rounding: see below.
@pytest.mark.parametrize(("part", "smoothness"), [(0.01, 128.0), (1.0, 10_000.0)])
def test_a_few_steps_suffice_in_single_precision(part, smoothness):
    assert steps(part, smoothness, torch.float32) <= 6


def steps(part, smoothness, dtype):
    """Until the relative error in the A-norm is 1e-3."""
    scene = photo_scene()
    weight, b = confidence(scene, part)
    vcycle = scene.vcycle(photo_hierarchy(dtype), weight, smoothness)
    assert not int(vcycle.has_faint_component)
    A, known = scene.matrix(weight, smoothness), with_data(scene, weight)
    exact = spsolve((A + diags((~known).astype(float))).tocsc(), b)
    errors = solve(A, vcycle, on_device(b).to(dtype)[:, None], exact)
    return next(step for step, error in enumerate(errors) if step == 10 or error < 1e-3)


def solve(A, vcycle, b, exact):
    """Preconditioned conjugate gradients from the nested start: relative errors in the A-norm."""

    def multiply(d):
        return on_device(A @ d.cpu().numpy().astype(float)).to(d.dtype)

    def error():
        e = x[:, 0].cpu().numpy() - exact
        return np.sqrt(e @ (A @ e) / (exact @ (A @ exact)))

    x = vcycle.nested_start(b)
    yield error()
    r, d, last = b - multiply(x), torch.zeros_like(b), 1.0
    while True:
        z = vcycle.apply(r)
        now = (r * z).sum()
        d = z + now / last * d
        q = multiply(d)
        alpha = now / (d * q).sum()
        x, r, last = x + alpha * d, r - alpha * q, now
        yield error()


def results(vcycle, r, count):
    """Of all that there is."""
    out = [vcycle.apply(r), vcycle.nested_start(r), vcycle.with_data]
    assert not any(values[count:].any() for values in out)
    return [values[:count].cpu() for values in out]


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_room_changes_nothing(dtype):
    scene, rng = together(photo_scene(6, 10, 14), parts_scene()), np.random.default_rng(7)
    weight, _ = confidence(scene, 0.3)
    r = rng.normal(size=(scene.count, 2)) * with_data(scene, weight)[:, None]
    exact = scene.hierarchy(dtype, first_small=2)
    rooms = [(5 * rows // 4 + 3, 5 * links // 4 + 8) for rows, links in exact.rooms]
    one = results(scene.vcycle(exact, weight, 5.0), on_device(r).to(dtype), scene.count)
    for more, wide in ((0, exact.rooms), (11, [*rooms, (4, 4), (1, 1)])):
        roomy = scene.hierarchy(dtype, wide, 2, more)
        assert not bool(roomy.overflow)
        padded = np.pad(r, ((0, more), (0, 0)))
        two = results(scene.vcycle(roomy, weight, 5.0), on_device(padded).to(dtype), scene.count)
        for a, b in zip(one, two, strict=True):
            assert_array_equal(a, b)


def test_too_little_room_is_told(monkeypatch):
    scene = photo_scene(6, 10, 14)
    weight, b = confidence(scene, 0.5)
    rooms = scene.hierarchy().rooms
    (rows, links), (few, fewer) = rooms[:2]
    guards = Guards()
    monkeypatch.setattr(torch, "empty", guards.around(torch.empty))
    monkeypatch.setattr(torch, "zeros", guards.around(torch.zeros))
    for tight in (
        [(rows - 1, links), *rooms[1:]],
        [(rows, links - 1), *rooms[1:]],
        [(rows // 3, links // 5), *rooms[1:]],
        [rooms[0], (few // 2, fewer // 2), *rooms[2:]],
        [(1, 1)] * 3,
        rooms[:1],
        rooms[:-1],
        [],
    ):
        hierarchy = scene.hierarchy(rooms=tight)
        assert bool(hierarchy.overflow)
        vcycle = scene.vcycle(hierarchy, weight, 1.0)
        assert vcycle.apply(on_device(b)[:, None]).isfinite().all()
        assert vcycle.nested_start(on_device(b)[:, None]).isfinite().all()
        assert vcycle.with_data.shape == (scene.count,)
        guards.check()


@pytest.mark.skipif(COMPILED, reason="only the interpreter can look at addresses")
def test_too_little_room_is_not_exceeded(monkeypatch):
    """Where links are left out, a row's neighbour may not be a neighbour's any more."""
    from support.memory_check import within_bounds

    scene = photo_scene(6, 10, 14)
    rooms = scene.hierarchy().rooms
    with within_bounds(monkeypatch):
        for part in np.linspace(0.1, 0.9, 17):
            tight = [(rows, max(1, int(links * part))) for rows, links in rooms]
            assert bool(scene.hierarchy(rooms=tight).overflow)


def test_with_rooms_nothing_is_read_from_the_device(monkeypatch):
    scene = parts_scene()
    weight, b = confidence(scene, 0.5)
    rooms = scene.hierarchy().rooms
    smoothness = torch.tensor(1.0, dtype=torch.float64, device=DEVICE)
    first_vertex, colour = (
        on_device(t.astype(np.int32)) for t in (scene.first_vertex, scene.colour)
    )
    edges = scene.edges()
    n, weight, b = on_device(scene.n), on_device(weight), on_device(b)[:, None]

    def run():
        hierarchy = Hierarchy(edges, n, BLUR, first_vertex, rooms)
        vcycle = make_vcycle(hierarchy, weight, smoothness, colour)
        return vcycle.apply(vcycle.nested_start(b)), vcycle.with_data, hierarchy.overflow

    expected = run()

    def fail(*_):
        raise AssertionError

    with monkeypatch.context() as patch, waiting_fails():
        for name in ("item", "tolist", "__bool__", "__int__", "__index__", "nonzero", "numpy"):
            patch.setattr(torch.Tensor, name, fail)
        found = run()
    for a, values in zip(found, expected, strict=True):
        assert_array_equal(a.cpu(), values.cpu())


@contextmanager
def waiting_fails():
    """On a device, whatever would wait for it."""
    if not COMPILED:
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


class Guards:
    """Numbers before and after each tensor, which must not change."""

    SIZE, VALUE = 4096, 77

    def __init__(self):
        self.parts = []

    def around(self, make):
        def guarded(*sizes, **options):
            shape = torch.Size(sizes[0] if isinstance(sizes[0], tuple) else sizes)
            memory = make(shape.numel() + 2 * self.SIZE, **options)
            self.parts += [
                memory[: self.SIZE].fill_(self.VALUE),
                memory[-self.SIZE :].fill_(self.VALUE),
            ]
            return memory[self.SIZE : -self.SIZE].view(shape)

        return guarded

    def check(self):
        assert self.parts
        assert all(bool((part == self.VALUE).all()) for part in self.parts)


def test_images_of_a_batch_are_on_their_own():
    scenes = [photo_scene(8, 8, 12), parts_scene(), photo_scene(9, 8, 8)]
    batch, rng = together(*scenes), np.random.default_rng(10)
    weights = [next(iter(confidence(scene, 0.3, 11))) for scene in scenes]
    r = [rng.normal(size=(scene.count, 1)) for scene in scenes]
    found = results(
        batch.vcycle(batch.hierarchy(first_small=2), np.concatenate(weights), 2.0),
        on_device(np.concatenate(r)),
        batch.count,
    )
    for k, (scene, weight, b) in enumerate(zip(scenes, weights, r, strict=True)):
        alone = results(
            scene.vcycle(scene.hierarchy(first_small=2), weight, 2.0), on_device(b), scene.count
        )
        for a, values in zip(alone, found, strict=True):
            assert_array_equal(a, values[batch.first_vertex[k] : batch.first_vertex[k + 1]])


def test_channels_are_on_their_own():
    scene, rng, dtype = parts_scene(), np.random.default_rng(12), torch.float32
    weight, _ = confidence(scene, 0.3)
    vcycle = scene.vcycle(scene.hierarchy(dtype, first_small=2), weight, 2.0)
    r = on_device(rng.normal(size=(scene.count, 3))).to(dtype)
    for function in (vcycle.apply, vcycle.nested_start):
        all_three = function(r)
        for first, last in ((0, 1), (1, 3), (2, 3)):
            part = function(r[:, first:last].contiguous())
            assert_array_equal(part.cpu(), all_three[:, first:last].cpu())


@pytest.mark.smoke
def test_one_colour_stays_solved():
    scene, rng = parts_scene(), np.random.default_rng(13)
    weight = rng.uniform(0.5, 1, scene.count)
    vcycle = scene.vcycle(scene.hierarchy(first_small=2), weight, 2.0)
    A, (b, x) = (
        scene.matrix(weight, 2.0),
        (on_device(rng.normal(size=(scene.count, 2))) for _ in "bx"),
    )
    vcycle.solve_colour0(b, x)
    for there in (x, vcycle.nested_start(b)):
        r = b.cpu().numpy() - A @ there.cpu().numpy()
        assert abs(r[scene.colour == 0]).max() < 1e-12
        assert abs(r[scene.colour == 1]).max() > 0.01
    r[scene.colour == 0] = 0
    z = vcycle.apply(on_device(r))
    assert_allclose(vcycle.apply(on_device(r), colour0_solved=True).cpu(), z.cpu(), atol=1e-14)
    assert abs((A @ z.cpu().numpy())[scene.colour == 0]).max() < 1e-12
    out = torch.full_like(z, 5.0)
    assert vcycle.apply(on_device(r), out=out) is out
    assert torch.equal(out, z)


@pytest.mark.smoke
def test_grids_without_edges_are_solved():
    scene = make_scene(np.array([[[0.0], [100.0], [200.0]]]), 1.0, 1.0)
    assert not (scene.neighbours >= 0).any()
    weight, b = np.array([2.0, 0.0, 4.0]), np.array([[1.0], [0.0], [3.0]])
    for rooms in (None, [], [(2, 2)], [(1, 1), (1, 1)]):
        hierarchy = scene.hierarchy(rooms=rooms)
        assert not bool(hierarchy.overflow)
        vcycle = scene.vcycle(hierarchy, weight, 1.0)
        for x in (vcycle.apply(on_device(b)), vcycle.nested_start(on_device(b))):
            assert_allclose(x.cpu(), [[0.5], [0], [0.75]])
        assert vcycle.with_data.tolist() == [True, False, True]


def test_weights_that_drown_in_rounding_are_told():
    scene = photo_scene(6, 14, 18)
    hierarchy = scene.hierarchy(torch.float32)
    for value, smoothness, expected in ((1.0, 100.0, 0), (1e-9, 1e4, 1)):
        weight = np.zeros(scene.count)
        weight[3] = value
        vcycle = scene.vcycle(hierarchy, weight, smoothness)
        assert int(vcycle.has_faint_component) == expected
