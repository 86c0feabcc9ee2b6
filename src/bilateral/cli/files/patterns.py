"""Find the files that match a pattern, each with the text that its wildcards match."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bilateral.cli.errors import UsageError
from bilateral.io.messages import printable

_WILDCARD = re.compile(r"[*?[]")


def has_wildcard(text: str) -> bool:
    """Return whether a text contains a wildcard."""
    return _WILDCARD.search(text) is not None


def fixed_folder(pattern: str) -> Path:
    """Return the folder before the first wildcard of a pattern."""
    parts = pattern.split("/")
    start = "/" if pattern.startswith("/") else "."
    return Path("/".join(parts[: _first_wildcard(parts)]) or start)


def matches(pattern: str) -> Iterator[tuple[str, Path]]:
    """Yield the files that match a pattern, each with its key.

    Parameters
    ----------
    pattern : str
        Path with ``*``, ``?``, ``[...]`` or, for folders within folders, ``**``.

    Yields
    ------
    key : str
        Texts of the wildcards, separated by slashes. The suffix of a file is no part of it.
    path : Path
    """
    parts = pattern.split("/")
    if parts[-1] == "**":
        parts.append("*")
    *folders, last = parts[_first_wildcard(parts) :]
    steps = [
        _Step(part, () if part == "**" else (_expression(part),))
        for part, before in zip(folders, ["", *folders], strict=False)
        if (part, before) != ("**", "**")
    ]
    steps.append(_Step(last, _file_expressions(last)))
    yield from _walk(fixed_folder(pattern), steps, ())


def _first_wildcard(parts: list[str]) -> int:
    return next(i for i, part in enumerate(parts) if has_wildcard(part))


class _Step(NamedTuple):
    """One part of a pattern, with its regular expressions; none for ``**``."""

    part: str
    expressions: tuple[re.Pattern[str], ...]

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts that the wildcards match, or None if the name does not match."""
        if name.startswith(".") and not self.part.startswith("."):
            return None
        found = (expression.fullmatch(name) for expression in self.expressions)
        return next((match.groups() for match in found if match), None)


def _walk(
    folder: Path, steps: Sequence[_Step], matched: tuple[str, ...]
) -> Iterator[tuple[str, Path]]:
    step, rest = steps[0], steps[1:]
    if not step.expressions:
        yield from _walk(folder, rest, matched)
        for name in _list_names(folder):
            path = folder / name
            # Links between folders may form a loop.
            if not name.startswith(".") and path.is_dir() and not path.is_symlink():
                yield from _walk(path, steps, (*matched, name))
        return
    for name in _list_names(folder):
        texts, path = step.texts(name), folder / name
        if texts is None:
            continue
        if rest and path.is_dir():
            yield from _walk(path, rest, (*matched, *texts))
        elif not rest and not path.is_dir():
            yield "/".join((*matched, *texts)), path


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _expression(part: str) -> re.Pattern[str]:
    """Return a part of a pattern as a regular expression with one group for each wildcard."""
    return re.compile(_grouped(part), re.DOTALL)


def _file_expressions(part: str) -> tuple[re.Pattern[str], ...]:
    """Return the last part of a pattern as regular expressions whose groups exclude the suffix.

    The first one applies to names whose suffix matches the pattern after its last dot. In other
    names, a ``*`` at the end of the pattern covers the suffix.
    """
    grouped = _grouped(part)
    if part.endswith("*"):
        grouped = grouped.removesuffix("(.*)") + r"(.*?)(?:\.[^.]*)?"
    expressions = [re.compile(grouped, re.DOTALL)]
    at = max((at for at, token in _tokens(part) if token == "."), default=0)
    if at > 0:
        suffix = "".join(_regex(token) for _, token in _tokens(part[at:]))
        split = rf"{_grouped(part[:at])}(?=\.[^.]*\Z){suffix}"
        expressions.insert(0, re.compile(split, re.DOTALL))
    return tuple(expressions)


def _grouped(part: str) -> str:
    return "".join(
        f"({_regex(token)})" if _is_wildcard(token) else re.escape(token)
        for _, token in _tokens(part)
    )


def _tokens(part: str) -> Iterator[tuple[int, str]]:
    """Yield the wildcards and the other letters of a part of a pattern, with their positions."""
    at = 0
    while at < len(part):
        length = len(part) - at - len(part[at:].lstrip("*")) or 1
        if part[at] == "[":
            # A bracket right after the opening one, or after its "!", is a letter of the set.
            close = part.find("]", at + 2 + (part[at + 1 : at + 2] in ("!", "^")))
            length = max(close + 1 - at, 1)
        yield at, part[at : at + length]
        at += length


def _is_wildcard(token: str) -> bool:
    return token[0] in "*?" or len(token) > 1


def _regex(token: str) -> str:
    if token[0] in "*?":
        return ".*" if token[0] == "*" else "."
    return _letter_set(token) if len(token) > 1 else re.escape(token)


def _letter_set(token: str) -> str:
    """Return ``[...]`` of a pattern as a regular expression."""
    inside = token[1:-1]
    negated = inside[0] in "!^"
    letters, pieces, at = inside[negated:], "", 0
    while at < len(letters):
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            low, high = letters[at], letters[at + 2]
            if low > high:
                raise UsageError(
                    f"{printable(token)}: expected a range from a lower to a higher letter, "
                    f"got {printable(low)}-{printable(high)}. Write {printable(high)}-"
                    f"{printable(low)}, or put the - at the end of the brackets."
                )
            pieces += f"{re.escape(low)}-{re.escape(high)}"
            at += 3
        else:
            pieces += re.escape(letters[at])
            at += 1
    return f"[{'^' if negated else ''}{pieces}]"
