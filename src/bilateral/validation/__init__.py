"""The one place where inputs are checked: which argument, what was expected, what came."""

import math
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Array = NDArray[Any]
T = TypeVar("T")

_FLOAT32_LARGE = 1e30

BLURS = {"paper": (2.0, 1.0, 0.125), "uniform": None}


def _got(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _array(name: str, value: ArrayLike) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: expected a plain array, got a masked array. "
            f"Fill it first, for example with .filled(np.nan)."
        )
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: expected an array, got {_got(value)}: {error}") from None
    if array.dtype.kind not in "buif":
        raise TypeError(
            f"{name}: expected real numbers, got dtype {array.dtype}. "
            f"Convert it first, for example with .astype(np.float32)."
        )
    return array


def positive(name: str, value: float) -> float:
    """A finite number above 0."""
    number = _number(name, value, "a number above 0")
    if number <= 0:
        raise ValueError(f"{name}: expected a number above 0, got {_got(value)}.")
    return number


def not_negative(name: str, value: float) -> float:
    """A finite number, 0 or above."""
    number = _number(name, value, "a number, 0 or above")
    if number < 0:
        raise ValueError(f"{name}: expected a number, 0 or above, got {_got(value)}.")
    return number


def finite(name: str, value: float) -> float:
    """Any number that is not infinite."""
    return _number(name, value, "a finite number")


def not_nan(name: str, value: float) -> float:
    """A number or an infinity."""
    return _number(name, value, "a number or an infinity", infinite=True)


def fraction(name: str, value: float) -> float:
    """A number from 0 to below 1."""
    number = not_negative(name, value)
    if number >= 1:
        raise ValueError(f"{name}: expected a number from 0 to below 1, got {_got(value)}.")
    return number


def _number(name: str, value: float, expected: str, infinite: bool = False) -> float:
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: expected {expected}, got {_got(value)} ({type(value).__name__})."
        ) from None
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    # Comparisons, since compilers of bilateral.torch can trace nothing of `math`.
    if number != number or (abs(number) == math.inf and not infinite):
        raise ValueError(f"{name}: expected {expected}, got {_got(value)}.")
    return number


def count(name: str, value: int, least: int) -> int:
    """A whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}: expected a whole number, got {_got(value)} ({type(value).__name__})."
        ) from None
    if number < least:
        raise ValueError(f"{name}: expected at least {least}, got {number}.")
    return number


def count_from_text(name: str, value: str, least: int) -> int:
    """A whole number given as text, as in an environment variable."""
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"{name}: expected a whole number, got {_got(value)}.") from None
    return count(name, number, least)


def choice(name: str, value: str, options: Collection[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name}: expected one of {listed}, got {_got(value)}.")
    return value


def one_of(name: str, value: int, options: Collection[int]) -> int:
    """One of a few whole numbers."""
    number = count(name, value, min(options))
    if number not in options:
        listed = " or ".join(str(option) for option in options)
        raise ValueError(f"{name}: expected {listed}, got {number}.")
    return number


def callback(value: object) -> None:
    """Something to call, or None."""
    if value is not None and not callable(value):
        raise TypeError(
            f"callback: expected a function of (step, residual), got {_got(value)} "
            f"({type(value).__name__})."
        )


def blur(value: str | tuple[float, float, float], dimensions: int) -> tuple[float, float, float]:
    """B-bar's weights (centre, space, range) from a name or from themselves."""
    if isinstance(value, str):
        choice("blur", value, BLURS)
        return BLURS[value] or (2.0 * dimensions, 1.0, 1.0)
    try:
        centre, space, range_ = value
    except (TypeError, ValueError):
        raise TypeError(
            f"blur: expected 'paper', 'uniform' or (centre, space, range), got {_got(value)}."
        ) from None
    weights = (
        positive("blur[0] (centre)", centre),
        not_negative("blur[1] (space)", space),
        not_negative("blur[2] (range)", range_),
    )
    if weights[0] < 1e-6 * max(weights):
        raise ValueError(
            f"blur: expected a centre weight of at least a millionth of the others, "
            f"got {_got(value)}. A vertex without neighbours has only its centre."
        )
    return weights


class Reference(NamedTuple):
    """A checked reference: (H, W, C) pixels in a dtype the core reads, and their white.

    For a video (T, H, W, C).
    """

    pixels: Array
    highest: float


def reference(
    value: ArrayLike,
    highest: float | None,
    channels: Collection[int] = (1, 3),
    video: bool = False,
    name: str = "reference",
) -> Reference:
    """A gray or RGB image, or a video of such: uint8, uint16 or floating point, any strides."""
    pixels = _array(name, value)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    if pixels.dtype not in (np.uint8, np.uint16) and pixels.dtype.kind != "f":
        raise TypeError(
            f"{name}: expected uint8, uint16 or floating point, got dtype {pixels.dtype}. "
            f"Convert it first, for example with .astype(np.float32) and reference_max=."
        )
    space = 3 if video else 2
    if pixels.ndim == space:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != space + 1 or pixels.shape[-1] not in channels:
        hint = " Channels come last."
        if pixels.ndim == space + 1 and pixels.shape[-1] == 4:
            hint = f" Drop the alpha channel: {name}[..., :3]."
        elif not video and pixels.ndim == 4:
            hint = " A video needs sigma_t, the size of a cell in frames."
        expected = (
            "a gray video (T, H, W) or an RGB video (T, H, W, 3), since sigma_t was given"
            if video
            else "a gray image (H, W) or an RGB image (H, W, 3)"
        )
        raise ValueError(f"{name}: expected {expected}, got shape {np.shape(value)}.{hint}")
    if pixels.size == 0:
        raise ValueError(
            f"{name}: expected at least one pixel, got shape {np.shape(value)}. "
            f"Check that the image was read."
        )
    if pixels.dtype.kind == "f":
        pixels = pixels.astype(np.float64 if pixels.dtype.itemsize > 4 else np.float32, copy=False)
    if highest is not None:
        highest = positive("reference_max", highest)
    else:
        highest = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    return Reference(np.ascontiguousarray(pixels), highest)


def finite_values(name: str, pixels: Array) -> None:
    """Raise if pixels (..., C) have a value that is not finite, which the core found."""
    finite = np.isfinite(pixels)
    if not finite.all():
        at = tuple(np.argwhere(~finite)[0].tolist())
        raise ValueError(
            f"{name}: expected finite values, got {pixels[at]} at {_place(at[:-1])}. "
            f"Replace it, for example with np.nan_to_num({name})."
        )


def _place(index: Sequence[int]) -> str:
    """Where a pixel is, in words."""
    names = ("frame", "row", "column")[-len(index) :]
    return ", ".join(f"{name} {i}" for name, i in zip(names, index, strict=True))


MOST_FEATURES = 8


class Features(NamedTuple):
    """Checked features: (H, W, C) or (T, H, W, C), and the size of a cell along each axis."""

    pixels: Array
    sigmas: tuple[float, ...]
    sigma_space: tuple[float, ...]


def features(
    value: ArrayLike, sigmas: float | Sequence[float], sigma_space: float | Sequence[float]
) -> Features:
    """Up to eight features per pixel of an image, a video or a volume, with their sigmas."""
    pixels = _array("features", value)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    several = _are_several(sigma_space)
    space = np.size(sigma_space) if several else max(pixels.ndim - 1, 2)
    if space not in (2, 3):
        raise ValueError(
            f"sigma_space: expected one number, or one for each of the axes (y, x) or (t, y, x), "
            f"got {_got(sigma_space)}."
        )
    if pixels.ndim == space:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != space + 1 or pixels.shape[-1] > MOST_FEATURES:
        named = "(T, H, W)" if space == 3 else "(H, W)"
        hint = (
            " For one feature of a volume (T, H, W) give sigma_space as (t, y, x)."
            if pixels.ndim == 3 and not several
            else ""
        )
        raise ValueError(
            f"features: expected shape {named[:-1]}, C), with C from 0 to {MOST_FEATURES}, or "
            f"{named} for one feature, got {np.shape(value)}. Channels come last.{hint}"
        )
    if math.prod(pixels.shape[:-1]) == 0:
        raise ValueError(f"features: expected at least one pixel, got shape {np.shape(value)}.")
    if pixels.dtype not in (np.uint8, np.uint16):
        pixels = pixels.astype(_compute_dtype(pixels.dtype), copy=False)
    return Features(
        np.ascontiguousarray(pixels),
        _each("sigmas", sigmas, pixels.shape[-1], "feature"),
        _each("sigma_space", sigma_space, space, "axis"),
    )


def _are_several(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _each(name: str, value: Any, number: int, of: str) -> tuple[float, ...]:
    """Numbers above 0, one for each of some things, or one for all of them."""
    if not _are_several(value):
        return (positive(name, value),) * number
    if len(value) != number:
        raise ValueError(
            f"{name}: expected one number, or one for each {of}, {number} in all, "
            f"got {_got(value)}."
        )
    return tuple(positive(f"{name}[{i}]", item) for i, item in enumerate(value))


class Target(NamedTuple):
    """A checked target: (H, W, K) values to compute with, and how the result should look."""

    values: Array
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def target(
    value: ArrayLike,
    shape: tuple[int, ...],
    dtype: DTypeLike | None,
    precise: bool = False,
    name: str = "target",
    native: Collection[Any] = (),
) -> Target:
    """A map (H, W) or (H, W, K) of the reference's size, of any real dtype.

    The values come in float64 if they or the result need it, or if the solve shall be `precise`,
    and as they are if they and the result are of one `native` dtype.
    """
    values = _array(name, value)
    result = values.dtype if dtype is None else _result_dtype(dtype)
    pixel_map(name, values, shape)
    original = values.shape
    compute = np.result_type(_compute_dtype(values.dtype), _compute_dtype(result))
    if precise:
        compute = np.dtype(np.float64)
    if values.dtype == result and result in native:
        compute = result
    values = np.ascontiguousarray(values, dtype=compute).reshape(*shape, -1)
    return Target(values, original, result)


def depth(value: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike | None) -> Target:
    """A map (H, W) of the reference's size, of any real dtype."""
    values = _one_per_pixel("depth", value, shape, "Resize it to the reference first.")
    return target(values, shape, dtype, name="depth")


def some_known(name: str, known: Array) -> None:
    """Raise if no pixel of a depth map is known."""
    if not known.any():
        raise ValueError(
            f"{name}: expected at least one known pixel, got none: all are NaN or infinite, equal "
            f"to an invalid value, or 0 in mask or confidence. Check these, and the file read."
        )


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """None, one or several numbers."""
    if value is None:
        return ()
    several = value if _are_several(value) else [value]
    return tuple(not_nan(name, number) for number in several)


def mask(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """A map of bool, from one of bool or integers."""
    values = _one_per_pixel(name, value, shape, "Resize it first.")
    if values.dtype.kind == "f":
        raise TypeError(
            f"{name}: expected bool or integers, got dtype {values.dtype}. "
            f"Compare it first, for example {name} > 0.5, or give it as confidence."
        )
    return values.astype(np.bool_)


def _result_dtype(value: DTypeLike) -> np.dtype[Any]:
    try:
        dtype = np.dtype(value)
    except Exception:  # numpy's parser of dtypes raises SyntaxError and others, too
        raise TypeError(f"dtype: expected a real dtype, got {_got(value)}.") from None
    if dtype.kind not in "buif":
        raise TypeError(f"dtype: expected a real dtype, got {dtype}.")
    return dtype


def pixel_map(name: str, values: Array, shape: tuple[int, ...]) -> None:
    """An array of the reference's shape, or with channels behind it, and at least one of them."""
    channels = values.ndim - len(shape)
    if channels not in (0, 1) or values.shape[: len(shape)] != shape or values.size == 0:
        raise ValueError(
            f"{name}: expected shape {shape} or {(*shape, 'K')}, as the reference has, "
            f"got {values.shape}. Resize it to the reference first; channels come last."
        )


def confidence(
    value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    """A weight per pixel, or None for 1 everywhere. Its values are checked as they are summed.

    It comes in float64 instead of float32 if it would not fit.
    """
    if value is None:
        return None
    values = _one_per_pixel("confidence", value, shape, "All channels of a target share it.")
    if dtype == np.float32 and values.dtype.kind == "f" and values.dtype.itemsize > 4:
        largest = values.max()
        if largest > _FLOAT32_LARGE or 0 < largest < 1 / _FLOAT32_LARGE:
            dtype = np.dtype(np.float64)
    return np.ascontiguousarray(values, dtype=dtype)


def _one_per_pixel(name: str, value: ArrayLike, shape: tuple[int, ...], hint: str) -> Array:
    values = _array(name, value)
    if values.shape != shape and values.shape != (*shape, 1):
        raise ValueError(
            f"{name}: expected one number per pixel, shape {shape}, got {values.shape}. {hint}"
        )
    return values.reshape(shape)


def one_per_pixel(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """A number per pixel, to compute with."""
    values = _one_per_pixel(name, value, shape, "Resize it first.")
    return np.ascontiguousarray(values, dtype=_compute_dtype(values.dtype))


def plain_weights(
    name: str, value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """A weight per pixel, as it is; 1 everywhere for None."""
    if value is None:
        return np.ones(shape, dtype)
    given = _one_per_pixel(name, value, shape, "All channels share it.").astype(dtype, copy=False)
    bad = ~((given >= 0) & np.isfinite(given))
    if bad.any():
        raise _wrong_weight(name, given, np.argwhere(bad)[0].tolist())
    return given


def _wrong_weight(name: str, values: Array, index: Sequence[int]) -> ValueError:
    return ValueError(
        f"{name}: expected finite numbers, 0 or above, got {values[tuple(index)]} at "
        f"{_place(index)}. Set it to 0 where there is no data."
    )


def confidence_value(values: Array | None, invalid: int | None) -> None:
    """Raise if the sum over pixels found a confidence that is negative or not finite."""
    if invalid is None or values is None:
        return
    index = [int(i) for i in np.unravel_index(invalid, values.shape)]
    raise _wrong_weight("confidence", values, index)


def some_data(problem: T | None) -> T:
    """Raise if there is no problem, since no pixel has a finite target and confidence above 0."""
    if problem is None:
        raise ValueError(
            "target: expected at least one pixel with a finite value and a confidence above 0, "
            "got none. Check the mask, and NaNs in the target."
        )
    return problem


def weights(value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """A weight per pixel, divided by the largest, or None for 1 everywhere."""
    if value is None:
        return None
    given = plain_weights("weights", value, shape, np.dtype(np.float64))
    largest = given.max()
    if largest == 0:
        raise ValueError("weights: expected a number above 0 somewhere, got 0 everywhere.")
    return np.ascontiguousarray(given / largest, dtype=dtype)


def known(found: bool) -> None:
    """Raise if an image was found to have no pixel with a finite value and a weight above 0."""
    if not found:
        raise ValueError(
            "image: expected at least one pixel with a finite value and a weight above 0, got "
            "none. Check the weights, and NaNs in the image."
        )


def smooth(value: Any, reference: Reference | None) -> tuple[float, float] | None:
    """The domain transform's sigmas after a solve, or None."""
    if value is None:
        return None
    if reference is None:
        raise ValueError(
            f"smooth: expected None, since the grid was made from features and not from an image, "
            f"got {_got(value)}. Call bilateral.domain_transform on the result."
        )
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(
            f"smooth: expected two numbers (sigma_xy, sigma_rgb) or None, got {_got(value)}. "
            f"The paper's choice for stereo is (4, 4)."
        )
    return positive("smooth[0]", value[0]), positive("smooth[1]", value[1])


def loss(value: T) -> T:
    """A robust loss: anything with `rho` and `weight`."""
    if isinstance(value, type) or not callable(getattr(value, "weight", None)):
        made = f"{value.__name__}()" if isinstance(value, type) else "bilateral.GemanMcClure(1.0)"
        raise TypeError(
            f"loss: expected an object with the methods rho(e) and weight(e), got {_got(value)}. "
            f"Give one such as {made}."
        )
    return value


def loss_weights(value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """What a loss made of the residuals: a finite number per pixel, 0 or above."""
    weights = _array("loss.weight", value)
    if weights.shape != shape:
        raise ValueError(
            f"loss.weight: expected an array like its argument, shape {shape}, got {weights.shape}."
        )
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        raise ValueError(
            f"loss.weight: expected finite numbers, 0 or above, got {weights[bad][0]}. "
            f"It is rho'(e) / e, also at e = 0."
        )
    return np.ascontiguousarray(weights, dtype=np.float64)


def errors(name: str, value: ArrayLike) -> Array:
    """An array of any shape, floating point as it is and anything else in float64."""
    values = _array(name, value)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def vertex_values(name: str, value: ArrayLike, n_vertices: int) -> Array:
    """An array (n_vertices,) or (n_vertices, K)."""
    values = _array(name, value)
    if values.ndim not in (1, 2) or values.shape[0] != n_vertices or values.size == 0:
        raise ValueError(
            f"{name}: expected shape ({n_vertices},) or ({n_vertices}, K), one row per vertex, "
            f"got {values.shape}."
        )
    return np.ascontiguousarray(values, dtype=_compute_dtype(values.dtype))


def pixel_values(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """An array of the reference's shape, or with channels behind it, to compute with."""
    values = _array(name, value)
    pixel_map(name, values, shape)
    return np.ascontiguousarray(values, dtype=_compute_dtype(values.dtype))


def image(name: str, value: ArrayLike) -> Array:
    """An array (H, W) or (H, W, K) of any real dtype, with at least one value."""
    values = _array(name, value)
    if values.ndim not in (2, 3) or values.size == 0:
        raise ValueError(
            f"{name}: expected shape (H, W) or (H, W, K) with at least one value, "
            f"got {values.shape}. Channels come last."
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def real_map(name: str, value: ArrayLike, like: tuple[str, Array] | None = None) -> Array:
    """A map (H, W) to compute with, of the shape of another one if that is given with its name."""
    values = _array(name, value)
    if like is not None and values.shape != like[1].shape:
        raise ValueError(
            f"{name}: expected the shape of {like[0]}, {like[1].shape}, got {values.shape}."
        )
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"{name}: expected shape (H, W) with at least one value, got {values.shape}."
        )
    return values.astype(_compute_dtype(values.dtype), copy=False)


def size_2d(name: str, value: Sequence[int]) -> tuple[int, int]:
    """Height and width, at least 1 each. An array's longer shape gives its first two."""
    try:
        height, width = tuple(value)[:2]
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected (height, width), got {_got(value)}.") from None
    return count(f"{name}[0] (height)", height, 1), count(f"{name}[1] (width)", width, 1)


def one_or_two(name: str, value: Any, check: Callable[[str, Any], T]) -> tuple[T, T]:
    """Two things that a check returns, from a pair or from one that serves as both."""
    if not isinstance(value, list | tuple):
        return (check(name, value),) * 2
    if len(value) != 2:
        raise ValueError(f"{name}: expected one or two numbers, got {_got(value)}.")
    return check(f"{name}[0]", value[0]), check(f"{name}[1]", value[1])


def no_smaller(name: str, shape: tuple[int, ...], of: str, least: tuple[int, ...]) -> None:
    """Raise if a shape is smaller than that of something along an axis."""
    if any(length < low for length, low in zip(shape, least, strict=True)):
        raise ValueError(f"{name}: expected at least the shape of {of}, {least}, got {shape}.")


def same_shape(name: str, shape: tuple[int, ...], of: str, expected: tuple[int, ...]) -> None:
    """Raise if something has another shape than it should."""
    if shape != expected:
        raise ValueError(f"{name}: expected the shape of {of}, {expected}, got {shape}.")


def only_with(name: str, value: object, other: str) -> None:
    """Raise if an argument was given that means nothing without another."""
    if value is not None:
        raise TypeError(f"{name}: expected None, since there is no {other}, got {_got(value)}.")


def depth_map(
    name: str, value: ArrayLike, invalid: tuple[float, ...], dtype: DTypeLike | None
) -> Target:
    """A depth map (H, W) of any real dtype, NaN where it is not finite or has an invalid value."""
    given = _array(name, value)
    if given.ndim != 2 or given.size == 0:
        raise ValueError(
            f"{name}: expected shape (H, W) with at least one value, got {given.shape}."
        )
    result = given.dtype if dtype is None else _result_dtype(dtype)
    values = given.astype(np.result_type(_compute_dtype(given.dtype), _compute_dtype(result)))
    values[~np.isfinite(values) | np.isin(given, invalid)] = np.nan
    return Target(values, given.shape, result)


def enlarged(
    name: str, factor: float | None, low: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, int]:
    """The shape that a low-resolution map has times a factor: the reference's, or a bit more."""
    no_smaller("reference", shape[:2], "depth_lowres", low)
    if factor is None:
        return shape[0], shape[1]
    number = positive(name, factor)
    full = tuple(round(length * number) for length in low)
    if any(not n <= most < n + number for n, most in zip(shape, full, strict=False)):
        ratios = dict.fromkeys(f"{n / m:.4g}" for n, m in zip(shape, low, strict=False))
        fits = " or ".join(ratios)
        raise ValueError(
            f"{name}: expected {fits}, the ratio of the shapes {shape[:2]} and {low}, "
            f"got {_got(factor)}. Leave it out to take the ratio."
        )
    return full[0], full[1]


def ascending(lower: Array, upper: Array) -> None:
    """Raise if an interval ends before it begins."""
    wrong = lower > upper
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"lower: expected at most upper, got {lower[row, column]} > {upper[row, column]} at "
            f"row {row}, column {column}. Use NaN where there is no interval."
        )


def exact_in_float64(name: str, values: Array) -> None:
    """Raise if an integer is too large for float64 to tell it from its neighbours."""
    low, high = int(values.min()), int(values.max())
    if max(-low, high) > 2**53:
        raise ValueError(
            f"{name}: expected integers from -2**53 to 2**53, got {low} to {high}. "
            f"Subtract an offset first."
        )


def warm_start(value: ArrayLike, like: Target) -> Array:
    """An earlier solution in pixel space, of the target's shape, finite."""
    if isinstance(value, str):
        raise TypeError(f"warm_start: expected an array like target or 'last', got {_got(value)}.")
    values = _array("warm_start", value)
    if values.shape != like.shape:
        raise ValueError(
            f"warm_start: expected the target's shape {like.shape}, got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("warm_start: expected finite values, got NaN or infinity.")
    return np.ascontiguousarray(values, dtype=like.values.dtype).reshape(like.values.shape)


def last_solution(shape: tuple[int, ...] | None, like: Target) -> None:
    """Raise if a solver has no last solution (None), or one of another shape than the target."""
    if shape is None:
        raise ValueError(
            "warm_start: expected an earlier solve by this solver for 'last', got none yet. "
            "Leave warm_start out for the first one."
        )
    if shape != like.values.shape:
        raise ValueError(
            f"warm_start: expected a last solution of the target's shape with channels, "
            f"{like.values.shape}, got one of {shape}. Leave warm_start out, or give an array."
        )


def stereo_pair(
    left: ArrayLike, right: ArrayLike, left_max: float | None
) -> tuple[Reference, Array]:
    """Two finite views of one size: the left one as a reference, and the right one's pixels."""
    first = reference(left, left_max, name="left")
    second = reference(right, None, name="right")
    if second.pixels.shape != first.pixels.shape:
        raise ValueError(
            f"right: expected the shape of left, {np.shape(left)}, got {np.shape(right)}. "
            f"Rectify the pair first, so that both views have one size and matching rows."
        )
    finite_values("left", first.pixels)
    finite_values("right", second.pixels)
    return first, second.pixels


def scribbles(value: ArrayLike, gray: Reference) -> Reference:
    """An RGB or RGBA picture of the gray one's size, with its white if both have one dtype."""
    given = _array("scribbles", value)
    shape = gray.pixels.shape[:2]
    if given.ndim != 3 or given.shape[2] not in (3, 4):
        raise ValueError(
            f"scribbles: expected an RGB picture (H, W, 3) or an RGBA layer (H, W, 4), "
            f"got shape {given.shape}. Channels come last."
        )
    if given.shape[:2] != shape:
        raise ValueError(
            f"scribbles: expected the size of gray, {shape}, got {given.shape[:2]}. "
            f"Paint on the gray picture itself, or on a layer of its size."
        )
    same = given.dtype.newbyteorder("=") == gray.pixels.dtype
    highest = gray.highest if same else None
    return reference(given, highest, channels=(3, 4), name="scribbles")


def some_strokes(found: bool, how: str) -> None:
    """Raise if no pixel is part of a stroke; `how` says why."""
    if not found:
        raise ValueError(
            f"scribbles: expected at least one stroke, got none: {how}. "
            f"Strokes are where scribbles differs from gray, where its alpha is above 0, "
            f"or where mask says so."
        )


def not_swapped(swapped: bool) -> None:
    """Raise if the picture to colorize has the colours, and the strokes have none."""
    if swapped:
        raise ValueError(
            "scribbles: expected strokes in colour, got gray ones on a coloured picture. "
            "The order is colorize(gray, scribbles): are they swapped?"
        )


def odd(name: str, value: int, most: int) -> int:
    """An odd number from 1 to `most`."""
    number = count(name, value, 1)
    if number % 2 == 0 or number > most:
        raise ValueError(f"{name}: expected an odd number from 1 to {most}, got {number}.")
    return number


def scene_depth(value: ArrayLike, shape: tuple[int, int], kind: str) -> Array:
    """Depths above 0, of which some may be infinite, or finite disparities: one per pixel."""
    values = _array("depth", value)
    if values.shape not in (shape, (*shape, 1)):
        raise ValueError(
            f"depth: expected one number per pixel, shape {shape}, got {values.shape}. "
            f"Resize it to the image first."
        )
    values = values.reshape(shape).astype(np.float64)
    expected = "numbers above 0" if kind == "depth" else "finite numbers"
    right = values > 0 if kind == "depth" else np.isfinite(values)
    if not right.all():
        at = tuple(np.argwhere(~right)[0].tolist())
        raise ValueError(
            f"depth: expected {expected} for kind={kind!r}, got {values[at]} at {_place(at)}. "
            f"Fill holes first: set them to NaN and call bilateral.solve(image, depth)."
        )
    return values


class Scores(NamedTuple):
    """Checked scores of classes, and how the result should look."""

    values: Array
    """(h, w, K) in float32 or float64; (h, w, 1) for a foreground."""
    logits: bool
    """Whether they are logits rather than probabilities."""
    finite: bool
    """Whether all values are finite, and their sums."""
    layout: tuple[int, ...]
    """What follows height and width in the result's shape."""
    dtype: np.dtype[Any]


_SUM_TOLERANCE = 0.01
"""Probabilities of half precision, or rounded to two digits, sum to 1 up to this."""


def scores(
    name: str,
    value: ArrayLike,
    logits: bool | None,
    shape: tuple[int, ...],
    dtype: DTypeLike | None,
    hidden: Array | None = None,
) -> Scores:
    """Probabilities or logits of K classes (h, w, K), or of a foreground (h, w), of any size.

    Those `hidden` in a map of the image's shape become NaN.
    """
    given = _array(name, value)
    if given.ndim not in (2, 3) or given.size == 0:
        raise ValueError(
            f"{name}: expected shape (h, w, K), or (h, w) for a foreground, with at least one "
            f"value, got {given.shape}. Channels come last."
        )
    if given.ndim == 3 and given.shape[1:] == shape and given.shape[:2] != shape:
        raise ValueError(
            f"{name}: expected channels last, (h, w, K), got shape {given.shape} for an image of "
            f"{shape}. Turn it: np.moveaxis({name}, 0, -1)."
        )
    if logits is not None and not isinstance(logits, bool | np.bool_):
        raise TypeError(f"logits: expected True, False or None, got {_got(logits)}.")
    values = given[..., np.newaxis] if given.ndim == 2 else given
    if values.shape[2] == 1 and given.dtype.kind in "ui" and not logits:
        _mask_values(name, values)
    values = np.ascontiguousarray(values, _compute_dtype(given.dtype))
    if hidden is not None and hidden.shape == values.shape[:2]:
        values = np.where(hidden[..., np.newaxis], values.dtype.type(np.nan), values)
    with np.errstate(over="ignore", invalid="ignore"):
        low, sums = values.min(), values @ np.ones(values.shape[2], values.dtype)
    finite = bool(np.isfinite(sums).all())
    if not finite:
        whole = np.isfinite(values).all(axis=2)
        none = -np.inf if np.isneginf(values).any() else np.inf  # no logit is a probability
        low = values[whole].min(initial=np.inf) if whole.any() else none
        with np.errstate(over="ignore"):
            sums = values[whole].sum(axis=1)
    several, most = values.shape[2] > 1, sums.max(initial=1)
    if logits is None:
        least = sums.min(initial=1) if several else 1.0
        logits = are_logits(low, least, most)
    elif not logits and not are_probabilities(low, 1.0 if several else most):
        raise ValueError(
            f"{name}: expected probabilities from 0 to 1, since logits=False, got "
            f"{low if low < 0 else most}. Leave logits out, or give logits=True."
        )
    usual = given.dtype.newbyteorder("=") if given.dtype.kind == "f" else np.dtype(np.float32)
    layout = () if given.ndim == 2 else (given.shape[2],)
    result = usual if dtype is None else _result_dtype(dtype)
    return Scores(values, bool(logits), finite, layout, result)


def are_logits(low: float, least: float, most: float) -> bool:
    """Whether scores can be no probabilities, by their lowest and by the classes' sums."""
    return bool(low < 0 or max(most - 1, 1 - least) > _SUM_TOLERANCE)


def are_probabilities(low: float, high: float) -> bool:
    """Whether scores in this range may be probabilities."""
    return bool(low >= 0 and high <= 1 + _SUM_TOLERANCE)


def _mask_values(name: str, values: Array) -> None:
    low, high = values.min(), values.max()
    if low < 0 or high > 1:
        raise ValueError(
            f"{name}: expected 0 and 1, since it is one channel of integers, got values from {low} "
            f"to {high}. For a mask of 0 and 255 give {name} > 0, for a map of labels "
            f"np.eye(K)[{name}], for logits {name}.astype(np.float32)."
        )


def some_scores(known: Array) -> None:
    """Raise if no pixel's classes are known."""
    if not known.any():
        raise ValueError(
            "probabilities: expected finite values at one pixel at least, got none: all are NaN or "
            "infinite, ignored, or have no confidence. Check these, and what the network returned."
        )


def as_dtype(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values as another dtype: integers are rounded, and what does not fit becomes the limit."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "f":
        if dtype.itemsize < values.dtype.itemsize:
            values = np.clip(values, np.finfo(dtype).min, np.finfo(dtype).max)
        return values.astype(dtype, copy=False)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    # The largest 64-bit integers are no float64; the next smaller one is.
    top = float(high) if int(float(high)) <= high else np.nextafter(float(high), 0.0)
    return np.clip(np.rint(values), low, top).astype(dtype)


def _compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    # float32 holds integers exactly up to 24 bits.
    wide = dtype.itemsize > 4 if dtype.kind == "f" else dtype.itemsize >= 4
    return np.dtype(np.float64 if wide else np.float32)
