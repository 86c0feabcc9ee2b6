"""Write tables that are readable as plain text and valid as Markdown, verdicts, and JSON."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Formatter
from typing import Any

from benchmarks.common.timing import Timing, ms, short

Row = Mapping[str, Any]

OTHERS = "other work | {other_work:cores}"  # cores that other processes kept busy meanwhile


def as_json(results: Any) -> str:
    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        raise TypeError(f"no JSON for {type(value)}")

    return json.dumps(results, indent=1, default=plain)


class _MissingError(Exception):
    """A cell's value is None."""


class _Cell(Formatter):
    """`str.format` with the formats ``ms`` (of seconds), ``short`` and ``cores``."""

    def format_field(self, value: Any, spec: str) -> str:
        if spec == "cores":
            return cores(value)
        if value is None:
            raise _MissingError
        named = {"ms": ms, "short": short}.get(spec) if isinstance(value, float) else None
        return named(value) if named else format(value, spec)


def table(rows: Iterable[Row], *columns: str, missing: str = "-") -> str:
    """Write one line per row, with the first column to the left and the others to the right.

    A column is "header | format", where the format refers to keys of a row, as in
    ``{ours[median]:.2f}``. One text may hold several columns, separated by "; ". A cell whose value
    is None is `missing`.
    """
    pairs = [column.partition(" | ")[::2] for text in columns for column in text.split("; ")]

    def cell(format_: str, row: Row) -> str:
        try:
            return _Cell().vformat(format_, (), row)
        except _MissingError:
            return missing

    return text_table([h for h, _ in pairs], [[cell(f, row) for _, f in pairs] for row in rows])


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        pairs = zip(cells, widths, strict=True)
        first, *others = [f"{c:>{w}}" if i else f"{c:<{w}}" for i, (c, w) in enumerate(pairs)]
        return "| " + " | ".join([first, *others]) + " |"

    dashes = ("-" * (w + 1) + ":" if i else "-" * (w + 2) for i, w in enumerate(widths))
    return "\n".join([line(header), "|" + "|".join(dashes) + "|", *map(line, rows)])


def cores(busy: float | None) -> str:
    return "unknown" if busy is None else f"{busy:.1f}"


def met(reached: bool) -> str:
    return "met" if reached else "MISSED"


def at_most(value: float, limit: float, spec: str = ".2f") -> str:
    return f"{value:{spec}} (target at most {limit:{spec}}: {met(value <= limit)})"


def at_least(value: float, limit: float, spec: str = ".2f") -> str:
    return f"{value:{spec}} (target at least {limit:{spec}}: {met(value >= limit)})"


def page(*parts: str | None) -> str:
    """Join the parts of a text that are not empty."""
    return "\n\n".join(part for part in parts if part)


def bullets(title: str, lines: Iterable[str]) -> str:
    return page(title, "\n".join(f"- {line}" for line in lines))


def behind(losses: Sequence[str], none: str) -> str:
    """List what is worse than a peer or the paper; say `none` if nothing is."""
    return bullets("**Behind**:", losses) if losses else none


def spread(values: Mapping[str, Any]) -> str:
    """List all timings among nested values."""

    def find(value: Any, *names: str) -> Iterator[Row]:
        if isinstance(value, Timing):
            yield {"name": ", ".join(names[:-1]), "what": names[-1], "timing": value}
        parts = enumerate(value) if isinstance(value, list) else getattr(value, "items", tuple)()
        for name, part in parts:
            yield from find(part, *names, str(name))

    columns = " | {name}; call | {what}; ms | {timing}"
    return page("## Times in ms: median (quartiles)", table(list(find(values)), columns))


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
