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


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o604, 0o400, 0o777])
def test_a_replaced_file_keeps_its_permissions(
    permissions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "x.npy", tmp_path / "link.npy"
    io.write(file, np.zeros(3))
    link.symlink_to("x.npy")
    file.chmod(permissions)
    seen = []
    sync = os.fsync

    def spy(handle: int) -> None:
        seen.append(os.fstat(handle).st_mode & 0o777)
        sync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    for path in (file, link):
        io.write(path, np.ones(3))
        assert file.stat().st_mode & 0o777 == permissions
    assert seen == [permissions] * 2  # also before the rename
    assert link.is_symlink()


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    for mask in (0o022, 0o077, 0o000):
        before = os.umask(mask)
        try:
            io.write(tmp_path / f"{mask}.npy", np.zeros(3))
        finally:
            os.umask(before)
        assert (tmp_path / f"{mask}.npy").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_group_that_cannot_be_kept_gains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_: object) -> None:
        raise PermissionError

    real = os.fstat
    monkeypatch.setattr(os, "fchown", forbid)
    monkeypatch.setattr(
        os, "fstat", lambda handle: os.stat_result((*real(handle)[:5], 12345, *real(handle)[6:]))
    )
    for before, after in ((0o660, 0o600), (0o644, 0o644), (0o675, 0o655)):
        path = tmp_path / f"{before}.npy"
        path.touch()
        path.chmod(before)
        atomic.write_bytes(path, b"new")
        assert path.stat().st_mode & 0o777 == after


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
