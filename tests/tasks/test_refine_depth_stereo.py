"""`refine_depth` with "stereo": a right map stays, and errors of matching go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter

from benchmarks.camera.metrics import harm, inside
from benchmarks.camera.spoil import PHOTOS
from benchmarks.common import made as scenes
from bilateral import validation
from bilateral.tasks import refine_depth
from bilateral.tasks.depth.matching.agreement import edges_agree, log_contrast, shows_edges
from bilateral.tasks.depth.matching.visibility import background_asymmetry
from bilateral.tasks.depth.noise import estimate_noise
from bilateral.tasks.depth.surfaces import find_surfaces
from bilateral.tasks.depth.windows import any_near, window_mean, window_range
from support.examples import examples

Array = NDArray[Any]

MADE = {make.__name__: make for make in (scenes.boxes, scenes.small, scenes.thin)}
SPOILED = {
    "nothing": lambda truth: truth,
    "noise": lambda truth: truth + np.random.default_rng(0).normal(0, 0.1, truth.shape),
    "blurred edges": lambda truth: gaussian_filter(truth, 0.7),
    "rounding": np.rint,
}


def mean_error(found: Array, truth: Array) -> float:
    return float(np.abs(found - truth).mean())


@pytest.mark.parametrize("photo", PHOTOS)
@pytest.mark.parametrize("name", MADE)
def test_true_disparities_stay_whatever_the_photograph(name: str, photo: str) -> None:
    for seed in range(2):
        scene = MADE[name](seed)
        truth = scene.truth.astype(np.float32)
        truth[60:70, 90:110] = 0  # unknown
        refined = refine_depth(truth, PHOTOS[photo](scene.photo), preset="stereo")
        assert harm(truth, refined) <= 0.1


@pytest.mark.parametrize("name", SPOILED)
def test_maps_that_are_nearly_right_stay(name: str) -> None:
    photo, truth = scenes.boxes(4)
    disparity = SPOILED[name](truth).astype(np.float32)
    refined = refine_depth(disparity, photo, preset="stereo")
    inner = inside(truth)
    assert np.mean(np.abs(refined - disparity)[inner] > 0.05 * truth[inner]) <= 0.001


@examples(8)
@given(st.sampled_from(sorted(MADE)), st.integers(0, 99))
def test_a_featureless_photograph_makes_no_map_worse(name: str, seed: int) -> None:
    photo, truth = MADE[name](seed)
    noise = np.random.default_rng(seed).normal(128, 2, photo.shape)
    # Without a photograph, nothing tells a pole of one pixel from a row of outliers.
    spoiled = (scenes.matched,) if name == "thin" else (scenes.matched, scenes.noisy)
    for spoil in spoiled:
        disparity = spoil(truth, seed)
        for flat in (np.full_like(photo, 128), np.rint(noise).astype(np.uint8)):
            refined = refine_depth(disparity, flat, preset="stereo")
            assert mean_error(refined, truth) <= mean_error(disparity, truth)


def test_a_scale_lifts_the_guard() -> None:
    photo, truth = scenes.boxes(5)
    flat = np.full_like(photo, 128)
    kept, free = (refine_depth(truth, flat, preset="stereo", scale=scale) for scale in (None, 4))
    assert harm(truth, kept) == 0
    assert harm(truth, free) > 1


def flat_wall(part: float) -> tuple[Array, Array, Array]:
    """A near, textured box before a flat wall; patches of the wall were matched with the box."""
    rng = np.random.default_rng(0)
    truth = np.full((120, 180), 10.0)
    photo = np.full((120, 180, 3), 150.0)
    box = np.s_[35:85, 80:120]
    truth[box] = 40
    photo[box] = rng.integers(0, 2, (25, 20, 1)).repeat(2, axis=0).repeat(2, axis=1) * 90 + 20
    patches = (rng.random((24, 36)) < part).repeat(5, axis=0).repeat(5, axis=1)
    photo += rng.normal(0, 1, photo.shape)
    return photo.clip(0, 255).astype(np.uint8), truth, np.where(patches, 40, truth)


@pytest.mark.parametrize("part", [0.2, 0.4, 0.6])
def test_background_wins_on_a_flat_wall(part: float) -> None:
    photo, truth, disparity = flat_wall(part)
    refined = refine_depth(disparity, photo, preset="stereo")
    assert mean_error(refined, truth) < 0.25 * mean_error(disparity, truth)


def test_a_near_object_at_the_left_border_is_continued() -> None:
    photo, truth = np.full((100, 240, 3), 60, np.uint8), np.full((100, 240), 12.0)
    near = np.s_[30:70, :75]
    photo[near], truth[near] = (200, 120, 60), 45
    photo[::3, ::2] += 20
    photo[30:70, 90:160], truth[30:70, 90:160] = (90, 140, 200), 45
    patches = np.random.default_rng(0).uniform(0.2, 0.6, (20, 48)).repeat(5, axis=0)
    columns = np.arange(1, 241.0)
    disparity = np.where(columns > truth, truth, columns * patches.repeat(5, axis=1))
    refined = refine_depth(disparity, photo, preset="stereo")
    assert np.mean(np.abs(refined - truth)[near] < 2) > 0.85


def agree(disparity: Array, photo: Array) -> bool:
    z = disparity.astype(np.float32) / np.float32(np.median(disparity))
    surfaces = find_surfaces(z, estimate_noise(z))
    contrast = log_contrast(validation.reference(photo, None))
    return edges_agree(z, contrast, surfaces, 1 / float(np.median(disparity)))


@examples(10)
@given(st.sampled_from(["boxes", "small"]), st.integers(0, 99), st.integers(12, 30))
def test_edges_agree_only_in_place(name: str, seed: int, shift: int) -> None:
    photo, truth = MADE[name](seed)
    assert agree(truth, photo)
    assert not agree(np.roll(truth, (shift, shift), (0, 1)), photo)


@pytest.mark.parametrize("name", MADE)
def test_true_maps_agree_and_maps_of_matching_do_not(name: str) -> None:
    made = [(seed, *MADE[name](seed)) for seed in range(40)]
    assert all(agree(truth, photo) for _, photo, truth in made)
    taken_for_right = sum(agree(scenes.matched(truth, seed), photo) for seed, photo, truth in made)
    assert taken_for_right <= 1  # 1 of 300 in all


def test_a_map_without_edges_agrees() -> None:
    photo = scenes.boxes(0).photo
    assert agree(np.full(photo.shape[:2], 7.0), photo)


@pytest.mark.parametrize("deviation", [0.0, 1.0, 20.0])
def test_noise_shows_no_edges(deviation: float) -> None:
    noise = np.random.default_rng(0).normal(128, deviation, (80, 100, 3))
    photo = np.rint(noise).clip(0, 255).astype(np.uint8)
    assert not shows_edges(log_contrast(validation.reference(photo, None)))
    for make in MADE.values():
        for spoil in ("as it is", "dark", "blurred"):
            spoiled = PHOTOS[spoil](make(0).photo)
            assert shows_edges(log_contrast(validation.reference(spoiled, None)))


def test_background_wins_more_where_the_photograph_is_flat_but_not_clipped() -> None:
    rng = np.random.default_rng(0)
    photo = np.full((60, 90, 1), 120.0)
    photo[:, 30:60] += rng.normal(0, 30, (60, 30, 1))
    photo[:, 60:] = 255
    factor = background_asymmetry(validation.reference(photo.clip(0, 255).astype(np.uint8), None))
    flat, textured, clipped = (factor[:, columns].mean() for columns in np.s_[:24, 36:54, 66:])
    assert flat > 1.6
    assert textured < 1.31
    assert clipped < 1.31


@examples(20)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 99))
def test_windows_against_scipy(height: int, width: int, radius: int, seed: int) -> None:
    image = np.random.default_rng(seed).normal(size=(height, width))
    side = 2 * radius + 1
    highest = maximum_filter(image, side, mode="nearest")
    lowest = minimum_filter(image, side, mode="nearest")
    np.testing.assert_allclose(window_range(image, radius), highest - lowest)
    mask = image > 1
    np.testing.assert_array_equal(
        any_near(mask, radius), maximum_filter(mask, side, mode="nearest")
    )
    for y, x in np.ndindex(*image.shape):
        window = image[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1]
        np.testing.assert_allclose(window_mean(image, radius)[y, x], window.mean(), atol=1e-12)
