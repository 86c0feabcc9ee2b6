"""Coarse graphs of multigrid: aggregates, links, and limited room.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny.
"""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

from bilateral.backends.cuda.multigrid.coarsening import coarsen
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from support.multigrid_scenes import (
    BLUR,
    DTYPES,
    confidence,
    dense_scene,
    make_vcycle,
    on_device,
    parts_scene,
    photo_scene,
    results,
    together,
    with_data,
)

pytestmark = pytest.mark.interpreter


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
