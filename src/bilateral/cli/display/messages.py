"""Print the errors and warnings of a batch; those that many files share become one line."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bilateral.cli.display.console import print_message
from bilateral.io.messages import printable

if TYPE_CHECKING:
    from bilateral.cli.record import Record

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


def print_messages(records: Sequence["Record"], verbose: bool) -> None:
    """Print warnings and errors in the order of the files.

    Errors that differ only in the names of files, and warnings that also differ in numbers, are
    one line with their count. With `verbose`, each one is a line.
    """
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for number, (text, kind) in enumerate(_messages(records)):
        group = f"{number}" if verbose else kind
        first.setdefault(group, text)
        counts[group] = counts.get(group, 0) + 1
    for group, text in first.items():
        more = f" ({counts[group]} files; --verbose lists them)" if counts[group] > 1 else ""
        print_message(text + more)


def _messages(records: Sequence["Record"]) -> Iterator[tuple[str, str]]:
    """Yield each message with a text that is equal for all messages of its kind."""
    for record in records:
        if record.error is not None:  # without a result, its warnings do not matter
            yield record.error, _without_names(record.error, record.names)
            continue
        for warning in record.warnings:
            text = f"{printable(record.input)}: {warning}"
            yield text, _NUMBER.sub("#", _without_names(text, record.names))


def _without_names(text: str, names: Sequence[str]) -> str:
    for name in sorted(set(map(printable, names)), key=len, reverse=True):
        if name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "*", text)
    return text
