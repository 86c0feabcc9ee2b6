"""Write one line of JSON per file, and read the lines of earlier runs to continue them."""

import json
import os
from pathlib import Path
from typing import Self

from bilateral.cli.record import Record
from bilateral.io.errors import FileError
from bilateral.io.messages import os_reason, printable


class Manifest:
    """A file with the outcome of each file, one per line. The last line about a file counts.

    Each line is written at once, so that a killed run leaves at most one incomplete line, and
    several runs on one machine may share the file.

    Parameters
    ----------
    path : str
        A file that need not exist.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            # O_NONBLOCK: opening a pipe must not wait for its reader.
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
            self._handle = os.open(path, flags, 0o666)
            text = Path(path).read_bytes()
        except OSError as error:
            raise FileError(f"{printable(path)}: cannot be used: {os_reason(error)}.") from None
        self._status = _parse(text, path)
        self.resumed = bool(self._status)
        """Whether earlier runs wrote this manifest."""
        if text and not text.endswith(b"\n"):
            self._write(b"\n")  # ends the line that a killed run left

    def is_done(self, file: str) -> bool:
        """Return whether an earlier run had the result of a file."""
        return self._status.get(file) in ("done", "skipped")

    def add(self, record: Record) -> None:
        """Append the outcome of a file, unless the manifest has it already."""
        if record.status == "skipped" and self.is_done(record.input):
            return
        entries = {
            "file": record.input,
            "output": record.output,
            "status": record.status,
            "seconds": round(record.seconds, 4),
            "message": record.error or "; ".join(record.warnings),
        }
        self._write(json.dumps(entries).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._handle, line)
        except OSError as error:
            message = f"{printable(self._path)}: cannot be written: {os_reason(error)}."
            raise FileError(message) from None


def _parse(text: bytes, path: str) -> dict[str, str]:
    """Return the last status of each file."""
    status: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not line.startswith(b"{"):
            raise FileError(
                f"{printable(path)}: line {number} is no JSON: expected a manifest of an earlier "
                f"run. Choose another name for --manifest."
            )
        try:
            entries = json.loads(line)
            status[entries["file"]] = entries["status"]
        except (ValueError, KeyError, TypeError):  # a killed run wrote only a part of the line
            continue
    return status
