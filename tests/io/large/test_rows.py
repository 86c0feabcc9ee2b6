"""Large files: rows of TIFF, Zarr and NPY are read and written exactly, and appear complete."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tifffile
import zarr
from hypothesis import given
from hypothesis import strategies as st

from bilateral import io
from bilateral.io import large
from bilateral.io.errors import AlreadyExistsError, FileError

Array = npt.NDArray[Any]
DTYPES = ("uint8", "uint16", "float32", "float64", "int16")


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (rng.uniform(0, 100, shape)).astype(dtype)


def all_rows(path: Path) -> Array:
    with closing(large.open_rows(path)) as reader:
        return reader.rows(0, reader.shape[0])


def strips(array: Array, sizes: list[int]) -> list[Array]:
    borders = [0, *np.cumsum(sizes).tolist(), len(array)]
    return [array[a:b] for a, b in pairwise(borders) if a < len(array)]


@pytest.mark.parametrize("suffix", large.SUFFIXES)
@pytest.mark.parametrize("shape", [(700, 530), (600, 90, 3), (40, 30), (1, 1), (520, 513, 2)])
def test_rows_come_back_as_they_were_written(
    tmp_path: Path, suffix: str, shape: tuple[int, ...]
) -> None:
    array = values(shape, "float32")
    path = tmp_path / f"a{suffix}"
    large.create(path, shape, array.dtype).write(strips(array, [7, 300]), overwrite=False)
    reader = large.open_rows(path)
    assert reader.shape == shape
    assert reader.dtype == array.dtype
    for start, stop in [(0, 1), (0, shape[0]), (shape[0] // 3, shape[0] // 2 + 1)]:
        assert np.array_equal(reader.rows(start, stop), array[start:stop])
    parts = [reader.rows(y, min(y + 61, shape[0])) for y in range(0, shape[0], 61)]
    assert np.array_equal(np.concatenate(parts), array)
    reader.close()
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tiff_file_is_one_that_everybody_reads(tmp_path: Path, dtype: str) -> None:
    array = values((600, 530), dtype)
    path = tmp_path / "a.tif"
    large.create(path, array.shape, array.dtype).write([array], overwrite=False)
    assert np.array_equal(tifffile.imread(path), array)
    assert np.array_equal(io.read(path), array)
    with tifffile.TiffFile(path) as file:
        assert file.is_bigtiff
        assert file.pages[0].is_tiled


@pytest.mark.parametrize("options", [
    {"tile": (64, 48)},
    {"rowsperstrip": 10, "compression": "lzw"},
    {"tile": (16, 16), "compression": "zlib", "predictor": True},
    {"rowsperstrip": 1000},
    {"tile": (32, 32), "byteorder": ">"},
])  # fmt: skip
@pytest.mark.parametrize("shape", [(130, 101), (130, 101, 3)])
def test_tiff_files_of_others_are_read(
    tmp_path: Path, options: dict[str, Any], shape: tuple[int, ...]
) -> None:
    array = values(shape, "uint16")
    path, given = tmp_path / "a.tif", dict(options)
    with tifffile.TiffWriter(path, bigtiff=True, byteorder=given.pop("byteorder", "<")) as file:
        file.write(array, photometric="rgb" if len(shape) == 3 else "minisblack", **given)
    reader = large.open_rows(path)
    assert np.array_equal(reader.rows(3, 77), array[3:77])
    assert np.array_equal(reader.rows(77, 130), array[77:130])
    reader.close()


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_arrays_of_both_versions_are_read(tmp_path: Path, version: int) -> None:
    array = values((90, 70, 3), "uint8")
    path = tmp_path / "a.zarr"
    stored = zarr.create_array(
        str(path), shape=array.shape, dtype=array.dtype, chunks=(32, 20, 3), zarr_format=version
    )
    stored[:] = array
    reader = large.open_rows(path)
    assert np.array_equal(reader.rows(10, 80), array[10:80])
    assert getattr(reader, "zarr_format") == version  # noqa: B009


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    def rows() -> Any:
        yield np.zeros((600, 100), np.float32)
        raise RuntimeError("stop")

    for suffix in large.SUFFIXES:
        writer = large.create(tmp_path / f"a{suffix}", (900, 100), np.float32)
        with pytest.raises(RuntimeError, match="stop"):
            writer.write(rows(), overwrite=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", large.SUFFIXES)
def test_an_existing_file_is_replaced_only_if_allowed(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"a{suffix}", values((20, 30), "float32")
    writer = large.create(path, array.shape, array.dtype)
    writer.write([array], overwrite=False)
    with pytest.raises(AlreadyExistsError):
        writer.write([array + 1], overwrite=False)
    assert np.array_equal(all_rows(path), array)
    writer.write([array + 1], overwrite=True)
    assert np.array_equal(all_rows(path), array + 1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.npy", lambda p: np.save(p, np.asfortranarray(np.ones((3, 4)))), "in C order"),
        ("a.npy", lambda p: np.save(p, np.ones(3)), r"expected an array \(H, W\)"),
        ("a.npy", lambda p: np.save(p, np.ones((3, 4), np.complex64)), "of real numbers"),
        ("a.npy", lambda p: p.write_bytes(b"nonsense"), "a.npy: is damaged"),
        ("a.zarr", lambda p: zarr.create_group(str(p)), "is a group of arrays"),
        ("a.tif", lambda p: p.write_bytes(b"II*\0nonsense"), "a.tif: has no page"),
        ("a.tif", lambda p: p.write_bytes(b"nonsense"), "a.tif: is damaged"),
        ("a.tif", lambda p: tifffile.imwrite(p, np.ones((3, 4), np.complex64)), "no picture"),
        ("a.tif", lambda _: None, "cannot be read"),
    ],
)
def test_messages_name_the_file(tmp_path: Path, name: str, make: Any, message: str) -> None:
    make(tmp_path / name)
    with pytest.raises(FileError, match=message):
        large.open_rows(tmp_path / name)


def _break_zarr(path: Path) -> None:
    zarr.create_array(str(path), data=np.ones((30, 40)), chunks=(15, 40))
    (path / "c" / "1" / "0").write_bytes(b"nonsense")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.npy", lambda p: (np.save(p, np.ones((30, 40))), _cut(p))),
        ("a.zarr", _break_zarr),
        ("a.tif", lambda p: (tifffile.imwrite(p, np.ones((99, 88)), tile=(32, 32)), _cut(p))),
    ],
)
def test_messages_of_damaged_rows_name_the_file(tmp_path: Path, name: str, make: Any) -> None:
    make(tmp_path / name)
    with pytest.raises(FileError, match=f"{name}: "):
        all_rows(tmp_path / name)


def test_an_array_of_a_zarr_group_has_a_path_of_its_own(tmp_path: Path) -> None:
    array = np.arange(12.0).reshape(3, 4)
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w").create_array("depth", data=array)
    assert large.can_stream(tmp_path / "a.zarr" / "depth")
    assert np.array_equal(all_rows(tmp_path / "a.zarr" / "depth"), array)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_regrouped_strips_hold_the_same_rows(sizes: list[int], height: int) -> None:
    array = np.arange(sum(sizes) * 2).reshape(-1, 2)
    regrouped = list(large.regroup(strips(array, sizes), height))
    assert np.array_equal(np.concatenate(regrouped), array)
    assert all(len(part) == height for part in regrouped[:-1])
    assert 0 < len(regrouped[-1]) <= height
