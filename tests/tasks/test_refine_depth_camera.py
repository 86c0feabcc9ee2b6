"""`refine_depth` on maps of depth cameras: what is right stays, holes continue their surfaces."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from bilateral import validation
from bilateral.tasks import refine_depth
from bilateral.tasks.depth.enlarged import Blocks
from bilateral.tasks.depth.frame import refine_frame
from bilateral.tasks.depth.matching.matched import is_matched
from bilateral.tasks.depth.noise import estimate_noise
from bilateral.tasks.depth.surfaces import find_surfaces

Array = NDArray[Any]

NOISE = (0.002, 0.0025)


class Scene(NamedTuple):
    photo: Array
    truth: Array  # metres


def living_room(shape: tuple[int, int] = (160, 220)) -> Scene:
    """A slanted floor, a wall, and a chair with a seat and thin legs before them."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    truth = np.minimum(3.0 + 0.002 * x, 300 / np.maximum(y - 20, 1)).astype(np.float32)
    photo = np.where(truth < 2.99, 120, 180).astype(np.uint8)
    photo = np.repeat(photo[..., np.newaxis], 3, axis=2)
    seat = (abs(x - 90) < 35) & (abs(y - 70) < 18)
    legs = (abs(abs(x - 90) - 30) < 2.5) & (y > 80) & (y < 130)
    chair = seat | legs
    truth[chair] = 1.5
    photo[chair] = (60, 90, 150)
    return Scene(photo, truth)


def camera(truth: Array, seed: int = 0) -> Array:
    """Add the noise of a camera."""
    rng = np.random.default_rng(seed)
    noise = NOISE[0] + NOISE[1] * truth**2
    return np.asarray(truth + noise * rng.normal(size=truth.shape), np.float32)


def moved(found: Array, depth: Array, by: float = 0.05) -> float:
    """Return the fraction of known pixels that moved by more than a fraction of their depth."""
    known = np.isfinite(depth)
    return float(np.mean(np.abs(found - depth)[known] > by * depth[known]))


PHOTOS = {
    "good": lambda photo: photo,
    "white": lambda photo: np.full_like(photo, 255),
    "dark": lambda photo: photo // 16,
    "shifted": lambda photo: np.roll(photo, 3, axis=1),
    "noise": lambda photo: np.random.default_rng(0).integers(0, 256, photo.shape).astype(np.uint8),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", PHOTOS)
def test_a_good_map_stays_whatever_the_photograph(name: str, fast: bool) -> None:
    photo, truth = living_room()
    depth = camera(truth)
    bad = PHOTOS[name](photo)
    if fast:
        found = refine_frame(depth, validation.reference(bad, None), fast=True).x
    else:
        found = refine_depth(depth, bad)
    assert moved(found, depth) < 0.001
    assert np.abs(found - truth).mean() < 0.7 * np.abs(depth - truth).mean()


def test_a_clean_map_hardly_changes() -> None:
    photo, truth = living_room()
    found = refine_depth(truth, photo)
    assert moved(found, truth, 2e-3) < 0.01


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("width", [7, 12, 40])
def test_steep_faces_stay(width: int, name: str) -> None:
    """The side of a box, seen at a grazing angle, is no row of flying pixels."""
    y, x = np.mgrid[:120, :160]
    side = np.clip((x - 50 + 0.1 * y) / width, 0, 1)
    truth = np.where(side < 1, 1 / (1 / 1.5 - side * (1 / 1.5 - 1 / 2.5)), 4.0).astype(np.float32)
    photo = np.repeat((60 + 60 * side)[..., np.newaxis], 3, axis=2).astype(np.uint8)
    photo[side == 1] = 200
    assert moved(refine_depth(truth, PHOTOS[name](photo)), truth, 0.01) < 0.001


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_row_of_even_flying_pixels_goes_to_one_side(width: int) -> None:
    x = np.arange(160) * np.ones((120, 1))
    mixed = np.clip((x - 80) / (width + 1), 0, 1)
    photo = np.repeat(np.where(mixed < 0.5, 60, 200)[..., np.newaxis], 3, axis=2).astype(np.uint8)
    found = refine_depth((1.5 + 2 * mixed).astype(np.float32), photo)
    assert np.minimum(np.abs(found - 1.5), np.abs(found - 3.5)).max() < 0.1


def test_texture_is_not_printed_into_a_hole() -> None:
    y, x = np.mgrid[:120, :160]
    mortar = (y % 12 < 2) | ((x + 8 * (y // 12 % 2)) % 24 < 2)
    photo = np.where(mortar[..., np.newaxis], (210, 205, 200), (150, 60, 40)).astype(np.uint8)
    plane = (2 / (1 + 0.003 * x + 0.001 * y)).astype(np.float32)
    depth = camera(plane)
    depth[40:90, 50:110] = np.nan
    found = refine_depth(depth, photo)
    hole = np.isnan(depth)
    assert np.abs(found - plane)[hole].max() < 0.04
    step = abs(found[mortar & hole].mean() - plane[mortar & hole].mean())
    assert abs(step - abs(np.mean((found - plane)[hole & ~mortar]))) < 0.005


def test_the_shadow_of_an_object_lies_behind_it() -> None:
    photo, truth = living_room()
    depth = camera(truth)
    shadow = np.zeros(truth.shape, np.bool_)
    shadow[52:88, 125:139] = True  # beside the seat
    depth[shadow] = np.nan
    for name in ("good", "white"):
        found = refine_depth(depth, PHOTOS[name](photo))
        assert np.mean(np.abs(found - truth)[shadow] > 0.1 * truth[shadow]) < 0.25, name


def test_flying_pixels_go_to_one_side() -> None:
    photo, truth = living_room()
    depth = camera(truth)
    rng = np.random.default_rng(1)
    edge = np.abs(np.diff(truth, axis=1, append=truth[:, -1:])) > 0.5
    wall = 3.0 + 0.002 * np.arange(truth.shape[1])
    depth = np.where(edge, 1.5 + rng.uniform(0.2, 0.8, truth.shape) * (wall - 1.5), depth)
    found = refine_depth(depth.astype(np.float32), photo)
    wrong = np.minimum(np.abs(found - 1.5), np.abs(found - wall)) > 0.2
    beside_seat = edge & (np.arange(160)[:, np.newaxis] < 88)
    assert beside_seat.sum() > 50
    assert np.mean(wrong[beside_seat]) < 0.05


@pytest.mark.parametrize("factor", [1000.0, 0.01])
def test_the_unit_of_the_depth_does_not_matter(factor: float) -> None:
    photo, truth = living_room()
    depth = camera(truth)
    depth[30:50, 150:190] = np.nan
    found, other = refine_depth(depth, photo), refine_depth(depth * factor, photo)
    np.testing.assert_allclose(other / factor, found, rtol=2e-3)


def test_millimetres_in_millimetres_out() -> None:
    photo, truth = living_room()
    depth = np.rint(1000 * camera(truth)).astype(np.uint16)
    depth[30:50, 150:190] = 0
    found = refine_depth(depth, photo, invalid=0)
    assert found.dtype == np.uint16
    assert moved(found / 1000, np.where(depth > 0, depth / 1000, np.nan)) < 0.001
    assert (found > 1000).all()


def test_the_noise_is_found_as_a_function_of_the_depth() -> None:
    rng = np.random.default_rng(3)
    z = np.linspace(0.5, 5, 300)[np.newaxis] * np.ones((200, 1))
    noise = estimate_noise((z + (0.003 + 0.002 * z**2) * rng.normal(size=z.shape)).astype("f4"))
    for depth in (1.0, 2.5, 4.5):
        true = 0.003 + 0.002 * depth**2
        assert 0.7 * true < float(noise(np.float64(depth))) < 1.3 * true


def test_an_enlarged_map_stays_within_its_surroundings() -> None:
    photo, truth = living_room((160, 224))
    small = camera(truth[::4, ::4], 2)
    depth = small.repeat(4, axis=0).repeat(4, axis=1)
    for name in ("good", "white"):
        found = refine_depth(depth, PHOTOS[name](photo))
        low = np.minimum.reduce(
            [np.roll(depth, (a, b), (0, 1)) for a in (-4, 0, 4) for b in (-4, 0, 4)]
        )
        high = np.maximum.reduce(
            [np.roll(depth, (a, b), (0, 1)) for a in (-4, 0, 4) for b in (-4, 0, 4)]
        )
        inner = np.s_[8:-8, 8:-8]
        assert (found >= 0.97 * low)[inner].all()
        assert (found <= 1.03 * high)[inner].all()


def test_flat_parts_are_no_blocks_of_an_enlarged_map() -> None:
    y, x = np.mgrid[:120, :160]
    truth = np.minimum(4.0, np.minimum(200 / np.maximum(y - 60, 1), 200 / np.maximum(x - 80, 1)))
    assert Blocks.of(truth) is None
    boxes = np.where((abs(x - 50) < 20) & (abs(y - 40) < 30), 2.0, 4.0)
    assert Blocks.of(boxes) is None
    photo = np.where(boxes > 3, 60, 200).astype(np.uint8)
    np.testing.assert_allclose(refine_depth(boxes, photo), boxes, rtol=1e-3)


@pytest.mark.parametrize("factor", [1.6, 2.5, 4.0])
@pytest.mark.parametrize("crop", [0, 3])
def test_blocks_of_an_enlarged_map_are_found(factor: float, crop: int) -> None:
    small = camera(np.full((40, 50), 2.0), 1)
    rows, columns = (np.arange(crop, n * factor) // factor for n in small.shape)
    blocks = Blocks.of(small[np.ix_(rows.astype(int), columns.astype(int))])
    assert blocks is not None
    assert blocks.factor == pytest.approx(factor, rel=0.05)


def test_low_confidence_is_not_kept() -> None:
    photo, truth = living_room()
    depth = camera(truth)
    wrong = np.s_[20:45, 150:200]
    depth[wrong] = 2.0
    confidence = np.ones(depth.shape)
    confidence[wrong] = 0.01
    found = refine_depth(depth, photo, confidence)
    assert np.abs(found - truth)[wrong].mean() < 0.15


@pytest.mark.parametrize("fast", [False, True])
def test_a_frame_says_what_it_kept(fast: bool) -> None:
    photo, truth = living_room()
    depth = camera(truth)
    depth[30:50, 150:190] = np.nan
    frame = refine_frame(depth, validation.reference(photo, None), fast=fast)
    assert frame.x.dtype == np.float32
    assert np.isfinite(frame.x).all()
    assert not frame.kept[np.isnan(frame.z)].any()
    most = 3.01 * frame.noise(depth[frame.kept])
    assert (np.abs(frame.x - depth)[frame.kept] <= most).all()
    given = refine_frame(depth, validation.reference(photo, None), fast=fast, noise=frame.noise)
    np.testing.assert_array_equal(given.x, frame.x)


def specks(photo_shows_them: bool, seed: int = 0) -> Scene:
    """Many small boxes before a textured wall, seen in the photograph or not."""
    rng = np.random.default_rng(seed)
    texture = rng.integers(0, 2, (30, 40)).repeat(8, axis=0).repeat(8, axis=1)
    photo = np.repeat((90 + 60 * texture)[..., np.newaxis], 3, axis=2).astype(np.uint8)
    truth = np.full(texture.shape, 3, np.float32)
    for _ in range(250):
        y, x = rng.integers(0, 230), rng.integers(0, 310)
        at = np.s_[y : y + rng.integers(4, 10), x : x + rng.integers(4, 10)]
        truth[at] = rng.uniform(1, 2.5)
        if photo_shows_them:
            photo[at] = rng.integers(0, 256, 3)
    return Scene(photo, truth)


def matched(scene: Scene, photo: Array) -> bool:
    noise = estimate_noise(scene.truth)
    surfaces = find_surfaces(scene.truth, noise)
    return is_matched(scene.truth, validation.reference(photo, None), surfaces)


def test_maps_of_matching_are_recognised_by_a_photograph_that_can_tell() -> None:
    wrong, right = specks(photo_shows_them=False), specks(photo_shows_them=True)
    assert matched(wrong, wrong.photo)
    assert not matched(right, right.photo)
    for name in ("white", "dark"):
        assert not matched(right, PHOTOS[name](right.photo)), name


def test_clutter_stays_in_a_featureless_photograph() -> None:
    photo, truth = specks(photo_shows_them=True)
    large = find_surfaces(truth, estimate_noise(truth)).kept
    found = refine_depth(truth, np.full_like(photo, 128))
    assert moved(np.where(large, found, truth), truth) < 0.001
