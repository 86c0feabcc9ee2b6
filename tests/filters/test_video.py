"""Operations on depth videos: each against its oracle; the motion of the camera by its effect."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates

import bilateral
from bilateral.backends import cpu
from bilateral.filters import video
from oracles import video as oracle
from support.examples import examples
from support.strategies import seeds, shapes

Array = NDArray[Any]
NOISE = (0.002, 0.0025)
RULES = video.AverageRules(3, 0.1, 2.0, 3.0, 6, 0.25)
WHITE = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0, "float64": 1.0}


def noise_at(z: Array, factor: float = 1.0) -> Array:
    return factor * (NOISE[0] + NOISE[1] * np.square(z.astype(np.float64)))


def jump_at(z: Array) -> Array:
    return 4 * noise_at(z) + 0.015 * np.abs(z)


def depth_map(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Two surfaces with noise."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    z = np.where(x + y > sum(shape) / 2, 1.5, 3.0) + 0.01 * x + 0.02 * rng.normal(size=shape)
    return z.astype(np.float32)


def flow_of(rng: np.random.Generator, size: float) -> tuple[float, ...]:
    return tuple(rng.normal(0, size, cpu.FLOW_PARAMETERS).tolist())


@given(shapes(20), st.sampled_from([*WHITE]), st.sampled_from([1, 3]), seeds)
def test_packed_photographs(shape: tuple[int, int], dtype: str, channels: int, seed: int) -> None:
    values = np.random.default_rng(seed).uniform(0, WHITE[dtype], (*shape, channels))
    pixels = values.astype(dtype)
    found = cpu.pack_photo(pixels, WHITE[dtype])
    expected = oracle.packed(pixels.astype(np.float64), WHITE[dtype])
    np.testing.assert_allclose(found, expected, atol=0.501)
    np.testing.assert_array_equal(cpu.photo_luma(found), found[..., 3])


def test_pixels_that_are_no_numbers_are_black_or_white() -> None:
    pixels = np.array([[[np.nan], [-1.0], [np.inf], [2.0]]])
    assert cpu.pack_photo(pixels, 1.0)[0, :, 0].tolist() == [0, 0, 255, 255]


@given(st.tuples(st.integers(2, 40), st.integers(2, 40)), seeds)
def test_halved_images(shape: tuple[int, int], seed: int) -> None:
    image = np.random.default_rng(seed).uniform(0, 255, shape).astype(np.float32)
    np.testing.assert_allclose(cpu.halve(image), oracle.halved(image), rtol=1e-5)


@given(shapes(40), st.sampled_from([0.0, 0.3, 3.0, 100.0]), seeds)
def test_the_past_moves_along_the_flow(shape: tuple[int, int], size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    past, now = depth_map(rng, shape), depth_map(rng, shape)
    counts = (rng.integers(1, 7, shape) + 128 * rng.integers(0, 2, shape)).astype(np.uint8)
    photo = rng.integers(0, 256, (*shape, 4)).astype(np.uint8)
    motion = video.CameraMotion(flow_of(rng, size), 1.25, 3.0, 0.0, 0.0)
    moved = video.warp_past(past, counts, photo, now, motion, 2.0, NOISE)
    theta = np.array(motion.theta)
    dy, dx = oracle.flow(theta, now.astype(np.float64), 2.0)
    depth, nearest, inside = oracle.warped(past.astype(np.float64), dy, dx, jump_at(past))
    # Another surface than now must be where its own depth leads to.
    other = inside & (np.abs(depth - now) > jump_at(now))
    at, there = oracle.other_surface(shape, nearest, oracle.flow(theta, depth, 2.0), (dy, dx))
    there &= (at == nearest) | (np.abs(past.ravel()[at] - depth) < jump_at(depth))
    depth = np.where(other & there & (at != nearest), past.ravel()[at], depth)
    nearest, inside = np.where(other & there, at, nearest), inside & ~(other & ~there)
    # Rounding decides where a place lies between two pixels or at the limit of a jump.
    same = np.abs(moved.depth - depth) < 1e-4
    assert same.mean() > 0.98 or same.size - same.sum() <= 2
    np.testing.assert_allclose(moved.speed, np.hypot(dx, dy), rtol=1e-3, atol=1e-3)
    expected = np.where(inside, counts.ravel()[nearest], 0)
    assert (moved.counts == expected).mean() > 0.97 or (moved.counts != expected).sum() <= 2
    exposed = np.clip(np.rint((photo.reshape(-1, 4)[nearest] - 3.0) / 1.25), 0, 255)
    wrong = (np.abs(moved.photo - exposed) > 1).any(axis=2)
    assert wrong.mean() < 0.03 or wrong.sum() <= 2


@given(shapes(40), seeds)
def test_steady_pixels(shape: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = depth_map(rng, shape)
    z = np.where(rng.uniform(size=shape) < 0.2, np.nan, x + 0.02 * rng.normal(size=shape))
    kept = np.isfinite(z) & (rng.uniform(size=shape) < 0.8)
    photo = rng.integers(0, 30, (*shape, 4)).astype(np.uint8)
    had_data = rng.uniform(size=shape) < 0.5
    moved = video.MovedPast(
        depth_map(rng, shape),
        (rng.integers(0, 3, shape) + had_data * video.MEASURED).astype(np.uint8),
        rng.integers(0, 30, (*shape, 4)).astype(np.uint8),
        np.zeros(shape, np.float32),
    )
    c = (0.01, 0.002, -0.003, 0.005)
    z = z.astype(np.float32)
    doubtful = np.isnan(z) & (rng.uniform(size=shape) < 0.7)
    measured = np.where(doubtful, rng.uniform(1, 3.5, shape), z).astype(np.float32)
    shift = rng.choice([0, 0.25, 1])
    found = video.compare_past(measured, z, x, kept, photo, moved, c, NOISE, 12.0, shift, 4.0)
    Y, X = oracle.positions(shape)
    past = moved.depth + c[0] + (c[1] * X + c[2] * Y + c[3]) * x
    np.testing.assert_allclose(found.past, past, rtol=1e-5)
    value = np.where(kept, x, z)
    expected = oracle.steady(value, past, moved.depth, noise_at(x), 4.0, x)
    expected &= oracle.photo_steady(photo, moved.photo, 12, shift)
    assert ((found.steadiness == 0) == expected).sum() <= 0.01 * expected.size
    expected &= moved.counts > 0
    still = np.isin(found.steadiness, (1, 2, 3, 4, 6))
    assert (still != expected).sum() <= 0.01 * expected.size
    confirmed = oracle.steady(measured, past, moved.depth, noise_at(x), 4.0, x)
    confirmed &= still & ~kept & np.isfinite(measured)
    assert ((found.steadiness == 2) != confirmed).sum() <= 0.01 * expected.size
    from_past, from_filling = np.abs(measured - past), np.abs(measured - x)
    open_ = still & ~kept & ~confirmed
    undecided = open_.copy()
    for side, closer in ((3, from_past < from_filling / 2), (4, from_filling < from_past / 2)):
        assert ((found.steadiness == side) != (open_ & closer)).sum() <= 0.01 * expected.size
        undecided &= ~closer
    differs = ~oracle.steady(x, past, moved.depth, noise_at(x), 4.0, x)
    lost = undecided & had_data & differs
    assert ((found.steadiness == 6) != lost).sum() <= 0.01 * expected.size
    units = np.clip((z - past) / noise_at(x), -6, 6) * 512
    known = still & np.isfinite(z)
    assert (found.difference[~known] == -32768).all()
    np.testing.assert_allclose(found.difference[known], units[known], atol=2)


@examples(20)
@given(shapes(30), st.integers(0, 12), seeds)
def test_averages(shape: tuple[int, int], radius: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = depth_map(rng, shape)
    past = (x + 0.03 * rng.normal(size=shape)).astype(np.float32)
    steady, kept = (rng.uniform(size=shape) < 0.8 for _ in range(2))
    difference = rng.integers(-3072, 3072, shape).astype(np.int16)
    difference[~steady | (rng.uniform(size=shape) < 0.2)] = -32768
    frames, seen = rng.integers(0, 7, shape), rng.uniform(size=shape) < 0.5
    steady &= frames > 0
    counts = (frames + video.MEASURED * seen).astype(np.uint8)
    moved = video.MovedPast(past, counts, np.zeros((*shape, 4), np.uint8), np.zeros_like(past))
    rules = RULES._replace(radius=radius)
    steadiness = (steady * rng.choice([1, 2, 3, 4, 6], shape)).astype(np.uint8)
    steadiness[~steady & (rng.uniform(size=shape) < 0.5)] = 5  # unchanged, but without a past
    compared = video.Comparison(past, steadiness, difference)
    out, count = video.average_past(x, kept, compared, moved, NOISE, rules)
    mean = oracle.local_mean(difference / 512, difference != -32768, radius)
    n = noise_at(x)
    shifted = past + n * np.sign(mean) * np.maximum(np.abs(mean) - 0.1, 0)
    use = (
        steady
        & (np.abs(mean) < 2)
        & (kept | oracle.settled(np.isin(steadiness, (0, 6)), radius, 0.25))
    )
    near = use & (np.abs(shifted - x) < 3 * n)
    around = oracle.surrounded(steadiness > 0)
    votes = np.where(steadiness == 4, 2, np.where(x > shifted, 6, 1))
    votes[np.isin(steadiness, (2, 3)) | (seen & (steadiness != 4))] = 0
    hold = use & ~near & ~kept & ((steadiness == 2) | (around & (frames >= votes)))
    remembered = seen & ~kept & (near | hold)
    agreeing = np.where(remembered, frames, np.minimum(frames + 1, 6))
    expected = np.where(near, agreeing, np.where(hold, frames - votes, 1))
    mixed = shifted + (x - shifted) / np.maximum(expected, 1)
    averaged = np.where(hold | remembered, shifted, np.where(near, mixed, x))
    flag = np.where(kept | remembered, video.MEASURED, 0)
    wrong = (count != expected + flag) | (np.abs(out - averaged) > 1e-4)
    assert wrong.sum() <= 0.01 * wrong.size


@given(shapes(40), seeds)
def test_calming(shape: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = [depth_map(rng, shape) for _ in range(3)]
    speed = rng.uniform(0, 60, shape).astype(np.float32)
    out = video.calm(x, speed, NOISE, gain=0.5, most=0.6, fast=30.0, change=4.0)
    n = noise_at(x[0])
    most = 0.6 * n / (1 + (speed / 30) ** 2)
    bend = x[0] - 2 * x[1] + x[2]
    calmed = x[0] - np.clip(0.5 * bend, -most, most)
    wrong = np.abs(out - np.where(np.abs(bend) > 4 * n, x[0], calmed)) > 1e-4
    assert wrong.sum() <= 0.01 * wrong.size


def test_the_change_of_depth_is_found_beside_outliers() -> None:
    rng = np.random.default_rng(0)
    before = depth_map(rng, (120, 160))
    Y, X = oracle.positions(before.shape)
    c = (0.03, 0.01, -0.008, -0.01)
    x = (before + c[0]) / (1 - (c[1] * X + c[2] * Y + c[3]))
    z = x + rng.normal(size=x.shape) * 1.5 * noise_at(x)
    z[rng.uniform(size=z.shape) < 0.2] = np.nan
    z[40:80, 40:80] += 0.1
    frames = np.ones(x.shape, np.uint8)
    x, z = x.astype(np.float32), z.astype(np.float32)
    change = video.depth_change(z, x, before, frames, NOISE, True)
    found = change.c[0] + (change.c[1] * X + change.c[2] * Y + change.c[3]) * x
    truth = c[0] + (c[1] * X + c[2] * Y + c[3]) * x
    assert (np.abs(found - truth) < 0.5 * noise_at(x)).all()
    assert 1.3 < change.noise_factor < 1.9
    standing = video.depth_change(z, x, before, frames, NOISE, False)
    assert tuple(standing.c) == (0, 0, 0, 0)
    nothing = video.depth_change(np.full_like(z, np.nan), x, before, frames, NOISE, True)
    assert (nothing.samples, nothing.noise_factor, tuple(nothing.c)) == (0, 1, (0, 0, 0, 0))


def photographs(
    theta: tuple[float, ...], seed: int = 0, gain: float = 1.0, offset: float = 0.0
) -> tuple[Array, Array, Array]:
    """A frame, the frame before in which its points are where the flow says, and its depth."""
    rng = np.random.default_rng(seed)
    shape = (240, 320)
    depth = depth_map(rng, shape)
    luma = sum(gaussian_filter(rng.normal(size=shape), s) * s for s in (2, 5, 12, 30))
    luma = 120 + 60 * luma / np.abs(luma).max()
    # `now` at p is `before` at p + flow.
    dy, dx = oracle.flow(np.array(theta), depth.astype(np.float64), 2.0)
    y, x = np.mgrid[: shape[0], : shape[1]]
    now = map_coordinates(luma, [y + dy, x + dx], order=3, mode="nearest")
    now = (now - offset) / gain
    return now.astype(np.float32), luma.astype(np.float32), depth


@pytest.mark.parametrize(
    "theta",
    [
        (0.0,) * 11,
        (4, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0),
        (9, 0, 0, -12, 0, 0, 0, 0, 0, 0, 0),
        (0, 0, 2, 0, -2, 0, 0, 0, 0, 0, 0),
        (1, 0, 0, 2, 0, 0, 1, -1, 4, -3, 5),
    ],
)
@pytest.mark.parametrize("exposure", [(1.0, 0.0), (1.3, -10.0)])
def test_the_motion_of_the_camera(theta: tuple[float, ...], exposure: tuple[float, float]) -> None:
    now, before, depth = photographs(theta, 1, *exposure)
    pictures = [video.photo(p[..., np.newaxis], 255.0) for p in (before, now)]
    motion = video.camera_motion(*pictures, depth, 2.0, (0.0,) * 11)
    found = oracle.flow(np.array(motion.theta), depth.astype(np.float64), 2.0)
    truth = oracle.flow(np.array(theta), depth.astype(np.float64), 2.0)
    error = np.hypot(found[0] - truth[0], found[1] - truth[1])
    assert np.median(error) < 0.1
    assert np.quantile(error, 0.95) < 0.4
    assert abs(motion.gain - exposure[0]) < 0.03
    assert motion.residual < 2


def test_small_and_flat_photographs_do_not_move() -> None:
    for shape in ((1, 1), (3, 50), (60, 80)):
        pictures = [video.photo(np.full((*shape, 1), v, np.uint8), 255.0) for v in (90, 90)]
        depth = np.ones(shape, np.float32)
        motion = video.camera_motion(*pictures, depth, 1.0, (0.0,) * 11)
        assert motion.flow == 0
        assert (motion.gain, motion.offset) == (1, 0)


def test_the_same_bits_from_any_number_of_threads(keep_num_threads: None) -> None:
    theta = (3.0, 0, 0, -2, 0, 0, 0, 0, 1, 0, 0)
    now, before, depth = photographs(theta)
    rng = np.random.default_rng(0)
    z = (depth + 0.01 * rng.normal(size=depth.shape)).astype(np.float32)
    kept, frames = np.ones(z.shape, np.bool_), np.full(z.shape, 3, np.uint8)
    results: list[list[Array]] = []
    for threads in (1, 2, 3, 7):
        bilateral.set_num_threads(threads)
        a, b = (video.photo(p[..., np.newaxis], 255.0) for p in (before, now))
        motion = video.camera_motion(a, b, depth, 2.0, (0.0,) * 11)
        moved = video.warp_past(depth, frames, a.packed, depth, motion, 2.0, NOISE)
        compared = video.compare_past(
            z, z, depth, kept, b.packed, moved, (0,) * 4, NOISE, 12.0, 1.0, 4.0
        )
        averaged = video.average_past(depth, kept, compared, moved, NOISE, RULES)
        calmed = video.calm(
            [z, depth, averaged[0]],
            moved.speed,
            NOISE,
            gain=0.5,
            most=0.6,
            fast=30.0,
            change=9.0,
        )
        theta_found = np.array([*motion.theta, motion.gain, motion.offset])
        results.append([theta_found, *a.levels, *moved, *compared, *averaged, calmed])
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("step", [6, 8, 12])
def test_a_standing_camera_does_not_follow_a_near_thing(step: int) -> None:
    """A near thing moves; a wall of columns, which would move differently, stays."""
    rng = np.random.default_rng(step)
    wall, thing = (
        100 + 40 * sum(gaussian_filter(rng.normal(size=(240, 320)), s) * s for s in (2, 5))
        for _ in range(2)
    )
    photos = []
    for left in (100, 100 + step):
        photo = wall + rng.normal(size=wall.shape)
        photo[60:180, left : left + 90] = thing[60:180, 100:190] + rng.normal(size=(120, 90))
        photos.append(video.photo(photo.astype(np.float32)[..., np.newaxis], 255.0))
    columns = rng.permutation(np.linspace(2, 6, 8)).repeat(40)
    depth = np.tile(columns.astype(np.float32), (240, 1))
    depth[60:180, 100 + step : 190 + step] = 1
    motion = video.camera_motion(*photos, depth, 2.0, (0.0,) * 11)
    assert motion.flow == 0
