"""`refine_depth`: properties for any input, and quality on synthetic scenes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.common import made as scenes
from bilateral.backends import cpu
from bilateral.tasks import complete_depth, refine_depth
from support.examples import examples

Array = NDArray[Any]

PRESETS = ("sensor", "stereo", "sparse")


def errors(found: Array, truth: Array, where: Array | None = None) -> tuple[float, float]:
    """Return the fraction of pixels with an error above 1, and the mean error."""
    e = np.abs(found.astype(float) - truth)[... if where is None else where]
    return float(np.mean(e > 1)), float(e.mean())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.uint8])
def test_a_constant_map_stays_constant(preset: str, dtype: Any) -> None:
    photo = scenes.boxes(1, (40, 56)).photo
    depth = np.full(photo.shape[:2], 37, dtype)
    refined = refine_depth(depth, photo, preset=preset)
    assert refined.dtype == dtype
    np.testing.assert_array_equal(refined, depth)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_constant_map_with_holes_is_filled(preset: str) -> None:
    photo = scenes.boxes(1, (40, 56)).photo
    depth = np.full(photo.shape[:2], 2.5)
    depth[10:20, 10:30], depth[30:, 50:], depth[0, 0] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(refine_depth(depth, photo, preset=preset), 2.5)


@examples(10)
@given(st.floats(1e-3, 1e3), st.floats(-10, 10), st.integers(0, 99))
def test_the_unit_does_not_matter(factor: float, offset: float, seed: int) -> None:
    photo, truth = scenes.boxes(seed, (48, 64))
    depth = scenes.noisy(truth, seed).astype(np.float64)
    refined = refine_depth(depth, photo)
    np.testing.assert_allclose(refine_depth(depth * factor, photo) / factor, refined, atol=0.05)
    refined = refine_depth(depth, photo, preset="sparse")  # with no noise that grows with depth
    other = refine_depth(depth * factor + offset, photo, preset="sparse")
    np.testing.assert_allclose((other - offset) / factor, refined, atol=0.02)


def test_the_unit_of_the_confidence_does_not_matter() -> None:
    photo, truth = scenes.boxes(3, (48, 64))
    depth = scenes.noisy(truth)
    confidence = np.random.default_rng(0).uniform(0.1, 1, depth.shape)
    a, b = (refine_depth(depth, photo, c) for c in (confidence, 200 * confidence))
    np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("preset", PRESETS)
def test_values_of_unknown_pixels_change_nothing(preset: str) -> None:
    photo, truth = scenes.boxes(4, (48, 64))
    depth, rng = scenes.noisy(truth).astype(np.float64), np.random.default_rng(1)
    unknown = rng.uniform(size=depth.shape) < 0.3
    nothing = np.where(unknown, np.nan, depth)
    expected = refine_depth(nothing, photo, preset=preset)
    assert np.isfinite(expected).all()
    strange = np.where(unknown, rng.choice([-7777, 3e38, 12], depth.shape), depth)
    same = {
        "mask": refine_depth(strange, photo, mask=~unknown, preset=preset),
        "confidence": refine_depth(strange, photo, np.where(unknown, 0, 3), preset=preset),
        "zero": refine_depth(np.where(unknown, 0, depth), photo, preset=preset, invalid=0),
        "several": refine_depth(
            np.where(unknown, rng.choice([-1, 0, 9999], depth.shape), depth),
            photo,
            preset=preset,
            invalid=[-1, 0, 9999],
        ),
        "infinity": refine_depth(np.where(unknown, -np.inf, depth), photo, preset=preset),
    }
    for name, refined in same.items():
        np.testing.assert_array_equal(refined, expected, err_msg=name)


@pytest.mark.parametrize("preset", ["stereo", "sparse"])
def test_some_presets_take_zero_as_unknown(preset: str) -> None:
    photo, truth = scenes.boxes(4, (48, 64))
    depth = scenes.noisy(truth)
    depth[10:20, 20:30] = 0
    refined = refine_depth(depth, photo, preset=preset)
    np.testing.assert_array_equal(refined, refine_depth(depth, photo, preset=preset, invalid=0))
    assert refined.min() > 1


def test_millimetres_stay_millimetres() -> None:
    photo, truth = scenes.boxes(5, (64, 96))
    metres = scenes.noisy(truth / 10, noise=0.02)
    millimetres = np.rint(metres * 1000).astype(np.uint16)
    millimetres[20:30, 20:50] = 0
    refined = refine_depth(millimetres, photo, invalid=0)
    assert refined.dtype == np.uint16
    wide = refine_depth(millimetres.astype(np.float64), photo, invalid=0)
    np.testing.assert_array_equal(refined, np.rint(wide))
    assert refine_depth(millimetres, photo, invalid=0, dtype=np.float32).dtype == np.float32
    assert errors(refined / 100, truth)[1] < 0.5 * errors(millimetres / 100, truth)[1]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 37), (23, 1), (2, 3)])
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_tiny_images(preset: str, shape: tuple[int, int], channels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (*shape, *channels)).astype(np.uint8)
    depth = rng.integers(1, 9, shape).astype(np.uint16)
    refined = refine_depth(depth, photo, preset=preset)
    assert refined.shape == shape
    assert refined.dtype == np.uint16
    assert depth.min() <= refined.min() <= refined.max() <= depth.max()


def test_one_known_pixel_fills_the_map() -> None:
    depth = np.full((30, 40), np.nan)
    depth[7, 9] = 4.25
    np.testing.assert_array_equal(refine_depth(depth, np.zeros((30, 40), np.uint8)), 4.25)


@pytest.mark.parametrize("reference", [np.uint16, np.float32, np.float64])
def test_references_of_other_dtypes(reference: Any) -> None:
    photo, truth = scenes.boxes(6, (48, 64))
    depth = scenes.noisy(truth)
    white = 65535 if reference is np.uint16 else 1
    other = (photo * (white / 255)).astype(reference)
    expected = refine_depth(depth, photo)
    np.testing.assert_allclose(refine_depth(depth, other), expected, atol=0.05)
    given = refine_depth(depth, photo.astype(reference), reference_max=255)
    np.testing.assert_allclose(given, expected, atol=0.05)


def test_unnamed_invalid_values_are_removed_as_outliers() -> None:
    photo, truth = scenes.boxes(7)
    depth = scenes.noisy(truth, outliers=0)
    depth[::9, ::7] = 65535
    assert errors(refine_depth(depth, photo), truth)[0] < 0.01


THIN = [
    pytest.param(make, preset, spoil, id=f"{make.__name__}-{preset}-{spoil.__name__}")
    for make in (scenes.thin, scenes.small)
    for preset in ("sensor", "stereo")
    for spoil in (scenes.noisy, scenes.matched)
]


@pytest.mark.parametrize(("make", "preset", "spoil"), THIN)
def test_no_harm_to_thin_structures(make: Any, preset: str, spoil: Any) -> None:
    for seed in (0, 1):
        photo, truth = make(seed)
        depth, both = spoil(truth, seed), scenes.seen_by_both(truth)
        before, after = (
            errors(depth, truth, both),
            errors(refine_depth(depth, photo, preset=preset), truth, both),
        )
        assert after[0] <= 1.05 * before[0]
        assert after[1] <= 1.05 * before[1]


def test_thin_structures_stay() -> None:
    photo, truth = scenes.thin(2, widths=(3, 4, 5))
    refined = refine_depth(scenes.noisy(truth, 2), photo)
    pole = truth > 20
    assert np.mean(np.abs(refined - truth)[pole] < 1) > 0.9


def test_a_stereo_map_gets_much_better() -> None:
    for seed in range(3):
        photo, truth = scenes.boxes(seed)
        depth = scenes.matched(truth, seed)
        refined = refine_depth(depth, photo, preset="stereo")
        before, after = errors(depth, truth), errors(refined, truth)
        assert after[0] < 0.5 * before[0]
        assert after[1] < 0.35 * before[1]
        generic = errors(refine_depth(depth, photo), truth)
        assert generic[1] < before[1]


def test_a_sparse_map_is_filled_well() -> None:
    photo, truth = scenes.boxes(8)
    depth = np.zeros_like(truth)
    depth[::6, ::4] = scenes.noisy(truth, 8, noise=0.1)[::6, ::4]
    bad, mean = errors(refine_depth(depth, photo, preset="sparse"), truth)
    assert bad < 0.08
    assert mean < 0.3


def test_any_number_of_threads_gives_the_same(keep_num_threads: None) -> None:
    from bilateral import set_num_threads

    photo, truth = scenes.boxes(9, (300, 400))
    results = []
    for threads in (1, 3):
        set_num_threads(threads)
        results.append(refine_depth(scenes.matched(truth), photo, preset="stereo"))
    np.testing.assert_array_equal(*results)


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "all NaN": ({"depth": np.full((4, 5), np.nan)}, ValueError, "depth: expected at least one"),
    "all invalid": ({"invalid": 3}, ValueError, "depth: expected at least one known pixel"),
    "empty mask": ({"mask": np.zeros((4, 5), bool)}, ValueError, "depth: expected at least one"),
    "no confidence": ({"confidence": np.zeros((4, 5))}, ValueError, "depth: expected at least"),
    "all 0": (
        {"depth": np.zeros((4, 5)), "preset": "stereo"},
        ValueError,
        "depth: expected at least one known pixel",
    ),
    "preset": ({"preset": "lidar"}, ValueError, "preset: expected one of 'sensor', 'stereo'"),
    "shape": ({"depth": np.ones((4, 6))}, ValueError, r"depth: .*shape \(4, 5\)"),
    "channels": ({"depth": np.ones((4, 5, 2))}, ValueError, "depth: expected one number per"),
    "mask's shape": ({"mask": np.ones((5, 4), bool)}, ValueError, "mask: expected one number per"),
    "mask's dtype": ({"mask": np.ones((4, 5))}, TypeError, "mask: expected bool or integers"),
    "invalid": ({"invalid": "zero"}, TypeError, "invalid: expected a number"),
    "invalid NaN": ({"invalid": [0, np.nan]}, ValueError, "invalid: expected a number"),
    "confidence": ({"confidence": -np.ones((4, 5))}, ValueError, "confidence: expected finite"),
    "scale": ({"scale": 0}, ValueError, "scale: expected a number above 0"),
    "sigma_xy": ({"sigma_xy": -1}, ValueError, "sigma_xy: expected a number above 0"),
    "dtype": ({"dtype": "complex64"}, TypeError, "dtype: expected a real dtype"),
    "complex": ({"depth": np.ones((4, 5), complex)}, TypeError, "depth: expected real numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    arguments, error, message = MISTAKES[mistake]
    usual = {"depth": np.full((4, 5), 3.0), "reference": np.zeros((4, 5, 3), np.uint8)}
    with pytest.raises(error, match=message):
        refine_depth(**(usual | arguments))


@pytest.mark.parametrize("name", ["sigma_xy", "sigma_luma", "sigma_chroma"])
@pytest.mark.parametrize("task", [refine_depth, complete_depth])
def test_sizes_of_cells_are_checked_even_if_nothing_needs_a_grid(task: Any, name: str) -> None:
    depth, photo = np.full((14, 23), 3, np.uint16), np.zeros((14, 23, 3), np.uint8)
    for size, error in ((np.nan, ValueError), (0, ValueError), ("8", TypeError)):
        with pytest.raises(error, match=f"{name}: expected a number above 0"):
            task(depth, photo, **{name: size})
    if name != "sigma_xy":
        with pytest.raises(TypeError, match=f"{name}: expected a number above 0"):
            task(depth, photo, **{name: None})


def test_the_scale_is_in_the_maps_unit() -> None:
    depth = np.full((64, 96), 1000.0)
    depth[::3, ::3] = 1400
    photo = np.full(depth.shape, 90, np.uint8)
    strict, lenient = (refine_depth(depth, photo, scale=scale) for scale in (20, 20_000))
    np.testing.assert_allclose(strict, 1000, atol=1)  # one pixel in nine is wrong
    np.testing.assert_allclose(lenient[8:-8, 8:-8].mean(), 1000 + 400 / 9, atol=5)


@examples(30)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(0, 999))
def test_visibility_against_a_loop(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    claim, surface = rng.uniform(-2, 8, (2, height, width)).astype(np.float32)
    trusted = rng.uniform(size=surface.shape) < 0.7
    expected = np.zeros_like(trusted)
    for y in range(height):
        for x in range(width):
            at = np.float32(x) - claim[y, x]
            column = int(at + np.float32(0.5)) if 0 <= at <= width - 1 else None
            expected[y, x] = column is not None and not any(
                trusted[y, i]
                and 0 <= np.float32(i) - surface[y, i] <= width - 1
                and int(np.float32(i) - surface[y, i]) in (column, column - 1)
                and surface[y, i] > claim[y, x] + np.float32(1.5)
                for i in range(width)
            )
    np.testing.assert_array_equal(cpu.visible(claim, surface, trusted, 1.5), expected)


@examples(30)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 999))
def test_regions_against_scipy(height: int, width: int, seed: int) -> None:
    from scipy.ndimage import label

    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 3, (height, width)).astype(np.float32)
    mask = rng.uniform(size=levels.shape) < 0.8
    labels, count = cpu.find_regions(levels, mask, 0.5)
    parts = [label(mask & (levels == level)) for level in range(3)]
    assert count == sum(number for _, number in parts)
    assert (labels > 0).tolist() == mask.tolist()
    for found, number in parts:
        for k in range(1, number + 1):
            assert np.unique(labels[found == k]).size == 1
