"""NumPy's own files. Nothing is ever unpickled."""

import io
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from bilateral.io.limits import check_bytes, check_size
from bilateral.io.options import Options
from bilateral.io.problems import FileError

Array = NDArray[Any]

HOLDS = "any real dtype and shape"
_KEY = "data"
_HEADER = 1 << 16


def decode(data: bytes, options: Options) -> Array:
    """The array of an NPY file."""
    stream = io.BytesIO(data)
    version = npy_format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = npy_format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = npy_format.read_array_header_2_0(stream)
    else:
        raise FileError(f"expected version 1 or 2 of the format, got {version[0]}.{version[1]}.")
    _check_dtype(dtype)
    check_size(shape, dtype, options.limit)
    count = math.prod(shape)
    if len(data) - stream.tell() < count * dtype.itemsize:
        raise FileError("the file ends too early.")
    values = np.frombuffer(data, dtype, count, stream.tell())
    array = values.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def decode_npz(data: bytes, options: Options) -> Array:
    """One array of an NPZ file: the only one, or the one of the name `key`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        info = names[_choose(list(names), options.key)]
        check_bytes(info.file_size, options.limit + _HEADER)
        with archive.open(info) as member:
            return decode(member.read(options.limit + _HEADER), options)


def encode(array: Array) -> bytes:
    """An NPY file."""
    _check_dtype(array.dtype)
    stream = io.BytesIO()
    npy_format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def encode_npz(array: Array) -> bytes:
    """An NPZ file with one array, `data`."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(f"{_KEY}.npy", encode(array))
    return stream.getvalue()


def _choose(names: list[str], key: str | None) -> str:
    if not names:
        raise FileError("holds no array.")
    if key is None and len(names) == 1:
        return names[0]
    if key is None and _KEY in names:
        return _KEY
    if key in names:
        return key
    listed = ", ".join(sorted(ascii(name)[1:-1][:40] for name in names)[:12])
    if key is None:
        raise FileError(f"holds several arrays: {listed}. Choose one with --key.")
    raise FileError(f"holds no array {key!r}, only {listed}.")


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "buif" or dtype.itemsize > 8:
        raise FileError(f"expected real numbers of up to 64 bits, got {str(dtype)[:60]}.")
