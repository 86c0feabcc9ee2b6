"""Which files belong together: single ones, folders and patterns, matched by name."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilateral.io.errors import FileError
from bilateral.io.formats import SUFFIXES
from bilateral.io.messages import printable

PREVIEW = ".preview.png"
_WILD = re.compile(r"[*?[]")


class UsageError(Exception):
    """Wrong arguments; the message is one line."""


@dataclass(frozen=True)
class Source:
    """What was given for one input: one file for all, or many, by the part of names that varies."""

    given: str
    single: Path | None = None
    many: dict[str, list[Path]] = field(default_factory=dict)

    def find(self, key: str) -> Path:
        """The one file for a key."""
        if self.single is not None:
            return self.single
        found = self.many.get(key, [])
        if len(found) == 1:
            return found[0]
        if not found:
            raise FileError(f"no file for {printable(key)} in {printable(self.given)}.")
        names = ", ".join(printable(path.name) for path in found[:4])
        raise FileError(f"several files for {printable(key)} in {printable(self.given)}: {names}.")


def expand(given: str) -> Source:
    """Find the files that an argument stands for.

    Parameters
    ----------
    given : str
        A file; a folder, for all files in it with a known suffix; or a pattern with ``*``, ``?``,
        ``[...]`` or, for folders in folders, ``**``.

    Returns
    -------
    Source
        A folder's files are known by their names without suffix, a pattern's by what its
        wildcards stand for.
    """
    if os.path.isdir(given):
        return _folder(given)
    if os.path.lexists(given) or not _WILD.search(given):
        return Source(given, Path(given))
    many: dict[str, list[Path]] = {}
    for key, path in sorted(_matches(given)):
        many.setdefault(key, []).append(path)
    if not many:
        raise UsageError(f"no file matches {printable(given)}.")
    return Source(given, many=many)


def leader(sources: Sequence[Source]) -> Source:
    """The one whose files are gone through: the first of many files, else the first."""
    return next((source for source in sources if source.single is None), sources[0])


def _folder(given: str) -> Source:
    many: dict[str, list[Path]] = {}
    try:
        names = sorted(os.listdir(given))
    except OSError as error:
        raise FileError(f"{printable(given)}: cannot be read: {error.strerror}.") from None
    for name in names:
        path = Path(given, name)
        if _is_input(name) and not path.is_dir():
            many.setdefault(path.stem, []).append(path)
    if not many:
        raise UsageError(f"no picture in the folder {printable(given)}.")
    return Source(given, many=many)


def _is_input(name: str) -> bool:
    known = os.path.splitext(name)[1].lower() in SUFFIXES
    return known and not name.startswith(".") and not name.endswith(PREVIEW)


def _matches(pattern: str) -> Iterator[tuple[str, Path]]:
    """Paths that fit a pattern, each with what the wildcards stand for."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if _WILD.search(part))
    root = "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")
    yield from _walk(Path(root), parts[first:], ())


def _walk(folder: Path, parts: list[str], found: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    part, *rest = parts
    if part == "**":
        if rest:
            yield from _walk(folder, rest, found)
        for name in _names(folder):
            path = folder / name
            if not name.startswith(".") and path.is_dir() and not path.is_symlink():  # may loop
                yield from _walk(path, parts, (*found, name))
        return
    expression, open_end = _expression(part)
    for name in _names(folder):
        fits = expression.fullmatch(name)
        if fits is None or (name.startswith(".") and not part.startswith(".")):
            continue
        path, known = folder / name, (*found, *fits.groups())
        if rest and path.is_dir():
            yield from _walk(path, rest, known)
        elif not rest and not path.is_dir() and not name.endswith(PREVIEW):
            key = "/".join(known)
            yield (os.path.splitext(key)[0] if open_end else key), path


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _expression(part: str) -> tuple[re.Pattern[str], bool]:
    """A part of a pattern as a regular expression; whether what it ends with holds the suffix."""
    if part.endswith(".*") and len(part) > 2:
        return re.compile(_expression(part[:-2])[0].pattern + r"\..*", re.DOTALL), False
    pieces, at, wild = [], 0, False
    while at < len(part):
        letter = part[at]
        close = part.find("]", at + 2) if letter == "[" else -1
        wild = letter in "*?" or close > 0
        if letter == "*":
            pieces.append("(.*)")
        elif letter == "?":
            pieces.append("(.)")
        elif close > 0:
            inside = part[at + 1 : close].replace("\\", "\\\\").replace("[", "\\[")
            pieces.append(f"([{'^' + inside[1:] if inside[0] == '!' else inside}])")
            at = close
        else:
            pieces.append(re.escape(letter))
        at += 1
    return re.compile("".join(pieces), re.DOTALL), wild
