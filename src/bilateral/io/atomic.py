"""Files that are there completely or not at all, whatever ends the program."""

import os
import secrets
import stat
import threading
from contextlib import suppress
from pathlib import Path

from bilateral.io.problems import FileError, reason, shown

PREFIX, SUFFIX = ".bilateral-", ".tmp"
"""Of what a killed process leaves behind: hidden, and of no known format."""

_lock = threading.Lock()
_unfinished: set[str] = set()
_closed = False


def write_bytes(path: str | os.PathLike[str], data: bytes, *, overwrite: bool = True) -> None:
    """Write a file under another name in the same folder, then give it its own.

    Parameters
    ----------
    path : path
        A link is followed. Devices and pipes are written to as they are.
    data : bytes
    overwrite : bool
        Whether a file of that name may be replaced.
    """
    try:
        _write(os.path.realpath(path), data, overwrite)
    except FileExistsError:
        raise FileError(f"{shown(path)}: exists already. Replace it with --force.") from None
    except IsADirectoryError:
        raise FileError(f"{shown(path)}: is a folder, expected a file.") from None
    except OSError as error:
        raise FileError(f"{shown(path)}: cannot be written: {reason(error)}.") from None
    except ValueError:  # a null character in the name
        raise FileError(f"{shown(path)}: is no name for a file.") from None


def abandon() -> None:
    """Remove what is half written, and let no thread write any more."""
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
    name = os.path.join(os.path.dirname(path), f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
    try:
        with _lock:
            if _closed:
                raise InterruptedError("interrupted")
            _unfinished.add(name)
        with open(name, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with _lock:  # `abandon` sees either the other name or the final one
            _give_name(name, path, overwrite)
            _unfinished.discard(name)
    except BaseException:
        with _lock:
            _unfinished.discard(name)
            with suppress(OSError):
                os.unlink(name)
        raise


def _give_name(name: str, path: str, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(name, path)  # unlike a renaming, this fails where another has come first
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError from None
        else:
            os.unlink(name)
            return
    os.replace(name, path)
