"""Linear interpolation between scattered pixels against SciPy, and by its properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import LinearNDInterpolator
from scipy.ndimage import distance_transform_edt
from scipy.spatial import QhullError

from bilateral.filters.interpolation import interpolate_points


@st.composite
def maps(draw):
    """Draw maps with some known pixels: at random, on lines, or on a lattice."""
    height, width = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    known = rng.random((height, width)) < draw(st.sampled_from([0.02, 0.1, 0.5, 1.0]))
    step = draw(st.integers(1, 5))
    layout = draw(st.sampled_from(["random", "rows", "columns", "lattice"]))
    if layout in ("rows", "lattice"):
        known[np.arange(height) % step != 0] = False
    if layout in ("columns", "lattice"):
        known[:, np.arange(width) % step != 0] = False
    known[rng.integers(height), rng.integers(width)] = True
    return np.where(known, rng.normal(size=known.shape), np.nan).astype(np.float32)


def in_hull(known):
    """Whether each pixel lies in the convex hull of the known ones, by SciPy."""
    points = np.argwhere(known)
    try:
        inside = LinearNDInterpolator(points, np.zeros(len(points)))
    except QhullError:  # fewer than three points, or all on a line
        return known
    return np.isfinite(inside(*np.indices(known.shape)))


@given(maps())
def test_nearest_pixels_have_the_distances_of_scipy(z):
    _, nearest = interpolate_points(z)
    assert np.isfinite(z.ravel()[nearest]).all()
    y, x = np.indices(z.shape)
    row, column = np.divmod(nearest.astype(np.int64), z.shape[1])
    squares = (y - row) ** 2 + (x - column) ** 2
    np.testing.assert_allclose(np.sqrt(squares), distance_transform_edt(np.isnan(z)), atol=1e-6)


@given(maps())
def test_affine_maps_come_back_within_the_hull(z):
    y, x = np.indices(z.shape)
    affine = (0.5 * x - 2.0 * y + 3).astype(np.float32)
    filled, nearest = interpolate_points(np.where(np.isnan(z), np.float32(np.nan), affine))
    inside = in_hull(np.isfinite(z))
    np.testing.assert_allclose(filled[inside], affine[inside], atol=1e-4)
    np.testing.assert_array_equal(filled[~inside], affine.ravel()[nearest[~inside]])


@given(maps())
def test_known_pixels_stay_and_none_leaves_their_range(z):
    filled, _ = interpolate_points(z)
    known = np.isfinite(z)
    np.testing.assert_allclose(filled[known], z[known], atol=1e-6)
    assert filled.min() >= z[known].min() - 1e-6
    assert filled.max() <= z[known].max() + 1e-6


def test_triangles_are_those_of_scipy():
    rng = np.random.default_rng(0)
    z = np.full((61, 83), np.nan, np.float32)
    # A generic set: no four points on one circle, or the triangulation is not unique.
    at = rng.permutation(z.size)[:60]
    z.ravel()[at] = rng.normal(size=60)
    points = np.argwhere(np.isfinite(z))
    expected = LinearNDInterpolator(points, z[tuple(points.T)])(*np.indices(z.shape))
    inside = np.isfinite(expected)
    same = np.isclose(interpolate_points(z)[0][inside], expected[inside], atol=1e-4)
    assert same.mean() > 0.98


def test_a_map_without_known_pixels_is_refused():
    with pytest.raises(ValueError, match="no pixel is known"):
        interpolate_points(np.full((3, 4), np.nan, np.float32))
