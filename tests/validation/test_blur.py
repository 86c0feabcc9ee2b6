"""`blur_name` accepts the same values as `blur`, for grids of any number of dimensions."""

from typing import Any

import pytest

from bilateral import validation


@pytest.mark.parametrize("value", ["paper", "uniform"])
def test_a_name_stays_a_name(value: str) -> None:
    assert validation.blur_name("blur", value) == value


def test_three_numbers_become_floats() -> None:
    assert validation.blur_name("blur", (4, 1, 0)) == (4.0, 1.0, 0.0)


@pytest.mark.parametrize("dimensions", [3, 5, 11])
@pytest.mark.parametrize("value", ["paper", "uniform", (4, 1, 0)])
def test_the_checked_value_gives_the_same_weights(value: Any, dimensions: int) -> None:
    checked = validation.blur_name("blur", value)
    assert validation.blur(checked, dimensions) == validation.blur(value, dimensions)


@pytest.mark.parametrize("value", ["gauss", (1, 2), None, 3, (0, 1, 1), (1, -1, 1), (1e-7, 1, 1)])
def test_both_reject_the_same_values(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        validation.blur(value, 5)
    with pytest.raises(type(expected.value)) as raised:
        validation.blur_name("blur", value)
    assert str(raised.value) == str(expected.value)


def test_the_message_names_the_argument() -> None:
    with pytest.raises(ValueError, match=r"^options\.blur: expected one of 'paper', 'uniform'"):
        validation.blur_name("options.blur", "gauss")
