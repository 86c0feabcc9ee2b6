"""OpenCV's filter against its algorithm, and against OpenCV where Python finds it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bilateral import compat
from oracles import reference as oracle

Array = NDArray[Any]
SIGMAS = (8, 8, 8)


def opencv_cells(guide: Array, space: float, luma: float, chroma: float) -> Array:
    """Cells of an 8-bit guide: colours are rounded to whole levels before they are divided."""
    y, x = np.mgrid[: guide.shape[0], : guide.shape[1]]
    if guide.ndim == 2:
        colours = [guide / luma]
    else:
        blue, green, red = (guide[..., k].astype(np.float64) for k in range(3))
        grey = np.rint(0.299 * red + 0.587 * green + 0.114 * blue)
        cr = np.clip(np.rint((red - grey) * 0.713 + 128), 0, 255)
        cb = np.clip(np.rint((blue - grey) * 0.564 + 128), 0, 255)
        colours = [grey / luma, cr / chroma, cb / chroma]
    return np.dstack([x / space, y / space, *colours]).reshape(y.size, -1).astype(np.int64)


def expected(guide: Array, x: Array, w: Array, lam: float = 128, steps: int = 25) -> Array:
    """25 steps from the mean of all pixels of each vertex, whatever their confidence."""
    grid = oracle.grid_from_coordinates(opencv_cells(guide, *SIGMAS), (10.0, 1.0, 1.0))
    A, b, _ = oracle.system(grid, x, w, lam)
    pixels = x.reshape(len(grid.S.T @ grid.m), -1)
    start = (grid.S @ pixels) / grid.S.sum(axis=1)[:, None]
    y = oracle.pcg(A, b, start, oracle.jacobi(A), steps)
    return np.asarray(grid.S.T @ y).reshape(x.shape)


@pytest.mark.parametrize("gray", [False, True])
@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_floats(image: Array, gray: bool, channels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    guide = image[..., 0] if gray else image
    x = rng.random((*image.shape[:2], *channels)).astype(np.float32)
    w = rng.random(image.shape[:2]).astype(np.float32)
    found = compat.fastBilateralSolverFilter(guide, x, w)
    assert (found.dtype, found.shape) == (np.float32, x.shape)
    np.testing.assert_allclose(found, expected(guide, x, w), atol=2e-4)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_integers(image: Array, dtype: str) -> None:
    limits = np.iinfo(dtype)
    source = np.random.default_rng(1).integers(limits.min, limits.max, image.shape[:2], dtype)
    confidence = np.full(image.shape[:2], 255, np.uint8)
    x = (source.astype(np.float64) - limits.min) / (limits.max - limits.min)
    y = expected(image, x, np.ones_like(x)) * (limits.max - limits.min) + limits.min
    found = compat.fastBilateralSolverFilter(image, source, confidence)
    assert found.dtype == source.dtype
    assert np.abs(found - y).max() <= 0.51 + 2e-4 * (limits.max - limits.min)


def test_ways_to_call(image: Array) -> None:
    source = np.random.default_rng(2).random(image.shape[:2]).astype(np.float32)
    confidence = np.ones_like(source)
    dst = np.empty_like(source)
    settings = (6, 5, 4, 64.0, 20, 1e-5)
    found = compat.fastBilateralSolverFilter(image, source, confidence, *settings)
    again = compat.fastBilateralSolverFilter(image, source, confidence, dst, *settings)
    np.testing.assert_array_equal(again, found)
    np.testing.assert_array_equal(dst, found)
    by_name = compat.fastBilateralSolverFilter(
        image, source, confidence, None, sigma_spatial=6, sigma_luma=5, sigma_chroma=4,
        lambda_=64.0, num_iter=20,
    )  # fmt: skip
    np.testing.assert_array_equal(by_name, found)
    made = compat.createFastBilateralSolverFilter(image, *settings)
    np.testing.assert_array_equal(made.filter(source, confidence), found)


def test_no_confidence_gives_finite_values(image: Array) -> None:
    source = np.random.default_rng(3).random(image.shape[:2]).astype(np.float32)
    source[10:20] = np.nan
    confidence = np.zeros_like(source)
    confidence[:3] = 1
    assert np.isfinite(compat.fastBilateralSolverFilter(image, source, confidence)).all()


def test_errors_name_the_argument(image: Array) -> None:
    source = np.zeros(image.shape[:2], np.float32)
    with pytest.raises(ValueError, match="guide: expected a uint8 image"):
        compat.fastBilateralSolverFilter(image.astype(np.float32), source, source)
    with pytest.raises(ValueError, match="src: expected uint8"):
        compat.fastBilateralSolverFilter(image, source.astype(np.float64), source)
    with pytest.raises(ValueError, match="confidence: expected uint8 or float32"):
        compat.fastBilateralSolverFilter(image, source, source.astype(np.float64))
    with pytest.raises(ValueError, match="confidence: expected the guide's size"):
        compat.fastBilateralSolverFilter(image, source, source[:4])
    with pytest.raises(ValueError, match="lambda_"):
        compat.fastBilateralSolverFilter(image, source, source, lambda_=-1)


def test_opencv_itself(image: Array) -> None:
    cv2 = pytest.importorskip("cv2", reason="needs OpenCV with ximgproc, such as Debian's")
    if not hasattr(cv2, "ximgproc"):
        pytest.skip("this OpenCV has no ximgproc")
    rng = np.random.default_rng(4)
    source = rng.random(image.shape[:2]).astype(np.float32)
    confidence = (rng.random(image.shape[:2]) + 0.05).astype(np.float32)
    theirs = cv2.ximgproc.fastBilateralSolverFilter(image, source, confidence)
    ours = compat.fastBilateralSolverFilter(image, source, confidence)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
