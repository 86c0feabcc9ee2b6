"""Losses: mathematical properties at random errors and at every special case."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import Barron, Cauchy, Charbonnier, GemanMcClure, Huber, Welsch
from support.strategies import seeds

inf, nan = math.inf, math.nan

# Near the limits of the family rounding is at its worst.
ALPHAS = [-inf, -1e300, -1e18, -1e12, -10.0, -2.0, -1.0, -1e-9, -1e-300, 0.0, 1e-300, 1e-9]
ALPHAS += [0.5, 1.0, 1.5, 2 - 1e-9, 2 - 2e-16, 2.0]
ABOVE_2 = [2 + 4e-16, 2 + 1e-9, 3.0, 1e12, inf]

named = st.sampled_from([GemanMcClure, Charbonnier, Cauchy, Welsch, Huber])
scales = st.sampled_from([1.0, 0.01, 255.0]) | st.floats(1e-3, 1e3)
alphas = st.sampled_from(ALPHAS) | st.floats(-50, 2)
losses = st.builds(lambda kind, s: kind(s), named, scales) | st.builds(Barron, alphas, scales)
all_losses = losses | st.builds(Barron, st.sampled_from(ABOVE_2) | st.floats(2, 20), scales)


def errors_of(seed: int, scale: float, largest: float = 1e4) -> Any:
    """Errors of many magnitudes, in units of a scale, with 0 and the scale itself."""
    rng = np.random.default_rng(seed)
    z = np.exp(rng.uniform(np.log(1e-4), np.log(largest), 200)) * rng.choice([-1, 1], 200)
    return scale * np.concatenate([[0.0, 1.0, -1.0], z, rng.normal(size=50)])


@given(all_losses, seeds)
def test_the_weight_is_the_derivative_over_the_error(loss: Any, seed: int) -> None:
    e = errors_of(seed, loss.scale, largest=5)
    step = 1e-5 * np.maximum(np.abs(e), loss.scale)
    numerical = (loss.rho(e + step) - loss.rho(e - step)) / (2 * step)
    unit = loss.scale**-1 * (1 + loss.scale * np.abs(numerical))
    np.testing.assert_allclose(loss.weight(e) * e / unit, numerical / unit, rtol=0, atol=2e-5)


@given(all_losses)
def test_value_and_curvature_at_zero(loss: Any) -> None:
    curvature = 2.0 if isinstance(loss, GemanMcClure) else 1.0
    assert loss.rho(0.0) == loss.rho(-0.0) == 0
    assert loss.weight(0.0) * loss.scale**2 == pytest.approx(curvature, rel=1e-12)
    e = 1e-5 * loss.scale
    assert loss.rho(e) == pytest.approx(curvature * 1e-10 / 2, rel=1e-5)


@given(all_losses, seeds)
def test_symmetric_and_growing_with_the_error(loss: Any, seed: int) -> None:
    e = np.sort(np.abs(errors_of(seed, loss.scale)))
    np.testing.assert_array_equal(loss.rho(-e), loss.rho(e))
    np.testing.assert_array_equal(loss.weight(-e), loss.weight(e))
    rho = loss.rho(e)
    assert (rho[1:] >= rho[:-1] * (1 - 1e-12)).all()


@given(losses, seeds)
def test_weights_fall_with_the_error(loss: Any, seed: int) -> None:
    weight = loss.weight(np.sort(np.abs(errors_of(seed, loss.scale))))
    assert (weight >= 0).all()
    assert (weight[1:] <= weight[:-1] * (1 + 1e-12)).all()


@given(losses, seeds)
def test_a_quadratic_of_that_weight_touches_and_majorizes(loss: Any, seed: int) -> None:
    # Reweighted least squares descends because the next problem lies above the loss.
    e = errors_of(seed, loss.scale, largest=100)
    a, b = e[:, np.newaxis], e[np.newaxis]
    rounding = 1e-13 * (1 + loss.rho(a) + loss.rho(b))
    assert (loss.rho(b) <= loss.rho(a) + loss.weight(a) / 2 * (b * b - a * a) + rounding).all()


@given(all_losses, seeds)
def test_a_scale_is_a_unit_of_the_errors(loss: Any, seed: int) -> None:
    unit = Barron(loss.alpha) if isinstance(loss, Barron) else type(loss)()
    z = errors_of(seed, 1.0, largest=5)
    np.testing.assert_allclose(loss.rho(z * loss.scale), unit.rho(z), rtol=1e-9)
    weight = loss.weight(z * loss.scale) * loss.scale**2
    np.testing.assert_allclose(weight, unit.weight(z), rtol=1e-9)


@given(scales, seeds)
def test_the_named_losses_belong_to_the_family(scale: float, seed: int) -> None:
    e = errors_of(seed, scale)
    pairs = [
        (Charbonnier(scale), Barron(1, scale), 1.0),
        (Cauchy(scale), Barron(0, scale), 1.0),
        (Welsch(scale), Barron(-inf, scale), 1.0),
        (GemanMcClure(scale), Barron(-2, scale / 2), 0.5),
    ]
    for loss, member, factor in pairs:
        np.testing.assert_allclose(loss.rho(e), factor * member.rho(e), rtol=1e-12)
        np.testing.assert_allclose(loss.weight(e), factor * member.weight(e), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_papers_formula(scale: float) -> None:
    e = errors_of(0, scale)
    loss = GemanMcClure(scale)
    np.testing.assert_allclose(loss.rho(e), e**2 / (scale**2 + e**2), rtol=1e-13)
    np.testing.assert_allclose(loss.weight(e), 2 * scale**2 / (scale**2 + e**2) ** 2, rtol=1e-13)


@given(st.floats(1e-3, 1e3), scales)
def test_hubers_formula(z: float, scale: float) -> None:
    expected = z * z / 2 if z <= 1 else z - 0.5
    assert Huber(scale).rho(z * scale) == pytest.approx(expected, rel=1e-12)


@given(seeds)
@pytest.mark.parametrize(
    ("limit", "near"),
    [
        (0.0, [1e-9, -1e-9, 1e-12, -1e-12, 1e-19, -1e-19, 5e-324]),
        (2.0, [2 - 1e-9, 2 + 1e-9, 2 - 1e-12, 2 + 1e-12, 2 - 2e-16, 2 + 4e-16]),
        (-inf, [-1e9, -1e12, -1e15, -0.99e18, -1.01e18, -1e300]),
        (inf, [1e9, 1e12, 1e15, 0.99e18, 1.01e18, 1e300]),
    ],
)
def test_continuous_in_alpha(limit: float, near: list[float], seed: int) -> None:
    e = errors_of(seed, 1.0, largest=10)
    for alpha in near:
        distance = 1 / abs(alpha) if math.isinf(limit) else abs(alpha - limit)
        tolerance = 1e4 * distance + 1e-13
        for method in ("rho", "weight"):
            actual = getattr(Barron(alpha), method)(e)
            expected = getattr(Barron(limit), method)(e)
            np.testing.assert_allclose(actual, expected, rtol=tolerance)


@pytest.mark.parametrize("loss", [GemanMcClure(3), Welsch(3), Barron(-0.5, 3), Barron(-4, 3)])
def test_bounded_losses(loss: Any) -> None:
    alpha = getattr(loss, "alpha", -inf)
    bound = 1.0 if math.isinf(alpha) else (2 - alpha) / -alpha
    assert loss.rho(inf) == pytest.approx(bound, rel=1e-15)
    assert loss.rho(1e30) == pytest.approx(bound, rel=1e-5)
    assert (loss.rho(errors_of(0, 3)) <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", [Charbonnier(), Cauchy(), Huber(), Barron(0.5), Barron(2)])
def test_unbounded_losses(loss: Any) -> None:
    assert loss.rho(inf) == inf
    assert loss.rho(np.finfo(np.float64).max) > 500


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
@given(loss=all_losses)
def test_extreme_errors_and_scales_give_limits_without_a_warning(loss: Any, dtype: str) -> None:
    info = np.finfo(dtype)
    values = [0, info.smallest_subnormal, info.tiny, info.eps, 1, info.max / 4, info.max, inf]
    e = np.array(values, dtype)
    for scale in (loss.scale, 1e-300, 5e-324, 1e-30, 1e30, 1e300):
        extreme = Barron(loss.alpha, scale=scale) if isinstance(loss, Barron) else type(loss)(scale)
        with np.errstate(all="raise"):
            rho, weight = extreme.rho(e), extreme.weight(e)
        assert rho.dtype == weight.dtype == dtype
        assert not np.isnan(rho).any()
        assert not np.isnan(weight).any()
        assert (rho >= 0).all()
        assert (rho[1:] >= rho[:-1]).all()
        assert (weight >= 0).all()
    if not isinstance(loss, Barron) or loss.alpha < 2:
        assert loss.weight(e)[-1] == 0


@given(all_losses, seeds)
def test_linear_tails_where_the_square_overflows(loss: Any, seed: int) -> None:
    for kind in (Charbonnier, Huber):
        e = np.float64(1e200)
        assert kind(loss.scale).rho(e) == pytest.approx(e / loss.scale, rel=1e-12)
        assert kind(loss.scale).weight(e) * e == pytest.approx(1 / loss.scale, rel=1e-12)
    assert Cauchy(1).rho(1e200) == pytest.approx(2 * math.log(1e200) - math.log(2), rel=1e-14)


@given(losses, seeds)
def test_float32_stays_float32_and_agrees(loss: Any, seed: int) -> None:
    e = errors_of(seed, loss.scale, largest=8).astype(np.float32)
    for method in (loss.rho, loss.weight):
        narrow, wide = method(e), method(e.astype(np.float64))
        assert narrow.dtype == np.float32
        assert wide.dtype == np.float64
        np.testing.assert_allclose(narrow, wide, rtol=2e-5)


@pytest.mark.parametrize("loss", [GemanMcClure(2), Huber(2), Barron(0.3, 2), Barron(2, 2)])
def test_shapes_and_dtypes(loss: Any) -> None:
    for shape in ((), (0,), (3,), (4, 1, 5)):
        for method in (loss.rho, loss.weight):
            for dtype in ("float32", "float64"):
                result = method(np.full(shape, 1.5, dtype))
                assert result.shape == shape
                assert result.dtype == dtype
                assert (result == method(dtype_of(dtype)(1.5))).all()
    for number in (2, np.int8(2), np.uint64(2), np.float64(2), True + 1, [2]):
        assert loss.weight(number).dtype == np.float64
        np.testing.assert_array_equal(loss.weight(number), loss.weight(2.0))
    column = np.arange(12.0).reshape(3, 4)[:, ::2]
    np.testing.assert_array_equal(loss.rho(column), loss.rho(column.copy()))
    assert np.isnan(loss.rho(nan))


def dtype_of(name: str) -> Any:
    return np.dtype(name).type


@pytest.mark.parametrize(
    ("loss", "convex"),
    [
        (GemanMcClure(), False),
        (Charbonnier(), True),
        (Cauchy(), False),
        (Welsch(), False),
        (Huber(), True),
        (Barron(1), True),
        (Barron(2), True),
        (Barron(0.99), False),
        (Barron(-inf), False),
    ],
)
def test_convex_is_true_for_convex_losses_only(loss: Any, convex: bool) -> None:
    assert loss.convex is convex
    e = np.linspace(-20, 20, 2001)
    assert (np.diff(loss.rho(e), 2) > -1e-12).all() == convex


def test_losses_compare_print_and_are_frozen() -> None:
    assert repr(GemanMcClure(2)) == "GemanMcClure(scale=2.0)"
    assert repr(Barron(-inf)) == "Barron(alpha=-inf, scale=1.0)"
    assert eval(repr(Barron(1, 3))) == Barron(1.0, np.float32(3))
    assert Huber(1) == Huber(1.0) != Huber(2)
    assert Huber(1) != Charbonnier(1)
    assert len({Huber(1), Huber(1.0), Cauchy(1)}) == 2
    with pytest.raises(AttributeError):
        Huber(1).scale = 2.0  # type: ignore[misc]


def test_any_object_with_both_methods_is_a_loss() -> None:
    class Square:
        def rho(self, e: Any) -> Any:
            return e * e

        def weight(self, e: Any) -> Any:
            return 2 + 0 * e

    assert isinstance(Square(), bilateral.Loss)
    assert isinstance(GemanMcClure(), bilateral.Loss)
    assert not isinstance(3.0, bilateral.Loss)


@pytest.mark.parametrize("value", [0, -1, nan, inf, 10**400, "1", None, [1.0], 1j])
@pytest.mark.parametrize("kind", [GemanMcClure, Charbonnier, Cauchy, Welsch, Huber])
def test_a_wrong_scale_is_named(kind: Any, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^scale: expected a number above 0, got"):
        kind(value)


@pytest.mark.parametrize("value", [nan, "1", None, [1.0], 1j])
def test_a_wrong_alpha_is_named(value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^alpha: expected a number or an infinity"):
        Barron(value)
    with pytest.raises(ValueError, match=r"^scale: expected"):
        Barron(1.0, 0)


def test_whole_numbers_too_large_for_a_float_are_infinities() -> None:
    assert Barron(-(10**400)) == Barron(-inf)
    assert Barron(10**400) == Barron(inf)


@pytest.mark.parametrize("value", ["abc", None, 1j, [1j], np.ma.masked_array([1.0])])
def test_wrong_errors_are_named(value: Any) -> None:
    for method in (GemanMcClure().rho, GemanMcClure().weight):
        with pytest.raises(TypeError, match=r"^e: expected"):
            method(value)
