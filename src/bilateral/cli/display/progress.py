"""Show a progress bar while a batch runs, and print a summary at its end."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from bilateral.cli.display.console import print_message, stderr_console
from bilateral.io.messages import printable, size_text

if TYPE_CHECKING:
    from rich.progress import Progress

    from bilateral.cli.record import Record


LINE_SECONDS = 10.0
"""Least time between two lines of progress where stderr is no terminal."""


class BatchProgress:
    """A progress bar with rate and remaining time, and a summary.

    Where stderr is no terminal, many files that take long give a plain line every 10 seconds.

    Parameters
    ----------
    total : int, optional
        Number of files, if it is known.
    many : bool
        Show a bar and a table. Otherwise the summary is one line.
    interactive : bool
        If false, there is no bar and no summary.
    quiet : bool
        If true, nothing is shown.
    clock : function
        Returns the time in seconds.
    noun : str
        What is counted.
    """

    def __init__(
        self,
        total: int | None,
        many: bool,
        interactive: bool,
        quiet: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        noun: str = "files",
    ) -> None:
        self._noun = noun
        self._many, self._interactive, self._clock = many, interactive, clock
        self._start = self._last_line = clock()
        self._total, self._finished, self._processed = total, 0, 0
        self._plain = many and not interactive and not quiet
        self._lines = 0
        self._bar: Progress | None = None
        if many and interactive:
            self._bar = _new_bar()
            self._task = self._bar.add_task("", total=total, rate="")

    def __enter__(self) -> "BatchProgress":
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
        """Count one more file."""
        self.count(processed=record.status != "skipped")

    def count(self, *, processed: bool = True) -> None:
        """Count one more; `processed` tells whether it took any work."""
        self._finished += 1
        self._processed += processed
        if self._bar is not None:
            self._bar.update(self._task, advance=1, rate=f"{self._rate():.1f}/s")
        elif self._plain:
            self._print_plain_line()

    def _rate(self) -> float:
        return self._processed / max(self._clock() - self._start, 1e-9)

    def _print_plain_line(self) -> None:
        """Print a line if the last one is old, and for the last file if there are others."""
        is_last = self._finished == self._total
        if not (is_last and self._lines) and self._clock() - self._last_line < LINE_SECONDS:
            return
        self._last_line, self._lines = self._clock(), self._lines + 1
        rate = self._rate()
        total = "" if self._total is None else f" of {self._total}"
        text = f"{self._finished}{total} {self._noun}, {rate:.3g}/s"
        if self._total is not None and self._finished < self._total and rate > 0:
            text += f", {duration((self._total - self._finished) / rate)} left"
        print_message(text)

    def print_summary(self, records: Sequence["Record"]) -> None:
        """Print the number of files by status, the rate, and the means of the metrics."""
        if not self._interactive:
            return
        if not self._many:
            for record in records:
                _print_line(record)
            return
        seconds = self._clock() - self._start
        counts = {
            status: sum(record.status == status for record in records)
            for status in ("done", "skipped", "failed")
        }
        cells = {name: str(count) for name, count in counts.items()}
        cells |= {"time": f"{seconds:.1f} s", "rate": f"{counts['done'] / seconds:.1f}/s"}
        _print_table([cells])
        means = _mean_metrics(records)
        if means:
            rows = [
                {"means": stage} | {name: f"{value:.4g}" for name, value in metrics.items()}
                for stage, metrics in means.items()
            ]
            _print_table(rows)


def _new_bar() -> "Progress":
    from rich import progress

    columns = (
        progress.BarColumn(30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=stderr_console(), transient=True)


def duration(seconds: float) -> str:
    """Return a time as text, such as 1 h 05 min.

    Examples
    --------
    >>> duration(7.6), duration(90), duration(3900)
    ('8 s', '1 min 30 s', '1 h 05 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _print_line(record: "Record") -> None:
    if record.status == "failed":
        return
    text = "stdout" if record.output is None else printable(record.output)
    if record.status == "skipped":
        text += "  skipped: it exists already"
    else:
        text += f"  {size_text(record.shape or ())} {record.dtype}, {record.seconds:.2f} s"
        for stage, metrics in _mean_metrics([record]).items():
            text += f"; {stage}: " + ", ".join(f"{n} {value:.4g}" for n, value in metrics.items())
    stderr_console().print(text, markup=False, soft_wrap=True)


def _print_table(rows: Sequence[dict[str, str]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row.values())
    stderr_console().print(table)


def _mean_metrics(records: Sequence["Record"]) -> dict[str, dict[str, float]]:
    """Return the mean of each metric over the files that have it."""
    lists: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for stage, metrics in (record.metrics or {}).items():
            for name, value in metrics.items():
                lists.setdefault(stage, {}).setdefault(name, []).append(value)
    return {
        stage: {name: float(np.mean(values)) for name, values in metrics.items()}
        for stage, metrics in lists.items()
    }
