"""Choose the frames of depth cameras to measure on: real ones, or made ones without data."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.camera import spoil
from benchmarks.common import Array, made
from benchmarks.common.cells import Setting
from benchmarks.common.rgbd import Frame, Scenes, Video

SHAPE, QUICK_SHAPE = (480, 640), (96, 128)
FRAMES, STANDING_FRAMES, PAN = 5, 10, 6  # of made and standing videos, and their pixels per frame
NEAR = 20.0  # depth times disparity of the made scenes
TRUTHS, RENDERED = ("matterport_fireplace", "phone_tof_toy"), "tartanair_hospital"
RECORDED = ("tum_fr1_desk", "phone_lidar_doorhandle")
STANDING = "standing scene"


class CameraScenes(NamedTuple):
    maps: list[Frame]  # dense maps of cameras, to be left as they are
    truths: list[Frame]  # maps with a separate truth
    recorded: list[Video]  # videos of cameras
    rendered: Video  # a moving camera in front of a known scene
    missing: list[str]

    @property
    def spoiled(self) -> list[Frame]:
        """Spoil the first and the last frame of the rendered video in three ways."""
        last = len(self.rendered.depths) - 1
        return [
            frames.frame(index)._replace(name=f"{frames.name}, {which}, {how}")
            for how, frames in (
                ("spoiled", spoiled_video(self.rendered)),
                ("scattered", spoiled_video(self.rendered, spoil.scatter)),
                ("ragged", spoiled_video(self.rendered, spoil.ragged)),
            )
            for index, which in ((0, "first"), (last, "last"))
        ]


def choose(setting: Setting) -> CameraScenes:
    """Read the folder ``rgbd``; make the scenes for a quick run, and those that are missing."""
    folder = setting.data.folder("rgbd")
    if setting.quick or folder is None:
        return make(QUICK_SHAPE if setting.quick else SHAPE)
    scenes = Scenes(folder)
    maps = list(scenes.frames())
    truths = [frame for frame in maps if frame.name in TRUTHS]
    recorded = [video for video in map(scenes.video, RECORDED) if video is not None]
    rendered = scenes.video(RENDERED)
    missing = list(scenes.missing.values())
    if maps and truths and recorded and rendered is not None:
        return CameraScenes(maps, truths, recorded, rendered, missing)
    made = make(SHAPE)
    return CameraScenes(
        maps or made.maps,
        truths or made.truths,
        recorded or made.recorded,
        rendered or made.rendered,
        missing,
    )


def make(shape: tuple[int, int]) -> CameraScenes:
    """Make boxes and leaves, spoiled ones with their truth, and videos of a moving camera."""
    scenes = {make.__name__: make(0, shape) for make in (made.boxes, made.small)}
    frames = [
        Frame(name, scene.photo, (NEAR / scene.truth).astype(np.float32))
        for name, scene in scenes.items()
    ]
    spoiled = [
        frame._replace(
            name=f"{frame.name}, spoiled", depth=spoil.spoil(frame.depth).depth, truth=frame.depth
        )
        for frame in frames
    ]
    video = panned(shape)
    return CameraScenes(frames, spoiled, [spoiled_video(video)], video, [])


def panned(shape: tuple[int, int]) -> Video:
    """Move a camera sideways along a made scene."""
    wide = made.boxes(1, (shape[0], shape[1] + PAN * FRAMES))
    truth = (NEAR / wide.truth).astype(np.float32)
    windows = [np.s_[:, PAN * t : PAN * t + shape[1]] for t in range(FRAMES)]
    photos = np.stack([wide.photo[window] for window in windows])
    depths = np.stack([truth[window] for window in windows])
    return Video("panned", photos, depths, depths)


def spoiled_video(video: Video, how: Callable[[Array, int], spoil.Spoiled] = spoil.spoil) -> Video:
    """Spoil every frame of a video with a truth, each with its own seed."""
    assert video.truth is not None
    depths = [how(truth, seed).depth for seed, truth in enumerate(video.truth)]
    return video._replace(depths=np.stack(depths))


def standing(video: Video) -> Video:
    """Repeat the first frame of a video with a truth; only the noise is fresh in each frame."""
    assert video.truth is not None
    count = STANDING_FRAMES
    depths = [spoil.spoil(video.truth[0], noise_seed=t).depth for t in range(count)]
    return Video(
        STANDING,
        np.repeat(video.photos[:1], count, axis=0),
        np.stack(depths),
        np.repeat(video.truth[:1], count, axis=0),
    )


class Pasted(NamedTuple):
    video: Video
    swept: Array  # (T, H, W) mask: the box is or was there, in this frame or an earlier one


def moving_box(video: Video) -> Pasted:
    """Move a textured box across the first frame of a video with a truth."""
    assert video.truth is not None
    height, width = video.truth.shape[1:]
    box_height, box_width, step = height // 4, width // 6, max(1, width // 80)
    top, left = height // 3, width // 4
    texture = np.random.default_rng(0).integers(60, 200, (box_height // 4 + 1, box_width // 4 + 1))
    texture = texture.repeat(4, axis=0).repeat(4, axis=1)[:box_height, :box_width, np.newaxis]
    photos = np.repeat(video.photos[:1], STANDING_FRAMES, axis=0)
    truth = np.repeat(video.truth[:1], STANDING_FRAMES, axis=0)
    swept = np.zeros(truth.shape, bool)
    for t in range(STANDING_FRAMES):
        at = np.s_[top : top + box_height, left + t * step : left + t * step + box_width]
        photos[t][at] = texture
        truth[t][at] = 0.6 * video.truth[0][at].min()
        swept[t:, *at] = True
    depths = [spoil.spoil(z, noise_seed=t).depth for t, z in enumerate(truth)]
    return Pasted(Video("moving box", photos, np.stack(depths), truth), swept)
