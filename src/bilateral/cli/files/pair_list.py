"""Pair files by a list: a text file with the two files of a pair in each line."""

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bilateral.cli.errors import UsageError
from bilateral.cli.files.sources import Source
from bilateral.io.messages import one_line, os_reason, printable

_LIMIT = 100_000_000
"""Size of the largest list in bytes."""
_TIME = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


class _Line(NamedTuple):
    number: int
    names: tuple[str, str]


def pair(path: str, first: Source, second: Source, *, lead_first: bool) -> tuple[Source, Source]:
    """Return the listed files of two inputs, by the keys of the one that names results.

    Parameters
    ----------
    path : str
        The list. A line has two names, separated by tabs, commas or spaces, or four columns with a
        time stamp before each name. Names are relative to the folder of the list or to the folders
        of the inputs. All lines may have the other order. A line that starts with # is a comment.
    first, second : Source
        The inputs, in the order of the command line.
    lead_first : bool
        Whether `first` names results.
    """
    for source in (first, second):
        if source.single is not None:
            raise UsageError(
                f"--pair: a list needs folders or patterns, got the file "
                f"{printable(source.argument)}."
            )
    lines = _read(path)
    indices = [_Index(source, Path(path).parent) for source in (first, second)]
    pairs = _look_up(path, lines, indices)
    lead = 0 if lead_first else 1
    keyed: list[dict[str, Sequence[Path]]] = [{}, {}]
    line_of: dict[str, int] = {}
    for line, files in zip(lines, pairs, strict=True):
        key = files[lead][0]
        if key in line_of:
            raise UsageError(
                f"{_place(path, line)}: {printable(files[lead][1])} has the same result as the "
                f"file in line {line_of[key]}. List each file once."
            )
        line_of[key] = line.number
        for paths, (_, file) in zip(keyed, files, strict=True):
            paths[key] = [file]
    return (
        dataclasses.replace(first, many=keyed[0]),
        dataclasses.replace(second, many=keyed[1]),
    )


class _Index:
    """Files of one input by their resolved paths."""

    def __init__(self, source: Source, list_folder: Path) -> None:
        self.argument = source.argument
        self._folders = (list_folder, source.folder, source.folder.parent)
        self._files = {
            os.path.realpath(path): (key, path)
            for key, paths in source.many.items()
            for path in paths
        }

    def find(self, name: str) -> tuple[str, Path] | None:
        """Return the key and the path of a listed file, or None if it is no file of the input."""
        candidates = (os.path.realpath(folder / name) for folder in self._folders)
        return next((self._files[path] for path in candidates if path in self._files), None)


def _look_up(
    path: str, lines: Sequence[_Line], indices: Sequence[_Index]
) -> list[list[tuple[str, Path]]]:
    """Return the files of each line, in the order of the inputs."""
    problem = ""
    for step in (1, -1):  # the order of the command line, then the other one
        pairs = []
        for line in lines:
            found = [i.find(name) for i, name in zip(indices, line.names[::step], strict=True)]
            pairs.append([file for file in found if file is not None])
            if len(pairs[-1]) < 2:
                at = found.index(None)
                problem = problem or (
                    f"{_place(path, line)}: {printable(line.names[::step][at])} is no file of "
                    f"{printable(indices[at].argument)}. Names are relative to the folder of the "
                    f"list or to the folders of the command."
                )
                break
        else:
            return pairs
    raise UsageError(problem)


def _read(path: str) -> list[_Line]:
    """Return the pairs of names in a list, with the numbers of their lines."""
    if not os.path.isfile(path):
        raise UsageError(
            f"--pair: expected name, sorted, nearest or a list file, got {printable(path)}, which "
            f"is no file."
        )
    try:
        with open(path, "rb") as file:
            data = file.read(_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read: {os_reason(error)}.") from None
    if len(data) > _LIMIT:
        raise UsageError(f"{printable(path)}: expected a list of files, got more than 100 MB.")
    if b"\0" in data:
        raise UsageError(f"{printable(path)}: expected a list of files as text, got other data.")
    lines = []
    for number, text in enumerate(os.fsdecode(data).removeprefix("\ufeff").split("\n"), 1):
        if text.strip() and not text.lstrip().startswith("#"):
            lines.append(_parse(path, number, text.strip()))
    if not lines:
        raise UsageError(f"{printable(path)}: expected a list of files, got no line with names.")
    return lines


def _parse(path: str, number: int, text: str) -> _Line:
    separator = next((letter for letter in "\t," if letter in text), None)
    words = [word.strip() for word in text.split(separator)]
    if len(words) == 4 and all(_TIME.fullmatch(word) for word in words[::2]):
        words = words[1::2]
    if len(words) != 2 or not all(words):
        raise UsageError(
            f"{printable(path)}, line {number}: expected two file names, or a time stamp before "
            f"each of them, got {one_line(text, 100)}. Separate names with spaces by a tab or a "
            f"comma."
        )
    return _Line(number, (words[0], words[1]))


def _place(path: str, line: _Line) -> str:
    return f"{printable(path)}, line {line.number}"
