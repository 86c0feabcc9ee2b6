"""The commands on videos: the results of the library, and messages about wrong videos."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("av", reason="video files need PyAV")

import bilateral
from bilateral import color, io, tasks
from bilateral.cli.display.progress import BatchProgress
from support import videos
from support.command import Main, fails, works
from support.scenes_on_disk import records

Array = NDArray[Any]
COUNT = 7


@pytest.fixture
def clips(here: Path) -> tuple[Array, Array]:
    """Write depth.mkv and photo.mkv; return their frames."""
    depth, photos = videos.depth_and_photos(COUNT)
    videos.write(here / "depth.mkv", depth)
    videos.write(here / "photo.mkv", photos)
    return depth, photos


def write_frames(folder: Path, frames: Array) -> None:
    folder.mkdir()
    for number, frame in enumerate(frames, 8):  # 8, 9, 10: in the order of numbers
        io.write(folder / f"frame{number}.png", frame)


def refined(depth: Array, photos: Array) -> Array:
    stream = tasks.DepthStream(invalid=0)
    return np.stack([stream.push(*frame) for frame in zip(depth, photos, strict=True)])


def test_depth(here: Path, call: Main, clips: tuple[Array, Array]) -> None:
    code, out, err = call(
        "depth", "depth.mkv", "photo.mkv", "-o", "o.mkv", "--invalid", 0, "--json"
    )
    assert (code, err) == (0, "")
    [record] = records(out)
    assert (record["status"], record["shape"], record["dtype"]) == ("done", [7, 48, 64], "uint16")
    expected = refined(*clips)
    np.testing.assert_array_equal(videos.read(here / "o.mkv"), expected)
    # Frames in folders are the same video, whatever is in files and what in folders.
    write_frames(here / "depths", clips[0])
    write_frames(here / "photos", clips[1])
    works(call("depth", "depths", "photos", "-o", "p.mkv", "--invalid", 0))
    works(call("depth", "depths", "photo.mkv", "-o", "mixed", "--invalid", 0))
    works(call("depth", "depth.mkv", "photos", "-o", "counted/", "--invalid", 0))
    works(call("depth", "depths", "photos", "-o", "each", "--invalid", 0, "--video"))
    np.testing.assert_array_equal(videos.read(here / "p.mkv"), expected)
    for number, frame in enumerate(expected):
        for path in (f"mixed/frame{number + 8}.png", f"each/frame{number + 8}.png",
                     f"counted/{number + 1:06}.png"):  # fmt: skip
            np.testing.assert_array_equal(io.read(here / path), frame)
    assert sorted(path.name for path in here.glob(".*")) == []


def test_solve(here: Path, call: Main, clips: tuple[Array, Array]) -> None:
    depth, photos = clips
    works(call("solve", "photo.mkv", "depth.mkv", "-o", "o.mkv"))
    expected = [bilateral.solve(p, d) for d, p in zip(depth, photos, strict=True)]
    np.testing.assert_array_equal(videos.read(here / "o.mkv"), np.stack(expected))
    works(call("solve", "photo.mkv", "depth.mkv", "-o", "t.mkv", "--sigma-t", 2))
    whole = bilateral.solve(photos, depth, sigma_t=2)  # one window of 8 frames
    np.testing.assert_array_equal(videos.read(here / "t.mkv"), whole)
    works(call("solve", "photo.mkv", "depth.mkv", "-o", "w.mkv", "--sigma-t", 1))
    windows = videos.read(here / "w.mkv").astype(float)
    exact = bilateral.solve(photos, depth, sigma_t=1).astype(float)
    assert np.abs(windows - exact).mean() < 0.2 * np.abs(exact - depth).mean()
    # One photograph serves all frames.
    works(call("solve", "photo.png", "depth.mkv", "-o", "one.mkv"))
    first = bilateral.solve(io.read(here / "photo.png"), depth[3])
    np.testing.assert_array_equal(videos.read(here / "one.mkv")[3], first)


def stroked(frame: Array, colour: tuple[int, int, int]) -> Array:
    picture = np.dstack([frame] * 3)
    picture[10:13, 5:50] = colour
    picture[35:38, 5:50] = colour
    return picture


@pytest.fixture
def gray_clip(here: Path) -> Array:
    _, photos = videos.depth_and_photos(COUNT)
    gray = np.rint(color.luma(photos[0])).astype(np.uint8)
    frames = np.stack([gray] * COUNT)
    videos.write(here / "gray.mp4", frames)
    decoded = videos.read(here / "gray.mp4")
    return decoded if decoded.ndim == 3 else decoded[..., 0]


def test_colorize(here: Path, call: Main, gray_clip: Array) -> None:
    (here / "strokes").mkdir()
    io.write(here / "strokes" / "0004.png", stroked(gray_clip[3], (180, 90, 90)))
    works(call("colorize", "gray.mp4", "strokes", "-o", "colour.mkv"))
    coloured = videos.read(here / "colour.mkv")
    assert coloured.shape == (COUNT, 48, 64, 3)
    layer = np.zeros((48, 64, 4), np.uint8)
    layer[10:13, 5:50] = layer[35:38, 5:50] = (180, 90, 90, 255)
    frames = videos.read(here / "gray.mp4")
    expected = np.stack(list(tasks.colorize_video(frames, {3: layer})))
    np.testing.assert_array_equal(coloured, expected)
    works(call("colorize", "gray.mp4", "strokes", "-o", "colour.mp4"))
    assert np.abs(videos.read(here / "colour.mp4").astype(int) - expected).mean() < 4
    # The same from frames in a folder, whose names the strokes have.
    write_frames(here / "frames", gray_clip)
    (here / "painted").mkdir()
    io.write(here / "painted" / "frame11.png", stroked(gray_clip[3], (180, 90, 90)))
    works(call("colorize", "frames", "painted", "-o", "out", "--video"))
    names = [f"frame{number}.png" for number in range(8, 8 + COUNT)]
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(names)
    for name, frame in zip(names, expected, strict=True):
        assert np.abs(io.read(here / "out" / name).astype(int) - frame).max() <= 1


def test_strokes_of_other_frames(here: Path, call: Main, gray_clip: Array) -> None:
    run = ("colorize", "gray.mp4", "strokes", "-o", "colour.mkv")
    (here / "strokes").mkdir()
    io.write(here / "strokes" / "0000.png", stroked(gray_clip[0], (180, 90, 90)))
    fails(call(*run), "strokes/0000.png: frames are counted from 1")
    (here / "strokes" / "0000.png").rename(here / "strokes" / "0009.png")
    fails(call(*run), "The video has 7 frames")
    (here / "strokes" / "0009.png").unlink()
    io.write(here / "strokes" / "3.png", np.full((48, 64, 3), (200, 30, 90), np.uint8))
    fails(call(*run), "strokes/3.png: differs from frame 3 in", "shows another frame")
    io.write(here / "strokes" / "3.png", np.zeros((9, 9, 3), np.uint8))
    fails(call(*run), "strokes/3.png: expected the size of the frames, 48 x 64")
    assert not (here / "colour.mkv").exists()
    write_frames(here / "frames", gray_clip)
    outcome = call("colorize", "frames", "strokes", "-o", "out", "--video")
    fails(outcome, "strokes/3.png: no frame in frames has this name", "such as frame8")


def test_videos_that_do_not_fit_together(
    here: Path, call: Main, clips: tuple[Array, Array]
) -> None:
    _, photos = clips
    run = ("depth", "depth.mkv", "other.mkv", "-o", "o.mkv", "--invalid", 0)
    videos.write(here / "other.mkv", photos, Fraction(30))
    fails(call(*run), "other.mkv: has 30 frames per second, depth.mkv has 25", "ffmpeg")
    (here / "other.mkv").unlink()
    videos.write(here / "other.mkv", photos[:3])
    fails(call(*run), "other.mkv: has 3 frames (0.12 s), depth.mkv has 7")
    (here / "other.mkv").unlink()
    videos.write(here / "other.mkv", photos[:6])  # headers may be wrong by one
    fails(call(*run), "other.mkv: has 6 frames, fewer than depth.mkv")
    (here / "other.mkv").unlink()
    videos.write(here / "other.mkv", photos[:, :40])
    fails(call(*run), "depth.mkv: depth: expected")
    fails(call("depth", "photo.mkv", "depth.mkv", "-o", "o.mkv"), "expected frames with one number")
    fails(call("depth", "none.mkv", "photo.mkv", "-o", "o.mkv"), "none.mkv: cannot be read")
    assert not (here / "o.mkv").exists()
    assert not list(here.glob(".*"))
    write_frames(here / "photos", photos[:5])
    fails(call("depth", "depth.mkv", "photos", "-o", "o.mkv"), "photos: has 5 frames")


def test_frames_in_folders_have_the_same_names(
    here: Path, call: Main, clips: tuple[Array, Array]
) -> None:
    write_frames(here / "depths", clips[0])
    write_frames(here / "photos", clips[1])
    (here / "photos" / "frame8.png").rename(here / "photos" / "frame15.png")
    run = ("depth", "depths", "photos", "-o", "o.mkv", "--invalid", 0)
    fails(call(*run), "photos: has no frame named frame8", "--pair sorted")
    works(call(*run, "--pair", "sorted"))
    photos = np.roll(clips[1], -1, axis=0)
    np.testing.assert_array_equal(videos.read(here / "o.mkv"), refined(clips[0], photos))
    fails(call(*run, "--pair", "nearest"), "--pair: expected name or sorted", code=2)


def test_wrong_usage(here: Path, call: Main, clips: tuple[Array, Array]) -> None:
    run = ("depth", "depth.mkv", "photo.mkv", "-o")
    fails(call(*run, "o.mp4"), "expected .mkv for 16-bit maps, or a folder", code=2)
    fails(call(*run, "o.png"), "expected a video (.mkv) or a folder", code=2)
    write_frames(here / "frames", clips[0])
    fails(call("depth", "frames", "frames", "-o", "o.mp4"), "expected .mkv for 16-bit", code=2)
    fails(call("depth", "depth.png", "photo.png", "-o", "o.mkv"), "--output", ".png", code=2)
    fails(call(*run, "-"), "cannot be written to stdout", code=2)
    for option in (("--preview",), ("--report", "r.html"), ("--truth", "truth.png")):
        fails(call(*run, "o.mkv", *option), f"{option[0]}: videos have none", code=2)
    fails(call(*run, "o.mkv", "--preset", "sparse"), "a video takes no --preset")
    (here / "o.mkv").write_bytes(b"mine")
    fails(call(*run, "o.mkv"), "o.mkv: exists already")
    assert (here / "o.mkv").read_bytes() == b"mine"
    code, out, _ = call(*run, "o.mkv", "--skip-existing", "--json")
    assert (code, records(out)[0]["status"]) == (0, "skipped")


def test_losses_are_mentioned(here: Path, call: Main, clips: tuple[Array, Array]) -> None:
    videos.write(here / "lossy.mp4", (clips[0] // 40).clip(0, 255).astype(np.uint8))
    code, _, err = call("depth", "lossy.mp4", "photo.mkv", "-o", "o.mkv", "--invalid", 0)
    assert code == 0
    assert "lossy.mp4 is compressed with losses" in err


def test_many_videos(here: Path, call: Main, clips: tuple[Array, Array]) -> None:
    for folder, frames in zip(("depths", "photos"), clips, strict=True):
        (here / folder).mkdir()
        for name in ("a", "b", "c"):
            videos.write(here / folder / f"{name}.mkv", frames)
    (here / "photos" / "b.mkv").write_bytes(b"nothing")
    run = ("depth", "depths", "photos", "-o", "out", "--invalid", 0, "--manifest", "m.jsonl")
    fails(call(*run, "--jobs", 2), "photos/b.mkv: is damaged or no video file")
    assert sorted(path.name for path in (here / "out").iterdir()) == ["a.mkv", "c.mkv"]
    np.testing.assert_array_equal(videos.read(here / "out" / "c.mkv"), refined(*clips))
    lines = [json.loads(line) for line in (here / "m.jsonl").read_text().splitlines()]
    assert {line["file"]: line["status"] for line in lines} == {
        "depths/a.mkv": "done", "depths/b.mkv": "failed", "depths/c.mkv": "done",
    }  # fmt: skip
    works(call("depth", "depths/*.mkv", "photos/*.mkv", "-o", "part", "--shard", "1/3",
               "--invalid", 0))  # fmt: skip
    assert [path.name for path in (here / "part").iterdir()] == ["a.mkv"]


def test_progress_counts_frames(capsys: pytest.CaptureFixture[str]) -> None:
    now = iter(range(0, 1000, 4))
    with BatchProgress(5, True, False, clock=lambda: next(now), noun="frames") as progress:
        for _ in range(5):
            progress.count()
    assert "of 5 frames" in capsys.readouterr().err
    with BatchProgress(None, True, False, clock=lambda: next(now), noun="frames") as progress:
        for _ in range(5):
            progress.count()
    assert " frames, " in capsys.readouterr().err
