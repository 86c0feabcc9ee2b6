"""Write files atomically: a file is complete or absent, even if the program is killed."""

import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bilateral.io.errors import AlreadyExistsError, FileError
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
        A link is followed. Devices and pipes are written directly. A file that is replaced keeps
        its permissions, and its owner and group if the system allows it.
    data : bytes
    overwrite : bool
        Allow to replace an existing file.
    """
    try:
        _write(os.path.realpath(path), data, overwrite)
    except FileExistsError:
        raise AlreadyExistsError(printable(path)) from None
    except IsADirectoryError:
        raise FileError(f"{printable(path)}: is a folder, expected a file.") from None
    except OSError as error:
        message = f"{printable(path)}: cannot be written: {os_reason(error)}."
        raise FileError(message) from None
    except ValueError:  # a null character in the name
        raise FileError(f"{printable(path)}: is not a valid file name.") from None


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[str]:
    """Yield a temporary name for a file or a folder that becomes `path` when it is complete.

    An error removes it. A folder that is replaced is moved away first, and removed at the end.
    """
    final = os.path.realpath(path)
    folder, suffix = os.path.split(final)[0], os.path.splitext(final)[1]
    names = [os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}{suffix}") for _ in range(2)]
    temporary, old = names
    try:
        with _lock:
            if _closed:
                raise InterruptedError("interrupted")
            _unfinished.add(temporary)
        yield temporary
        with _lock:
            if os.path.lexists(final) and not overwrite:
                raise AlreadyExistsError(printable(path))
            if os.path.isdir(final):
                os.rename(final, old)
            os.replace(temporary, final)
            _unfinished.discard(temporary)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        message = f"{printable(path)}: cannot be written: {os_reason(error)}."
        raise FileError(message) from None
    finally:
        with _lock:
            _unfinished.discard(temporary)
            _remove(temporary)


def _remove(name: str) -> None:
    """Remove a file or a folder, if it exists."""
    with suppress(OSError):
        os.unlink(name)
    shutil.rmtree(name, ignore_errors=True)


def abandon() -> None:
    """Remove all temporary files, and let no thread write another file."""
    global _closed
    with _lock:
        _closed = True
        for name in _unfinished:
            _remove(name)
        _unfinished.clear()


def _write(path: str, data: bytes, overwrite: bool) -> None:
    replaced = None
    with suppress(FileNotFoundError):
        replaced = os.stat(path)
        if stat.S_ISDIR(replaced.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(replaced.st_mode):
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
        with _create(temporary, replaced) as file:
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


def _create(path: str, replaced: os.stat_result | None) -> BinaryIO:
    """Create a file with the permissions of the one that it replaces, else those of new files."""
    permissions = 0o666 if replaced is None else replaced.st_mode & 0o777
    # The system removes the bits of the umask here, so that nobody can read the file too early.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, permissions)
    if replaced is not None:
        _copy_access(handle, replaced, permissions)
    return os.fdopen(handle, "wb")


def _copy_access(handle: int, replaced: os.stat_result, permissions: int) -> None:
    """Give a file the owner, group and permissions of another, as far as the system allows it."""
    created = os.fstat(handle)
    if created.st_gid != replaced.st_gid:
        try:
            os.fchown(handle, -1, replaced.st_gid)
        except OSError:  # the new group gets only what everybody has
            permissions &= ~0o070 | (permissions & 0o007) << 3
    with suppress(OSError):
        if created.st_uid != replaced.st_uid:
            os.fchown(handle, replaced.st_uid, -1)
    with suppress(OSError):  # some file systems have no permissions
        os.fchmod(handle, permissions)


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
