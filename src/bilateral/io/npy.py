"""Read and write NPY and NPZ, the files of NumPy. No file is ever unpickled."""

import io
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from bilateral.io.errors import FileError
from bilateral.io.limits import check_bytes, check_size
from bilateral.io.options import Options

Array = NDArray[Any]

HOLDS = "any real dtype and shape"
_DEFAULT_KEY = "data"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAX_HEADER = 1 << 16
"""Bytes that the header of an NPY file may take beside its values."""


def decode(data: bytes, options: Options) -> Array:
    """Return the array of an NPY file."""
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
    """Return one array of an NPZ file: the only one, or the one that `options.key` names."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        info = members[_choose_key(list(members), options.key)]
        check_bytes(info.file_size, options.limit + _MAX_HEADER)
        if info.compress_type not in _COMPRESSIONS:  # others unpack more than they are asked for
            raise FileError("is compressed by a method that NumPy does not use; save it again.")
        with archive.open(info) as member:
            return decode(member.read(info.file_size), options)


def encode(array: Array) -> bytes:
    """Return an NPY file."""
    _check_dtype(array.dtype)
    stream = io.BytesIO()
    npy_format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def encode_npz(array: Array) -> bytes:
    """Return an NPZ file with one array, named `data`."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(f"{_DEFAULT_KEY}.npy", encode(array))
    return stream.getvalue()


def _choose_key(keys: list[str], key: str | None) -> str:
    if not keys:
        raise FileError("holds no array.")
    if key is None and len(keys) == 1:
        return keys[0]
    if key is None and _DEFAULT_KEY in keys:
        return _DEFAULT_KEY
    if key in keys:
        return key
    listed = ", ".join(sorted(ascii(name)[1:-1][:40] for name in keys)[:12])
    if key is None:
        raise FileError(f"holds several arrays: {listed}. Choose one with --key.")
    raise FileError(f"holds no array {key!r}, only {listed}.")


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "buif" or dtype.itemsize > 8:
        raise FileError(f"expected real numbers of up to 64 bits, got {str(dtype)[:60]}.")
