"""The domain transform matches the oracle and has its properties for any input."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from oracles import filters as oracle
from support.strategies import CONFIDENCES, Array, references, seeds, weights, white

sigmas_xy = st.sampled_from([0.5, 1.0, 4.0, 30.0, 100.0]) | st.floats(0.3, 200)
sigmas_rgb = st.sampled_from([1.0, 16.0, 64.0, 1000.0]) | st.floats(0.1, 300)


@dataclass(frozen=True)
class Case:
    """Arguments of `bilateral.domain_transform` in float64, with at least one known pixel."""

    image: Array
    reference: Array
    options: dict[str, Any]

    def filtered(self, image: Array | None = None, **options: Any) -> Array:
        given_ = self.image if image is None else image
        options = {"reference_max": white(self.reference)} | self.options | options
        return bilateral.domain_transform(given_, self.reference, **options)

    def exact(self) -> tuple[Array, Array]:
        v, w = oracle.domain_transform(self.image, self.reference, **self.options)
        return v.reshape(self.image.shape), w

    @property
    def known(self) -> Array:
        seen = np.isfinite(self.image).reshape(*self.image.shape[:2], -1).all(axis=2)
        given_ = self.options["weights"]
        return seen if given_ is None else seen & (given_ > 0)


@st.composite
def cases(draw: st.DrawFn, holes: bool = True) -> Case:
    reference = draw(references(24))
    shape = reference.shape[:2]
    rng = np.random.default_rng(draw(seeds))
    channels: tuple[int, ...] = draw(st.sampled_from([(), (), (1,), (2,), (3,), (4,), (9,)]))
    image = rng.normal(rng.normal(), 1, (*shape, *channels))
    options: dict[str, Any] = {
        "sigma_xy": draw(sigmas_xy),
        "sigma_rgb": draw(sigmas_rgb),
        "iterations": draw(st.integers(1, 5)),
        "weights": None,
    }
    if holes:
        options["weights"] = weights(draw(st.sampled_from(CONFIDENCES)), shape, rng)
        lost = rng.uniform(size=image.shape) < draw(st.sampled_from([0.0, 0.1, 0.9]))
        image[lost] = rng.choice([np.nan, np.inf, -np.inf], int(lost.sum()))
        seen = int(rng.integers(shape[0])), int(rng.integers(shape[1]))
        image[seen] = rng.normal(size=channels)
        if options["weights"] is not None:
            options["weights"][seen] = options["weights"].max() or 1.0
    return Case(image, reference, options)


@given(cases(holes=False), st.sampled_from([("float64", 1e-11), ("float32", 1e-4)]))
def test_the_filter_matches_the_oracle(case: Case, precision: tuple[str, float]) -> None:
    dtype, tolerance = precision
    x = case.filtered(case.image.astype(dtype))
    assert x.dtype == dtype
    np.testing.assert_allclose(x, case.exact()[0], rtol=0, atol=tolerance)


@given(cases(), st.sampled_from([("float64", 1e-10), ("float32", 1e-3)]))
def test_the_filter_with_weights_and_holes_matches_the_oracle(
    case: Case, precision: tuple[str, float]
) -> None:
    dtype, tolerance = precision
    x = case.filtered(case.image.astype(dtype))
    exact, mass = case.exact()
    reached = mass > 1e-18 * mass.max()  # elsewhere rounding decides the oracle's result
    np.testing.assert_allclose(x[reached], exact[reached], rtol=0, atol=tolerance)


@given(cases(), st.sampled_from(["float32", "float64"]))
def test_results_lie_within_the_known_values(case: Case, dtype: str) -> None:
    x = case.filtered(case.image.astype(dtype))
    known = case.image[case.known]
    slack = 1e-5 * np.abs(known).max()
    assert (x >= known.min(axis=0) - slack).all()
    assert (x <= known.max(axis=0) + slack).all()


@given(cases(), st.floats(-1e6, 1e6), st.sampled_from(["float32", "float64"]))
def test_constants_are_exact(case: Case, value: float, dtype: str) -> None:
    constant = np.where(np.isfinite(case.image), value, case.image).astype(dtype)
    np.testing.assert_array_equal(case.filtered(constant), np.dtype(dtype).type(value))


@given(cases(), st.floats(-5, 5), st.floats(0.1, 10) | st.floats(-10, -0.1))
def test_shift_and_scale_pass_through(case: Case, shift: float, scale: float) -> None:
    expected = case.filtered() * scale + shift
    np.testing.assert_allclose(case.filtered(case.image * scale + shift), expected, atol=1e-10)


@given(cases(), st.sampled_from([1e-9, 1 / 3, 1e9]))
def test_the_scale_of_the_weights_does_not_matter(case: Case, scale: float) -> None:
    given_ = case.options["weights"]
    scaled = np.full(case.image.shape[:2], scale) if given_ is None else given_ * scale
    np.testing.assert_allclose(case.filtered(weights=scaled), case.filtered(), atol=1e-10)


@given(cases(), seeds)
def test_values_without_weight_change_nothing(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = case.image.copy()
    other[~case.known] = rng.choice([np.nan, np.inf, -np.inf])
    np.testing.assert_array_equal(case.filtered(other), case.filtered())
    if case.options["weights"] is not None:
        options = {"weights": np.where(case.known, case.options["weights"], 0)}
        other[~case.known] = rng.normal(0, 1e3)
        np.testing.assert_array_equal(case.filtered(other, **options), case.filtered())


@given(cases(holes=False))
def test_channels_are_independent(case: Case) -> None:
    image = np.dstack([case.image, 1 - 2 * case.image])
    whole = case.filtered(image)
    for k in range(image.shape[2]):
        np.testing.assert_allclose(whole[..., k], case.filtered(image[..., k]), atol=1e-12)


@given(cases(holes=False), st.sampled_from(["uint8", "uint16", "int16", "int32", "bool"]))
def test_integers_are_filtered_as_floats_and_rounded(case: Case, dtype: str) -> None:
    integers = np.clip(case.image * 100, 0, 255).astype(dtype)
    x = case.filtered(integers)
    assert x.dtype == dtype
    real = case.filtered(integers.astype(np.float64))
    np.testing.assert_allclose(x.astype(float), real, atol=0.5 + 1e-3)
    np.testing.assert_array_equal(x, case.filtered(integers.astype(np.float32), dtype=dtype))


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_the_ends_of_an_integer_type_stay(dtype: str) -> None:
    for value in (0, np.iinfo(dtype).max):
        image = np.full((9, 11, 3), value, dtype)
        photo = np.random.default_rng(0).integers(0, 256, (9, 11)).astype(np.uint8)
        np.testing.assert_array_equal(bilateral.domain_transform(image, photo, 4, 40), image)


SMOKE = [("uint8", (3,)), ("float32", ()), ("float64", (5,))]


@pytest.mark.stress
@pytest.mark.parametrize(
    ("dtype", "channels"),
    [
        pytest.param(*case, marks=pytest.mark.smoke if case in SMOKE else ())
        for case in itertools.product(
            ["uint8", "uint16", "float32", "float64"], [(), (2,), (3,), (5,)]
        )
    ],
)
def test_the_same_bits_from_any_number_of_threads(
    dtype: str, channels: tuple[int, ...], keep_num_threads: None
) -> None:
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (610, 803, 3)).astype(np.uint8)
    image = rng.integers(0, 256, (610, 803, *channels)).astype(dtype)
    holed = image.astype(dtype if dtype.startswith("float") else "float32")
    holed[rng.uniform(size=holed.shape) < 0.3] = np.nan
    for given_ in (image, holed):
        found = []
        for threads in (1, 2, 3, 7):
            bilateral.set_num_threads(threads)
            found.append(bilateral.domain_transform(given_, photo, 20, 300))
        for x in found[1:]:
            np.testing.assert_array_equal(x, found[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigma_xy", [1e-300, 1e-6, 1.0, 1e6, 1e300])
@pytest.mark.parametrize("sigma_rgb", [1e-300, 1e-6, 1.0, 1e6, 1e300])
@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (17, 19)])
def test_any_sigma_gives_finite_results(
    shape: tuple[int, int], sigma_rgb: float, sigma_xy: float, dtype: str
) -> None:
    rng = np.random.default_rng(0)
    image = rng.normal(size=shape).astype(dtype)
    for photo in (rng.integers(0, 256, shape).astype(np.uint8), rng.normal(size=(*shape, 3))):
        options = {"sigma_xy": sigma_xy, "sigma_rgb": sigma_rgb, "reference_max": white(photo)}
        assert np.isfinite(bilateral.domain_transform(image, photo, **options)).all()
        sparse = np.where(rng.uniform(size=shape) < 0.1, image, np.nan)
        sparse.flat[-1] = 1
        x = bilateral.domain_transform(sparse, photo, **options)
        assert np.isfinite(x).all()


def test_a_tiny_sigma_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    image, photo = rng.normal(size=(20, 30)), rng.integers(0, 256, (20, 30)).astype(np.uint8)
    np.testing.assert_array_equal(bilateral.domain_transform(image, photo, 1e-3, 30), image)
    flat_only = bilateral.domain_transform(image, np.arange(600).reshape(20, 30) / 600, 30, 1e-6)
    np.testing.assert_array_equal(flat_only, image)


def test_a_huge_number_of_iterations() -> None:
    rng = np.random.default_rng(0)
    image, photo = rng.normal(size=(20, 30)), rng.integers(0, 256, (20, 30)).astype(np.uint8)
    many = bilateral.domain_transform(image, photo, 8, 64, iterations=30)
    np.testing.assert_allclose(
        bilateral.domain_transform(image, photo, 8, 64, iterations=10**9), many, atol=1e-12
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_numbers_of_a_type(dtype: str) -> None:
    rng = np.random.default_rng(0)
    most = np.finfo(dtype).max
    image = rng.choice([most, -most, most / 2, 0], (12, 13, 2)).astype(dtype)
    photo = rng.integers(0, 256, (12, 13)).astype(np.uint8)
    for given_ in (image, np.where(rng.uniform(size=(12, 13, 1)) < 0.3, np.nan, image)):
        x = bilateral.domain_transform(given_, photo, 4, 100)
        assert np.isfinite(x).all()
        scaled = bilateral.domain_transform(given_.astype(np.float64) / most, photo, 4, 100)
        np.testing.assert_allclose(x / most, scaled, atol=1e-5)
    np.testing.assert_array_equal(
        bilateral.domain_transform(np.full_like(image, most), photo, 4, 100), most
    )


@pytest.mark.parametrize("reference_dtype", ["uint16", "float32", "float64"])
def test_one_photograph_in_any_dtype(reference_dtype: str) -> None:
    rng = np.random.default_rng(0)
    image, photo = rng.normal(size=(20, 30)), rng.integers(0, 256, (20, 30, 3)).astype(np.uint8)
    scaled = photo * 257.0 if reference_dtype == "uint16" else photo / 255.0
    x = bilateral.domain_transform(image, scaled.astype(reference_dtype), 8, 64)
    expected = bilateral.domain_transform(image, photo, 8, 64)
    np.testing.assert_allclose(x, expected, atol=1e-6)
    raw = bilateral.domain_transform(image, photo.astype(np.float64), 8, 64, reference_max=255)
    np.testing.assert_allclose(raw, expected, atol=1e-12)


def test_a_reference_of_two_channels() -> None:
    rng = np.random.default_rng(0)
    image, photo = rng.normal(size=(20, 30)), rng.integers(0, 256, (20, 30, 2)).astype(np.uint8)
    exact, _ = oracle.domain_transform(image, photo, 8, 64)
    np.testing.assert_allclose(bilateral.domain_transform(image, photo, 8, 64), exact[..., 0])


def test_views_and_read_only_arrays() -> None:
    rng = np.random.default_rng(0)
    image = rng.normal(size=(40, 60, 3))
    photo = rng.integers(0, 256, (40, 60, 3)).astype(np.uint8)
    mass = rng.uniform(size=(40, 60))
    views = [array[::2, ::-3] for array in (image, photo, mass)]
    plain = [np.ascontiguousarray(view) for view in views]
    before = [array.copy() for array in plain]
    for array in (image, photo, mass, *plain):
        array.flags.writeable = False
    a = bilateral.domain_transform(views[0], views[1], 5, 50, weights=views[2])
    b = bilateral.domain_transform(plain[0], plain[1], 5, 50, weights=plain[2])
    np.testing.assert_array_equal(a, b)
    assert a.flags.writeable
    for array, copy in zip(plain, before, strict=True):
        np.testing.assert_array_equal(array, copy)


IMAGE = np.linspace(0, 1, 48).reshape(6, 8)
PHOTO = np.arange(48, dtype=np.uint8).reshape(6, 8)
HOLED = np.where(np.arange(8) < 4, np.nan, IMAGE)

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("image", IMAGE[:5], ValueError, "(5, 8)"),
    ("image", np.zeros((6, 8, 0)), ValueError, "(6, 8, 0)"),
    ("image", IMAGE.astype(complex), TypeError, "complex128"),
    ("image", np.full((6, 8), np.nan), ValueError, "none"),
    ("image", np.ma.masked_array(IMAGE), TypeError, "masked"),
    ("reference", PHOTO[:5], ValueError, ""),
    ("reference", np.zeros((6, 8, 4), np.uint8), ValueError, "alpha"),
    ("reference", PHOTO.astype(np.int64), TypeError, "int64"),
    ("reference", np.where(PHOTO == 19, np.nan, 0.5), ValueError, "nan at row 2, column 3"),
    ("reference", np.where(PHOTO == 19, np.inf, 0.5), ValueError, "inf at row 2, column 3"),
    ("reference_max", 0, ValueError, "0"),
    ("sigma_xy", 0, ValueError, "0"),
    ("sigma_xy", np.inf, ValueError, "inf"),
    ("sigma_xy", "8", TypeError, "str"),
    ("sigma_rgb", -1, ValueError, "-1"),
    ("sigma_rgb", np.nan, ValueError, "nan"),
    ("sigma_rgb", None, TypeError, "None"),
    ("iterations", 0, ValueError, "0"),
    ("iterations", 2.5, TypeError, "2.5"),
    ("weights", np.ones((6, 7)), ValueError, "(6, 7)"),
    ("weights", np.ones((6, 8, 2)), ValueError, "(6, 8, 2)"),
    ("weights", np.zeros((6, 8)), ValueError, "0 everywhere"),
    ("weights", np.where(PHOTO == 19, -1.0, 1), ValueError, "-1.0 at row 2, column 3"),
    ("weights", np.where(PHOTO == 19, np.nan, 1), ValueError, "nan at row 2, column 3"),
    ("weights", np.where(PHOTO == 19, np.inf, 1), ValueError, "inf at row 2, column 3"),
    ("weights", IMAGE.astype(str), TypeError, "<U"),
    ("dtype", complex, TypeError, "complex128"),
]


@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [pytest.param(*case, id=f"{case[0]}-{case[3]}") for case in WRONG],
)
def test_a_wrong_argument_is_named(
    argument: str, value: Any, error: type[Exception], told: str
) -> None:
    arguments = {"image": IMAGE, "reference": PHOTO, "sigma_xy": 8, "sigma_rgb": 8}
    with pytest.raises(error) as caught:
        bilateral.domain_transform(**(arguments | {argument: value}))
    message = str(caught.value)
    # With two different shapes, the message names the image.
    assert message.startswith("image" if told == "" else argument)
    assert told.lower() in message.lower()


def test_weights_only_at_unknown_pixels_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"^image: .*weight above 0, got none"):
        bilateral.domain_transform(HOLED, PHOTO, 8, 8, weights=np.isnan(HOLED))
