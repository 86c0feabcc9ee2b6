"""Every wrong input raises a ValueError or TypeError that names the argument and its value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver

REFERENCE = np.arange(48, dtype=np.uint8).reshape(6, 8)
TARGET = np.linspace(0, 1, 48).reshape(6, 8)


def with_value(array: Any, value: float, dtype: str = "float64") -> Any:
    """Return a copy with one value, at row 2, column 3, replaced."""
    array = array.astype(dtype)
    array[2, 3] = value
    return array


nan, inf = np.nan, np.inf

Errors = type[Exception] | tuple[type[Exception], ...]

# argument, wrong value, error, text of the message
WRONG: list[tuple[str, Any, Errors, str]] = [
    # reference
    ("reference", np.zeros(6, np.uint8), ValueError, "(6,)"),
    ("reference", np.zeros((6, 8, 2), np.uint8), ValueError, "(6, 8, 2)"),
    ("reference", np.zeros((6, 8, 4), np.uint8), ValueError, "alpha"),
    ("reference", np.zeros((3, 6, 8), np.uint8), ValueError, "(3, 6, 8)"),
    ("reference", np.zeros((1, 6, 8, 3), np.uint8), ValueError, "(1, 6, 8, 3)"),
    ("reference", np.zeros((0, 8), np.uint8), ValueError, "(0, 8)"),
    ("reference", np.zeros((6, 0, 3), np.uint8), ValueError, "(6, 0, 3)"),
    ("reference", np.zeros((6, 8, 0), np.uint8), ValueError, "(6, 8, 0)"),
    ("reference", np.uint8(3), ValueError, "()"),
    ("reference", [], ValueError, "(0,)"),
    ("reference", REFERENCE.astype(np.int16), TypeError, "int16"),
    ("reference", REFERENCE.astype(np.int64), TypeError, "int64"),
    ("reference", REFERENCE > 3, TypeError, "bool"),
    ("reference", REFERENCE.astype(complex), TypeError, "complex128"),
    ("reference", REFERENCE.astype(object), TypeError, "object"),
    ("reference", REFERENCE.astype(str), TypeError, "<U"),
    ("reference", REFERENCE.astype("M8[s]"), TypeError, "datetime64"),
    ("reference", None, TypeError, "object"),
    ("reference", "photo.png", TypeError, "<U"),
    ("reference", [[0.0, 1.0], [0.5]], ValueError, "inhomogeneous"),
    ("reference", np.ma.masked_array(REFERENCE), TypeError, "masked"),
    ("reference", with_value(REFERENCE, nan), ValueError, "nan at row 2, column 3"),
    ("reference", with_value(REFERENCE, inf, "float32"), ValueError, "inf at row 2, column 3"),
    ("reference_max", 0, ValueError, "0"),
    ("reference_max", -255, ValueError, "-255"),
    ("reference_max", nan, ValueError, "nan"),
    ("reference_max", inf, ValueError, "inf"),
    ("reference_max", "255", TypeError, "str"),
    ("reference_max", [255], TypeError, "list"),
    # target
    ("target", TARGET[:5], ValueError, "(5, 8)"),
    ("target", TARGET.T, ValueError, "(8, 6)"),
    ("target", TARGET[0], ValueError, "(8,)"),
    ("target", 1.0, ValueError, "()"),
    ("target", TARGET[np.newaxis], ValueError, "(1, 6, 8)"),
    ("target", np.zeros((6, 8, 0)), ValueError, "(6, 8, 0)"),
    ("target", np.zeros((6, 8, 1, 1)), ValueError, "(6, 8, 1, 1)"),
    ("target", TARGET.astype(complex), TypeError, "complex128"),
    ("target", TARGET.astype(object), TypeError, "object"),
    ("target", TARGET.astype(str), TypeError, "<U"),
    ("target", None, TypeError, "object"),
    ("target", [[0.0, 1.0], [0.5]], ValueError, "inhomogeneous"),
    ("target", np.ma.masked_array(TARGET), TypeError, "masked"),
    ("target", np.full((6, 8), nan), ValueError, "none"),
    ("target", np.full((6, 8, 2), [0, inf]), ValueError, "none"),
    # confidence
    ("confidence", np.ones((6, 7)), ValueError, "(6, 7)"),
    ("confidence", np.ones((6, 8, 2)), ValueError, "(6, 8, 2)"),
    ("confidence", np.ones(48), ValueError, "(48,)"),
    ("confidence", 1.0, ValueError, "()"),
    ("confidence", with_value(TARGET, -0.5), ValueError, "-0.5 at row 2, column 3"),
    ("confidence", with_value(TARGET, nan), ValueError, "nan at row 2, column 3"),
    ("confidence", with_value(TARGET, inf), ValueError, "inf at row 2, column 3"),
    ("confidence", with_value(TARGET, -inf, "float32"), ValueError, "-inf at row 2, column 3"),
    ("confidence", with_value(TARGET, -1, "int8"), ValueError, "-1"),
    ("confidence", TARGET.astype(complex), TypeError, "complex128"),
    ("confidence", TARGET.astype(object), TypeError, "object"),
    ("confidence", np.ma.masked_array(TARGET), TypeError, "masked"),
    ("confidence", [[0.0, 1.0], [0.5]], ValueError, "inhomogeneous"),
    # blur
    ("blur", "gauss", ValueError, "'gauss'"),
    ("blur", 2.0, TypeError, "2.0"),
    ("blur", None, TypeError, "None"),
    ("blur", (2, 1), TypeError, "(2, 1)"),
    ("blur", (2, 1, 1, 1), TypeError, "(2, 1, 1, 1)"),
    ("blur", (0, 1, 1), ValueError, "0"),
    ("blur", (-2, 1, 1), ValueError, "-2"),
    ("blur", (2, -1, 1), ValueError, "-1"),
    ("blur", (2, 1, -0.5), ValueError, "-0.5"),
    ("blur", (2, nan, 1), ValueError, "nan"),
    ("blur", (2, 1, inf), ValueError, "inf"),
    ("blur", ("2", "1", "1"), TypeError, "str"),
    ("blur", "abc", ValueError, "'abc'"),
    # the solver
    ("method", "fast", ValueError, "'fast'"),
    ("method", 3, (TypeError, ValueError), "3"),
    ("preconditioner", "none", ValueError, "'none'"),
    ("preconditioner", None, (TypeError, ValueError), "None"),
    ("preconditioner", ["jacobi"], (TypeError, ValueError), "['jacobi']"),
    ("initial", "zero", ValueError, "'zero'"),
    ("initial", 0, (TypeError, ValueError), "0"),
    ("max_iterations", -1, ValueError, "-1"),
    ("max_iterations", 2.5, TypeError, "2.5"),
    ("max_iterations", nan, TypeError, "nan"),
    ("max_iterations", "25", TypeError, "'25'"),
    ("tolerance", -1e-3, ValueError, "-0.001"),
    ("tolerance", nan, ValueError, "nan"),
    ("tolerance", inf, ValueError, "inf"),
    ("tolerance", None, TypeError, "None"),
    ("tolerance", "1e-3", TypeError, "str"),
    ("callback", 3, TypeError, "3"),
    ("callback", "print", TypeError, "'print'"),
    ("dtype", complex, TypeError, "complex128"),
    ("dtype", object, TypeError, "object"),
    ("dtype", "U3", TypeError, "U3"),
    ("dtype", "single precision", TypeError, "single precision"),
    ("dtype", 3, TypeError, "3"),
    ("warm_start", "last", ValueError, "none yet"),
    ("warm_start", "first", TypeError, "'first'"),
    ("warm_start", TARGET[:5], ValueError, "(5, 8)"),
    ("warm_start", TARGET[..., np.newaxis], ValueError, "(6, 8, 1)"),
    ("warm_start", 1.0, ValueError, "()"),
    ("warm_start", with_value(TARGET, nan), ValueError, "nan"),
    ("warm_start", with_value(TARGET, inf), ValueError, "inf"),
    ("warm_start", TARGET.astype(complex), TypeError, "complex128"),
    ("warm_start", np.ma.masked_array(TARGET), TypeError, "masked"),
    ("warm_start", [[0.0, 1.0], [0.5]], ValueError, "inhomogeneous"),
]

NUMBERS = ("sigma_xy", "sigma_luma", "sigma_chroma", "smoothness")
WRONG += [
    (name, value, error, told)
    for name in NUMBERS
    for value, error, told in [
        (0, ValueError, "0"),
        (-8.5, ValueError, "-8.5"),
        (nan, ValueError, "nan"),
        (inf, ValueError, "inf"),
        (-inf, ValueError, "-inf"),
        (10**400, (ValueError, TypeError), "1000000"),
        ("8", TypeError, "str"),
        ("eight", TypeError, "'eight'"),
        (None, TypeError, "None"),
        ([8], TypeError, "[8]"),
        (np.array([8.0, 8.0]), TypeError, "array"),
        (8 + 0j, TypeError, "8+0j"),
    ]
]


@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [pytest.param(*case, id=f"{case[0]}-{case[3]}") for case in WRONG],
)
def test_a_wrong_argument_is_named(argument: str, value: Any, error: Errors, told: str) -> None:
    arguments = {"reference": REFERENCE, "target": TARGET} | {argument: value}
    with pytest.raises(error) as caught:
        bilateral.solve(**arguments)
    message = str(caught.value)
    assert message.startswith(argument)
    assert told.lower() in message.lower()


@pytest.mark.parametrize(
    "confidence", [np.zeros((6, 8)), np.zeros((6, 8), bool), np.where(TARGET > 0.5, 1, 0)]
)
def test_no_data_at_all_is_an_error(confidence: Any) -> None:
    target = np.where(TARGET > 0.5, nan, TARGET)
    with pytest.raises(ValueError, match="confidence above 0, got none"):
        bilateral.solve(REFERENCE, target, confidence)


@pytest.mark.parametrize("grid", [REFERENCE, None, "grid", BilateralGrid])
def test_a_solver_needs_a_grid(grid: Any) -> None:
    with pytest.raises(TypeError, match=r"^grid: expected a BilateralGrid, got"):
        BilateralSolver(grid)


VERTEX_VALUES = [np.zeros(5), np.zeros((5, 2)), np.zeros(()), np.zeros((6, 2, 2)), np.zeros((6, 0))]


@pytest.mark.parametrize("value", VERTEX_VALUES)
@pytest.mark.parametrize("method", ["slice", "blur"])
def test_vertex_values_of_a_wrong_shape(method: str, value: Any) -> None:
    grid = BilateralGrid(np.zeros((16, 24), np.uint8))
    with pytest.raises(ValueError, match=r"^vertices: expected shape") as caught:
        getattr(grid, method)(value)
    assert str(value.shape) in str(caught.value)


@pytest.mark.parametrize("shape", [(16, 23), (24, 16), (384,), (16, 24, 0), (16, 24, 1, 1), ()])
def test_pixels_of_a_wrong_shape(shape: tuple[int, ...]) -> None:
    grid = BilateralGrid(np.zeros((16, 24), np.uint8))
    with pytest.raises(ValueError, match=r"^pixels: expected shape") as caught:
        grid.splat(np.zeros(shape))
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("value", ["abc", None, 1j, [["a"]], np.ma.masked_array([1.0])])
@pytest.mark.parametrize(
    ("method", "argument"), [("splat", "pixels"), ("slice", "vertices"), ("blur", "vertices")]
)
def test_values_of_a_wrong_dtype(method: str, argument: str, value: Any) -> None:
    grid = BilateralGrid(np.zeros((1, 1), np.uint8))
    with pytest.raises(TypeError, match=f"^{argument}: expected"):
        getattr(grid, method)(value)


def test_hints_name_the_argument_that_is_wrong() -> None:
    for argument in ("reference", "confidence", "warm_start"):
        masked = np.ma.masked_array(REFERENCE if argument == "reference" else TARGET)
        with pytest.raises(TypeError) as caught:
            bilateral.solve(**({"reference": REFERENCE, "target": TARGET} | {argument: masked}))
        assert "target" not in str(caught.value)


def test_the_first_wrong_confidence_is_reported() -> None:
    for shape in ((6, 8), (40, 300)):
        for position in ((0, 0), (1, 7), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, 5)):
            confidence = np.ones(shape)
            confidence[position] = -2
            confidence[-1, -1] = -2
            where = f"row {position[0]}, column {position[1]}"
            for channels in ((), (2,)):
                with pytest.raises(ValueError, match=rf"^confidence: .*-2\.0 at {where}\."):
                    bilateral.solve(
                        np.zeros(shape, np.uint8), np.ones(shape + channels), confidence
                    )


def test_a_negative_confidence_is_wrong_even_without_a_target() -> None:
    confidence = np.ones((6, 8))
    confidence[2, 3] = -1
    with pytest.raises(ValueError, match=r"^confidence: .*row 2, column 3"):
        bilateral.solve(REFERENCE, with_value(TARGET, nan), confidence)


def test_a_solver_works_after_errors() -> None:
    solver = BilateralSolver(BilateralGrid(REFERENCE))
    expected = solver.solve(TARGET)
    for wrong in (TARGET[:5], np.full((6, 8), nan), TARGET.astype(complex)):
        with pytest.raises((ValueError, TypeError)):
            solver.solve(wrong)
        np.testing.assert_array_equal(solver.solve(TARGET), expected)


# Arbitrary objects give an error or a result, but never a crash.

THINGS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.floats(), max_size=3),
    st.tuples(st.floats(), st.floats(), st.floats()),
    st.sampled_from([object(), {}, {"a": 1}, range(3), np.ones((6, 8)), np.zeros(0)]),
)
ARGUMENTS = [
    "reference",
    "target",
    "confidence",
    "blur",
    "method",
    "preconditioner",
    "initial",
    "tolerance",
    "callback",
    "dtype",
    "warm_start",
    "smooth",
    "rank_tolerance",
    "reference_max",
    *NUMBERS,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("argument", ARGUMENTS)
@given(value=THINGS)
def test_anything_gives_a_result_or_an_error_that_names_the_argument(
    argument: str, value: Any
) -> None:
    arguments = {"reference": REFERENCE, "target": TARGET} | {argument: value}
    try:
        x, message = bilateral.solve(**arguments), argument
    except (ValueError, TypeError) as error:
        x, message = np.zeros(1), str(error)
    assert np.isfinite(x).all()
    # A small reference_max may be reported as a too large reference.
    assert message.startswith("reference" if argument == "reference_max" else argument)
