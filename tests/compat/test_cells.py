"""Colours on the border of a cell fall where the notebook's double precision puts them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilateral.compat.cells import notebook_cells
from support.examples import examples

FROM_RGB = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
)


def expected(image: Any, luma: float, chroma: float) -> Any:
    """The notebook's own lines."""
    yuv = np.tensordot(image, FROM_RGB, ([2], [1])) + np.array([0, 128.0, 128.0])
    return np.dstack([(yuv[..., 0] / luma).astype(int), (yuv[..., 1:] / chroma).astype(int)])


@given(
    image=arrays(np.uint8, (4, 7, 3), elements=st.integers(0, 255)),
    luma=st.sampled_from([1.0, 3.7, 4.0, 8.0, 16.0, 255.0]),
    chroma=st.sampled_from([0.5, 1.0, 4.0, 5.0, 300.0]),
    gray=st.booleans(),
)
@examples(200)
def test_cells_are_the_notebooks(image: Any, luma: float, chroma: float, gray: bool) -> None:
    if gray:  # chroma is 128, the border of a cell
        image[...] = image[..., :1]
    np.testing.assert_array_equal(
        notebook_cells(image, luma, chroma), expected(image, luma, chroma)
    )


@pytest.mark.parametrize("sigma", [1, 2, 4, 5, 8])
def test_all_colours_whose_luma_is_a_whole_number(sigma: int) -> None:
    r, g, b = np.mgrid[:256:5, :256:5, :256:5].astype(np.uint8)
    whole = (299 * r.astype(int) + 587 * g.astype(int) + 114 * b.astype(int)) % 1000 == 0
    image = np.stack([r[whole], g[whole], b[whole]], axis=-1)[np.newaxis]
    np.testing.assert_array_equal(
        notebook_cells(image, sigma, sigma), expected(image, sigma, sigma)
    )
