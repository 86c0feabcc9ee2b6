"""One task over any number of files: what fails does not stop the rest."""

import dataclasses
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

import bilateral
from bilateral import io
from bilateral.cli.commands.command import Files, Task
from bilateral.cli.commands.options import Shared
from bilateral.cli.demo import errors as measures
from bilateral.cli.display.console import complain, watched
from bilateral.cli.display.progress import Display
from bilateral.cli.display.warning_log import collected
from bilateral.cli.files import outputs
from bilateral.cli.files.pairing import Source, UsageError, expand, leader
from bilateral.io import atomic
from bilateral.io.messages import one_line, printable

FAILED = 1


@dataclasses.dataclass
class Record:
    """How it went with one file; a line of ``--json``."""

    input: str
    output: str | None = None
    status: Literal["done", "skipped", "failed"] = "done"
    seconds: float = 0.0
    shape: list[int] | None = None
    dtype: str | None = None
    figures: measures.Figures | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)
    error: str | None = None

    def line(self) -> str:
        """As JSON, without what does not apply."""
        found = {k: v for k, v in dataclasses.asdict(self).items() if v not in (None, [])}
        return json.dumps(found | {"seconds": round(self.seconds, 4)})


@dataclasses.dataclass(frozen=True)
class Batch:
    """The files of a task, and where each result goes."""

    task: Task
    shared: Shared
    sources: dict[str, Source]
    lead: Source
    where: Callable[[Path, str], Path]

    @classmethod
    def of(cls, task: Task, shared: Shared) -> "Batch":
        """Look at all files before the work starts."""
        given = {**task.inputs, "truth": shared.truth}
        sources = {name: expand(text) for name, text in given.items() if text is not None}
        lead = leader([sources[name] for name in list(task.inputs)[:2]])
        many = lead.single is None
        wanted = outputs.suffix_of(shared.format)
        where = outputs.place(shared.output, many, task.suffix, wanted)
        _check(shared, many)
        return cls(task, shared, sources, lead, where)

    @property
    def keys(self) -> list[str]:
        """What tells the sets of files apart."""
        return list(self.lead.many) if self.lead.single is None else [self.lead.single.stem]

    def do(self, key: str) -> tuple[Record, str]:
        """Everything about one set of files, and its section of the report."""
        record, began, section = Record(key), time.perf_counter(), ""
        try:
            lead = self.lead.find(key)
            record.input = str(lead)
            path = self.where(lead, key)
            if self.shared.output != outputs.STDOUT:
                record.output = str(path)
            if self.shared.skip_existing and path.is_file():
                record.status = "skipped"
            else:
                with collected(record.warnings):
                    section = self._work(key, path, record)
        except Exception as error:
            record.status, record.error = "failed", _message(error, record.input)
            if self.shared.debug:
                traceback.print_exception(error)
        record.seconds = time.perf_counter() - began
        return record, section

    def _work(self, key: str, path: Path, record: Record) -> str:
        """Read, call the task, write."""
        shared, to_stdout = self.shared, self.shared.output == outputs.STDOUT
        if not to_stdout:
            outputs.must_not_exist(path, shared.force)
        paths = {name: source.find(key) for name, source in self.sources.items()}
        result = self.task.work(Files(paths, path.suffix.lower()))
        truth = None
        if "truth" in paths:
            truth = self.task.truth(paths["truth"])
            record.figures = measures.figures(self.task.kind, result, truth)
        record.shape, record.dtype = list(result.output.shape), str(result.output.dtype)
        data = io.encode(result.output, path, pages=result.pages)
        if shared.preview:  # first, so that where there is a result, nothing else is missing
            from bilateral.cli.display.previews import preview

            picture = io.encode(preview(self.task.kind, result.shown, shared.range), "x.png")
            outputs.save(outputs.preview_of(path), picture, force=True)
        outputs.save(path, data, to_stdout=to_stdout, force=shared.force)
        if not shared.report:
            return ""
        from bilateral.cli.report import page as report

        return report.section(
            record.input, self.task.kind, result, truth, record.figures, shared.range
        )


def run(task: Task, shared: Shared) -> int:
    """Do a task for all its files, tell how it went, and return the exit code."""
    batch = Batch.of(task, shared)
    many = batch.lead.single is None
    records: dict[str, Record] = {}
    sections: dict[str, str] = {}
    with Display(len(batch.keys), many, watched(shared.quiet)) as display:
        for key, record, section in _all(batch):
            records[key], sections[key] = record, section
            if shared.json:
                print(record.line(), flush=True)
            display.advance(record)
    if shared.report is not None and any(sections.values()):
        from bilateral.cli.report import page as report

        outputs.make_folder(Path(shared.report).parent)
        parts = [
            sections[key] or report.note(records[key].input, records[key].error)
            for key in batch.keys
        ]
        page = report.page("bilateral", parts)
        atomic.write_bytes(shared.report, page, overwrite=shared.force)
    display.sum_up(list(records.values()))
    for record in (records[key] for key in batch.keys):
        for text in record.warnings:
            complain(f"{printable(record.input)}: {text}")
        if record.error is not None:
            complain(record.error)
    return FAILED if any(record.status == "failed" for record in records.values()) else 0


def _all(batch: Batch) -> Iterator[tuple[str, Record, str]]:
    """Each set of files as it is done."""
    keys = batch.keys
    cores = bilateral.get_num_threads()
    jobs = min(batch.shared.jobs or cores, len(keys))
    if jobs == 1:
        for key in keys:
            yield key, *batch.do(key)
        return
    bilateral.set_num_threads(max(1, cores // jobs))
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {pool.submit(batch.do, key): key for key in keys}
        for future in as_completed(futures):
            yield futures.pop(future), *future.result()
    except BaseException:
        atomic.abandon()  # threads go on until the program ends, which is soon
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        bilateral.set_num_threads(cores)
    pool.shutdown()


def _check(shared: Shared, many: bool) -> None:
    to_stdout = shared.output == outputs.STDOUT
    if to_stdout and shared.json:
        raise UsageError("--json: stdout is taken by --output -.")
    if to_stdout and sys.stdout.isatty():
        raise UsageError("--output: stdout is a terminal; send it to a file or a program.")
    if to_stdout and shared.preview:
        raise UsageError("--preview: has no place beside stdout; use --report.")
    if shared.force and shared.skip_existing:
        raise UsageError("--force and --skip-existing exclude each other.")
    if shared.range is not None and not shared.range[0] < shared.range[1]:
        raise UsageError("--range: expected LOW below HIGH.")
    if shared.dtype is not None:
        outputs.parse_dtype(shared.dtype)
    if shared.report is not None:
        outputs.must_not_exist(Path(shared.report), shared.force)
    if many:
        outputs.make_folder(Path(shared.output))


def _message(error: Exception, name: str) -> str:
    """One line for people."""
    if isinstance(error, io.FileError):  # which names its file
        return str(error)
    if isinstance(error, MemoryError):
        return f"{printable(name)}: does not fit into memory."
    text = one_line(error, 500)
    if isinstance(error, ValueError | TypeError):
        return f"{printable(name)}: {text}"
    return f"{printable(name)}: unexpected {type(error).__name__}: {text} (--debug shows where)"
