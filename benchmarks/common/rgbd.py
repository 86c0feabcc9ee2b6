"""Read frames of depth cameras: photographs with depth in metres, one folder per scene.

The folders and files are those that `VIDEOS` and `STILLS` name. Depth 0 is unknown
in every map; a truth is NaN where it is unknown.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from PIL import Image
from skimage.io import imread

from benchmarks.common import Array
from benchmarks.common.photos import nearest, rgb

T = TypeVar("T")


class Frame(NamedTuple):
    name: str
    photo: Array  # (H, W, 3) uint8
    depth: Array  # (H, W) float32
    truth: Array | None = None


class Video(NamedTuple):
    name: str
    photos: Array  # (T, H, W, 3) uint8
    depths: Array  # (T, H, W) float32
    truth: Array | None = None

    def frame(self, index: int) -> Frame:
        truth = None if self.truth is None else self.truth[index]
        return Frame(f"{self.name} {index}", self.photos[index], self.depths[index], truth)


def photograph(file: Path) -> Array:
    return np.asarray(rgb(imread(file)))


def png_depth(file: Path, unit: float) -> Array:
    """Read a 16-bit map; `unit` is the number of its steps in a metre."""
    return np.asarray(imread(file).astype(np.float32) / np.float32(unit))


def npz_depth(file: Path) -> Array:
    with np.load(file) as arrays:
        return np.asarray(arrays["depth"], np.float32)


def reduced(photo: Array, shape: tuple[int, ...]) -> Array:
    """Average a photograph to the smaller size of its map."""
    height, width = shape
    return np.asarray(Image.fromarray(photo).resize((width, height), Image.Resampling.BOX))


class Still(NamedTuple):
    """The files of one photograph with its map, which may have a lower resolution."""

    folder: str
    photo: str
    depth: str
    unit: float  # steps of the maps in a metre
    truth: str | None = None

    def read(self, name: str, root: Path) -> Frame:
        folder = root / self.folder
        photo = photograph(folder / self.photo)
        depth = nearest(png_depth(folder / self.depth, self.unit), photo.shape[:2])
        if self.truth is None:
            return Frame(name, photo, depth)
        truth = png_depth(folder / self.truth, self.unit)
        return Frame(name, photo, depth, np.where(truth > 0, truth, np.float32(np.nan)))


def tum(folder: Path) -> Video:
    """Read the pairs of photographs and maps that `associate.txt` lists."""
    rows = [line.split() for line in (folder / "associate.txt").read_text().splitlines()]
    rows = [row for row in rows if row and row[0] != "#"]
    photos = np.stack([photograph(folder / row[1]) for row in rows])
    return Video(folder.name, photos, np.stack([png_depth(folder / row[3], 5000) for row in rows]))


def lidar(folder: Path) -> Video:
    """Read a phone's frames, at the resolution of its depth."""
    with np.load(folder / "depth.npz") as arrays:
        depths, numbers = arrays["depth"].astype(np.float32), arrays["frame"]
    files = [folder / "rgb" / f"{number}.jpg" for number in numbers]
    photos = np.stack([reduced(photograph(file), depths.shape[1:]) for file in files])
    return Video(folder.name, photos, depths)


def rendered(folder: Path) -> Video:
    """Read a rendered sequence, whose depth is its own truth."""
    files = sorted((folder / "depth").glob("*.npz"))
    if not files:
        raise FileNotFoundError(f"*.npz in {folder / 'depth'}")
    truth = np.stack([npz_depth(file) for file in files])
    photos = np.stack([photograph(folder / "rgb" / f"{file.stem}.png") for file in files])
    return Video(folder.name, photos, truth, truth)


VIDEOS: dict[str, Callable[[Path], Video]] = {
    "tum_fr1_desk": tum,
    "phone_lidar_doorhandle": lidar,
    "tartanair_hospital": rendered,
}


STILLS = {
    "nyu_basement_00000": Still("nyu_basement", "rgb_00000.jpg", "rawdepth_00000.png", 1000),
    "nyu_basement_00050": Still("nyu_basement", "rgb_00050.jpg", "rawdepth_00050.png", 1000),
    "nyu_bikeroom": Still("nyu_bikeroom", "rgb.png", "gt_depth.png", 1000),
    "matterport_fireplace": Still(
        "matterport_fireplace", "rgb.jpg", "raw_depth.png", 4000, "gt_depth.png"
    ),
    "phone_tof_toy": Still("phone_tof_toy", "rgb.jpg", "prior_depth.png", 1000, "gt_depth.png"),
    "sensor_shelf": Still("sensor_shelf", "rgb.jpg", "raw_depth.png", 1000),
    "sensor_glasses": Still("sensor_glasses", "rgb.jpg", "raw_depth.png", 1000),
    "mono_scannet_hotel": Still("mono_scannet_hotel", "rgb.jpg", "gt_depth.png", 1000),
}
NETWORK = "mono_network"
MAPS = (*VIDEOS, *STILLS, NETWORK)  # every dense map


class Scenes:
    """The scenes below a folder; `missing` tells why some of them could not be read."""

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self.missing: dict[str, str] = {}

    def frame(self, name: str) -> Frame | None:
        """Read one of `MAPS`: a still, or the first frame of a video."""
        if name in STILLS:
            return self._read(name, partial(STILLS[name].read, name))
        if name == NETWORK:
            return self._read(name, network)
        video = self.video(name)
        return None if video is None else video.frame(0)._replace(name=name)

    def video(self, name: str) -> Video | None:
        return self._read(name, lambda root: VIDEOS[name](root / name))

    def frames(self) -> Iterator[Frame]:
        """Yield every dense map that is there."""
        frames = map(self.frame, MAPS)
        yield from (frame for frame in frames if frame is not None)

    def _read(self, name: str, reader: Callable[[Path], T]) -> T | None:
        if self.root is None:
            self.missing[name] = f"{name}: no folder rgbd below --data."
            return None
        try:
            return reader(self.root)
        except FileNotFoundError as error:
            self.missing[name] = f"{name}: no {error.filename or error}."
            return None


def network(root: Path) -> Frame:
    """Read the output of a monocular network, which has no unit."""
    folder = root / "mono_scannet_hotel"
    photo = photograph(folder / "rgb.jpg")
    return Frame(NETWORK, photo, npz_depth(folder / "mono_depth.npz"))
