"""The mask of TokenCut and FOUND: its soft map, its components, its ways to pass an image."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from bilateral import compat
from bilateral.compat.object_mask import _choose
from bilateral.filters.labels import object_regions

Array = NDArray[Any]


@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_holes_and_components_are_scipys(mask: NDArray[np.bool_]) -> None:
    filled = ndimage.binary_fill_holes(mask)
    expected, count = ndimage.label(filled)
    sizes = [np.sum(expected == i) for i in range(count + 1)]
    soft = np.where(mask, 0.6, 0.4)
    labels, our_sizes = object_regions(soft, 0.5)
    np.testing.assert_array_equal(labels, expected)
    assert our_sizes == sizes
    order = np.argsort(sizes)
    second = expected == order[-2] if count else np.ones_like(mask)
    np.testing.assert_array_equal(_choose(soft, get_all_cc=False), second)
    rest = sum((expected == i).astype(int) for i in order[:-1]) + np.zeros(mask.shape, int)
    np.testing.assert_array_equal(_choose(soft, get_all_cc=True), rest)


def test_soft_map_is_the_notebooks_solution(image: Array) -> None:
    target = (np.random.default_rng(3).random(image.shape[:2]) > 0.6).astype(np.float64)
    soft, mask = compat.bilateral_solver_output(image, target, 16, 16, 8)
    grid = compat.BilateralGrid(image, 16, 16, 8)
    solver = compat.BilateralSolver(grid, {"lam": 256, "cg_maxiter": 25})
    expected = solver.solve(target.reshape(-1, 1), np.full((target.size, 1), 0.999))
    expected = expected.reshape(target.shape)
    np.testing.assert_allclose(soft, expected, atol=1e-6)  # the function solves in float32
    assert (soft.dtype, mask.dtype, mask.shape) == (np.float64, np.bool_, target.shape)


def test_paths_arrays_and_pictures_give_the_same(image: Array, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    Image.fromarray(image).save(path)
    target = np.zeros(image.shape[:2])
    target[8:30, 10:30] = 1
    soft, mask = compat.bilateral_solver_output(str(path), target)
    ways: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((path, target), {}),
        ((image, target), {}),
        ((Image.fromarray(image), target), {}),
        (("missing.png", target), {"img": image}),
        ((), {"img": Image.fromarray(image), "target": target}),
        ((None, target), {"img": image, "sigma_spatial": 24, "get_all_cc": False}),
    ]
    for args, options in ways:
        again = compat.bilateral_solver_output(*args, **options)
        np.testing.assert_array_equal(again[0], soft)
        np.testing.assert_array_equal(again[1], mask)


def test_gray_images_are_taken_as_rgb() -> None:
    gray = np.tile(np.arange(48, dtype=np.uint8) * 5, (32, 1))
    target = np.zeros((32, 48))
    target[:, 24:] = 255
    expected = compat.bilateral_solver_output(np.dstack([gray] * 3), target)[0]
    np.testing.assert_array_equal(compat.bilateral_solver_output(gray, target)[0], expected)


def test_errors_name_the_argument() -> None:
    image, target = np.zeros((8, 9, 3), np.uint8), np.zeros((8, 9))
    with pytest.raises(TypeError, match="img_pth: expected a path or an image"):
        compat.bilateral_solver_output(None, target)
    with pytest.raises(TypeError, match="target: expected"):
        compat.bilateral_solver_output(image)
    with pytest.raises(ValueError, match=r"target: expected shape \(8, 9\)"):
        compat.bilateral_solver_output(image, target[:4])
    with pytest.raises(TypeError, match=r"sigma_spatial: .* img="):
        compat.bilateral_solver_output("photo.png", target, image, img=image)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"img: expected shape"):
        compat.bilateral_solver_output(image[..., :2], target)
