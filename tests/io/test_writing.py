"""Writing: a file is complete or absent; an array that a format cannot hold is an error."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("tifffile", reason="TIFF files need tifffile")
pytest.importorskip("OpenEXR", reason="EXR files need OpenEXR")


from bilateral import io
from bilateral.io import atomic, formats
from support import files


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("x.png", np.zeros((4, 4), np.float32), "PNG holds uint8 and uint16.*got float32, 4 x 4"),
        ("x.png", np.zeros((4, 4, 7), np.uint8), "got uint8, 4 x 4 x 7"),
        ("x.jpg", np.zeros((4, 4), np.uint16), "JPEG holds uint8"),
        ("x.pfm", np.zeros((4, 4)), "PFM holds float32"),
        ("x.exr", np.zeros((4, 4)), "EXR holds float16"),
        ("x.tif", np.zeros((4, 4), bool), "TIFF holds"),
        ("x.npy", np.zeros((4, 4), complex), "real numbers"),
        ("x.gif", np.zeros((4, 4), np.uint8), "ends with one of"),
    ],
)
def test_an_array_that_a_format_cannot_hold_is_an_error(
    name: str, array: files.Array, message: str, tmp_path: Path
) -> None:
    with pytest.raises(io.FileError, match=message):
        io.write(tmp_path / name, array)
    assert not list(tmp_path.iterdir())


def test_writes_are_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.npy"
    io.write(file, np.zeros(3))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(io.FileError, match=r"x\.npy: cannot be written: No space left"):
        io.write(file, np.ones(3))
    assert io.read(file).tolist() == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        io.write(file, np.ones(3))
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_existing_files_are_kept_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    io.write(file, np.zeros(3), overwrite=False)
    with pytest.raises(io.FileError, match=r"exists already.*--force"):
        io.write(file, np.ones(3), overwrite=False)
    assert io.read(file).tolist() == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 1


def test_only_one_of_several_writers_without_overwrite_succeeds(tmp_path: Path) -> None:
    outcomes = []

    def attempt(number: int) -> None:
        try:
            io.write(tmp_path / "x.npy", np.full(1000, number), overwrite=False)
            outcomes.append(number)
        except io.FileError:
            pass

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1
    assert (io.read(tmp_path / "x.npy") == outcomes[0]).all()


def test_links_are_followed_and_devices_written_to(tmp_path: Path) -> None:
    (tmp_path / "link.npy").symlink_to("real.npy")
    io.write(tmp_path / "link.npy", np.zeros(3))
    assert (tmp_path / "link.npy").is_symlink()
    assert io.read(tmp_path / "real.npy").shape == (3,)
    atomic.write_bytes("/dev/null", b"gone")
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    (tmp_path / "folder.npy").mkdir()
    for name in ("loop.npy", "folder.npy", "none/x.npy", "real.npy/x.npy", "a\0b.npy"):
        with pytest.raises(io.FileError):
            io.write(tmp_path / name, np.zeros(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "folder.npy", "link.npy", "loop.npy", "real.npy",
    ]  # fmt: skip


def test_temporary_files_are_no_inputs(tmp_path: Path) -> None:
    name = f"{atomic.PREFIX}0123{atomic.SUFFIX}"
    assert name.startswith(".")
    assert formats.by_suffix(name) is None


def test_nothing_is_written_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / f"{atomic.PREFIX}half{atomic.SUFFIX}"
    half.touch()
    monkeypatch.setattr(atomic, "_unfinished", {str(half)})
    monkeypatch.setattr(atomic, "_closed", False)
    atomic.abandon()
    with pytest.raises(io.FileError, match="interrupted"):
        io.write(tmp_path / "x.npy", np.zeros(3))
    assert not list(tmp_path.iterdir())
