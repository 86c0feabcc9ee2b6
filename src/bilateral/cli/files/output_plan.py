"""Check the files that a command will write, before it starts to work."""

import os
import stat
import sys
import tempfile
from pathlib import Path

from bilateral.cli.errors import UsageError
from bilateral.io.errors import FileError
from bilateral.io.messages import os_reason, printable


class OutputPlan:
    """Files that a command reads and writes. No file is written twice, or read and written.

    Parameters
    ----------
    stdout : bool
        Whether the command writes data to stdout, which may be a file, too.
    """

    def __init__(self, *, stdout: bool) -> None:
        self._inputs: dict[str, Path] = {}
        self._outputs: dict[str, str] = {}
        self._stdout = _stdout_status() if stdout else None
        self._folders: dict[str, str] = {}
        self._case_ignored: dict[str, bool] = {}

    def add_input(self, path: Path) -> None:
        """Add a file that the command reads."""
        self._inputs.setdefault(self._resolved(path), path)

    def add_output(self, path: Path, role: str, *, replaces: Path | None = None) -> None:
        """Add a file that the command writes; refuse one that it reads or writes already.

        Parameters
        ----------
        path : Path
        role : str
            What the file is, for messages.
        replaces : Path, optional
            Input that the file may replace: the one whose result it is.
        """
        key = self._resolved(path)
        if key in self._inputs and not (replaces is not None and key == self._resolved(replaces)):
            raise UsageError(
                f"{printable(path)}: {role} would replace the input "
                f"{printable(self._inputs[key])}. Choose another name."
            )
        if key in self._outputs:
            raise UsageError(
                f"{printable(path)}: would be written twice, as {self._outputs[key]} and as "
                f"{role}. Choose different names."
            )
        if self._stdout is not None and _is_file(path, self._stdout):
            raise UsageError(
                f"{printable(path)}: would be written twice, to stdout and as {role}. Choose "
                f"different names."
            )
        self._outputs[key] = role

    def _resolved(self, path: Path) -> str:
        """Return one text for all names of a file: links, dots, and case if it is ignored.

        The file need not exist.
        """
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or ".")
        full = os.path.join(self._folders[folder], name)
        if os.path.islink(full):
            full = os.path.realpath(full)
        parent = os.path.dirname(full)
        if parent not in self._case_ignored:
            self._case_ignored[parent] = _ignores_case(parent)
        return full.casefold() if self._case_ignored[parent] else full


def check_writable(path: Path) -> None:
    """Raise if a file cannot be written: it is a folder, or its folder forbids new files.

    A folder that does not exist must be one that can be made.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = 0
    except ValueError:  # a null character in the name
        raise FileError(f"{printable(path)}: is not a valid file name.") from None
    except OSError as error:
        raise _cannot_write(path, error) from None
    if stat.S_ISDIR(mode):
        raise FileError(f"{printable(path)}: is a folder, expected a file.")
    if mode and not stat.S_ISREG(mode):  # devices and pipes are written directly
        return
    folder = Path(os.path.realpath(path)).parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    check_folder(folder, path)


def check_folder(folder: Path, path: Path | None = None) -> None:
    """Raise if no file can be made in a folder; the message names `path` or the folder."""
    try:  # permissions alone do not tell
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _cannot_write(path or folder, error) from None


def _cannot_write(path: Path, error: OSError) -> FileError:
    return FileError(f"{printable(path)}: cannot be written: {os_reason(error)}.")


def _ignores_case(folder: str) -> bool:
    """Return whether the file system ignores case, as far as the folder's own name tells."""
    parent, name = os.path.split(folder)
    other = name.swapcase()
    if other == name:
        return parent != folder and _ignores_case(parent)
    try:
        return os.path.samefile(folder, os.path.join(parent, other))
    except OSError:
        return False


def _stdout_status() -> os.stat_result | None:
    """Return the status of stdout if it is a file, else None."""
    try:
        status = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _is_file(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), status)
    except (OSError, ValueError):
        return False
