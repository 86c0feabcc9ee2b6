"""Defocus: sharp pixels stay, light is preserved, highlights become discs or polygons."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import color
from bilateral.tasks import defocus
from support.examples import examples
from support.strategies import Array, as_dtype, seeds, shapes

DTYPES = ("uint8", "uint16", "float32", "float64")


def blurred(image: Array, radius: Array | float, **options: Any) -> Array:
    """Blur by a signed radius per pixel, positive before the focus."""
    disparity = np.broadcast_to(radius, image.shape[:2])
    return defocus(image, disparity, 0.0, 1.0, kind="disparity", max_radius=1000, **options)


def random_image(dtype: str, channels: tuple[int, ...] = (3,), size: int = 24) -> Array:
    return as_dtype(np.random.default_rng(0).uniform(size=(size, size + 5, *channels)), dtype)


def scene(before: float, behind: float) -> tuple[Array, Array, Array]:
    """A bright square before a dark background: the image, its radii, where the square is."""
    near = np.zeros((60, 60), bool)
    near[20:40, 20:40] = True
    return np.where(near, 1.0, 0.0), np.where(near, before, behind), near


@pytest.mark.parametrize("channels", [(), (1,), (3,)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pixels_in_focus_stay_unchanged(dtype: str, channels: tuple[int, ...]) -> None:
    image = random_image(dtype, channels)
    depth = np.full(image.shape[:2], 3.0)
    for out in (defocus(image, depth, 3.0, 50), defocus(image, depth * image.std(), 7.0, 0)):
        assert out is not image
        assert out.dtype == image.dtype
        assert np.array_equal(out, image)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sharp_object_stays_before_a_blurred_background(dtype: str) -> None:
    image = random_image(dtype)
    depth = np.full(image.shape[:2], 100.0)
    depth[5:15, 5:15] = 2
    out = defocus(image, depth, 2, 12)
    assert out.dtype == image.dtype
    inside = out[5:15, 5:15].astype(np.float64) - image[5:15, 5:15]
    assert np.abs(inside).max() <= (0 if dtype.startswith("u") else 1e-6)
    assert out[20:].std() < 0.7 * image[20:].std()


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.7, -9.0])
def test_light_is_preserved_where_depth_is_constant(radius: float) -> None:
    image = random_image("float64", (3,), 40) ** 4
    out = blurred(image, radius)
    np.testing.assert_allclose(out.mean(axis=(0, 1)), image.mean(axis=(0, 1)), rtol=1e-5)
    assert out.std() < image.std() or abs(radius) < 0.5


@pytest.mark.filterwarnings("ignore:focus")
@examples(40)
@given(shape=shapes(40), largest=st.sampled_from([0.5, 3.0, 20.0]), seed=seeds)
def test_results_are_means_of_the_image(shape: tuple[int, int], largest: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = rng.normal(size=(3, 3))[np.arange(shape[0]) % 3][:, np.arange(shape[1]) // 5 % 3]
    radius = np.clip(blocks + 0.2 * rng.normal(size=shape), -1, 1) * largest
    image = rng.uniform(size=(*shape, 3))
    out = blurred(image, radius, blades=int(rng.choice([3, 6])))
    assert np.isfinite(out).all()
    assert (out >= image.min(axis=(0, 1)) - 1e-5).all()
    assert (out <= image.max(axis=(0, 1)) + 1e-5).all()
    flat = blurred(np.full((*shape, 3), 0.7), radius)
    np.testing.assert_allclose(flat, 0.7, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:focus")  # a few pixels may all be blurred
@examples(20)
@given(shape=shapes(40), seed=seeds)
def test_a_mirror_image_is_blurred_alike(shape: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    image, radius = rng.uniform(size=shape), rng.integers(-4, 5, shape)
    expected = blurred(image, radius)
    for flip in (np.s_[::-1], np.s_[:, ::-1]):
        np.testing.assert_allclose(blurred(image[flip], radius[flip])[flip], expected, atol=1e-5)


@pytest.mark.parametrize("radius", [4.0, 7.5, -12.0])
def test_a_highlight_becomes_a_disc(radius: float) -> None:
    image = np.zeros((41, 41))
    image[20, 20] = 1
    out = blurred(image, radius)
    y, x = np.mgrid[-20:21, -20:21]
    distance = np.hypot(x, y)
    # A radius between two layers mixes two discs of similar size.
    level = 1 / (np.pi * radius**2)
    inside, outside = distance < abs(radius) - 1.5, distance > abs(radius) + 2.2
    assert abs(float(out.sum()) - 1) < 1e-4
    assert np.abs(out[outside]).max() < 1e-7
    np.testing.assert_allclose(out[inside], level, rtol=0.15)


@pytest.mark.parametrize("blades", [3, 5, 6])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("rotation", [0.0, 20.0])
def test_a_highlight_becomes_a_polygon(blades: int, before: bool, rotation: float) -> None:
    image = np.zeros((61, 61))
    image[30, 30] = 1
    radius = 8.0
    out = blurred(image, radius if before else -radius, blades=blades, rotation=rotation)
    y, x = np.mgrid[-30:31, -30:31] * (-1 if before else 1)
    half = np.pi / blades
    corner = np.sqrt(half * 2 / np.sin(2 * half)) * radius  # a polygon of the disc's area
    angle = np.arctan2(x, -y) - np.radians(rotation)  # from the corner that points up
    edge = np.cos((angle % (2 * half)) - half) * np.hypot(x, y)
    inner = corner * np.cos(half)
    assert abs(float(out.sum()) - 1) < 1e-4
    assert np.abs(out[edge > inner + 1.2]).max() < 1e-3 * out.max()
    np.testing.assert_allclose(out[edge < inner - 1.2], 1 / (np.pi * radius**2), rtol=0.05)


def test_a_sharp_object_gives_no_light_to_the_background() -> None:
    image, radius, near = scene(0.0, -9.0)
    out = blurred(image, radius)
    assert np.abs(out[~near]).max() < 1e-6
    np.testing.assert_allclose(out[near], 1, rtol=1e-5)


def test_a_blurred_background_gives_no_light_to_a_sharp_object() -> None:
    image, radius, near = scene(0.0, -9.0)
    out = blurred(1 - image, radius)
    assert np.abs(out[near]).max() < 1e-6
    np.testing.assert_allclose(out[~near], 1, rtol=1e-5)


def test_a_blurred_object_has_soft_edges_over_a_sharp_background() -> None:
    image, radius, _ = scene(5.0, 0.0)
    profile = blurred(image, radius)[30, 8:30]
    assert (np.diff(profile) >= -1e-5).all()
    assert np.diff(profile).max() < 0.2  # the background continues behind the edge
    assert abs(float(profile[11] + profile[12]) / 2 - 0.5) < 0.02
    assert profile[5] < 0.01
    assert profile[-4] > 0.99


def test_a_background_is_continued_behind_a_blurred_object() -> None:
    _, radius, near = scene(6.0, 0.0)
    picture = np.where(near[..., np.newaxis], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0])
    out = blurred(picture, radius)
    share = out[..., 0]
    np.testing.assert_allclose(out[..., 1], 0.5 * (1 - share), atol=1e-4)
    assert out[..., 2].max() == 0


def test_a_slanted_surface_hides_the_background() -> None:
    radius = np.tile(np.linspace(-2, 9, 80), (60, 1))
    image = np.ones((60, 80))
    radius[:, :20], image[:, :20] = -15, 0  # black, far behind
    out = blurred(image, radius)
    assert out[:, 38:].min() > 0.999


def test_depth_is_the_inverse_of_disparity() -> None:
    rng = np.random.default_rng(0)
    image, disparity = rng.uniform(size=(20, 30)), rng.uniform(0.1, 1, (20, 30))
    by_depth = defocus(image, 1 / disparity, 1 / 0.5, 8)
    by_disparity = defocus(image, disparity, 0.5, 8, kind="disparity")
    np.testing.assert_allclose(by_depth, by_disparity, atol=1e-5)
    far = np.where(disparity > 0.2, 1 / disparity, np.inf)
    near = np.where(disparity > 0.2, disparity, 0)
    expected = defocus(image, near, 0.5, 8, kind="disparity")
    np.testing.assert_allclose(defocus(image, far, 2, 8), expected, atol=1e-5)


def test_integers_are_blurred_as_light() -> None:
    image = np.zeros((32, 32), np.uint8)
    image[:, ::2] = 255
    depth = np.full(image.shape, 2.0)
    middle = defocus(image, depth, 1, 20, max_radius=8)[8:24, 8:24]
    assert abs(float(middle.mean()) - 188) < 1.5  # half the light, not half the value
    coded = defocus(image, depth, 1, 20, max_radius=8, linear=True)[8:24, 8:24]
    assert abs(float(coded.mean()) - 127.5) < 1.5
    shown = defocus(image / 255, depth, 1, 20, max_radius=8, linear=False)[8:24, 8:24]
    assert abs(float(shown.mean()) - 188 / 255) < 0.01


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_srgb_round_trip(dtype: str) -> None:
    values = np.arange(np.iinfo(dtype).max + 1).astype(dtype)
    light = color.srgb_to_linear(values)
    assert (np.diff(light) > 0).all()
    assert (light[0], light[-1]) == (0, 1)
    assert np.array_equal(color.linear_to_srgb(light, values.dtype), values)
    scaled = values / np.iinfo(dtype).max
    np.testing.assert_allclose(color.srgb_to_linear(scaled), light, rtol=1e-5)
    back = color.linear_to_srgb(light, np.dtype(np.float64))
    np.testing.assert_allclose(back, scaled, atol=1e-6)
    beyond = color.linear_to_srgb(np.float32([-1, 2]), values.dtype)
    assert beyond.tolist() == [0, np.iinfo(dtype).max]


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (1, 40, 3), (2, 2, 3)])
def test_small_images(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    depth = np.random.default_rng(1).uniform(1, 9, shape[:2])
    out = defocus(image, depth, 3, 100, max_radius=50)
    assert out.shape == image.shape


@pytest.mark.usefixtures("keep_num_threads")
def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    image, radius = rng.uniform(size=(150, 200, 3)), rng.integers(-3, 9, (150, 200))
    results = []
    for threads in (1, 2, 5):
        bilateral.set_num_threads(threads)
        results.append(blurred(image, radius))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_radii_are_cut() -> None:
    image = random_image("float64", ())
    out = defocus(image, np.full(image.shape, 1e-9), 1, 1e12, max_radius=3)
    np.testing.assert_allclose(out, blurred(image, 3.0), atol=1e-6)


IMAGE = np.random.default_rng(0).integers(0, 256, (6, 8), dtype=np.uint8)
DEPTH = np.linspace(1, 2, 48).reshape(6, 8)
HOLED = np.where(np.arange(48).reshape(6, 8) == 19, np.nan, DEPTH)

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("image", IMAGE[0], ValueError, "(8,)"),
    ("image", np.zeros((6, 8, 4), np.uint8), ValueError, "alpha"),
    ("image", IMAGE.astype(int), TypeError, "int64"),
    ("image", HOLED, ValueError, "nan at row 2, column 3"),
    ("depth", HOLED, ValueError, "nan at row 2, column 3"),
    ("depth", np.full((6, 8), np.nan), ValueError, "nan at row 0, column 0"),
    ("depth", DEPTH - 1, ValueError, "0.0 at row 0, column 0"),
    ("depth", DEPTH[1:], ValueError, "(5, 8)"),
    ("depth", "far", TypeError, "<U3"),
    ("focus", 0, ValueError, "0"),
    ("focus", np.nan, ValueError, "nan"),
    ("aperture", -1, ValueError, "-1"),
    ("aperture", "f/2", TypeError, "f/2"),
    ("kind", "inverse", ValueError, "inverse"),
    ("blades", 2, ValueError, "2"),
    ("rotation", np.inf, ValueError, "inf"),
    ("max_radius", 0, ValueError, "0"),
]


@pytest.mark.parametrize(("argument", "value", "error", "told"), WRONG)
def test_wrong_input(argument: str, value: Any, error: type[Exception], told: str) -> None:
    arguments: dict[str, Any] = {"image": IMAGE, "depth": DEPTH, "focus": 1.0, "aperture": 5.0}
    with pytest.raises(error) as caught:
        defocus(**arguments | {argument: value})
    assert str(caught.value).startswith(argument)
    assert told in str(caught.value)


def test_disparities_have_to_be_finite() -> None:
    with pytest.raises(ValueError, match=r"depth: .* inf at row 0, column 0"):
        defocus(IMAGE, np.full((6, 8), np.inf), 1, 1, kind="disparity")


@pytest.mark.parametrize(
    ("focus", "kind", "expected"),
    [
        (0.5, "depth", "outside the range of depth, 2 to 8, so that everything is blurred"),
        (20.0, "depth", "Choose a focus within it"),
        (0.25, "depth", "both disparities with kind='disparity'"),
        (50.0, "disparity", "focus: 50 is outside"),
        (0.2, "disparity", "both distances with kind='depth'"),
    ],
)
def test_a_focus_outside_the_depths_warns(focus: float, kind: str, expected: str) -> None:
    image, depth = random_image("uint8"), np.linspace(2, 8, 24)[:, np.newaxis] * np.ones(29)
    with pytest.warns(UserWarning, match="focus") as caught:
        defocus(image, depth, focus, 1000.0, kind=kind)
    [warning] = caught
    assert expected in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("focus", "aperture"), [(2.0, 1000.0), (8.0, 1000.0), (1.9999, 1.0), (0.5, 0.0), (9.0, 3.0)]
)
def test_a_focus_that_leaves_something_sharp_does_not_warn(focus: float, aperture: float) -> None:
    image, depth = random_image("uint8"), np.linspace(2, 8, 24)[:, np.newaxis] * np.ones(29)
    defocus(image, depth, focus, aperture)  # warnings are errors
