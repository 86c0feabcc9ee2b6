"""Files: every bit kept, photographs upright, and nothing that a file holds does harm."""

import io as streams
import os
import pickle
import random
import resource
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
pytest.importorskip("tifffile", reason="TIFF files need tifffile")
pytest.importorskip("OpenEXR", reason="EXR files need OpenEXR")

from PIL import Image

from bilateral import io
from bilateral.io import atomic, formats, orientation
from bilateral.io.options import Options
from support import files

ONE = io.encode(np.zeros(1), "x.npy")
ROUND_TRIPS = [
    (suffix, dtype, channels)
    for suffix, (dtypes, shapes) in files.KEEPS.items()
    for dtype in dtypes
    for channels in shapes
]


@pytest.mark.parametrize(("suffix", "dtype", "channels"), ROUND_TRIPS)
def test_round_trips_keep_every_bit(
    suffix: str, dtype: str, channels: tuple[int, ...], tmp_path: Path
) -> None:
    for height, width in ((1, 1), (7, 13), (64, 5)):
        array = files.noise(dtype, (height, width, *channels))
        io.write(tmp_path / f"x{suffix}", array)
        back = io.read(tmp_path / f"x{suffix}")
        assert back.dtype == array.dtype
        assert back.shape == array.shape
        assert files.bits(back) == files.bits(array)


@pytest.mark.parametrize("suffix", files.KEEPS)
def test_strides_and_byte_order_do_not_matter(suffix: str) -> None:
    dtypes, _ = files.KEEPS[suffix]
    array = files.noise(dtypes[0], (20, 30))[::2, ::-3]
    swapped = array.astype(array.dtype.newbyteorder(">"))
    for given_ in (array, np.asfortranarray(array), swapped):
        back = io.decode(io.encode(given_, f"x{suffix}"), Options())
        assert back.dtype == array.dtype
        assert files.bits(back) == files.bits(array)


@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    gray=st.booleans(),
    scale=st.sampled_from([b"-1", b"-1.0", b"1.0", b"1", b"-0.003922", b"2.5e-3", b"+1"]),
    gap=st.sampled_from([b"\n", b" ", b"\r\n"]),
)
def test_pfm_of_any_writer(height: int, width: int, gray: bool, scale: bytes, gap: bytes) -> None:
    array = files.noise("float32", (height, width) if gray else (height, width, 3))
    order = "<f4" if scale.startswith(b"-") else ">f4"
    header = gap.join([b"Pf" if gray else b"PF", b"%d %d" % (width, height), scale]) + b"\n"
    back = io.decode(header + array[::-1].astype(order).tobytes(), Options(), "x.pfm")
    assert files.bits(back) == files.bits(array)


def test_sixteen_bits_of_other_writers(tmp_path: Path) -> None:
    depth = files.noise("uint16", (40, 50))
    Image.fromarray(depth).save(tmp_path / "depth.png")
    np.testing.assert_array_equal(io.read(tmp_path / "depth.png"), depth)


def test_pages(tmp_path: Path) -> None:
    for shape in ((5, 8, 9), (5, 8, 9, 3)):
        stack = files.noise("float32", shape)
        io.write(tmp_path / "stack.tif", stack, pages=True)
        assert files.bits(io.read(tmp_path / "stack.tif")) == files.bits(stack)
        assert files.bits(io.read(tmp_path / "stack.tif", page=3)) == files.bits(stack[3])
    with pytest.raises(io.FileError, match="no page 7"):
        io.read(tmp_path / "stack.tif", page=7)


def test_pages_of_different_sizes(tmp_path: Path) -> None:
    import tifffile

    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        for size in (4, 6):
            file.write(np.zeros((size, 5), np.float32))
    with pytest.raises(io.FileError, match="--page"):
        io.read(tmp_path / "x.tif")
    assert io.read(tmp_path / "x.tif", page=1).shape == (6, 5)


@pytest.mark.parametrize("compression", [None, "lzw", "zlib", "packbits", "zstd", "lzma"])
@pytest.mark.parametrize("kind", ["strips", "tiles", "planes", "big"])
def test_tiff_of_other_writers(compression: str | None, kind: str, tmp_path: Path) -> None:
    import tifffile

    array = files.noise("uint16", (40, 50, 3))
    options = {
        "strips": {"rowsperstrip": 7},
        "tiles": {"tile": (16, 32)},
        "planes": {"planarconfig": "separate"},
        "big": {"bigtiff": True, "byteorder": ">"},
    }[kind]
    data = np.moveaxis(array, -1, 0) if kind == "planes" else array
    tifffile.imwrite(
        tmp_path / "x.tif", data, photometric="rgb", compression=compression, **options
    )
    np.testing.assert_array_equal(io.read(tmp_path / "x.tif"), array)


def test_tiff_with_white_at_zero_and_with_a_palette(tmp_path: Path) -> None:
    import tifffile

    array = files.noise("uint8", (9, 8))
    tifffile.imwrite(tmp_path / "white.tif", 255 - array, photometric="miniswhite")
    np.testing.assert_array_equal(io.read(tmp_path / "white.tif"), array)
    colours = files.noise("uint16", (3, 256))
    tifffile.imwrite(tmp_path / "p.tif", array, photometric="palette", colormap=colours)
    np.testing.assert_array_equal(io.read(tmp_path / "p.tif"), colours.T[array])
    np.testing.assert_array_equal(io.read(tmp_path / "p.tif", labels=True), array)


def test_palettes_are_colours_or_labels(tmp_path: Path) -> None:
    labels = np.arange(20, dtype=np.uint8).reshape(4, 5)
    picture = Image.fromarray(labels)
    picture.putpalette(bytes(range(60)))
    for name in ("x.png", "x.bmp"):
        picture.save(tmp_path / name)
        assert io.read(tmp_path / name)[3, 4].tolist() == [57, 58, 59]
        np.testing.assert_array_equal(io.read(tmp_path / name, labels=True), labels)


def test_black_and_white_png(tmp_path: Path) -> None:
    mask = files.noise("bool", (9, 8))
    for name in ("x.png", "x.bmp"):
        Image.fromarray(mask).save(tmp_path / name)
        np.testing.assert_array_equal(io.read(tmp_path / name), np.where(mask, 255, 0))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_of_every_kind(mode: str, tmp_path: Path) -> None:
    photo = files.smooth((40, 50, 3))
    Image.fromarray(photo).convert(mode).save(tmp_path / "x.JPEG", quality=95)
    back = io.read(tmp_path / "x.JPEG")
    expected = photo[..., 0] if mode == "L" else photo
    assert back.shape == expected.shape
    assert np.abs(back.astype(int) - expected).mean() < 2


def test_jpeg_out_is_close() -> None:
    photo = files.smooth((40, 50, 3))
    back = io.decode(io.encode(photo, "x.jpg"), Options())
    assert np.abs(back.astype(int) - photo).max() <= 3


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.tif"])
def test_photographs_are_turned_upright(turn: int, name: str, tmp_path: Path) -> None:
    from PIL import ImageOps

    photo = np.kron(files.noise("uint8", (3, 5)), np.ones((16, 16), np.uint8))
    exif = Image.Exif()
    exif[orientation.TAG] = turn
    picture = Image.fromarray(photo)
    if name == "x.tif":
        picture.save(tmp_path / name, tiffinfo={orientation.TAG: turn})
    else:
        picture.save(tmp_path / name, exif=exif)
    stored = np.asarray(Image.open(tmp_path / name)) if name == "x.jpg" else photo
    turned = Image.fromarray(stored)
    turned.getexif()[orientation.TAG] = turn
    np.testing.assert_array_equal(
        io.read(tmp_path / name), np.asarray(ImageOps.exif_transpose(turned))
    )


def test_broken_exif_data_leave_the_photograph(tmp_path: Path) -> None:
    Image.fromarray(files.smooth((24, 32))).save(tmp_path / "x.jpg", exif=b"Exif\0\0MM\0*garbage")
    assert io.read(tmp_path / "x.jpg").shape == (24, 32)


def test_arrays_of_an_npz_file(tmp_path: Path) -> None:
    a, b = files.noise("float32", (3, 4)), files.noise("uint8", (5, 6))
    np.savez(tmp_path / "two.npz", a=a, b=b)
    with pytest.raises(io.FileError, match=r"several arrays: a, b\. Choose one with --key"):
        io.read(tmp_path / "two.npz")
    np.testing.assert_array_equal(io.read(tmp_path / "two.npz", key="b"), b)
    with pytest.raises(io.FileError, match="no array 'c', only a, b"):
        io.read(tmp_path / "two.npz", key="c")
    np.savez(tmp_path / "named.npz", data=a, more=b)
    assert files.bits(io.read(tmp_path / "named.npz")) == files.bits(a)


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
def test_what_a_format_cannot_hold(
    name: str, array: files.Array, message: str, tmp_path: Path
) -> None:
    with pytest.raises(io.FileError, match=message):
        io.write(tmp_path / name, array)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("imagecodecs", "x.png", "cli"),
        ("PIL", "x.jpg", "cli"),
        ("tifffile", "x.tif", "cli"),
        ("OpenEXR", "x.exr", "exr"),
    ],
)
def test_missing_packages_are_named(
    package: str, name: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    array = np.zeros((4, 4), np.float32 if name == "x.exr" else np.uint8)
    io.write(tmp_path / name, array)
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'need {package}.*: pip install "bilateral\[{extra}\]"'
    with pytest.raises(io.MissingPackageError, match=message):
        io.read(tmp_path / name)
    with pytest.raises(io.MissingPackageError, match=message):
        io.write(tmp_path / name, array)


SAMPLES = files.samples()


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Cut, overwritten, lengthened or with numbers that are much too large."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        # Headers matter most.
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
            # What is missing was no pixel.
            assert files.bits(array) == files.bits(io.decode(data, Options())), (name, end)


def test_a_photograph_cut_in_half_is_refused(tmp_path: Path) -> None:
    for name in ("x.jpg", "x.png"):
        data = io.encode(files.noise("uint8", (200, 300, 3)), name)
        for part in (0.1, 0.5, 0.9, 0.99):
            (tmp_path / name).write_bytes(data[: int(part * len(data))])
            with pytest.raises(io.FileError, match=name):
                io.read(tmp_path / name)


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


def test_of_two_who_may_not_replace_one_wins(tmp_path: Path) -> None:
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


def test_what_a_killed_process_leaves_is_no_input(tmp_path: Path) -> None:
    name = f"{atomic.PREFIX}0123{atomic.SUFFIX}"
    assert name.startswith(".")
    assert formats.by_suffix(name) is None


def test_nothing_is_written_after_giving_up(
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


def test_reading_needs_only_bytes() -> None:
    stream = streams.BytesIO(io.encode(np.zeros((4, 4), np.uint16), "x.png"))
    assert io.decode(stream.getvalue(), Options()).dtype == np.uint16
