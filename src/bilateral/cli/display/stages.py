"""Show how far one large solve is, and how long it still takes."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from bilateral.cli.display.console import is_interactive, print_message, stderr_console
from bilateral.cli.display.progress import LINE_SECONDS, duration

if TYPE_CHECKING:
    from rich.progress import Progress


class StageProgress:
    """A progress bar over a number of rows; a plain line every 10 seconds without a terminal."""

    def __init__(
        self, total: int, quiet: bool, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._total, self._done, self._quiet, self._clock = total, 0, quiet, clock
        self._start = self._last_line = clock()
        self._stage = ""
        self._bar: Progress | None = None
        if is_interactive(quiet):
            from rich import progress

            columns = (
                progress.TextColumn("{task.description}"),
                progress.BarColumn(30),
                progress.TaskProgressColumn(),
                progress.TimeRemainingColumn(),
            )
            self._bar = progress.Progress(*columns, console=stderr_console(), transient=True)
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> "StageProgress":
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

    def start(self, stage: str) -> None:
        """Name what happens now."""
        self._stage = stage
        if self._bar is not None:
            self._bar.update(self._task, description=stage)

    def advance(self, rows: int) -> None:
        """Count some more rows."""
        self._done += rows
        if self._bar is not None:
            self._bar.update(self._task, advance=rows)
        elif not self._quiet and self._clock() - self._last_line >= LINE_SECONDS:
            self._last_line = self._clock()
            left = (self._clock() - self._start) / self._done * (self._total - self._done)
            share = self._done / self._total
            print_message(f"{self._stage}, {share:.0%} done, {duration(left)} left")
