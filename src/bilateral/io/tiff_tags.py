"""Limit the memory for the tags of a TIFF file, before a reader loads them.

Pages and tags may share their values: a small file can claim any number of pages or tags, each
with millions of values.
"""

import struct
from collections.abc import Iterator

from bilateral.io.limits import check_memory

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4,
          16: 8, 17: 8, 18: 8}  # fmt: skip
"""Bytes of one value in the file, by the type of the tag."""
_TEXTS = (1, 2, 7)
"""Types that a reader loads as bytes: BYTE, ASCII and UNDEFINED. Others become Python objects."""
_OBJECT, _TAG = 40, 400
"""Memory in bytes for one value that is a Python object, and for a tag without its values."""
_ALWAYS_ALLOWED = 1 << 24


def check_tags(data: bytes, limit: int, *, one_page: bool) -> None:
    """Refuse a file whose tags take too much memory.

    The function stops without an error where the list of pages is damaged, as readers do.

    Parameters
    ----------
    data : bytes
        TIFF or BigTIFF file.
    limit : int
        Maximum memory in bytes.
    one_page : bool
        Whether only one page is loaded.
    """
    total = 0
    for memory in _page_memory(data):
        total = memory if one_page else total + memory
        check_memory("the tags of its pages", total, max(limit, _ALWAYS_ALLOWED))


def _page_memory(data: bytes) -> Iterator[int]:
    """Yield the memory for the tags of each page."""
    order = "<" if data[:2] == b"II" else ">"
    is_big = b"+" in data[2:4]
    word = f"{order}{'Q' if is_big else 'I'}"
    number_of_tags = f"{order}{'Q' if is_big else 'H'}"
    entry = f"{order}HH{'Q' if is_big else 'I'}"
    entry_size = 20 if is_big else 12
    seen: set[int] = set()
    try:
        (offset,) = struct.unpack_from(word, data, 8 if is_big else 4)
        while offset and offset not in seen:
            seen.add(offset)
            (count,) = struct.unpack_from(number_of_tags, data, offset)
            start = offset + struct.calcsize(number_of_tags)
            end = start + entry_size * count
            memory = 0
            for at in range(start, min(end, len(data) - entry_size + 1), entry_size):
                _, kind, values = struct.unpack_from(entry, data, at)
                memory += _tag_memory(kind, values, len(data))
            yield memory
            (offset,) = struct.unpack_from(word, data, end)
    except struct.error:
        return


def _tag_memory(kind: int, values: int, file_size: int) -> int:
    if values * _SIZES.get(kind, 0) > file_size:
        return _TAG  # the values lie outside the file, and no reader loads them
    return _TAG + values * (1 if kind in _TEXTS else _OBJECT)
