"""Show a progress bar while a batch runs, and print a summary at its end."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from bilateral.cli.display.console import stderr_console
from bilateral.io.messages import printable, size_text

if TYPE_CHECKING:
    from rich.progress import Progress

    from bilateral.cli.batch import Record


class BatchProgress:
    """A progress bar with rate and remaining time, and a summary.

    Parameters
    ----------
    total : int
        Number of files.
    many : bool
        Show a bar and a table. Otherwise the summary is one line.
    interactive : bool
        If false, nothing is shown.
    """

    def __init__(self, total: int, many: bool, interactive: bool) -> None:
        self._many, self._interactive = many, interactive
        self._start = time.perf_counter()
        self._processed = 0
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
        if self._bar is None:
            return
        self._processed += record.status != "skipped"
        rate = f"{self._processed / (time.perf_counter() - self._start):.1f}/s"
        self._bar.update(self._task, advance=1, rate=rate)

    def print_summary(self, records: Sequence["Record"]) -> None:
        """Print the number of files by status, the rate, and the means of the metrics."""
        if not self._interactive:
            return
        if not self._many:
            for record in records:
                _print_line(record)
            return
        seconds = time.perf_counter() - self._start
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
