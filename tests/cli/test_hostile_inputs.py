"""Unusual file names, paths that cannot be used, and broken files."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io
from support import bombs, files
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.peak_memory import peak_memory

ODD = (
    "a b.png",
    "line\nbreak.png",
    "-dash.png",
    "ünï©ode 深.png",
    "*.png",
    "[x].png",
    "a'b\"c.png",
)


@pytest.mark.parametrize("name", ODD)
def test_unusual_file_names(name: str, here: Path, call: Main) -> None:
    (here / "depth.png").rename(here / name)
    works(call("depth", "-o", f"out {name}.tif", "--invalid", 0, "--", name, "photo.png"))
    assert io.read(here / f"out {name}.tif").shape == (48, 64)
    works(call("depth", f"./{name}", "photo.png", "-o", "new/", "--invalid", 0))
    missing = call("depth", "-o", "x.png", "--", name.replace(".png", ".jpg"), "photo.png")
    fails(missing, code=2 if set(name) & set("*[") else 1)


def test_names_that_are_no_unicode(here: Path) -> None:
    odd = b"\xff\xfe.png"
    os.rename(b"depth.png", odd)
    done = disk.run(
        "depth", os.fsdecode(odd), "photo.png", "-o", "o.png", "--json", "--invalid", 0, cwd=here
    )
    assert (done.returncode, done.stderr) == (0, b"")
    done = disk.run("depth", os.fsdecode(odd), "none.png", "-o", "p.png", cwd=here)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_paths_that_cannot_be_used(here: Path, call: Main) -> None:
    (here / "loop").symlink_to("loop")
    (here / "loop.png").symlink_to("loop.png")
    (here / "tree").mkdir()
    (here / "tree" / "up").symlink_to("..")
    io.write(here / "tree" / "depth.png", disk.scene().depth)
    (here / "file").touch()
    common = ("photo.png", "-o", "o.png")
    fails(call("depth", "loop.png", *common), "loop.png")
    fails(call("depth", "depth.png", "photo.png", "-o", "loop.png"), "loop.png")
    fails(call("depth", "depth.png", "photo.png", "-o", "loop/o.png"), "loop")
    fails(call("depth", "depth.png", "photo.png", "-o", "file/o.png"), "file")
    fails(call("depth", "/dev/zero", *common), "no regular file")
    fails(call("depth", "depth.png", "photo.png", "-o", "x" * 300 + ".png"), "too long")
    fails(call("depth", "tree", "photo.png", "-o", "file"), "file")
    assert [path.name for path in here.iterdir() if "o.png" in path.name] == ["photo.png"]
    works(call("depth", "tree/**/*.png", "photo.png", "-o", "out", "--invalid", 0))
    assert [path.name for path in (here / "out").iterdir()] == ["depth.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_forbidden_paths(here: Path, call: Main) -> None:
    (here / "depth.png").chmod(0)
    fails(call("depth", "depth.png", "photo.png", "-o", "o.png"), "Permission denied")
    (here / "locked").mkdir(mode=0o500)
    outcome = call("depth", "truth.png", "photo.png", "-o", "locked/o.png")
    fails(outcome, "locked/o.png: cannot be written: Permission denied")


def test_errors_name_the_file_that_they_come_from(here: Path, call: Main) -> None:
    photo = disk.scene().photo
    bad = {
        "channels.npy": np.zeros((48, 64, 7), np.uint8),
        "negative.npy": np.full((48, 64), -1, np.float32),
        "nan.npy": np.full((48, 64, 3), np.nan, np.float32),
    }
    for name, array in bad.items():
        io.write(here / name, array)
    io.write(here / "small.png", disk.scene().depth[:9, :9])
    io.write(here / "gray.png", photo[..., 0])
    stereo = ("--max-disparity", 4)
    lens = ("--focus", 2, "--aperture", 3)
    for name, *arguments in (
        ("channels.npy", "depth", "depth.png", "channels.npy"),
        ("nan.npy", "depth", "depth.png", "nan.npy"),
        ("negative.npy", "depth", "depth.png", "photo.png", "--confidence", "negative.npy"),
        ("small.png", "depth", "depth.png", "photo.png", "--mask", "small.png"),
        ("small.png", "depth", "depth.png", "photo.png", "--truth", "small.png"),
        ("channels.npy", "superres", "small.png", "channels.npy"),
        ("nan.npy", "solve", "nan.npy", "depth.png"),
        ("nan.npy", "stereo", "photo.png", "nan.npy", *stereo),
        ("negative.npy", "defocus", "photo.png", "negative.npy", *lens),
        ("channels.npy", "colorize", "gray.png", "channels.npy"),
        ("channels.npy", "segment", "gray.png", "channels.npy"),
    ):
        line = fails(call(*arguments, "-o", "o.tif"))
        assert line.startswith(f"bilateral: {name}: "), line


def test_bombs_among_the_inputs(here: Path, call: Main) -> None:
    common = ("-o", "o.png", "--limit", bombs.LIMIT // 1_000_000)
    palette = bombs.png_chunk(b"PLTE", bytes(6))
    header = bombs.png_header
    made = {
        "two headers.png": bombs.png(header(8, 8, 0), header(60_000, 8, 0)),
        "palette.png": bombs.png(header(60_000, 8, 3), more=palette),
    }
    for name, data in made.items():
        (here / name).write_bytes(data)
        for arguments in (
            ("depth", name, "photo.png"),
            ("depth", "depth.png", name),
            ("depth", "depth.png", "photo.png", "--confidence", name),
            ("depth", "depth.png", "photo.png", "--mask", name),
            ("depth", "depth.png", "photo.png", "--truth", name),
            ("segment", name, "photo.png"),
            ("segment", "depth.png", "photo.png", "--ignore", name),
            ("stereo", "photo.png", name, "--max-disparity", 4),
            ("colorize", "photo.png", name),
            ("colorize", "photo.png", "photo.png", "--mask", name),
        ):
            with peak_memory() as peak:
                line = fails(call(*arguments, *common))
            assert line.startswith(f"bilateral: {name}: "), line
            assert peak.growth < bombs.LIMIT


def test_files_with_broken_content(here: Path, call: Main) -> None:
    whole = (here / "depth.png").read_bytes()
    bad = {
        "empty.png": b"",
        "cut.png": whole[: len(whole) // 2],
        "text.png": b"<html>not found</html>",
        "renamed.tif": whole,
        "bomb.png": files.bomb(100_000, 100_000),
        "pickle.npy": b"\x80\x04\x95",
    }
    for name, data in bad.items():
        (here / name).write_bytes(data)
        fails(call("depth", name, "photo.png", "-o", "o.png"), name)
        fails(call("depth", "depth.png", name, "-o", "o.png"), name)
        assert not (here / "o.png").exists()
    outcome = call("depth", "bomb.png", "photo.png", "-o", "o.png", "--limit", 1)
    fails(outcome, "--limit", "more than the 1 MB allowed")
