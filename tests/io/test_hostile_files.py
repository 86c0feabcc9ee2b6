"""Broken, foreign and hostile files give an error of one line and do no harm."""

import os
import pickle
import random
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("tifffile", reason="TIFF files need tifffile")
pytest.importorskip("OpenEXR", reason="EXR files need OpenEXR")


from bilateral import io
from bilateral.io.options import Options
from support import files

ONE = io.encode(np.zeros(1), "x.npy")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.abort, ()


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    array = np.array([Evil()], object)
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    np.savez(tmp_path / "x.npz", array)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(Evil()))
    for name in ("x.npy", "x.npz", "pickle.npy"):
        with pytest.raises(io.FileError, match=name):
            io.read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.png", files.bomb(2**31 - 1, 2**31 - 1)),
        ("x.png", files.bomb(40_000, 40_000)),
        ("x.pfm", b"PF\n99999 99999\n-1.0\n" + bytes(100)),
        ("x.npy", ONE.replace(b"(1,),", b"(9**9,),")),
        ("x.npy", ONE.replace(b"(1,), }        ", b"(999999999999,),}")),
        ("x.bmp", b"BM" + bytes(8) + bytes([54, 0, 0, 0, 40, 0, 0, 0]) + b"\xff\xff\xff\x7f" * 2
         + bytes([1, 0, 24, 0]) + bytes(24)),
    ],
)  # fmt: skip
def test_bombs_take_no_memory(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(io.FileError, match=name):
        io.read(tmp_path / name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_bomb_of_zeros_in_an_npz_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.encode(np.zeros((1, 1)), "x.npy").replace(b"(1, 1), }    ", b"(9000, 900),}")
        archive.writestr("data.npy", header[:128] + bytes(9000 * 900 * 8))
    assert io.read(tmp_path / "x.npz").shape == (9000, 900)
    with pytest.raises(io.FileError, match="limit"):
        io.read(tmp_path / "x.npz", limit=10_000_000)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".pfm", ".tif", ".exr", ".npy", ".npz", ".bmp"])
def test_the_limit_can_be_set(suffix: str, tmp_path: Path) -> None:
    dtype = "float32" if suffix in (".pfm", ".exr") else "uint8"
    array = np.zeros((100, 100, 3), dtype)
    io.write(tmp_path / f"x{suffix}", array)
    with pytest.raises(io.FileError, match=r"more than the 1 MB allowed.*--limit"):
        io.read(tmp_path / f"x{suffix}", limit=100)
    assert io.read(tmp_path / f"x{suffix}", limit=4 * array.nbytes).shape == array.shape


def test_empty_foreign_and_renamed_files(tmp_path: Path) -> None:
    valid = {
        suffix: io.encode(np.zeros((4, 4), np.uint8), f"x{suffix}") for suffix in (".png", ".tif")
    }
    cases = {
        "empty.png": (b"", "empty"),
        "text.png": (b"hello\n", "is no PNG file"),
        "text": (b"hello\n", "is no PNG, JPEG,"),
        "movie.dat": (os.urandom(3).join([b"\0", b"\0"]), "is no PNG, JPEG,"),
        "tiff.png": (valid[".tif"], "is a TIFF file by its content; rename it"),
        "png.npy": (valid[".png"], "is a PNG file by its content"),
    }
    for name, (data, message) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(io.FileError, match=f"{name}: .*{message}") as caught:
            io.read(tmp_path / name)
        assert "\n" not in str(caught.value)
    (tmp_path / "no suffix").write_bytes(valid[".png"])
    assert io.read(tmp_path / "no suffix").shape == (4, 4)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    for name in ("loop.png", "folder.png", "pipe.png", "none.png", "a\0b.png", "x" * 300):
        with pytest.raises(io.FileError) as caught:
            io.read(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(io.FileError, match="no regular file"):
        io.read("/dev/zero")
    with pytest.raises(io.FileError, match=r"'.*line\\nbreak.png'"):
        io.read(tmp_path / "line\nbreak.png")


def test_a_damaged_compression_gives_a_short_message() -> None:
    # The type of the tag's number becomes text, and its count large.
    data = bytearray(io.encode(np.zeros((4, 4), np.uint8), "x.tif"))
    entry = data.index(b"\x03\x01\x03\x00")  # tag 259, compression: one uint16
    data[entry + 4 : entry + 8] = (200).to_bytes(4, "little")
    data[entry + 8 : entry + 12] = (8).to_bytes(4, "little")
    data += bytes(1000)
    with pytest.raises(io.FileError) as caught:
        io.decode(bytes(data), Options())
    assert len(str(caught.value)) < 300


SAMPLES = files.samples()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Cut, overwrite or lengthen a file, or insert numbers that are much too large."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        # Most positions lie in the header, which readers trust.
        at = rng.randrange(min(len(changed), rng.choice((64, 400, 1 << 30))))
        kind = rng.randrange(6)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at] = rng.randrange(256)
        elif kind == 2:
            changed[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)))
        elif kind == 3:
            del changed[max(1, at) :]
        elif kind == 4:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            del changed[at : at + rng.randrange(1, 9)]
        if not changed:
            break
    return bytes(changed)


@pytest.mark.parametrize("name", SAMPLES)
def test_mutated_files_do_no_harm(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(name)
    limit = 1 << 22
    messages: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(150):
        data = mutated(SAMPLES[name], rng)
        try:
            array = io.decode(data, Options(limit), name if rng.random() < 0.9 else "")
        except io.FileError as problem:
            messages.append(str(problem))
        else:
            assert array.dtype.kind in "buif"
            assert array.nbytes <= 4 * limit
    assert len(messages) > 20
    assert not [message for message in messages if "\n" in message]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    assert capfd.readouterr() == ("", "")


def test_every_truncation_of_a_small_file_is_refused() -> None:
    whole = {name: data for name, data in SAMPLES.items() if not name.endswith((".jpg", ".png"))}
    for name, data in whole.items():
        for end in range(0, len(data) - 1, max(1, len(data) // 40)):
            try:
                array = io.decode(data[:end], Options())
            except io.FileError:
                continue
            # The missing bytes held no pixel.
            assert files.bits(array) == files.bits(io.decode(data, Options())), (name, end)


def test_a_photograph_cut_in_half_is_refused(tmp_path: Path) -> None:
    for name in ("x.jpg", "x.png"):
        data = io.encode(files.noise("uint8", (200, 300, 3)), name)
        for part in (0.1, 0.5, 0.9, 0.99):
            (tmp_path / name).write_bytes(data[: int(part * len(data))])
            with pytest.raises(io.FileError, match=name):
                io.read(tmp_path / name)
