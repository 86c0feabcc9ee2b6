"""Grids in NumPy for the tests of multigrid, and their hierarchies on the device."""

import functools
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import connected_components

from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.numerics import policy
from support.edge_tables import packed
from support.kernel_device import DEVICE

BLUR = (1.0, 0.5, 0.0625)
DTYPES = [torch.float32, torch.float64]


def make_vcycle(*arguments):
    """Make a V-cycle with the constants that the CPU shares."""
    return VCycle(
        *arguments,
        level_stiffness=policy.LEVEL_STIFFNESS,
        faint_epsilons=policy.FAINT_EPSILONS,
    )


class Scene(NamedTuple):
    """The parts of a batch of grids that multigrid needs."""

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
        """Weights of the graph's edges."""
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
        """Build a hierarchy with room for `more` vertices, which hold arbitrary values."""
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


def with_data(scene, weight):
    count, label = connected_components(scene.weights)
    return np.bincount(label, weight, count)[label] > 0


def results(vcycle, r, count):
    """Of all that there is."""
    out = [vcycle.apply(r), vcycle.nested_start(r), vcycle.with_data]
    assert not any(values[count:].any() for values in out)
    return [values[:count].cpu() for values in out]
