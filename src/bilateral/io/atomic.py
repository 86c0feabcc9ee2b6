"""Write files atomically: a file is complete or absent, even if the program is killed."""

import os
import secrets
import stat
import threading
from contextlib import suppress
from pathlib import Path

from bilateral.io.errors import FileError
from bilateral.io.messages import os_reason, printable

PREFIX, SUFFIX = ".bilateral-", ".tmp"
"""Name of a temporary file that a killed process may leave: hidden, and of no known format."""

_lock = threading.Lock()
_unfinished: set[str] = set()
_closed = False


def write_bytes(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = True) -> None:
    """Write a temporary file in the same folder, then rename it to `path`.

    Parameters
    ----------
    path : path
        A link is followed. Devices and pipes are written directly.
    data : bytes
    overwrite : bool
        Allow to replace an existing file.
    """
    try:
        _write(os.path.realpath(path), data, overwrite)
    except FileExistsError:
        message = f"{printable(path)}: exists already. Replace it with --force."
        raise FileError(message) from None
    except IsADirectoryError:
        raise FileError(f"{printable(path)}: is a folder, expected a file.") from None
    except OSError as error:
        message = f"{printable(path)}: cannot be written: {os_reason(error)}."
        raise FileError(message) from None
    except ValueError:  # a null character in the name
        raise FileError(f"{printable(path)}: is not a valid file name.") from None


def abandon() -> None:
    """Remove all temporary files, and let no thread write another file."""
    global _closed
    with _lock:
        _closed = True
        for name in _unfinished:
            with suppress(OSError):
                os.unlink(name)
        _unfinished.clear()


def _write(path: str, data: bytes, overwrite: bool) -> None:
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            Path(path).write_bytes(data)
            return
        if not overwrite:
            raise FileExistsError
    temporary = os.path.join(os.path.dirname(path), f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
    try:
        with _lock:
            if _closed:
                raise InterruptedError("interrupted")
            _unfinished.add(temporary)
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with _lock:  # so that `abandon` runs before or after both lines, never between them
            _rename(temporary, path, overwrite)
            _unfinished.discard(temporary)
    except BaseException:
        with _lock:
            _unfinished.discard(temporary)
            with suppress(OSError):
                os.unlink(temporary)
        raise


def _rename(temporary: str, path: str, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, path)  # unlike a rename, a link fails if the file exists
        except FileExistsError:
            raise
        except OSError:  # the file system has no hard links
            if os.path.lexists(path):
                raise FileExistsError from None
        else:
            os.unlink(temporary)
            return
    os.replace(temporary, path)
