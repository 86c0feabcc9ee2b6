"""Video files: pixels of lossless ones are exact, results are complete or absent."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("av", reason="video files need PyAV")

from bilateral.io.errors import FileError
from bilateral.io.video.reader import VideoReader
from bilateral.io.video.writer import VideoWriter
from support import videos
from support.videos import Array

SIDES = st.integers(2, 40)


@given(data=st.data(), height=SIDES, width=SIDES, count=st.integers(1, 5))
@pytest.mark.parametrize("kind", ["depth", "gray", "colour"])
def test_matroska_is_exact(
    kind: str, data: st.DataObject, height: int, width: int, count: int, tmp_path: Path
) -> None:
    shape = (count, height, width, *((3,) if kind == "colour" else ()))
    frames = data.draw(hnp.arrays(np.uint16 if kind == "depth" else np.uint8, shape))
    path = tmp_path / "video.mkv"
    path.unlink(missing_ok=True)
    videos.write(path, frames, Fraction(30000, 1001))
    stored = videos.read(path)
    np.testing.assert_array_equal(stored, frames)
    assert stored.dtype == frames.dtype
    reader = VideoReader(path, videos.LIMIT)
    reader.close()
    assert reader.lossless
    assert reader.shape == (height, width)
    assert reader.length == count
    assert reader.rate is not None
    assert abs(reader.rate - Fraction(30000, 1001)) < Fraction(1, 100)


@pytest.mark.parametrize("shape", [(48, 64), (47, 63)])
def test_other_files_have_small_losses(shape: tuple[int, int], tmp_path: Path) -> None:
    y, x = np.mgrid[: shape[0], : shape[1]]
    frames = np.stack([np.stack([3 * x, 4 * y, 100 + x + t], 2) for t in range(6)])
    frames = frames.astype(np.uint8)
    videos.write(tmp_path / "v.mp4", frames)
    stored = videos.read(tmp_path / "v.mp4")
    assert stored.shape == frames.shape
    assert np.abs(stored.astype(int) - frames).mean() < 3
    reader = VideoReader(tmp_path / "v.mp4", videos.LIMIT)
    reader.close()
    assert (reader.length, reader.rate, reader.lossless) == (6, 25, False)


def test_a_video_is_complete_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "v.mkv"
    frame = np.zeros((8, 8), np.uint16)

    def interrupted() -> Iterator[Array]:
        yield frame
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        videos.write(path, interrupted())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError, match="differ in size"):
        videos.write(path, [frame, frame[:4]])
    with pytest.raises(FileError, match="no frame"), VideoWriter(path, Fraction(25)):
        pass
    assert list(tmp_path.iterdir()) == []
    videos.write(path, [frame])
    before = path.read_bytes()
    with pytest.raises(FileError, match="exists already"):
        videos.write(path, [frame, frame])
    assert path.read_bytes() == before
    with VideoWriter(path, Fraction(25), overwrite=True) as video:
        video.write(frame + 7)
    assert (videos.read(path) == 7).all()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["v.mkv", "v.mp4"])
def test_the_same_video_twice(name: str, tmp_path: Path) -> None:
    """The same frames give the same bytes, by which a repeated job recognizes its result."""
    frames = np.random.default_rng(0).integers(0, 256, (5, 32, 48, 3), dtype=np.uint8)
    videos.write(tmp_path / name, frames)
    before = (tmp_path / name).read_bytes()
    with VideoWriter(tmp_path / name, Fraction(25), accept_same=True) as video:
        for frame in frames:
            video.write(frame)
    with (
        pytest.raises(FileError, match="exists already"),
        VideoWriter(tmp_path / name, Fraction(25), accept_same=True) as video,
    ):
        video.write(frames[0])
    assert (tmp_path / name).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint16])
def test_pixels_that_a_video_cannot_hold(dtype: type, tmp_path: Path) -> None:
    name = "v.mp4" if dtype is np.uint16 else "v.mkv"
    with pytest.raises(FileError, match=r"v\.mk?[pv]4?: (a video holds|16-bit maps need)"):
        videos.write(tmp_path / name, [np.zeros((8, 8), dtype)])
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_videos(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.mp4: cannot be read"):
        VideoReader(tmp_path / "none.mp4", videos.LIMIT)
    (tmp_path / "text.mp4").write_bytes(b"no video" * 99)
    with pytest.raises(FileError, match=r"text\.mp4: is damaged or no video file"):
        VideoReader(tmp_path / "text.mp4", videos.LIMIT)
    videos.write(tmp_path / "whole.mp4", [np.zeros((64, 64), np.uint8)] * 4)
    whole = (tmp_path / "whole.mp4").read_bytes()
    for length in (len(whole) // 4, len(whole) * 4 // 5):
        (tmp_path / "cut.mp4").write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"cut\.mp4: is damaged or no video file"):
            VideoReader(tmp_path / "cut.mp4", videos.LIMIT)
    videos.write(tmp_path / "v.mkv", [np.zeros((64, 64), np.uint16)])
    with pytest.raises(FileError, match="raise --limit"):
        VideoReader(tmp_path / "v.mkv", 1000)
