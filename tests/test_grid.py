"""The grid matches the oracle: cells of the pixels, splat, slice and blur."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid
from oracles import reference as oracle
from support.strategies import (
    BLURS,
    WHITE,
    Array,
    as_dtype,
    grid_options,
    picture,
    references,
    seeds,
    shapes,
    sigmas,
    white,
)


def vertex_of_pixel(grid: BilateralGrid) -> Array:
    """Each pixel's vertex, (n_pixels,)."""
    numbers = np.arange(grid.n_vertices, dtype=np.float64)
    return grid.slice(numbers).astype(np.int64).ravel()


def cells(grid: BilateralGrid) -> Array:
    """Each pixel's cell, (n_pixels, D)."""
    return grid.coordinates()[vertex_of_pixel(grid)]


def order(vertices: Array) -> Array:
    """Return the order in which the oracle sorts vertices: by y, x, then the range columns."""
    return np.lexsort((*vertices.T[:1:-1], vertices[:, 0], vertices[:, 1]))


def same_partition(a: Array, b: Array) -> bool:
    """Return True if two lists of cells group the same pixels."""
    pairs = np.column_stack([np.unique(x, axis=0, return_inverse=True)[1].ravel() for x in (a, b)])
    return len(np.unique(a, axis=0)) == len(np.unique(b, axis=0)) == len(np.unique(pairs, axis=0))


# Cells


@given(references(), grid_options())
def test_each_pixel_falls_in_the_oracles_cell(reference: Array, options: dict[str, Any]) -> None:
    grid = BilateralGrid(reference, **options, reference_max=white(reference))
    options.pop("blur")
    expected = oracle.grid_coordinates(reference, **options)
    assert grid.shape == reference.shape[:2]
    assert grid.coordinates().dtype == np.int64
    np.testing.assert_array_equal(cells(grid), expected)
    # Every occupied cell is one vertex.
    assert grid.n_vertices == len(np.unique(expected, axis=0))


@given(references(dtypes=("uint8",)), grid_options())
def test_every_dtype_of_one_image_gives_the_same_cells(
    reference: Array, options: dict[str, Any]
) -> None:
    expected = cells(BilateralGrid(reference, **options))
    same = [reference.astype(np.uint16) * np.uint16(257), reference / 255.0]
    for image in same:
        np.testing.assert_array_equal(cells(BilateralGrid(image, **options)), expected)


@pytest.mark.parametrize("dtype", WHITE)
@given(
    shapes(12),
    st.sampled_from([(), (3,)]),
    st.sampled_from([0.25, 0.9, 1.0, 3.0]) | st.floats(0.1, 10),
    st.floats(2, 30),
    seeds,
)
def test_reference_max_sets_white(
    dtype: str,
    shape: tuple[int, int],
    channels: tuple[int, ...],
    share: float,
    sigma: float,
    seed: int,
) -> None:
    # White below the largest value makes parts of the image brighter than white.
    rng = np.random.default_rng(seed)
    reference = as_dtype(picture("textured", shape + channels, rng), dtype)
    white = share * WHITE[dtype]
    options = {"sigma_xy": 3, "sigma_luma": sigma, "sigma_chroma": sigma, "reference_max": white}
    expected = oracle.grid_coordinates(reference, **options)
    np.testing.assert_array_equal(cells(BilateralGrid(reference, **options)), expected)


@pytest.mark.parametrize("white", [1, 10, 50, 100])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_integers_far_above_reference_max_do_not_collide(dtype: str, white: int) -> None:
    rng = np.random.default_rng(0)
    reference = as_dtype(picture("textured", (12, 12, 3), rng), dtype)
    options = {"sigma_xy": 4, "sigma_luma": 8, "sigma_chroma": 8, "reference_max": white}
    expected = oracle.grid_coordinates(reference, **options)
    np.testing.assert_array_equal(cells(BilateralGrid(reference, **options)), expected)


@pytest.mark.parametrize("dtype", WHITE)
def test_gray_values_as_rgb_fall_in_the_cells_of_their_grey_level(dtype: str) -> None:
    k = np.arange(256)
    reference = as_dtype(np.repeat(k[None, :, None] / 255, 3, axis=2), dtype)
    if dtype == "float32":  # k / 255 is not a float32: ask for 0..255 instead
        reference = np.repeat(k[None, :, None], 3, axis=2).astype(dtype)
    white = 255 if dtype == "float32" else None
    x, y, luma, u, v = cells(BilateralGrid(reference, reference_max=white)).T
    np.testing.assert_array_equal(x, k // 8)
    np.testing.assert_array_equal(y, 0)
    np.testing.assert_array_equal(luma, k // 8)
    np.testing.assert_array_equal(u, 16)
    np.testing.assert_array_equal(v, 16)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1)])
def test_gray_with_and_without_a_channel_axis(shape: tuple[int, ...]) -> None:
    reference = np.random.default_rng(0).integers(0, 256, (5, 7)).astype(np.uint8)
    grid = BilateralGrid(reference.reshape(shape), sigma_xy=2)
    assert grid.coordinates().shape == (grid.n_vertices, 3)
    expected = oracle.grid_coordinates(reference, 2, 8, 8)
    np.testing.assert_array_equal(cells(grid), expected)


@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 1e-9, 1e-30, 5e-324])
@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_tiny_colour_sigmas_separate_every_colour(
    dtype: str, channels: tuple[int, ...], sigma: float
) -> None:
    rng = np.random.default_rng(0)
    # Few enough colours that most occur twice in a cell of space.
    palette = as_dtype(rng.uniform(size=(20, *channels)), dtype)
    reference = palette[rng.integers(0, 20, (16, 16))]
    grid = BilateralGrid(reference, 8, sigma, sigma)
    colour = reference.reshape(256, -1).astype(np.int64)
    y, x = np.indices((16, 16)).reshape(2, -1) // 8
    assert same_partition(cells(grid), np.column_stack([x, y, colour]))
    if sigma >= 1e-6:  # up to rounding: 8-bit colours lie on the edges of such cells
        expected = oracle.grid_coordinates(reference, 8, sigma, sigma)
        assert np.abs(cells(grid) - expected).max() <= 1


@given(references(12), st.floats(1e3, 1e300), st.floats(1e3, 1e300))
def test_huge_sigmas_leave_one_vertex(reference: Array, space: float, color: float) -> None:
    reference = np.abs(reference)
    if reference.dtype.kind == "f":
        reference = reference / (reference.max() or 1)
    grid = BilateralGrid(reference, space, color, color)
    np.testing.assert_array_equal(grid.coordinates(), [[0] * (2 + grid_channels(reference))])


def grid_channels(reference: Array) -> int:
    """1 for a gray image, 3 for RGB."""
    return 3 if reference.shape[2:] == (3,) else 1


@given(st.floats(0.01, 0.99), shapes(12))
def test_spatial_cells_below_a_pixel_hold_one_pixel_each(
    sigma: float, shape: tuple[int, int]
) -> None:
    grid = BilateralGrid(np.zeros(shape, np.uint8), sigma)
    assert grid.n_vertices == shape[0] * shape[1]
    np.testing.assert_array_equal(
        cells(grid), oracle.grid_coordinates(np.zeros(shape, np.uint8), sigma, 8, 8)
    )


@pytest.mark.parametrize("sigma", [1e-6, 1e-12, 1e-300, 5e-324])
def test_tiny_spatial_sigmas_leave_pixels_without_neighbours(sigma: float) -> None:
    grid = BilateralGrid(np.zeros((3, 5), np.uint8), sigma)
    assert grid.n_vertices == 15
    np.testing.assert_array_equal(grid.blur(np.ones(15)), 2)


# Values out of range


OUTLIERS = [300.0, 1e6, 1e12, 1e30, 3e38, -1e6, -1e12, -1e30, -3e38]


@pytest.mark.parametrize("outlier", OUTLIERS)
@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_outlier_is_alone_and_moves_no_other_pixel(
    dtype: str, channels: tuple[int, ...], outlier: float
) -> None:
    rng = np.random.default_rng(0)
    reference = as_dtype(rng.integers(0, 256, (10, 12, *channels)) / 255, dtype)
    expected = oracle.grid_coordinates(reference, 4, 8, 8)
    reference[3, 5] = [outlier, 0, 0] if channels else outlier
    found = cells(BilateralGrid(reference, 4, reference_max=1))
    normal = np.arange(120) != 3 * 12 + 5
    moved = found[normal] - expected[normal]
    np.testing.assert_array_equal(moved, np.broadcast_to(moved[0], moved.shape))
    assert (moved[0] >= 0).all()
    assert not (found[normal] == found[~normal]).all(axis=1).any()
    assert found.min() >= 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_the_largest_numbers_are_colours_like_others(dtype: str, channels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    reference = rng.uniform(size=(10, 12, *channels)).astype(dtype)
    most = min(float(np.finfo(dtype).max), 1e300)
    reference[3, 5], reference[8, 2] = most, -most
    grid = BilateralGrid(reference, 4, reference_max=1)
    found, expected = cells(grid), oracle.grid_coordinates(np.clip(reference, -1e3, 1e3), 4, 8, 8)
    normal = np.abs(reference.reshape(120, -1)).max(axis=1) < 2
    assert same_partition(found[normal], expected[normal])
    assert not (found[normal][:, None] == found[~normal]).all(axis=2).any()
    assert grid.coordinates().min() >= 0
    x = bilateral.BilateralSolver(grid).solve(rng.normal(size=(10, 12)))
    assert np.isfinite(x).all()


@pytest.mark.parametrize("channels", [(), (3,)])
def test_numbers_too_large_to_weigh_are_an_error(channels: tuple[int, ...]) -> None:
    reference = np.zeros((10, 12, *channels))
    reference[3, 5] = np.finfo(float).max
    with pytest.raises(ValueError, match=r"^reference: .*larger"):
        BilateralGrid(reference, reference_max=1)


# Sizes


@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize(
    ("shape", "sigma"),
    [
        ((64, 2100), 8),
        ((3, 300), 1),
        ((300, 3), 1),
        ((1, 70_000), 1),
        ((70_000, 1), 1),
        ((2, 66_000), 1),
        ((2, 30_000), 0.4),
        ((40, 4000), 16),
    ],
)
def test_no_cells_collide_at_any_width(
    shape: tuple[int, int], sigma: float, channels: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 4, shape + channels).astype(np.uint8) * np.uint8(80)
    expected = oracle.grid_coordinates(reference, sigma, 8, 8)
    np.testing.assert_array_equal(cells(BilateralGrid(reference, sigma)), expected)


@pytest.mark.parametrize("shape", [(1, 70_000), (70_000, 1), (8, 2100)])
def test_the_edges_of_a_wide_image_are_not_neighbours(shape: tuple[int, int]) -> None:
    # On a flat image B-bar 1 = 2 + the number of neighbours in space.
    grid = BilateralGrid(np.zeros(shape, np.uint8), 1)
    neighbours = np.zeros(shape)
    neighbours[1:] += 1
    neighbours[:-1] += 1
    neighbours[:, 1:] += 1
    neighbours[:, :-1] += 1
    np.testing.assert_array_equal(grid.slice(grid.blur(np.ones(grid.n_vertices))), 2 + neighbours)


@pytest.mark.parametrize("channels", [(), (1,), (3,)])
def test_one_pixel(channels: tuple[int, ...]) -> None:
    grid = BilateralGrid(np.full((1, 1, *channels), 200, np.uint8), sigma_chroma=4)
    expected = [[0, 0, 25, 32, 32]] if channels == (3,) else [[0, 0, 25]]
    np.testing.assert_array_equal(grid.coordinates(), expected)
    np.testing.assert_array_equal(grid.splat([[7.0]]), [7])
    np.testing.assert_array_equal(grid.slice([7.0]), [[7]])
    np.testing.assert_array_equal(grid.blur([7.0]), [14])


def test_many_vertices_in_one_row_of_tiles() -> None:
    # More than 65,536: what 16 bits can count.
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 256, (40, 2500, 3)).astype(np.uint8)
    grid = BilateralGrid(reference, 40, 1, 1)
    assert grid.n_vertices > 2**16
    np.testing.assert_array_equal(cells(grid), oracle.grid_coordinates(reference, 40, 1, 1))


@pytest.mark.parametrize("colours", [1, 20, 23, 24, 25, 63, 64, 65, 70, 200, 256])
@pytest.mark.parametrize("side", [7, 8, 9, 32, 33, 40])
def test_any_number_of_colours_in_one_tile(side: int, colours: int) -> None:
    rng = np.random.default_rng(colours)
    reference = rng.permutation(256)[rng.integers(0, colours, (side, side))].astype(np.uint8)
    grid = BilateralGrid(reference, side, 1)
    np.testing.assert_array_equal(cells(grid), oracle.grid_coordinates(reference, side, 1, 1))
    np.testing.assert_array_equal(
        grid.splat(np.ones((side, side))), np.unique(reference, return_counts=True)[1]
    )


# Splat, slice, blur


@given(references(24), grid_options(), st.sampled_from([(), (1,), (2,), (5,), (9,)]), seeds)
def test_splat_slice_and_blur_match_the_oracle(
    reference: Array, options: dict[str, Any], channels: tuple[int, ...], seed: int
) -> None:
    grid = BilateralGrid(reference, **options, reference_max=white(reference))
    expected = oracle.image_grid(reference, **options)
    mine = order(grid.coordinates())
    np.testing.assert_array_equal(grid.coordinates()[mine], expected.V)

    rng, N = np.random.default_rng(seed), grid.n_vertices
    pixels, vertices = rng.normal(size=(*grid.shape, *channels)), rng.normal(size=(N, *channels))
    flat = pixels.reshape(-1, *channels)
    splat, blurred, sliced = grid.splat(pixels), grid.blur(vertices), grid.slice(vertices)
    assert (splat.shape, blurred.shape, sliced.shape) == (
        vertices.shape,
        vertices.shape,
        pixels.shape,
    )
    np.testing.assert_allclose(splat[mine], expected.S @ flat, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(blurred[mine], expected.B @ vertices[mine], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(sliced.reshape(flat.shape), expected.S.T @ vertices[mine])


@pytest.mark.parametrize("levels", [2, 4, 8, 16, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_cell_of_a_channel_is_no_neighbour_of_the_next_ones_first(
    dtype: str, levels: int
) -> None:
    # Every combination of cells 0..levels - 1: a key without a spare bit would carry over.
    rng = np.random.default_rng(levels)
    color = rng.integers(0, levels, (20, 20, 3))
    yuv = 8 * (color + 0.5) - [0, 128, 128]
    reference = (yuv @ np.linalg.inv(oracle.RGB_TO_YUV).T / 255).astype(dtype)
    grid = BilateralGrid(reference, 10, reference_max=1)
    expected = oracle.image_grid(reference, 10)
    np.testing.assert_array_equal(cells(grid)[:, 2:], color.reshape(-1, 3))
    mine, v = order(grid.coordinates()), rng.normal(size=grid.n_vertices)
    np.testing.assert_allclose(grid.blur(v)[mine], expected.B @ v[mine], rtol=1e-12, atol=1e-12)


@given(references(), grid_options(), seeds)
def test_slice_is_the_adjoint_of_splat_and_blur_is_symmetric(
    reference: Array, options: dict[str, Any], seed: int
) -> None:
    grid = BilateralGrid(reference, **options, reference_max=white(reference))
    rng = np.random.default_rng(seed)
    x, (u, v) = rng.normal(size=grid.shape), rng.normal(size=(2, grid.n_vertices))
    np.testing.assert_allclose(grid.splat(x) @ u, np.sum(x * grid.slice(u)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(grid.blur(u) @ v, u @ grid.blur(v), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("blur", BLURS)
def test_blur_of_one_vertex_shows_the_weights(blur: Any) -> None:
    # A line of three cells in x, the middle one with two neighbouring grey levels.
    reference = np.array([[0, 0, 0], [0, 8, 0]], np.uint8)
    names = {"paper": (2, 1, 1 / 8), "uniform": (6, 1, 1)}
    centre, space, range_ = names.get(blur, blur)
    grid = BilateralGrid(reference[:, [0, 0, 1, 1, 2, 2]], 2, blur=blur)
    vertices = [tuple(v) for v in grid.coordinates().tolist()]
    one = np.zeros(grid.n_vertices)
    one[vertices.index((1, 0, 0))] = 1
    found = dict(zip(vertices, grid.blur(one).tolist(), strict=True))
    expected = {(0, 0, 0): space, (1, 0, 0): centre, (1, 0, 1): range_, (2, 0, 0): space}
    assert found == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_keep_their_dtype_and_others_become_floats(dtype: str) -> None:
    grid = BilateralGrid(np.zeros((4, 6), np.uint8), 2)
    assert grid.splat(np.ones((4, 6), dtype)).dtype == dtype
    assert grid.slice(np.ones(6, dtype)).dtype == dtype
    assert grid.blur(np.ones(6, dtype)).dtype == dtype
    np.testing.assert_array_equal(grid.splat(np.full((4, 6), 3, np.int16)), 12)
    np.testing.assert_array_equal(grid.slice(np.full(6, True)), 1)


def test_splat_adds_in_double_precision() -> None:
    # 2^24 + 1 + ... + 1 loses every 1 when summed in float32.
    grid = BilateralGrid(np.zeros((10, 20), np.uint8), 1000)
    pixels = np.ones((10, 20), np.float32)
    pixels[0, 0] = 2.0**24
    np.testing.assert_array_equal(grid.splat(pixels), [2**24 + 200])


@given(references(16), sigmas)
def test_the_sum_over_all_pixels_survives_a_splat(reference: Array, sigma: float) -> None:
    grid = BilateralGrid(reference, sigma, reference_max=white(reference))
    assert grid.splat(np.ones(grid.shape)).sum() == grid.shape[0] * grid.shape[1]


def test_repr_shows_the_size() -> None:
    grid = BilateralGrid(np.zeros((16, 24), np.uint8))
    assert repr(grid) == "BilateralGrid(shape=(16, 24), n_vertices=6)"
