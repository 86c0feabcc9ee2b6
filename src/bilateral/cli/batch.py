"""Run one command on any number of files. A file that fails does not stop the others."""

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
from bilateral.cli.command import Command, FileSet
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.console import is_interactive, print_message, write_stdout
from bilateral.cli.display.progress import BatchProgress
from bilateral.cli.display.warning_log import collect_warnings
from bilateral.cli.errors import FAILED, StdoutError, UsageError
from bilateral.cli.files import outputs
from bilateral.cli.files.pairing import Source, expand, leading_source
from bilateral.cli.report.metrics import Metrics, measure
from bilateral.io import atomic
from bilateral.io.errors import AlreadyExistsError
from bilateral.io.messages import one_line, printable


@dataclasses.dataclass
class Record:
    """Outcome of one set of files: one line of ``--json``."""

    input: str
    output: str | None = None
    status: Literal["done", "skipped", "failed"] = "done"
    seconds: float = 0.0
    shape: list[int] | None = None
    dtype: str | None = None
    metrics: Metrics | None = None
    """Errors before and after, with ``--truth``; in JSON their name is "figures"."""
    warnings: list[str] = dataclasses.field(default_factory=list)
    error: str | None = None

    def to_json(self) -> str:
        """Return one line of JSON, without empty fields."""
        entries = {
            "figures" if name == "metrics" else name: value
            for name, value in dataclasses.asdict(self).items()
            if value not in (None, [])
        }
        return json.dumps(entries | {"seconds": round(self.seconds, 4)})


@dataclasses.dataclass(frozen=True)
class Batch:
    """The files of a command, and the paths of their results."""

    command: Command
    common: CommonOptions
    sources: dict[str, Source]
    leading: Source
    output_path: Callable[[Path, str], Path]

    @classmethod
    def plan(cls, command: Command, common: CommonOptions) -> "Batch":
        """Find all files and check the options, before the work starts."""
        arguments = {**command.inputs, "truth": common.truth}
        sources = {name: expand(text) for name, text in arguments.items() if text is not None}
        leading = leading_source([sources[name] for name in list(command.inputs)[:2]])
        many = leading.single is None
        suffix = outputs.format_suffix(common.format)
        output_path = outputs.output_paths(common.output, many, command.default_suffix, suffix)
        _check_options(common, many)
        return cls(command, common, sources, leading, output_path)

    @property
    def keys(self) -> list[str]:
        """Keys of all sets of files, as in `Source`."""
        leading = self.leading
        return list(leading.many) if leading.single is None else [leading.single.stem]

    def process(self, key: str) -> tuple[Record, str]:
        """Process one set of files; return its record and its section of the report."""
        record, start, section = Record(key), time.perf_counter(), ""
        try:
            input_path = self.leading.find(key)
            record.input = str(input_path)
            path = self.output_path(input_path, key)
            if self.common.output != outputs.STDOUT:
                record.output = str(path)
            if self.common.skip_existing and path.is_file():
                record.status = "skipped"
            else:
                with collect_warnings(record.warnings):
                    section = self._process_files(key, path, record)
        except StdoutError:
            raise
        except Exception as error:
            if self.common.skip_existing and isinstance(error, AlreadyExistsError):
                return Record(record.input, record.output, "skipped"), ""  # by another process
            record.status = "failed"
            record.error = _error_message(error, self._file_at_fault(error, key, record.input))
            if self.common.debug:
                traceback.print_exception(error)
        record.seconds = time.perf_counter() - start
        return record, section

    def _file_at_fault(self, error: Exception, key: str, default: str) -> str:
        """Return the file of the argument that an error of the library names, else `default`."""
        source = self.sources.get(str(error).partition(":")[0])
        return default if source is None else str(source.find(key))

    def _process_files(self, key: str, path: Path, record: Record) -> str:
        """Read the files, run the command, write the result; return the report's section."""
        common, to_stdout = self.common, self.common.output == outputs.STDOUT
        if not to_stdout:
            outputs.refuse_existing(path, common.force)
        paths = {name: source.find(key) for name, source in self.sources.items()}
        result = self.command.process(FileSet(paths, path.suffix.lower()))
        truth = None
        if "truth" in paths:
            truth = self.command.read_truth(paths["truth"])
            record.metrics = measure(self.command.kind, result, truth)
        record.shape, record.dtype = list(result.output.shape), str(result.output.dtype)
        data = io.encode(result.output, path, pages=result.pages)
        if common.preview:  # before the result, so that a result always has its preview
            from bilateral.cli.display.previews import preview

            picture = preview(self.command.kind, result.values, common.range)
            outputs.save(outputs.preview_path(path), io.encode(picture, "x.png"), force=True)
        outputs.save(path, data, to_stdout=to_stdout, force=common.force)
        if not common.report:
            return ""
        from bilateral.cli.report.html_page import render_section

        return render_section(
            record.input, self.command.kind, result, truth, record.metrics, common.range
        )


def run(command: Command, common: CommonOptions) -> int:
    """Run a command on all its files, print the outcome, and return the exit code."""
    batch = Batch.plan(command, common)
    many = batch.leading.single is None
    records: dict[str, Record] = {}
    sections: dict[str, str] = {}
    with BatchProgress(len(batch.keys), many, is_interactive(common.quiet)) as progress:
        for key, record, section in _process_all(batch):
            records[key], sections[key] = record, section
            if common.json:
                write_stdout(record.to_json() + "\n")
            progress.advance(record)
    if common.report is not None and any(sections.values()):
        _write_report(common.report, batch, records, sections)
    progress.print_summary(list(records.values()))
    for record in (records[key] for key in batch.keys):
        for text in record.warnings:
            print_message(f"{printable(record.input)}: {text}")
        if record.error is not None:
            print_message(record.error)
    return FAILED if any(record.status == "failed" for record in records.values()) else 0


def _process_all(batch: Batch) -> Iterator[tuple[str, Record, str]]:
    """Process all sets of files in parallel; yield each one when it is done."""
    keys = batch.keys
    cores = bilateral.get_num_threads()
    jobs = min(batch.common.jobs or cores, len(keys))
    if jobs == 1:
        for key in keys:
            yield key, *batch.process(key)
        return
    bilateral.set_num_threads(max(1, cores // jobs))
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {pool.submit(batch.process, key): key for key in keys}
        for future in as_completed(futures):
            yield futures.pop(future), *future.result()
    except BaseException:
        atomic.abandon()  # threads continue until the program ends, and must not write any more
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        bilateral.set_num_threads(cores)
    pool.shutdown()


def _write_report(
    path: str, batch: Batch, records: dict[str, Record], sections: dict[str, str]
) -> None:
    from bilateral.cli.report.html_page import render_note, render_page

    outputs.make_folder(Path(path).parent)
    parts = [
        sections[key] or render_note(records[key].input, records[key].error) for key in batch.keys
    ]
    page = render_page("bilateral", parts)
    atomic.write_bytes(path, page, overwrite=batch.common.force)


def _check_options(common: CommonOptions, many: bool) -> None:
    """Refuse options that contradict each other; make the output folder."""
    to_stdout = common.output == outputs.STDOUT
    if to_stdout and common.json:
        raise UsageError("--json: prints to stdout, which --output - uses for the result.")
    if to_stdout and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("--output: stdout is a terminal; redirect it to a file or a program.")
    if to_stdout and common.preview:
        raise UsageError("--preview: a result on stdout has no folder for it; use --report.")
    if common.force and common.skip_existing:
        raise UsageError("--force and --skip-existing exclude each other.")
    if common.range is not None and not common.range[0] < common.range[1]:
        raise UsageError("--range: expected LOW below HIGH.")
    if common.dtype is not None:
        outputs.parse_dtype(common.dtype)
    if common.report is not None:
        outputs.refuse_existing(Path(common.report), common.force)
    if many:
        outputs.make_folder(Path(common.output))


def _error_message(error: Exception, name: str) -> str:
    """Return one line that names the file and the reason."""
    if isinstance(error, io.FileError):  # its message names the file already
        return str(error)
    if isinstance(error, MemoryError):
        return f"{printable(name)}: does not fit into memory."
    text = one_line(error, 500)
    if isinstance(error, ValueError | TypeError):
        return f"{printable(name)}: {text}"
    return f"{printable(name)}: unexpected {type(error).__name__}: {text} (--debug shows where)"
