"""Progress while a batch runs, and how it went at its end; for terminals only."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from bilateral.cli.display.console import console
from bilateral.io.messages import printable, size_text

if TYPE_CHECKING:
    from rich.progress import Progress

    from bilateral.cli.batch import Record


class Display:
    """A bar with rate and remaining time.

    Parameters
    ----------
    total : int
        Number of files.
    many : bool
        Whether there is more to tell than one line.
    watched : bool
        If not, nothing is shown.
    """

    def __init__(self, total: int, many: bool, watched: bool) -> None:
        self._many, self._watched = many, watched
        self._began = time.perf_counter()
        self._done = 0
        self._bar: Progress | None = None
        if many and watched:
            self._bar = _bar()
            self._task = self._bar.add_task("", total=total, rate="")

    def __enter__(self) -> "Display":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, record: "Record") -> None:
        """One more is done."""
        if self._bar is None:
            return
        self._done += record.status != "skipped"
        rate = f"{self._done / (time.perf_counter() - self._began):.1f}/s"
        self._bar.update(self._task, advance=1, rate=rate)

    def sum_up(self, records: Sequence["Record"]) -> None:
        """How many went well, how fast, and the mean of the figures."""
        if not self._watched:
            return
        if not self._many:
            for record in records:
                _tell(record)
            return
        seconds = time.perf_counter() - self._began
        counts = {
            status: sum(record.status == status for record in records)
            for status in ("done", "skipped", "failed")
        }
        cells = {name: str(count) for name, count in counts.items()}
        cells |= {"time": f"{seconds:.1f} s", "rate": f"{counts['done'] / seconds:.1f}/s"}
        _print_table([cells])
        figures = _means(records)
        if figures:
            rows = [
                {"means": when} | {name: f"{value:.4g}" for name, value in found.items()}
                for when, found in figures.items()
            ]
            _print_table(rows)


def _bar() -> "Progress":
    from rich import progress

    columns = (
        progress.BarColumn(30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=console(), transient=True)


def _tell(record: "Record") -> None:
    if record.status == "failed":
        return
    text = "stdout" if record.output is None else printable(record.output)
    if record.status == "skipped":
        text += "  skipped: it exists already"
    else:
        text += f"  {size_text(record.shape or ())} {record.dtype}, {record.seconds:.2f} s"
        for when, figures in _means([record]).items():
            text += f"; {when}: " + ", ".join(f"{n} {value:.4g}" for n, value in figures.items())
    console().print(text, markup=False, soft_wrap=True)


def _print_table(rows: Sequence[dict[str, str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.values())
    console().print(table)


def _means(records: Sequence["Record"]) -> dict[str, dict[str, float]]:
    """Of each figure over all files that have it."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for when, figures in (record.figures or {}).items():
            for name, value in figures.items():
                found.setdefault(when, {}).setdefault(name, []).append(value)
    return {
        when: {name: float(np.mean(values)) for name, values in figures.items()}
        for when, figures in found.items()
    }
