"""Grids of any features in two and three dimensions: images, videos and volumes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure
from oracles import reference as oracle
from support.examples import examples
from support.strategies import BLURS, Array, seeds, smoothnesses, weights

EXACTLY = {"tolerance": 0, "max_iterations": 3000}
sigmas = st.sampled_from([1.0, 2.0, 3.0]) | st.floats(0.4, 12)


@dataclass(frozen=True)
class Case:
    """Features of pixels, the sizes of their cells, and the oracle's grid."""

    features: Array
    sigmas: tuple[float, ...]
    sigma_space: tuple[float, ...]
    blur: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.features.shape[:-1]

    def grid(self) -> BilateralGrid:
        return BilateralGrid.from_features(
            self.features, self.sigmas, self.sigma_space, blur=self.blur
        )

    def cells(self) -> Array:
        """Each pixel's cell: x, y, perhaps t, then the features."""
        space = [axis.ravel() for axis in np.indices(self.shape)][::-1]
        values = np.column_stack([*space, self.features.reshape(len(space[0]), len(self.sigmas))])
        cells = np.floor(values / [*self.sigma_space[::-1], *self.sigmas] + 1e-9).astype(np.int64)
        return cells - np.minimum(cells.min(axis=0), 0)

    def oracle(self) -> oracle.Grid:
        return oracle.grid_from_coordinates(self.cells(), self.blur, len(self.shape))


@st.composite
def cases(draw: st.DrawFn, largest: int = 10) -> Case:
    """Images and volumes from one pixel on, with no to eight features, few of their cells empty."""
    side = st.integers(1, largest) | st.just(1)
    shape = draw(st.tuples(side, side) | st.tuples(side, side, side))
    channels = draw(st.integers(0, 8))
    rng = np.random.default_rng(draw(seeds))
    steps = rng.integers(0, draw(st.integers(1, 4)), (*shape, channels))
    smooth = np.indices(shape).sum(axis=0)[..., np.newaxis] / sum(shape)
    values = (steps + smooth) * 10 ** rng.uniform(-6, 6, channels) - rng.uniform(0, 2)
    spread = np.ptp(values, axis=tuple(range(len(shape))))
    size = np.where(spread > 0, spread, 1) / rng.uniform(0.7, 8, channels)
    dtype = draw(st.sampled_from(["float32", "float64", "uint8", "uint16", "int16"]))
    if not dtype.startswith("float"):
        values, size = np.rint(values / size * 8) % 60, np.full(channels, draw(sigmas) * 8)
    space = tuple(draw(sigmas) for _ in shape)
    return Case(values.astype(dtype), tuple(size.tolist()), space, draw(st.sampled_from(BLURS)))


def order(vertices: Array, space: int) -> Array:
    """Return the order in which the oracle sorts vertices: by t, y, x, then the features."""
    return np.lexsort((*vertices.T[: space - 1 : -1], *vertices.T[:space]))


# Against the oracle


@examples(200)
@given(cases())
def test_each_pixel_falls_in_the_oracles_cell(case: Case) -> None:
    grid, expected = case.grid(), case.cells()
    assert grid.shape == case.shape
    vertex = grid.slice(np.arange(grid.n_vertices, dtype=np.float64)).astype(int).ravel()
    np.testing.assert_array_equal(grid.coordinates()[vertex], expected)
    assert grid.n_vertices == len(np.unique(expected, axis=0))


@given(cases(), st.sampled_from([(), (1,), (2,), (9,)]), seeds)
def test_splat_slice_and_blur_match_the_oracle(
    case: Case, channels: tuple[int, ...], seed: int
) -> None:
    grid, expected = case.grid(), case.oracle()
    mine = order(grid.coordinates(), len(case.shape))
    np.testing.assert_array_equal(grid.coordinates()[mine], expected.V)
    rng, N = np.random.default_rng(seed), grid.n_vertices
    pixels, vertices = rng.normal(size=(*grid.shape, *channels)), rng.normal(size=(N, *channels))
    flat = pixels.reshape(-1, *channels)
    np.testing.assert_allclose(grid.splat(pixels)[mine], expected.S @ flat, atol=1e-12)
    np.testing.assert_allclose(grid.blur(vertices)[mine], expected.B @ vertices[mine], atol=1e-12)
    np.testing.assert_array_equal(
        grid.slice(vertices).reshape(flat.shape), expected.S.T @ vertices[mine]
    )


@examples(200)
@given(
    cases(),
    st.sampled_from([(), (1,), (3,), (9,)]),
    st.sampled_from(["none", "dense", "sparse"]),
    st.sampled_from(["multigrid", "pyramid", "jacobi"]),
    smoothnesses,
    seeds,
)
def test_solution_matches_the_oracle(
    case: Case,
    channels: tuple[int, ...],
    kind: str,
    preconditioner: str,
    smoothness: float,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(*case.shape, *channels))
    confidence = weights(kind, case.shape, rng)
    if confidence is not None:
        confidence.flat[rng.integers(confidence.size)] = 1
    solver = BilateralSolver(case.grid(), smoothness, preconditioner=preconditioner, **EXACTLY)
    x = solver.solve(target, confidence)
    grid = case.oracle()
    y = oracle.direct_solve(grid, *oracle.system(grid, target, confidence, smoothness))
    np.testing.assert_allclose(x, np.asarray(grid.S.T @ y).reshape(x.shape), atol=1e-6)


@pytest.mark.parametrize("preconditioner", ["multigrid", "pyramid"])
@pytest.mark.parametrize("sigma_space", [(2, 3, 3), (1, 8, 8), (30, 2, 2)])
def test_a_large_volume_matches_the_oracle(
    preconditioner: str, sigma_space: tuple[float, ...]
) -> None:
    # Several bands: neighbours along y and t are far away in memory.
    rng = np.random.default_rng(0)
    case = Case(rng.uniform(0, 3, (21, 40, 50, 1)).round(), (1.0,), sigma_space, "paper")
    target, known = rng.normal(size=case.shape), rng.uniform(size=case.shape) < 0.1
    grid, solver = (
        case.oracle(),
        BilateralSolver(case.grid(), 20, preconditioner=preconditioner, **EXACTLY),
    )
    y = oracle.direct_solve(grid, *oracle.system(grid, target, known, 20))
    x = solver.solve(target, known)
    np.testing.assert_allclose(x, np.asarray(grid.S.T @ y).reshape(x.shape), atol=1e-6)


@given(cases(6), seeds)
def test_steps_of_the_papers_method_match_the_oracle(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target, confidence = rng.normal(size=(2, *case.shape))
    confidence = np.maximum(confidence, 0) + 1e-3
    x = BilateralSolver(case.grid(), method="paper", max_iterations=4).solve(target, confidence)
    grid = case.oracle()
    A, b, Sc = oracle.system(grid, target, confidence, 4.0)
    start = oracle.pyramid_start(grid, b, Sc)
    y = oracle.pcg(A, b, start, oracle.pyramid_preconditioner(grid, A), 4)
    y = np.clip(y, target.min(), target.max())
    np.testing.assert_allclose(x, np.asarray(grid.S.T @ y).reshape(x.shape), atol=1e-7)


# Equal grids from different arguments


@pytest.mark.parametrize("channels", [1, 3])
def test_the_features_of_a_photo_give_the_photos_grid(channels: int) -> None:
    rng = np.random.default_rng(0)
    photo = rng.integers(0, 256, (30, 41, channels)).astype(np.uint8)
    grid = BilateralGrid(photo, 5, 30, 40)
    same = BilateralGrid.from_features(oracle.yuv(photo), (30, 40, 40)[:channels], 5)
    np.testing.assert_array_equal(same.coordinates(), grid.coordinates())
    target = rng.normal(size=(30, 41))
    np.testing.assert_array_equal(
        BilateralSolver(same).solve(target), BilateralSolver(grid).solve(target)
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_a_video_is_the_grid_of_its_colours_in_three_dimensions(channels: int) -> None:
    rng = np.random.default_rng(0)
    video = rng.integers(0, 256, (7, 20, 31, channels)).astype(np.uint8)
    grid = BilateralGrid(video, 5, 30, 40, sigma_t=3)
    colours = np.stack([oracle.yuv(frame) for frame in video])
    same = BilateralGrid.from_features(colours, (30, 40, 40)[:channels], (3, 5, 5))
    assert grid.shape == (7, 20, 31)
    assert grid.coordinates().shape[1] == 3 + channels
    np.testing.assert_array_equal(same.coordinates(), grid.coordinates())
    target = rng.normal(size=(7, 20, 31, 2))
    expected = BilateralSolver(same).solve(target)
    options = {"sigma_xy": 5, "sigma_luma": 30, "sigma_chroma": 40, "sigma_t": 3}
    np.testing.assert_array_equal(bilateral.solve(video, target, **options), expected)


def test_cells_of_one_frame_smooth_each_frame_alone() -> None:
    rng = np.random.default_rng(0)
    video = rng.integers(0, 256, (4, 24, 32, 3)).astype(np.uint8)
    target = rng.normal(size=(4, 24, 32))
    # Half a frame: the cells leave gaps along t, so that no frame has a neighbour.
    x = bilateral.solve(video, target, sigma_t=0.5, tolerance=1e-9)
    for frame, own, found in zip(video, target, x, strict=True):
        np.testing.assert_allclose(found, bilateral.solve(frame, own, tolerance=1e-9), atol=1e-7)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_of_a_volume_may_be_the_image(axis: int) -> None:
    # A volume of one voxel along an axis has the edges of an image.
    rng = np.random.default_rng(0)
    features, target = rng.uniform(0, 40, (24, 32, 2)), rng.normal(size=(24, 32))
    image = BilateralGrid.from_features(features, 10, (4, 6))
    sigma_space = [4.0, 6.0]
    sigma_space.insert(axis, 3.0)
    volume = BilateralGrid.from_features(np.expand_dims(features, axis), 10, sigma_space)
    x = BilateralSolver(volume, tolerance=1e-9).solve(np.expand_dims(target, axis))
    expected = BilateralSolver(image, tolerance=1e-9).solve(target)
    np.testing.assert_allclose(x.squeeze(axis), expected, atol=1e-7)


def test_axes_may_be_swapped() -> None:
    rng = np.random.default_rng(0)
    features, target = rng.uniform(0, 40, (6, 18, 25, 2)), rng.normal(size=(6, 18, 25))
    x = BilateralSolver(BilateralGrid.from_features(features, 10, (2, 3, 4)), tolerance=1e-9).solve(
        target
    )
    for axes in [(0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)]:
        sigma_space = [(2, 3, 4)[axis] for axis in axes]
        grid = BilateralGrid.from_features(features.transpose(*axes, 3), 10, sigma_space)
        found = BilateralSolver(grid, tolerance=1e-9).solve(target.transpose(axes))
        np.testing.assert_allclose(found, x.transpose(axes), atol=1e-7)


def test_no_features_leave_a_grid_of_space() -> None:
    grid = BilateralGrid.from_features(np.zeros((6, 16, 24, 0)), (), (3, 8, 8))
    assert (grid.n_vertices, grid.coordinates().shape) == (2 * 2 * 3, (12, 3))
    target = np.full(grid.shape, np.nan)
    target[0, 0, 0] = 7
    np.testing.assert_allclose(BilateralSolver(grid).solve(target), 7)


def test_one_feature_needs_no_axis() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 9, (4, 10, 12))
    volume = BilateralGrid.from_features(values, 2, (2, 4, 4))
    same = BilateralGrid.from_features(values[..., np.newaxis], [2], np.array([2, 4, 4]))
    np.testing.assert_array_equal(volume.coordinates(), same.coordinates())
    image = BilateralGrid.from_features(values[0], 2, 4)
    same = BilateralGrid.from_features(values[0][..., np.newaxis], (2,), (4, 4))
    np.testing.assert_array_equal(image.coordinates(), same.coordinates())


def test_features_may_have_any_unit() -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(-3, 3, (20, 30, 2)) * 1e-13
    grid = BilateralGrid.from_features(features, 1e-13, 5)
    same = BilateralGrid.from_features(features * 1e13, 1, 5)
    np.testing.assert_array_equal(grid.coordinates(), same.coordinates())


# Other functions of the solver on videos


def clip() -> tuple[Array, Array]:
    """Return frames of a bright disc that moves over a dark ground, and a noisy depth."""
    rng = np.random.default_rng(0)
    t, y, x = np.mgrid[:6, :40, :56]
    disc = np.hypot(y - 20, x - 15 - 4 * t) < 11
    video = np.where(disc[..., np.newaxis], [220, 180, 90], [40, 60, 80])
    video = np.clip(video + rng.normal(0, 2, video.shape), 0, 255).astype(np.uint8)
    return video, np.where(disc, 2.0, 5.0) + rng.normal(0, 0.3, disc.shape)


def test_a_video_is_steadier_than_its_frames() -> None:
    video, depth = clip()
    truth = np.where(video[..., 0] > 130, 2.0, 5.0)
    known = np.random.default_rng(1).uniform(size=depth.shape) < 0.05
    sparse = np.where(known, depth, np.nan)
    together = bilateral.solve(video, sparse, sigma_t=2, smoothness=32, sigma_luma=16)
    alone = np.stack(
        [
            bilateral.solve(frame, own, smoothness=32, sigma_luma=16)
            for frame, own in zip(video, sparse, strict=True)
        ]
    )
    assert np.sqrt(np.mean((together - truth) ** 2)) < 0.8 * np.sqrt(np.mean((alone - truth) ** 2))


def test_robust_variance_rank_and_warm_start_work_on_videos() -> None:
    video, depth = clip()
    grid = BilateralGrid(video, sigma_t=2)
    solver = BilateralSolver(grid)
    spoilt = depth.copy()
    spoilt[::2, ::5, ::3] = 60
    x, info = solver.solve_robust(spoilt, loss=GemanMcClure(0.5), return_info=True)
    assert x.shape == depth.shape
    assert np.abs(x - np.where(video[..., 0] > 130, 2.0, 5.0)).mean() < 0.1
    assert info.n_vertices == grid.n_vertices
    again, warm = solver.solve(x, warm_start="last", return_info=True)
    assert warm.converged
    confidence = np.zeros(depth.shape)
    confidence[0, 20, 20] = 1
    assert solver.variance(confidence).shape == depth.shape
    many = np.repeat(depth[..., np.newaxis], 12, axis=-1)
    few = solver.solve(many, rank_tolerance=1e-6)
    np.testing.assert_allclose(few[..., 3], solver.solve(depth), atol=1e-2)
    solver.update(video[:, :, ::-1])
    x = solver.solve(depth[:, :, ::-1], warm_start="last")
    expected = BilateralSolver(BilateralGrid(video[:, :, ::-1], sigma_t=2)).solve(depth[:, :, ::-1])
    np.testing.assert_allclose(x, expected, atol=1e-2)
    np.testing.assert_allclose(again, BilateralSolver(grid).solve(again), atol=0.5)


def test_a_smooth_video_is_filtered_frame_by_frame() -> None:
    video, depth = clip()
    solver = BilateralSolver(BilateralGrid(video, sigma_t=2))
    x = solver.solve(depth)
    found = solver.solve(depth, smooth=(4, 8))
    for frame, own, filtered in zip(video, x, found, strict=True):
        np.testing.assert_array_equal(filtered, bilateral.domain_transform(own, frame, 4, 8))


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(threads: int) -> None:
    video, depth = clip()
    big, values = np.tile(video, (3, 4, 4, 1)), np.tile(depth, (3, 4, 4)).astype(np.float32)
    found = []
    before = bilateral.get_num_threads()
    for count in (1, threads):
        bilateral.set_num_threads(count)
        try:
            grid = BilateralGrid(big, 4, sigma_t=2)
            for preconditioner in ("multigrid", "pyramid"):
                solver = BilateralSolver(grid, 200, preconditioner=preconditioner)
                found.append(solver.solve(values).tobytes())
        finally:
            bilateral.set_num_threads(before)
    assert found[:2] == found[2:]


def test_updates_with_other_features_start_warm_where_nothing_changed() -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(0, 9, (40, 50, 4)).astype(np.float32)
    target = rng.normal(size=(40, 50))
    solver = BilateralSolver(BilateralGrid.from_features(features, 3, 5), smoothness=100)
    first = solver.solve(target)
    solver.update(features)
    again, info = solver.solve(target, warm_start="last", return_info=True)
    assert info.converged
    np.testing.assert_allclose(again, first, atol=1e-2)


# Wrong input


def message(*args: Any, **options: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as error:
        BilateralGrid.from_features(*args, **options)
    return str(error.value)


def test_wrong_features_are_reported() -> None:
    image = np.zeros((4, 5, 2))
    assert message(np.zeros((4, 5, 9)), 1, 4).startswith("features: expected shape (H, W, C)")
    assert "sigma_space as (t, y, x)" in message(np.zeros((4, 5, 90)), 1, 4)
    assert message(np.zeros(5), 1, 4).startswith("features: expected shape (H, W, C)")
    assert "(T, H, W, C)" in message(np.zeros((2, 2, 4, 5, 3)), 1, (2, 4, 4))
    assert message(np.zeros((0, 5, 2)), 1, 4).startswith("features: expected at least one pixel")
    assert message(image, (1, 2, 3), 4).startswith("sigmas: expected one number, or one for each")
    assert message(image, (1, 0), 4).startswith("sigmas[1]: expected a number above 0")
    assert message(image, 1, (4,)).startswith("sigma_space: expected one number")
    assert message(image, 1, (4, -4)).startswith("sigma_space[1]: expected a number above 0")
    assert message(image, 1, (4, [4])).startswith("sigma_space[1]: expected a number above 0")
    assert message(image, 1, "wide").startswith("sigma_space: expected a number above 0")
    assert message(image + 1j, 1, 4).startswith("features: expected real numbers")
    assert message(image, 1, 4, blur="best").startswith("blur: expected one of")
    image[3, 2, 1] = np.nan
    assert "got nan at row 3, column 2" in message(image, 1, 4)
    volume = np.zeros((3, 4, 5, 1))
    volume[2, 3, 4] = np.inf
    assert "got inf at frame 2, row 3, column 4" in message(volume, 1, 4)


def test_too_many_cells_for_a_key_are_an_error() -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(6, 7, 8))
    told = message(features, 1e-9, 4)
    assert told.startswith("features: expected at most 2^127 cells")
    assert "larger sigmas" in told
    # A few features with tiny sigmas still fit.
    grid = BilateralGrid.from_features(features, [1e-9] * 3 + [0.1] * 5, 4)
    assert grid.n_vertices == 42


def test_a_video_without_sigma_t_is_reported() -> None:
    with pytest.raises(ValueError, match=r"^reference: .* A video needs sigma_t"):
        BilateralGrid(np.zeros((3, 4, 5, 3), np.uint8))
    with pytest.raises(ValueError, match=r"^reference: expected a gray video"):
        BilateralGrid(np.zeros((4, 5), np.uint8), sigma_t=2)


def test_a_wrong_place_in_a_video_is_reported() -> None:
    solver = BilateralSolver(BilateralGrid(np.zeros((3, 4, 5), np.uint8), sigma_t=2))
    confidence = np.ones((3, 4, 5))
    confidence[1, 2, 3] = -1
    with pytest.raises(ValueError, match=r"^confidence: .*frame 1, row 2, column 3"):
        solver.solve(np.ones((3, 4, 5)), confidence)
    with pytest.raises(ValueError, match=r"^target: expected shape \(3, 4, 5\)"):
        solver.solve(np.ones((4, 5)))


def test_features_have_no_image_to_smooth_by() -> None:
    solver = BilateralSolver(BilateralGrid.from_features(np.zeros((4, 5, 3)), 1, 4))
    with pytest.raises(ValueError, match=r"^smooth: .*features"):
        solver.solve(np.ones((4, 5)), smooth=(4, 4))
