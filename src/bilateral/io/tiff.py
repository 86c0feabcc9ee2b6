"""Read and write TIFF by tifffile: any real dtype, any number of channels and pages."""

import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import CannotHoldError, FileError
from bilateral.io.limits import check_size
from bilateral.io.messages import one_line
from bilateral.io.options import Options
from bilateral.io.orientation import TAG, upright
from bilateral.io.tiff_tags import check_tags

if TYPE_CHECKING:
    from tifffile import TiffPage

Array = NDArray[Any]

HOLDS = "integers and floating point of any size; any number of channels and pages"
_MAX_PAGES = 10_000
COMPRESSIONS = {1, 5, 8, 32773, 32946, 34925, 50000}
"""None, LZW, deflate, PackBits, LZMA and Zstandard: they never unpack to more than they claim."""
WHITE_IS_ZERO, _PALETTE = 0, 3
_BLOCK = 1 << 20
"""Pixels of a palette to convert at a time: NumPy makes indices of 8 bytes from them."""

logging.getLogger("tifffile").addHandler(logging.NullHandler())  # tifffile logs every odd tag


def decode(data: bytes, options: Options) -> Array:
    """Return (H, W) or (H, W, C); several pages add an axis before the others."""
    import tifffile

    check_tags(data, options.limit, one_page=options.page is not None)
    # For files of some vendors, tifffile takes sizes and offsets from elsewhere than the tags.
    with tifffile.TiffFile(
        io.BytesIO(data), is_lsm=False, is_ndpi=False, is_scanimage=False
    ) as file:
        pages = [page.aspage() for page in _select_pages(file.pages, options.page)]
        for page in pages:
            _check_page(page, options, options.limit // len(pages))
        if len({(page.shape, page.dtype) for page in pages}) > 1:
            raise FileError("its pages differ in size or dtype. Choose one with --page.")
        arrays = [_pixels(page, options) for page in pages]
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)


def encode(array: Array, *, pages: bool = False) -> bytes:
    """Return a TIFF file, compressed without loss.

    Parameters
    ----------
    array : (H, W), (H, W, C), or with `pages` (P, H, W) or (P, H, W, C) array
    pages : bool
        Store each element of the first axis as a page.
    """
    import tifffile

    if array.dtype.kind not in "uif" or array.ndim - pages not in (2, 3):
        raise CannotHoldError
    stream = io.BytesIO()
    with tifffile.TiffWriter(stream, bigtiff=array.nbytes > 1 << 31) as file:
        for page in array if pages else array[np.newaxis]:
            is_color = page.ndim == 3 and page.shape[2] in (3, 4)
            file.write(
                np.ascontiguousarray(page),
                photometric="rgb" if is_color else "minisblack",
                planarconfig="contig" if page.ndim == 3 else None,
                extrasamples=extra_samples(page),
                compression="zlib",
                compressionargs={"level": 3},
                metadata=None,
            )
    return stream.getvalue()


def extra_samples(page: Array) -> Sequence[str] | None:
    """Return the meaning of the channels beyond gray or RGB, for TIFF's tag ExtraSamples."""
    if page.ndim == 2 or page.shape[2] == 3:
        return None
    return ["unassalpha"] if page.shape[2] == 4 else ["unspecified"] * (page.shape[2] - 1)


def _select_pages(pages: Any, number: int | None) -> list[Any]:
    """Return one page by its number, or all pages but thumbnails."""
    if number is not None:
        try:
            return [pages[number]]
        except IndexError:
            raise FileError(f"has no page {number}; the first one is 0.") from None
    selected: list[Any] = []
    offsets = set()
    for page in pages:
        if page.offset in offsets:
            raise FileError("is damaged: its list of pages has a loop.")
        offsets.add(page.offset)
        if len(selected) == _MAX_PAGES:
            raise FileError(f"has more than {_MAX_PAGES:,} pages. Choose one with --page.")
        selected.append(page)
    full_size = [page for page in selected if not page.is_reduced]
    if not full_size:
        raise FileError("holds no picture.")
    return full_size


def _check_page(page: "TiffPage", options: Options, limit: int) -> None:
    if page.dtype is None or page.dtype.kind not in "uif" or page.axes not in ("YX", "YXS", "SYX"):
        raise FileError("holds no picture of real numbers.")
    if page.compression not in COMPRESSIONS:
        # A damaged file may hold any number of numbers here.
        name = one_line(str(getattr(page.compression, "name", page.compression)), 60)
        raise FileError(f"is compressed by {name}, which is not supported. Save it with deflate.")
    check_size(page.shape, page.dtype, limit)
    check_size(page.chunks, page.dtype, limit)
    if _palette(page, options) is not None:
        check_size((*page.shape, 3), np.uint16, limit)


def _pixels(page: "TiffPage", options: Options) -> Array:
    array = page.asarray(maxworkers=1)
    if page.axes == "SYX":
        array = np.moveaxis(array, 0, -1)
    if page.photometric == WHITE_IS_ZERO and array.dtype.kind == "u":
        array = np.iinfo(array.dtype).max - array
    palette = _palette(page, options)
    if palette is not None:
        array = _colours(array, np.moveaxis(palette, 0, -1))
    return upright(array, page.tags.valueof(TAG))


def _palette(page: "TiffPage", options: Options) -> Array | None:
    """Return the colours that replace the indices of a page, or None if it keeps its numbers."""
    return None if options.labels or page.photometric != _PALETTE else page.colormap


def _colours(indices: Array, palette: Array) -> Array:
    """Return the colour of each index; the channels are the last axis."""
    colours = np.empty((*indices.shape, palette.shape[1]), palette.dtype)
    flat, rows = indices.reshape(-1), colours.reshape(-1, palette.shape[1])
    for start in range(0, flat.size, _BLOCK):
        rows[start : start + _BLOCK] = palette[flat[start : start + _BLOCK]]
    return colours
