"""Formats keep every bit; pages, palettes, and the orientation of photographs."""

import io as streams
import sys
import threading
import warnings
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
from bilateral.io import orientation
from bilateral.io.options import Options
from support import files

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


def test_a_written_jpeg_is_close() -> None:
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


def test_the_orientation_in_xmp_data(tmp_path: Path) -> None:
    photo = files.smooth((24, 32))
    xmp = b'<rdf:Description tiff:Orientation="6"/>'
    Image.fromarray(photo).save(tmp_path / "x.jpg", xmp=xmp)
    assert io.read(tmp_path / "x.jpg").shape == (32, 24)


def test_warnings_of_other_threads_are_kept() -> None:
    stream = streams.BytesIO()
    Image.fromarray(files.smooth((24, 32))).save(stream, "JPEG", exif=b"Exif\0\0MM\0*garbage")

    def decode() -> None:
        for _ in range(100):
            io.decode(stream.getvalue(), Options())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            thread = threading.Thread(target=decode)
            thread.start()
            count = 0
            while thread.is_alive():
                warnings.warn("of this thread", UserWarning, stacklevel=1)
                count += 1
    finally:
        sys.setswitchinterval(interval)
    assert [str(entry.message) for entry in log] == ["of this thread"] * count


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


def test_reading_needs_only_bytes() -> None:
    stream = streams.BytesIO(io.encode(np.zeros((4, 4), np.uint16), "x.png"))
    assert io.decode(stream.getvalue(), Options()).dtype == np.uint16
