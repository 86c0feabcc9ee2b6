"""Find the files that an argument names: a file, a folder or a pattern."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bilateral.cli.errors import UsageError
from bilateral.cli.files import patterns
from bilateral.io.errors import FileError
from bilateral.io.formats import SUFFIXES
from bilateral.io.messages import printable

PREVIEW_SUFFIX = ".preview.png"


@dataclass(frozen=True)
class Source:
    """Files of one input: either a single file for all keys, or many files by key.

    The key of a file is the part of its name that differs between the files.
    """

    argument: str
    single: Path | None = None
    many: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    folder: Path = Path()
    """Folder that holds all files, maybe in other folders within it."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why there is no file for a key."""

    def find(self, key: str) -> Path:
        """Return the only file for a key."""
        if self.single is not None:
            return self.single
        paths = self.many.get(key, ())
        if len(paths) == 1:
            return paths[0]
        wanted, source = printable(key or "wildcards without text"), printable(self.argument)
        if not paths:
            raise FileError(self.reasons.get(key, f"no file for {wanted} in {source}."))
        names = ", ".join(printable(path.name) for path in paths[:4])
        raise FileError(f"several files for {wanted} in {source}: {names}.")


def expand(argument: str, more_suffixes: Sequence[str] = ()) -> Source:
    """Find the files that an argument names.

    Parameters
    ----------
    argument : str
        A file; a folder, for all files in it with a known suffix; or a pattern with ``*``, ``?``,
        ``[...]`` or, for folders within folders, ``**``.
    more_suffixes : sequence of str
        Suffixes of files in a folder, beside those of pictures.

    Returns
    -------
    Source
        In a folder, the key of a file is its name without suffix. For a pattern, the key is the
        text that the wildcards match, without the suffix.
    """
    if os.path.isdir(argument):
        return _expand_folder(argument, (*SUFFIXES, *more_suffixes))
    if os.path.lexists(argument) or not patterns.has_wildcard(argument):
        return Source(argument, Path(argument))
    keys: dict[Path, str] = {}
    for key, path in sorted(patterns.matches(argument)):
        if not path.name.endswith(PREVIEW_SUFFIX):
            keys.setdefault(path, key)
    if not keys:
        raise UsageError(f"no file matches {printable(argument)}.")
    many: dict[str, list[Path]] = {}
    for path, key in keys.items():
        many.setdefault(key, []).append(path)
    return Source(argument, many=many, folder=patterns.fixed_folder(argument))


def _expand_folder(folder: str, suffixes: Sequence[str]) -> Source:
    many: dict[str, list[Path]] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise FileError(f"{printable(folder)}: cannot be read: {error.strerror}.") from None
    for name in names:
        path = Path(folder, name)
        if _is_input(name, suffixes) and not path.is_dir():
            many.setdefault(path.stem, []).append(path)
    if not many:
        raise UsageError(f"no picture in the folder {printable(folder)}.")
    return Source(folder, many=many, folder=Path(folder))


def _is_input(name: str, suffixes: Sequence[str]) -> bool:
    has_known_suffix = os.path.splitext(name)[1].lower() in suffixes
    return has_known_suffix and not name.startswith(".") and not name.endswith(PREVIEW_SUFFIX)
