"""Depth super-resolution: presets on a synthetic scene, holes, factors and wrong input."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BlockMeans
from bilateral.filters import resize
from bilateral.tasks import superres_depth
from bilateral.tasks.superres.noise import MapNoise, noise_levels
from support.examples import examples
from support.strategies import Array, seeds

PRESETS = ["best", "fast", "paper"]


def scene(shape: tuple[int, int] = (96, 128)) -> tuple[Array, Array]:
    """Return a photo of three surfaces with some texture, and their depth."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
    surface = (x + 0.3 * y > 0.6).astype(int) + 2 * (np.hypot(x - 0.3, y - 0.35) < 0.22)
    tint = np.array([[70, 80, 60], [190, 170, 150], [120, 60, 40], [120, 60, 40]])[surface]
    photo = tint + rng.normal(0, 4, tint.shape) + 20 * y[..., np.newaxis]
    depth = np.array([150.0, 60.0, 210.0, 210.0])[surface] + 20 * x
    return np.clip(photo, 0, 255).astype(np.uint8), depth


def lowered(depth: Array, shape: tuple[int, int], noise: float = 0.0) -> Array:
    means = BlockMeans(np.zeros(shape), depth.shape).means(depth)
    return means + noise * np.random.default_rng(1).normal(size=shape)


def rmse(a: Array, b: Array) -> float:
    return float(np.sqrt(np.mean((a.astype(float) - b) ** 2)))


@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_each_preset_beats_bicubic_and_the_best_is_best(factor: int, noise: float) -> None:
    photo, depth = scene()
    low = lowered(depth, (96 // factor, 128 // factor), noise)
    error = {preset: rmse(superres_depth(low, photo, preset=preset), depth) for preset in PRESETS}
    bicubic = rmse(resize.bicubic(low, depth.shape), depth)
    assert error["best"] < 0.7 * bicubic
    assert error["best"] < 0.9 * min(error["fast"], error["paper"])
    assert max(error["fast"], error["paper"]) < 1.1 * bicubic


def test_the_papers_preset_is_the_papers_pipeline() -> None:
    photo, depth = scene()
    low = lowered(depth, (24, 32), 3.0)
    support = bilateral.confidence.upsampling_support(depth.shape, 4, overlap="sum")
    support *= low.size / (4 * support.sum())
    solver = bilateral.BilateralSolver(
        bilateral.BilateralGrid(photo, 8, 4, 3), 0.6, method="paper", max_iterations=15
    )
    x = solver.solve(resize.bicubic(low, depth.shape), support)
    x = bilateral.median(bilateral.domain_transform(x, photo, 16, 16), 5)
    assert rmse(superres_depth(low, photo, preset="paper"), x) < 0.05


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_the_unit_does_not_matter(preset: str, unit: float) -> None:
    photo, depth = scene()
    low = lowered(depth, (24, 32), 3.0)
    found = superres_depth(low * unit, photo, preset=preset) / unit
    np.testing.assert_allclose(found, superres_depth(low, photo, preset=preset), atol=0.1)


@pytest.mark.parametrize("preset", PRESETS)
@examples(15)
@given(st.tuples(st.integers(1, 9), st.integers(1, 9)), st.floats(1, 5), st.floats(1, 5), seeds)
def test_any_factor_gives_the_references_shape(
    preset: str, low_shape: tuple[int, int], along_y: float, along_x: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = round(low_shape[0] * along_y), round(low_shape[1] * along_x)
    low, photo = rng.uniform(1, 9, low_shape), rng.integers(0, 256, shape).astype(np.uint8)
    found = superres_depth(low, photo, preset=preset)
    assert found.shape == shape
    assert np.isfinite(found).all()


def test_a_constant_map_stays_constant() -> None:
    photo, _ = scene()
    for preset in PRESETS:
        found = superres_depth(np.full((12, 16), 7.0), photo, preset=preset)
        np.testing.assert_allclose(found, 7, atol=1e-6)


def test_a_map_that_reaches_beyond_the_photo() -> None:
    photo, depth = scene()
    low = lowered(depth, (12, 16), 2.0)
    cut = superres_depth(low, photo[:-3, :-7], factor=8)
    assert cut.shape == (93, 121)
    inside = np.s_[:80, :100]
    assert rmse(cut[inside], superres_depth(low, photo)[inside]) < 2


@pytest.mark.parametrize("preset", PRESETS)
def test_holes_never_matter(preset: str) -> None:
    photo, depth = scene()
    low = lowered(depth, (24, 32), 3.0)
    hole = np.zeros((24, 32), bool)
    hole[4:9, 10:16], hole[20, 3] = True, True
    spoilt = np.where(hole, np.nan, low)
    found = superres_depth(spoilt, photo, preset=preset)
    assert np.isfinite(found).all()
    for value in (0.0, np.inf, 1e30):
        same = superres_depth(np.where(hole, value, low), photo, preset=preset, invalid=value)
        np.testing.assert_array_equal(same, found)
    trusted = superres_depth(np.where(hole, 1e6, low), photo, preset=preset, confidence=~hole)
    np.testing.assert_array_equal(trusted, found)
    assert rmse(found, depth) < 1.3 * rmse(superres_depth(low, photo, preset=preset), depth) + 1


def test_keep_holes_leaves_the_holes() -> None:
    photo, depth = scene()
    low = np.rint(lowered(depth, (24, 32))).astype(np.uint16)
    low[4:9, 10:16] = 0
    found = superres_depth(low, photo, invalid=0, keep_holes=True)
    assert found.dtype == np.uint16
    assert (found[16:36, 40:64] == 0).all()
    assert (found == 0).sum() == 20 * 24
    floats = np.where(low == 0, np.nan, low)
    assert np.isnan(superres_depth(floats, photo, keep_holes=True)).sum() == 20 * 24


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "int32"])
def test_the_dtype_is_kept(dtype: str) -> None:
    photo, depth = scene()
    low = np.rint(lowered(depth, (24, 32))).astype(dtype)
    found = superres_depth(low, photo)
    assert found.dtype == dtype
    assert superres_depth(low, photo, dtype=np.float32).dtype == np.float32
    assert rmse(found, depth) < rmse(resize.bicubic(low.astype(float), depth.shape), depth)


@pytest.mark.parametrize(("low", "shape"), [((1, 1), (1, 1)), ((1, 1), (5, 7)), ((1, 6), (1, 20))])
@pytest.mark.parametrize("preset", PRESETS)
def test_small_images(preset: str, low: tuple[int, int], shape: tuple[int, int]) -> None:
    found = superres_depth(np.full(low, 3.0), np.zeros(shape, np.uint8), preset=preset)
    np.testing.assert_allclose(found, np.full(shape, 3.0), atol=1e-6)


def test_noise_is_found_by_value() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(10, 100, (80, 90))
    noise = values / 20
    residuals = noise * rng.normal(size=values.shape)
    residuals[::9, ::7] += 300  # edges
    found = noise_levels(residuals.ravel(), values.ravel(), values)
    assert np.abs(found / noise - 1).mean() < 0.15


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.1, 3), seeds)
@examples(15)
def test_the_noise_of_a_plane_is_found(
    along_y: float, along_x: float, noise: float, seed: int
) -> None:
    y, x = np.indices((40, 50))
    low = along_y * y + along_x * x + noise * np.random.default_rng(seed).normal(size=y.shape)
    found = MapNoise.of(low, np.ones(low.shape, bool))
    least = 2e-3 * np.ptp(low)  # smaller noise does not matter
    assert found.level == pytest.approx(noise, rel=0.15, abs=least)
    assert found.slope <= max(abs(along_y), abs(along_x)) + 2 * noise


def test_roughness_is_no_noise() -> None:
    found = MapNoise.of(rough_map(), np.ones((128, 160), bool))
    assert found.level < 0.01 * np.ptp(rough_map())


def test_the_noise_of_maps_too_small_to_measure() -> None:
    for low in (np.full((1, 1), 3.0), np.arange(5.0)[np.newaxis], np.zeros((4, 4))):
        known = np.ones(low.shape, bool)
        noise = MapNoise.of(low, known)
        assert noise.level > 0
        assert (noise.levels(low) > 0).all()


# Little noise, and photographs that do not help


def rough_map(shape: tuple[int, int] = (128, 160)) -> Array:
    """Return a map that is rough at all scales, such as the height of vegetation."""
    rng, depth = np.random.default_rng(3), np.zeros(shape)
    for scale in (2, 4, 8, 16, 32):
        depth += scale * resize.bicubic(
            rng.normal(size=(shape[0] // scale, shape[1] // scale)), shape
        )
    return depth


def unrelated_photos(shape: tuple[int, int]) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    scene_of_others, _ = scene(shape)
    patches = np.kron(rng.integers(0, 256, (16, 20, 3)), np.ones((8, 8, 1)))
    return {
        "another scene": np.ascontiguousarray(scene_of_others[::-1, ::-1]),
        "patches": patches.astype(np.uint8),
        "texture": rng.integers(0, 256, (*shape, 3)).astype(np.uint8),
    }


@pytest.mark.parametrize("factor", [4, 8])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("name", ["another scene", "patches", "texture"])
def test_an_unrelated_photo_does_no_harm(factor: int, noise: float, name: str) -> None:
    depth = rough_map()
    low = lowered(depth, (128 // factor, 160 // factor), noise)
    found = superres_depth(low, unrelated_photos(depth.shape)[name])
    assert rmse(found, depth) <= 1.01 * rmse(resize.bicubic(low, depth.shape), depth)


@pytest.mark.parametrize("factor", [4, 8])
@pytest.mark.parametrize("noise", [5.0, 30.0])
@pytest.mark.parametrize("name", ["another scene", "texture", "constant"])
def test_noise_does_not_hide_an_unrelated_photo(factor: int, noise: float, name: str) -> None:
    _, depth = scene((128, 160))
    photos = unrelated_photos(depth.shape)
    photos["constant"] = np.full_like(photos["texture"], 128)
    low = lowered(depth, (128 // factor, 160 // factor), noise)
    found = superres_depth(low, photos[name])
    assert rmse(found, depth) <= 1.02 * rmse(resize.bicubic(low, depth.shape), depth)


@pytest.mark.parametrize("photo_noise", [0.0, 20.0])
def test_a_noisy_photo_of_the_scene_still_helps(photo_noise: float) -> None:
    photo, depth = scene((128, 160))
    rng = np.random.default_rng(6)
    photo = np.clip(photo + photo_noise * rng.normal(size=photo.shape), 0, 255).astype(np.uint8)
    low = lowered(depth, (32, 40), 20.0)
    found = superres_depth(low, photo)
    assert rmse(found, depth) < 0.75 * rmse(resize.bicubic(low, depth.shape), depth)


def test_a_photo_unrelated_in_one_half_helps_in_the_other() -> None:
    photo, depth = scene((128, 256))
    related = np.s_[:, :128]
    photo[:, 128:] = np.random.default_rng(2).permutation(photo[:, 128:], axis=1)
    low = lowered(depth, (32, 64), 0.2)
    found, bicubic = superres_depth(low, photo), resize.bicubic(low, depth.shape)
    assert rmse(found, depth) < 0.9 * rmse(bicubic, depth)
    assert rmse(found[related], depth[related]) < 0.7 * rmse(bicubic[related], depth[related])


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_little_noise_is_little_smoothing(factor: int) -> None:
    """The block means of the result follow the data as closely as their noise demands."""
    photo, depth = scene((128, 160))
    shape = (128 // factor, 160 // factor)
    clean, noisy = lowered(depth, shape), lowered(depth, shape, 8.0)
    misfit = [
        rmse(BlockMeans(low, depth.shape).means(superres_depth(low, photo)), low)
        for low in (clean, noisy)
    ]
    assert misfit[0] < 0.25 * misfit[1]


@pytest.mark.parametrize("gain", [-1.0, 0.01, 250.0])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_scale_and_shift_equivariance(gain: float, noise: float) -> None:
    photo, depth = scene()
    low = lowered(depth, (24, 32), noise)
    moved = superres_depth(gain * low + 70 * gain, photo)
    assert rmse(moved / gain - 70, superres_depth(low, photo)) < 0.05


# Enlarging


@given(st.tuples(st.integers(1, 12), st.integers(1, 12)), st.integers(1, 6), seeds)
def test_bicubic_keeps_polynomials(shape: tuple[int, int], factor: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=4)

    def plane(n: tuple[int, int], step: float) -> Array:
        y, x = (np.indices(n) + 0.5) * step
        return a + b * x + c * y + d * x * y

    large = shape[0] * factor, shape[1] * factor
    found = resize.bicubic(plane(shape, factor), large)
    inside = tuple(slice(2 * factor, max(2 * factor, n - 2 * factor)) for n in large)
    np.testing.assert_allclose(found[inside], plane(large, 1)[inside], atol=1e-9 * factor**2)
    np.testing.assert_allclose(resize.bicubic(np.full(shape, 5.0), large), 5)


# Wrong input

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"preset": "good"}, "preset: expected one of"),
    ({"depth_lowres": np.zeros((3, 4, 2))}, "depth_lowres: expected shape (H, W)"),
    ({"depth_lowres": np.full((3, 4), np.nan)}, "depth_lowres: expected at least one known"),
    ({"depth_lowres": np.zeros((3, 4)), "invalid": 0}, "depth_lowres: expected at least one"),
    ({"depth_lowres": np.zeros((30, 4))}, "reference: expected at least the shape of depth_lowres"),
    ({"factor": 3}, "factor: expected 4, the ratio"),
    ({"factor": -1}, "factor: expected a number above 0"),
    ({"confidence": np.ones((4, 3))}, "confidence: expected one number per pixel"),
    ({"confidence": -np.ones((3, 4))}, "confidence: expected finite numbers, 0 or above"),
    ({"confidence": np.zeros((3, 4))}, "depth_lowres: expected at least one"),
    ({"reference": np.zeros((12, 16, 4), np.uint8)}, "reference: expected a gray image"),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_wrong_input_is_reported(change: dict[str, Any], told: str) -> None:
    good = {"depth_lowres": np.ones((3, 4)), "reference": np.zeros((12, 16), np.uint8)}
    with pytest.raises((TypeError, ValueError)) as error:
        superres_depth(**(good | change))
    assert str(error.value).startswith(told)
