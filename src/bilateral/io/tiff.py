"""TIFF of any real dtype, number of channels and of pages, by tifffile."""

import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import TAG, upright
from bilateral.io.problems import CannotHoldError, FileError

if TYPE_CHECKING:
    from tifffile import TiffPage

Array = NDArray[Any]

HOLDS = "integers and floating point of any size; any number of channels, and of pages"
_MOST_PAGES = 10_000
_COMPRESSIONS = {1, 5, 8, 32773, 32946, 34925, 50000}
"""None, LZW, deflate, PackBits, LZMA and Zstandard: what cannot unpack to more than it claims."""
_WHITE_IS_ZERO, _PALETTE = 0, 3

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # it tells of every odd tag


def decode(data: bytes, options: Options) -> Array:
    """(H, W) or (H, W, C), and an axis before these where there are several pages."""
    import tifffile

    with tifffile.TiffFile(io.BytesIO(data)) as file:
        pages = [page.aspage() for page in _chosen(file.pages, options.page)]
        for page in pages:
            _check(page, options.limit // len(pages))
        if len({(page.shape, page.dtype) for page in pages}) > 1:
            raise FileError("its pages differ in size or dtype. Choose one with --page.")
        arrays = [_pixels(page, options) for page in pages]
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)


def encode(array: Array, *, pages: bool = False) -> bytes:
    """Compressed without loss.

    Parameters
    ----------
    array : (H, W), (H, W, C), or with `pages` (P, H, W) or (P, H, W, C) array
    pages : bool
        Whether the first axis counts pages.
    """
    import tifffile

    if array.dtype.kind not in "uif" or array.ndim - pages not in (2, 3):
        raise CannotHoldError
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, bigtiff=array.nbytes > 1 << 31) as file:
        for page in array if pages else array[np.newaxis]:
            colour = page.ndim == 3 and page.shape[2] in (3, 4)
            file.write(
                np.ascontiguousarray(page),
                photometric="rgb" if colour else "minisblack",
                planarconfig="contig" if page.ndim == 3 else None,
                extrasamples=_extra(page),
                compression="zlib",
                compressionargs={"level": 3},
                metadata=None,
            )
    return stream.getvalue()


def _extra(page: Array) -> Sequence[str] | None:
    """What the channels beyond the colours are."""
    if page.ndim == 2 or page.shape[2] == 3:
        return None
    return ["unassalpha"] if page.shape[2] == 4 else ["unspecified"] * (page.shape[2] - 1)


def _chosen(pages: Any, wanted: int | None) -> list[Any]:
    if wanted is not None:
        try:
            return [pages[wanted]]
        except IndexError:
            raise FileError(f"has no page {wanted}; the first one is 0.") from None
    found: list[Any] = []
    places = set()
    for page in pages:
        if page.offset in places:
            raise FileError("is damaged: a page follows itself.")
        places.add(page.offset)
        if len(found) == _MOST_PAGES:
            raise FileError(f"has more than {_MOST_PAGES:,} pages. Choose one with --page.")
        found.append(page)
    whole = [page for page in found if not page.is_reduced]  # thumbnails are no pages
    if not whole:
        raise FileError("holds no picture.")
    return whole


def _check(page: "TiffPage", limit: int) -> None:
    if page.dtype is None or page.dtype.kind not in "uif" or page.axes not in ("YX", "YXS", "SYX"):
        raise FileError("holds no picture of real numbers.")
    if page.compression not in _COMPRESSIONS:
        name = getattr(page.compression, "name", page.compression)
        raise FileError(f"is compressed by {name}, which is not supported. Save it with deflate.")
    check_size(page.shape, page.dtype, limit)
    check_size(page.chunks, page.dtype, limit)


def _pixels(page: "TiffPage", options: Options) -> Array:
    array = page.asarray(maxworkers=1)
    if page.axes == "SYX":
        array = np.moveaxis(array, 0, -1)
    if page.photometric == _WHITE_IS_ZERO and array.dtype.kind == "u":
        array = np.iinfo(array.dtype).max - array
    if page.photometric == _PALETTE and page.colormap is not None and not options.labels:
        array = np.moveaxis(page.colormap, 0, -1)[array]
    return upright(array, page.tags.valueof(TAG))
