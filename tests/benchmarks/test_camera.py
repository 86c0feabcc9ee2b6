"""Test the readers, spoilers and measures of depth cameras' frames on made data."""

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from PIL import Image

from benchmarks.camera import metrics, realsense, scenes, speed, spoil, videos
from benchmarks.camera.methods import REALSENSE
from benchmarks.camera.pictures import Gallery
from benchmarks.common import made, rgbd
from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.common.rgbd import Scenes

PHOTO, DISPARITY = made.boxes(0, (60, 80))
TRUTH = (20 / DISPARITY).astype(np.float32)


def save(file: Path, pixels: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a still, and a video of each kind."""
    folder = tmp_path / "rgbd"
    units = np.rint(4000 * TRUTH).astype(np.uint16)
    for name, pixels in {"rgb.jpg": PHOTO, "raw_depth.png": units, "gt_depth.png": units}.items():
        save(folder / "matterport_fireplace" / name, pixels)
    units[:10] = 0
    save(folder / "matterport_fireplace" / "gt_depth.png", units)
    save(folder / "phone_tof_toy" / "rgb.jpg", PHOTO)
    for name, step in {"prior_depth.png": 2, "gt_depth.png": 1}.items():
        save(folder / "phone_tof_toy" / name, units[::step, ::step])
    desk = folder / "tum_fr1_desk"
    lines = [f"{i} rgb/{i}.png {i}.5 depth/{i}.5.png" for i in range(3)]
    for i in range(3):
        save(desk / "rgb" / f"{i}.png", PHOTO)
        save(desk / "depth" / f"{i}.5.png", np.full((60, 80), 5000 + 500 * i, np.uint16))
    (desk / "associate.txt").write_text("\n".join(["# colour, depth", *lines]))
    phone = folder / "phone_lidar_doorhandle"
    for number in (214, 215):
        save(phone / "rgb" / f"{number}.jpg", PHOTO)
    maps = np.full((2, 30, 40), 0.5, np.float16)
    np.savez(phone / "depth.npz", depth=maps, frame=np.array([214, 215]))
    rendering = folder / "tartanair_hospital"
    save(rendering / "rgb" / "000060.png", PHOTO)
    (rendering / "depth").mkdir()
    np.savez(rendering / "depth" / "000060.npz", depth=TRUTH.astype(np.float16))
    return folder


def test_stills_are_read_in_metres_with_unknown_pixels(root: Path) -> None:
    scenes = Scenes(root)
    room = scenes.frame("matterport_fireplace")
    assert room is not None
    assert room.truth is not None
    assert room.photo.shape == (60, 80, 3)
    np.testing.assert_allclose(room.depth, TRUTH, atol=1 / 4000)
    assert np.isnan(room.truth[:10]).all()
    np.testing.assert_allclose(room.truth[10:], TRUTH[10:], atol=1 / 4000)
    toy = scenes.frame("phone_tof_toy")
    assert toy is not None
    assert toy.depth.shape == (60, 80)  # enlarged to the photograph
    assert (toy.depth[:10] == 0).all()


def test_videos_are_read_in_order_at_the_size_of_their_depth(root: Path) -> None:
    scenes = Scenes(root)
    desk, phone, rendering = map(scenes.video, rgbd.VIDEOS)
    assert desk is not None
    assert phone is not None
    assert rendering is not None
    np.testing.assert_allclose(desk.depths[:, 0, 0], [1, 1.1, 1.2])
    assert phone.photos.shape == (2, 30, 40, 3)
    assert phone.depths.dtype == np.float32
    assert rendering.truth is not None
    np.testing.assert_allclose(rendering.truth[0], TRUTH, rtol=1e-3)
    assert rendering.frame(0).photo.shape == (60, 80, 3)


def test_missing_scenes_are_named_and_left_out(root: Path) -> None:
    scenes = Scenes(root)
    names = [frame.name for frame in scenes.frames()]
    assert names == [*rgbd.VIDEOS, "matterport_fireplace", "phone_tof_toy"]
    assert scenes.missing.keys() == set(rgbd.MAPS) - set(names)
    assert "sensor_shelf/rgb.jpg" in scenes.missing["sensor_shelf"]
    assert list(Scenes(None).frames()) == []


def test_made_scenes_stand_in_for_missing_ones(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "SHAPE", (48, 64))
    setting = Setting(Data(root.parent), False, 1, None, {}, (1,))
    chosen = scenes.choose(setting)
    assert [video.name for video in chosen.recorded] == list(scenes.RECORDED)
    assert chosen.rendered.name == scenes.RENDERED
    for folder in ("tartanair_hospital/depth", "matterport_fireplace", "phone_tof_toy"):
        shutil.rmtree(root / folder)
    chosen = scenes.choose(setting)
    assert chosen.rendered.name == "panned"
    assert [frame.name for frame in chosen.truths] == ["boxes, spoiled", "small, spoiled"]
    assert any("matterport_fireplace" in reason for reason in chosen.missing)


@pytest.mark.parametrize("name", spoil.PHOTOS)
def test_spoiled_photographs_keep_shape_and_dtype(name: str) -> None:
    photo = spoil.PHOTOS[name](PHOTO)
    assert photo.shape == PHOTO.shape
    assert photo.dtype == np.uint8
    assert (photo == PHOTO).all() == (name == spoil.AS_IT_IS)


def test_bright_photographs_clip_and_dark_ones_lose_levels() -> None:
    assert spoil.PHOTOS["twice as bright"](PHOTO).max() == 255
    assert len(np.unique(spoil.PHOTOS["dark"](PHOTO))) <= 52
    np.testing.assert_array_equal(spoil.shifted(PHOTO)[:, 2:], PHOTO[:, :-2])


def test_a_spoiled_map_has_the_cameras_noise_outside_edges_and_holes() -> None:
    truth = np.full((200, 200), 2.0)
    truth[:, 100:] = 4.0
    spoiled = spoil.spoil(truth)
    assert (spoiled.depth[spoiled.holes] == 0).all()
    assert abs(np.argwhere(spoiled.flying)[:, 1] - 99.5).max() <= spoil.REACH / 2
    for z, columns in ((2.0, np.s_[:90]), (4.0, np.s_[110:])):
        values = spoiled.depth[:, columns][~spoiled.holes[:, columns]]
        assert values.std() == pytest.approx(spoil.noise(np.float64(z)), rel=0.05)
    again, fresh = spoil.spoil(truth), spoil.spoil(truth, noise_seed=1)
    np.testing.assert_array_equal(again.depth, spoiled.depth)
    np.testing.assert_array_equal(fresh.holes, spoiled.holes)
    assert (fresh.depth != spoiled.depth)[~spoiled.holes].all()


def test_a_nearer_object_shades_the_wall_at_its_right_side() -> None:
    truth = np.full((1, 60), 4.0)
    truth[:, 20:30] = 1.0
    width = spoil.BASELINE * (1 - 1 / 4)
    hidden = np.flatnonzero(spoil.shadows(truth)[0])
    assert hidden[0] == 30
    assert len(hidden) == pytest.approx(width, abs=2)


def test_harm_counts_moved_pixels_inside_surfaces_only() -> None:
    depth = np.full((40, 40), 2.0, np.float32)
    depth[:, 20:] = 4.0
    depth[5, 5] = 0
    inner = metrics.inside(depth)
    assert not inner[:, 16:24].any()
    assert not inner[1:10, 1:10].any()
    assert inner[20, 10]
    assert metrics.harm(depth, depth) == 0
    refined = np.where(inner, depth, 100)
    assert metrics.harm(depth, refined) == 0
    refined[20, 10] *= 1.06
    refined[21, 10] *= 1.04
    refined[22, 10] = np.nan
    assert metrics.harm(depth, refined) == pytest.approx(100 * 2 / inner.sum())


def test_errors_skip_unknown_truth_and_holes_take_the_nearest_value() -> None:
    truth = np.array([[1.0, np.nan, 4.0]])
    error = metrics.error(np.array([[1.0, 9.0, 2.0]]), truth)
    assert error == (1, pytest.approx(np.sqrt(2)))
    assert error.over(metrics.Error(2, np.sqrt(2))) == (0.5, pytest.approx(1))
    filled = metrics.nearest_filled(np.array([[3.0, 0, 0, 0, 5.0]]))
    assert filled[0].tolist()[::2] == [3, filled[0, 2], 5]
    assert filled[0, 1] == 3
    assert filled[0, 3] == 5


def test_a_scattered_map_has_wrong_pixels_anywhere() -> None:
    truth = np.full((200, 200), 2.0)
    truth[:, 100:] = 4.0
    scattered = spoil.scatter(truth)
    assert (scattered.depth[scattered.holes] == 0).all()
    known = ~scattered.holes
    assert scattered.flying[known].mean() == pytest.approx(spoil.SCATTERED, rel=0.2)
    right = known & ~scattered.flying
    for z in (2.0, 4.0):
        noise = spoil.noise(np.float64(z))
        assert scattered.depth[right & (truth == z)].std() == pytest.approx(noise, rel=0.1)


def test_a_ragged_map_is_wrong_beside_its_edge() -> None:
    truth = np.full((200, 200), 2.0)
    truth[:, 100:] = 4.0
    maps = [spoil.ragged(truth, seed) for seed in range(8)]
    for ragged in maps:
        columns = np.flatnonzero(ragged.flying.any(axis=0))
        assert 93 < columns.min() < 100 <= columns.max() < 107
        np.testing.assert_array_equal(ragged.flying, np.abs(ragged.depth - truth) > 1)
    # as often on the one side as on the other
    left, right = np.hsplit(sum(ragged.flying.astype(int) for ragged in maps), 2)
    assert left.sum() == pytest.approx(right.sum(), rel=0.3)


def test_a_right_pixel_on_a_steep_slope_is_not_flying() -> None:
    slope = np.broadcast_to(np.linspace(1.0, 4.0, 40), (40, 40))
    noisy = slope + 0.5 * spoil.jump(slope) * np.where(np.indices(slope.shape).sum(0) % 2, 1, -1)
    assert metrics.flying(noisy, slope) == 0


def test_flying_pixels_lie_between_two_surfaces() -> None:
    truth = np.full((20, 20), 1.0)
    truth[:, 10:] = 3.0
    assert metrics.flying(truth, truth) == 0
    mixed = truth.copy()
    mixed[4, 10] = mixed[9, 9] = 2.0
    mixed[:, 0] = 2.0  # far from any edge: wrong, but not flying
    assert metrics.flying(mixed, truth) == 100 * 2 / 400


def test_broken_pixels_were_right_and_wrong_ones_may_lie_at_edges() -> None:
    truth = np.full((20, 20), 1.0)
    truth[:, 10:] = 3.0
    truth[0, 0] = np.nan
    depth = truth.copy()
    depth[:2] = 0
    depth[2] = 9  # wrong before
    refined = truth.copy()
    refined[2:4, :2] = 9
    assert metrics.broken(depth, refined, truth) == pytest.approx(100 * 2 / (17 * 20))
    assert metrics.wrong_at_edges(refined, truth) == 0
    refined[5, 9] = refined[6, 12] = 2
    assert metrics.wrong_at_edges(refined, truth) == pytest.approx(100 * 2 / (20 * 6))


def test_flicker_is_the_second_difference_at_steady_pixels() -> None:
    depths = np.ones((4, 2, 3))
    depths[:, 0, 0] = [1, 1.01, 1, 1.01]  # second differences of 0.02
    depths[2, 1, 1] = 2
    depths[1, 1, 2] = 0
    where = metrics.steady(depths)
    assert where.tolist() == [[True, True, True], [True, False, False]]
    assert metrics.flicker(depths, where) == pytest.approx((0.01, 0.005))
    ramp = np.linspace(1, 1.01, 4)[:, np.newaxis, np.newaxis] * np.ones((4, 2, 3))
    assert metrics.flicker(ramp, where).rms == pytest.approx(0, abs=1e-12)


def test_lag_ignores_noise_and_finds_a_late_surface() -> None:
    rng = np.random.default_rng(0)
    truth = np.linspace(1, 1.02, 5)[:, np.newaxis, np.newaxis] * np.ones((5, 64, 64))
    noisy = truth + rng.normal(0, 0.005, truth.shape)
    where = np.ones((64, 64), bool)
    assert metrics.lag(noisy, noisy, where) == 0
    assert metrics.lag(truth, noisy, where) < 0.05
    late = np.concatenate([truth[:1], truth[:-1]])
    assert metrics.lag(late, truth, where) == pytest.approx(0.5, rel=0.03)


def test_made_videos_have_their_truth() -> None:
    made = scenes.make((48, 64))
    video = made.rendered
    assert video.truth is not None
    step = scenes.PAN
    np.testing.assert_array_equal(video.truth[1][:, :-step], video.truth[0][:, step:])
    frames = made.spoiled
    assert len(frames) == 6
    for first, last in (frames[:2], frames[2:4], frames[4:]):  # spoiled, scattered, ragged
        assert first.truth is not None
        np.testing.assert_array_equal(first.truth, video.truth[0])
        assert (first.depth == 0).any() == ("ragged" not in first.name)
        assert "last" in last.name
    assert [frame.truth is None for frame in (*made.maps, *made.truths)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_standing_scene_changes_by_noise_alone() -> None:
    rendered = scenes.panned((48, 64))
    video = scenes.standing(rendered)
    assert video.truth is not None
    assert (video.photos == video.photos[0]).all()
    assert (video.truth == video.truth[0]).all()
    holes = video.depths == 0
    assert (holes == holes[0]).all()
    assert (video.depths[1] != video.depths[0])[~holes[0]].all()


def test_the_swept_zone_is_where_the_box_is_or_was() -> None:
    rendered = scenes.panned((48, 64))
    video, swept = scenes.moving_box(rendered)
    assert video.truth is not None
    assert rendered.truth is not None
    box = video.truth < rendered.truth[0]
    assert (box[0] == swept[0]).all()
    assert (swept == np.logical_or.accumulate(box)).all()
    assert (box[0] != box[-1]).any()
    assert metrics.wrong(video.truth, video.truth, swept) == 0
    assert metrics.wrong(1.06 * video.truth, video.truth, swept) == 100


def test_videos_are_repeated_without_jumps() -> None:
    depths = np.arange(4.0)[:, np.newaxis, np.newaxis] * np.ones((4, 2, 2))
    video = rgbd.Video("made", np.zeros((4, 2, 2, 3), np.uint8), depths)
    frames = itertools.islice(speed.back_and_forth(video), 9)
    assert [depth[0, 0] for depth, _ in frames] == [0, 1, 2, 3, 2, 1, 0, 1, 2]


def test_realsenses_filters_keep_a_plane_and_fill_holes() -> None:
    pytest.importorskip("pyrealsense2", reason="RealSense's filters are those of its library")
    depths = np.full((3, 60, 80), 1.5, np.float32)
    depths[:, 20:24, 30:36] = 0
    np.testing.assert_allclose(realsense.filtered(depths), 1.5, atol=2e-3)


def test_a_missing_realsense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realsense, "find_spec", lambda _: None)
    assert "pip install pyrealsense2" in str(realsense.skipped())
    assert REALSENSE not in videos.methods()


def test_the_worst_crop_is_kept() -> None:
    gallery = Gallery()
    depth = np.ones((300, 300), np.float32)
    frame = rgbd.Frame("made", np.zeros((300, 300, 3), np.uint8), depth, depth)
    refined = depth.copy()
    refined[210:220, 220:230] = 2
    gallery.add_error(frame, spoil.AS_IT_IS, refined)
    (crop,) = gallery.crops["errors"]
    assert crop.badness == pytest.approx(100)
    names = [name for name, _ in crop.pictures]
    assert names == [f"made, {spoil.AS_IT_IS}", "input", "refined", "truth"]
    assert dict(crop.pictures)["refined"].sum() == pytest.approx(128**2 + 100)
