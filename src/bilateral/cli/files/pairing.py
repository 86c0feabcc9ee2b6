"""Find the files of folders and patterns, and match those that belong together by name."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilateral.cli.errors import UsageError
from bilateral.io.errors import FileError
from bilateral.io.formats import SUFFIXES
from bilateral.io.messages import printable

PREVIEW_SUFFIX = ".preview.png"
_WILDCARD = re.compile(r"[*?[]")


@dataclass(frozen=True)
class Source:
    """Files of one input: either a single file for all keys, or many files by key.

    The key of a file is the part of its name that differs between the files.
    """

    argument: str
    single: Path | None = None
    many: dict[str, list[Path]] = field(default_factory=dict)

    def find(self, key: str) -> Path:
        """Return the only file for a key."""
        if self.single is not None:
            return self.single
        paths = self.many.get(key, [])
        if len(paths) == 1:
            return paths[0]
        source = printable(self.argument)
        if not paths:
            raise FileError(f"no file for {printable(key)} in {source}.")
        names = ", ".join(printable(path.name) for path in paths[:4])
        raise FileError(f"several files for {printable(key)} in {source}: {names}.")


def expand(argument: str) -> Source:
    """Find the files that an argument names.

    Parameters
    ----------
    argument : str
        A file; a folder, for all files in it with a known suffix; or a pattern with ``*``, ``?``,
        ``[...]`` or, for folders within folders, ``**``.

    Returns
    -------
    Source
        In a folder, the key of a file is its name without suffix. For a pattern, the key is the
        text that the wildcards match.
    """
    if os.path.isdir(argument):
        return _expand_folder(argument)
    if os.path.lexists(argument) or not _WILDCARD.search(argument):
        return Source(argument, Path(argument))
    many: dict[str, list[Path]] = {}
    for key, path in sorted(_matches(argument)):
        many.setdefault(key, []).append(path)
    if not many:
        raise UsageError(f"no file matches {printable(argument)}.")
    return Source(argument, many=many)


def leading_source(sources: Sequence[Source]) -> Source:
    """Return the source whose keys are processed: the first with many files, else the first."""
    return next((source for source in sources if source.single is None), sources[0])


def _expand_folder(folder: str) -> Source:
    many: dict[str, list[Path]] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise FileError(f"{printable(folder)}: cannot be read: {error.strerror}.") from None
    for name in names:
        path = Path(folder, name)
        if _is_input(name) and not path.is_dir():
            many.setdefault(path.stem, []).append(path)
    if not many:
        raise UsageError(f"no picture in the folder {printable(folder)}.")
    return Source(folder, many=many)


def _is_input(name: str) -> bool:
    has_known_suffix = os.path.splitext(name)[1].lower() in SUFFIXES
    return has_known_suffix and not name.startswith(".") and not name.endswith(PREVIEW_SUFFIX)


def _matches(pattern: str) -> Iterator[tuple[str, Path]]:
    """Yield the paths that match a pattern, each with the text that the wildcards match."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARD.search(part))
    root = "/".join(parts[:first]) or ("/" if pattern.startswith("/") else ".")
    yield from _walk(Path(root), parts[first:], ())


def _walk(folder: Path, parts: list[str], matched: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    part, *rest = parts
    if part == "**":
        if rest:
            yield from _walk(folder, rest, matched)
        for name in _list_names(folder):
            path = folder / name
            # Links between folders may form a loop.
            if not name.startswith(".") and path.is_dir() and not path.is_symlink():
                yield from _walk(path, parts, (*matched, name))
        return
    expression, ends_with_wildcard = _expression(part)
    for name in _list_names(folder):
        match = expression.fullmatch(name)
        if match is None or (name.startswith(".") and not part.startswith(".")):
            continue
        path, texts = folder / name, (*matched, *match.groups())
        if rest and path.is_dir():
            yield from _walk(path, rest, texts)
        elif not rest and not path.is_dir() and not name.endswith(PREVIEW_SUFFIX):
            key = "/".join(texts)
            yield (os.path.splitext(key)[0] if ends_with_wildcard else key), path


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _expression(part: str) -> tuple[re.Pattern[str], bool]:
    """Return one part of a pattern as a regular expression, and whether it ends with a wildcard.

    The text of a wildcard at the end contains the suffix of the file.
    """
    if part.endswith(".*") and len(part) > 2:
        return re.compile(_expression(part[:-2])[0].pattern + r"\..*", re.DOTALL), False
    pieces, at, is_wildcard = [], 0, False
    while at < len(part):
        letter = part[at]
        close = part.find("]", at + 2) if letter == "[" else -1
        is_wildcard = letter in "*?" or close > 0
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
    return re.compile("".join(pieces), re.DOTALL), is_wildcard
