"""`refine_depth` moves ragged edges of good maps to the photograph's, and no others."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral import validation
from bilateral.tasks import refine_depth
from bilateral.tasks.depth.fill import Cells
from bilateral.tasks.depth.frame import refine_surfaces
from bilateral.tasks.depth.noise import estimate_noise
from bilateral.tasks.depth.surfaces import find_surfaces
from bilateral.tasks.depth.windows import contrast, extreme, sums_at

Array = NDArray[Any]


class Scene(NamedTuple):
    photo: Array
    truth: Array


def discs(seed: int = 0, shape: tuple[int, int] = (180, 240)) -> Scene:
    """Round and square objects of one colour each before a wall."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    truth = (4 + 0.004 * x).astype(np.float32)
    photo = np.full((*shape, 3), 190.0)
    for place, (cy, cx) in enumerate([(45, 50), (50, 180), (130, 60), (130, 175)]):
        across = np.abs(x - cx), np.abs(y - cy)
        inside = np.hypot(*across) < 30 if place % 2 else np.maximum(*across) < 28
        truth[inside] = rng.uniform(1.5, 2.5)
        photo[inside] = rng.uniform(20, 120, 3)
    photo += rng.normal(0, 3, photo.shape)
    return Scene(np.clip(photo, 0, 255).astype(np.uint8), truth)


def ragged(truth: Array, seed: int = 0, reach: float = 1.5) -> Array:
    """Take each block of depths from beside its place, as at a camera's edges, and add noise."""
    rng = np.random.default_rng(seed)
    place = np.indices(truth.shape)
    stray = rng.normal(0, reach, place.shape)[:, place[0] // 3 * 3, place[1] // 3 * 3]
    v, u = np.rint(place + stray).astype(int)
    z = truth[v.clip(0, truth.shape[0] - 1), u.clip(0, truth.shape[1] - 1)]
    return np.asarray(z + (0.002 + 0.0025 * z**2) * rng.normal(size=z.shape), np.float32)


def wrong(found: Array, truth: Array) -> int:
    return int(np.count_nonzero(np.abs(found - truth) > 0.1 * truth))


PHOTOS = {
    "good": lambda photo: photo,
    "shifted by 1": lambda photo: np.roll(photo, 1, axis=0),
    "shifted by 2": lambda photo: np.roll(photo, 2, axis=1),
    "shifted by 4": lambda photo: np.roll(photo, 4, axis=1),
    "bright": lambda photo: np.minimum(2.0 * photo, 255).astype(np.uint8),
    "dark": lambda photo: photo // 16,
    "white": lambda photo: np.full_like(photo, 255),
    "noise": lambda photo: np.random.default_rng(0).integers(0, 256, photo.shape).astype(np.uint8),
    "float": lambda photo: (photo / 255).astype(np.float32),
    "gray": lambda photo: photo.mean(axis=2).astype(np.uint8),
}


@pytest.mark.parametrize("name", ["good", "shifted by 1", "float", "gray"])
@pytest.mark.parametrize("seed", range(3))
def test_ragged_edges_move_to_the_photograph(seed: int, name: str) -> None:
    photo, truth = discs(seed)
    depth = ragged(truth, seed)
    before = wrong(refine_depth(depth, PHOTOS["white"](photo)), truth)
    assert wrong(refine_depth(depth, PHOTOS[name](photo)), truth) < 0.75 * before


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("seed", range(3))
def test_no_photograph_makes_ragged_edges_worse(seed: int, name: str) -> None:
    photo, truth = discs(seed)
    depth = ragged(truth, seed)
    before = wrong(refine_depth(depth, PHOTOS["white"](photo)), truth)
    assert wrong(refine_depth(depth, PHOTOS[name](photo)), truth) <= 1.03 * before


def moves(depth: Array, photo: Array) -> bool:
    """Whether any pixel of a surface joins another one."""
    guide, noise = validation.reference(photo, None), estimate_noise(depth)
    surfaces = find_surfaces(depth, noise)
    frames = [
        refine_surfaces(depth, guide, None, noise, surfaces, Cells(), snap=snap)
        for snap in (False, True)
    ]
    return bool((frames[0].kept != frames[1].kept).any())


def test_ragged_edges_are_seen_to_move() -> None:
    photo, truth = discs()
    assert moves(ragged(truth), photo)


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_edges_of_a_good_map_stay(seed: int, noisy: bool, name: str) -> None:
    photo, truth = discs(seed)
    assert not moves(ragged(truth, seed, reach=0.0) if noisy else truth, PHOTOS[name](photo))


@pytest.mark.parametrize("name", ["shifted by 2", "dark", "white", "noise"])
def test_ragged_edges_stay_with_a_photograph_that_cannot_tell(name: str) -> None:
    photo, truth = discs()
    assert not moves(ragged(truth), PHOTOS[name](photo))


def test_thin_objects_stay() -> None:
    """The photograph's thin object beside that of the map has no inner pixels to compare."""
    photo, truth = discs()
    truth[:, 115:119] = 1.2
    photo[:, 117:121] = 240
    assert not moves(truth, photo)


def test_a_video_does_not_snap() -> None:
    photo, truth = discs()
    depth = ragged(truth)
    still = refine_depth(depth, photo)
    frames = refine_depth(np.stack([depth] * 3), np.stack([photo] * 3))
    assert wrong(frames[1], truth) > 1.2 * wrong(still, truth)


@given(seed=st.integers(0, 99), radius=st.integers(1, 4), shape=st.tuples(*[st.integers(1, 9)] * 2))
def test_windows_against_loops(seed: int, radius: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=shape).astype(np.float32)
    photo = rng.integers(0, 256, (*shape, 3)).astype(np.uint8)
    y, x = np.nonzero(rng.random(shape) < 0.5)
    values = rng.normal(size=(y.size, 2))
    low, ranges, sums = extreme(z, radius, np.fmin), contrast(photo, radius), np.zeros((y.size, 2))
    for v, u in np.ndindex(shape):
        window = np.s_[max(v - radius, 0) : v + radius + 1, max(u - radius, 0) : u + radius + 1]
        assert low[v, u] == z[window].min()
        assert ranges[v, u] == np.ptp(photo[window].astype(int), axis=(0, 1)).max()
    for k in range(y.size):
        near = (np.abs(y - y[k]) <= radius) & (np.abs(x - x[k]) <= radius)
        sums[k] = values[near].sum(axis=0)
    np.testing.assert_allclose(sums_at(y, x, values, shape, radius), sums, atol=1e-12)
