"""Kernels of depth maps match their oracle and have the properties that the recipe needs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral.filters.surfaces import (
    Growth,
    expand_depth,
    find_doubt,
    grow_surfaces,
    shrink_depth,
    shrink_photo,
    smooth_depth,
    surface_sizes,
)
from oracles import depth as oracle
from support.depth_maps import JUMPS, depth_maps, jumps
from support.examples import examples
from support.strategies import seeds

Array = NDArray[Any]

GROWTH = Growth(bias=12.0, drift=0.035, slope_reach=256.0)


def holes(x: Array, kept: NDArray[np.bool_]) -> Array:
    """Return a map without data where nothing is kept."""
    return np.where(kept, x, np.float32(np.nan))


@examples(40)
@given(depth_maps(), jumps)
def test_doubt_against_the_oracle(z: Array, jump: Any) -> None:
    np.testing.assert_array_equal(find_doubt(z, jump), oracle.find_doubt(z.astype(float), jump))


@examples(40)
@given(depth_maps(), jumps)
def test_surfaces_against_the_oracle(z: Array, jump: Any) -> None:
    doubt = find_doubt(z, jump)
    expected = oracle.surface_sizes(z.astype(float), doubt, jump)
    np.testing.assert_array_equal(surface_sizes(z, doubt, jump), expected)


@examples(20)
@given(depth_maps(), seeds)
def test_smoothing_against_the_oracle(z: Array, seed: int) -> None:
    x = np.nan_to_num(z, nan=3.0)
    kept = np.random.default_rng(seed).uniform(size=x.shape) < 0.7
    noise = (0.02, 0.0, 0.003)
    found = smooth_depth(x, kept, noise, scale=3.0, limit=2.0)
    expected = oracle.smooth_depth(x.astype(float), kept, noise, 3.0, 2.0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same(threads: int, keep_num_threads: None) -> None:
    from bilateral import set_num_threads

    rng = np.random.default_rng(0)
    z = rng.uniform(1, 2, (300, 400)).astype(np.float32)
    z[100:200, 50:220] = np.nan
    kept = np.isfinite(z)
    full = np.nan_to_num(z, nan=1.5)
    results = []
    for count in (1, threads):
        set_num_threads(count)
        grown = grow_surfaces(full, kept, z, JUMPS[1], inverse=True, growth=GROWTH)
        results.append((find_doubt(z, JUMPS[1]), grown, shrink_depth(z, kept, 4)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("inverse", [False, True])
def test_a_plane_continues_into_a_hole(inverse: bool) -> None:
    y, x = np.mgrid[:40, :60].astype(np.float32)
    plane = 0.5 + 0.004 * x + 0.002 * y
    truth = 1 / plane if inverse else plane
    kept = np.ones(truth.shape, np.bool_)
    kept[15:25, 20:35] = False
    wrong = np.where(kept, truth, truth + 10)
    found = grow_surfaces(
        wrong, kept, holes(wrong, kept), (0.01, 0.0, 0.0), inverse=inverse, growth=GROWTH
    )
    np.testing.assert_array_equal(found[kept], truth[kept])
    assert np.abs(found - truth).max() < 0.06  # a drift of 0.001 per pixel, and fading slopes


def test_a_filling_takes_the_surface_closest_to_it() -> None:
    z = np.where(np.arange(60) < 30, 1.0, 2.0).astype(np.float32)
    z = np.tile(z, (20, 1))
    kept = np.ones(z.shape, np.bool_)
    kept[:, 20:40] = False
    halo = np.where(kept, z, np.linspace(1, 2, 60, dtype=np.float32))
    for bias, edge in ((0.0, 30), (1e6, 21)):
        growth = GROWTH._replace(bias=bias)
        found = grow_surfaces(
            halo, kept, holes(halo, kept), (0.05, 0.0, 0.0), inverse=True, growth=growth
        )
        columns = found[10]
        assert ((columns < 1.2) | (columns > 1.8)).all()
        assert abs(int(np.argmax(columns > 1.5)) - edge) <= 1


def test_a_doubtful_pixel_on_a_continued_plane_keeps_its_depth() -> None:
    x = np.tile(np.arange(60, dtype=np.float32), (30, 1))
    plane = 2 + 0.002 * x
    kept = (x < 30) | (x > 57)  # the range of the kept depths bounds the others
    measured = plane.copy()
    measured[:, 40] += 0.02  # within half a jump
    measured[:, 41] += 0.2
    measured[:, 45:58] = np.nan
    filling = np.where(kept, plane, plane + 0.5)
    jump = (0.05, 0.0, 0.0)
    found = grow_surfaces(filling, kept, measured, jump, inverse=False, growth=GROWTH)
    np.testing.assert_array_equal(found[:, 30:41], measured[:, 30:41])
    assert np.abs(found - plane)[:, 41:45].max() < 0.02
    assert np.abs(found - plane).max() < 0.1


@pytest.mark.parametrize("inverse", [False, True])
def test_a_flying_pixel_takes_a_surface_that_was_measured_beside_it(inverse: bool) -> None:
    column = np.tile(np.arange(60.0, dtype=np.float32), (30, 1))
    near, far = 1 + 0.001 * column, np.float32(4)
    kept = (column < 20) | (column >= 40)
    measured = np.where(column < 20, near, far)
    measured[:, 20] = 2.5  # a mixture
    measured[:, 21:40] = np.nan  # the shadow of the near surface
    filling = np.where(kept, measured, far)  # also at the mixed pixels
    found = grow_surfaces(filling, kept, measured, JUMPS[1], inverse=inverse, growth=GROWTH)
    assert np.abs(found - near)[:, 20].max() < 0.01
    np.testing.assert_array_equal(found[:, 21:], far)
    # If the far surface was measured beside them, too, the filling decides.
    measured[::2, 21] = far
    found = grow_surfaces(filling, kept, measured, JUMPS[1], inverse=inverse, growth=GROWTH)
    np.testing.assert_array_equal(found[:, 20], far)


def test_a_slope_is_a_surface_even_beside_flying_pixels() -> None:
    rng = np.random.default_rng(0)
    x = np.arange(60.0)
    bent = np.where(x < 20, 1.0, 1.0 + 0.01 * (x - 20) + 0.001 * (x - 20) ** 2)
    z = np.tile(np.where(x < 36, bent, 5.0), (40, 1))
    z[:, 34:38] = rng.uniform(1.5, 5, (40, 4))
    doubt = find_doubt(z.astype(np.float32), (0.05, 0.0, 0.0))
    assert doubt[:, 34:38].mean() > 0.8
    assert doubt[:, :32].mean() < 0.02


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("gap", [0.6, 2.0])
def test_a_skirt_between_two_surfaces_is_doubted(width: int, gap: float) -> None:
    x = np.arange(60.0)
    ramp = np.clip((x - 29) / (width + 1), 0, 1)
    z = np.tile(1 + gap * ramp, (40, 1)).astype(np.float32)
    doubt = find_doubt(z, (0.05, 0.0, 0.0))
    np.testing.assert_array_equal(doubt[20, 30 : 30 + width], True)
    assert not doubt[:, :26].any()
    assert not doubt[:, 36:].any()


@examples(20)
@given(st.integers(1, 13), st.integers(1, 13), st.integers(1, 5), st.sampled_from("BHfd"), seeds)
def test_blocks_of_a_photograph(h: int, w: int, factor: int, dtype: str, seed: int) -> None:
    photo = np.random.default_rng(seed).integers(0, 255, (h, w, 3)).astype(dtype)
    expected = oracle.shrink_photo(photo.astype(float), factor)
    tolerance = 0.501 if dtype in "BH" else 1e-4
    np.testing.assert_allclose(shrink_photo(photo, factor), expected, atol=tolerance)


def test_coarse_depths_go_to_similar_colours() -> None:
    photo = np.zeros((8, 12, 1), np.uint8)
    photo[:, 7:] = 200
    z = np.where(photo[..., 0] > 0, 2, 1).astype(np.float32)
    data = np.ones(z.shape, np.bool_)
    data[:, 4:9] = False
    low = shrink_photo(photo, 4)
    blocks = shrink_depth(z, data, 4)
    np.testing.assert_array_equal(np.isnan(blocks), [[False, True, False]] * 2)
    coarse = np.array([[1, 1, 2]] * 2, np.float32)
    found = expand_depth(coarse, photo, low, z, data, factor=4, unit=20.0)
    np.testing.assert_array_equal(found, z)


@pytest.mark.parametrize("inverse", [False, True])
def test_fillings_stay_in_the_range_of_the_surfaces(inverse: bool) -> None:
    # Slopes of a strip that falls away steeply would grow without bound across a wide hole.
    kept = np.zeros((20, 90), np.bool_)
    kept[:, :12] = True
    z = np.broadcast_to(1 / (0.3 - 0.02 * np.arange(90.0).clip(0, 14)), kept.shape)
    x = np.where(kept, z, 1e4).astype(np.float32)
    found = grow_surfaces(x, kept, holes(x, kept), (0.01, 0.5, 0.0), inverse=inverse, growth=GROWTH)
    low, high = z[kept].min(), z[kept].max()
    assert found.min() >= low - 0.06 * (high - low)
    assert found.max() <= high + 0.06 * (high - low)
