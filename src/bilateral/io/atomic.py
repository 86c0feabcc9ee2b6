"""Write files atomically: a file is complete or absent, even if the program is killed."""

import filecmp
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from bilateral.io.errors import AlreadyExistsError, FileError
from bilateral.io.messages import os_reason, printable

PREFIX, SUFFIX = ".bilateral-", ".tmp"
"""Name of a temporary file that a killed process may leave: hidden, and of no known format."""

_tag: ContextVar[str] = ContextVar("tag", default="")
_lock = threading.Lock()
_unfinished: set[str] = set()
_closed = False


def write_bytes(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    overwrite: bool = True,
    accept_same: bool = False,
) -> None:
    """Write a temporary file in the same folder, then rename it to `path`.

    Parameters
    ----------
    path : path
        A link is followed. Devices and pipes are written directly. A file that is replaced keeps
        its permissions, and its owner and group if the system allows it.
    data : bytes
    overwrite : bool
        Allow to replace an existing file.
    accept_same : bool
        Without `overwrite`, accept an existing file that has the same content.
    """
    with _kind_errors(path):
        real = os.path.realpath(path)
        try:
            _write(real, data, overwrite)
        except FileExistsError:
            if not (accept_same and Path(real).read_bytes() == data):
                raise


@contextmanager
def _kind_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the errors of the system into a `FileError` that names a path."""
    try:
        yield
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


class Tag:
    """A name that the temporary files of one run have in common, in all its processes.

    Parameters
    ----------
    text : str, optional
        Default: a new one.
    """

    def __init__(self, text: str | None = None) -> None:
        self.text = secrets.token_hex(8) if text is None else text

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let temporary files of this thread have the tag."""
        before = _tag.set(self.text)
        try:
            yield
        finally:
            _tag.reset(before)

    def mark(self, folder: Path) -> None:
        """Make an empty file in a folder, by which other machines recognize the folder."""
        with _kind_errors(folder):
            self._marker(folder).touch(exist_ok=False)

    def marks(self, folder: Path) -> bool:
        """Return whether a folder is the marked one."""
        return self._marker(folder).exists()

    def remove(self, folders: Iterable[Path]) -> None:
        """Remove all files with the tag, such as those that killed processes left."""
        for folder in folders:
            for path in folder.glob(f"{PREFIX}{self.text}*{SUFFIX}"):
                path.unlink(missing_ok=True)

    def _marker(self, folder: Path) -> Path:
        return folder / f"{PREFIX}{self.text}{SUFFIX}"


def abandon() -> None:
    """Remove all temporary files, and let no thread write another file."""
    global _closed
    with _lock:
        _closed = True
        for name in _unfinished:
            _remove(name)
        _unfinished.clear()


class Replacement:
    """A temporary file beside `path`, which gets this name if the block ends without an error.

    Entering it returns the name of the temporary file.

    Parameters
    ----------
    path : path
        As for `write_bytes`, but no device or pipe.
    overwrite, accept_same : bool
        As for `write_bytes`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, overwrite: bool, accept_same: bool = False
    ) -> None:
        self._given, self._path, self._overwrite = path, os.path.realpath(path), overwrite
        self._accept_same = accept_same and not overwrite

    def __enter__(self) -> str:
        with _kind_errors(self._given):
            replaced = _replaced(self._path, self._overwrite or self._accept_same)
            self._temporary = _new_name(self._path)
            _create(self._temporary, replaced).close()
        return self._temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            _discard(self._temporary)
            return
        with _kind_errors(self._given):
            try:
                with open(self._temporary, "rb") as file:
                    os.fsync(file.fileno())
                _finish(self._temporary, self._path, self._overwrite)
            except FileExistsError:
                same = self._accept_same and self._is_same()
                _discard(self._temporary)
                if not same:
                    raise
            except BaseException:
                _discard(self._temporary)
                raise

    def _is_same(self) -> bool:
        return filecmp.cmp(self._temporary, self._path, shallow=False)


def _write(path: str, data: bytes, overwrite: bool) -> None:
    replaced = _replaced(path, overwrite)
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        Path(path).write_bytes(data)
        return
    temporary = _new_name(path)
    try:
        with _create(temporary, replaced) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _finish(temporary, path, overwrite)
    except BaseException:
        _discard(temporary)
        raise


def _replaced(path: str, overwrite: bool) -> os.stat_result | None:
    """Return the status of the file that is replaced, if there is one and it may be replaced."""
    try:
        replaced = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(replaced.st_mode):
        raise IsADirectoryError
    if stat.S_ISREG(replaced.st_mode) and not overwrite:
        raise FileExistsError
    return replaced


def _new_name(path: str) -> str:
    """Return a new name in the folder of a path; the file is removed if the program is stopped."""
    name = f"{PREFIX}{_tag.get()}{secrets.token_hex(8)}{SUFFIX}"
    temporary = os.path.join(os.path.dirname(path), name)
    with _lock:
        if _closed:
            raise InterruptedError("interrupted")
        _unfinished.add(temporary)
    return temporary


def _finish(temporary: str, path: str, overwrite: bool) -> None:
    with _lock:  # so that `abandon` runs before or after both lines, never between them
        _rename(temporary, path, overwrite)
        _unfinished.discard(temporary)


def _discard(temporary: str) -> None:
    with _lock:
        _unfinished.discard(temporary)
        with suppress(OSError):
            os.unlink(temporary)


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
