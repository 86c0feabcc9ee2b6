"""Tables, readable as plain text and valid as Markdown, and the JSON beside them."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from benchmarks.timing import Timing


def as_json(results: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        raise TypeError(f"no JSON for {type(value)}")

    return json.dumps(results, indent=1, default=plain)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its first column to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join(
        "-" * (width + 2) if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths)
    )
    return "\n".join([line(header), rule + "|", *(line(row) for row in rows)])


def ms(seconds: float) -> str:
    milliseconds = seconds * 1e3
    return f"{milliseconds:.2f}" if milliseconds < 10 else f"{milliseconds:.1f}"


def spread(timing: Timing) -> str:
    return f"{ms(timing.median)} ({ms(timing.low)} .. {ms(timing.high)})"


def cores(busy: float | None) -> str:
    return "unknown" if busy is None else f"{busy:.1f}"


def met(met: bool) -> str:
    return "met" if met else "MISSED"
