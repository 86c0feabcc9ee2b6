"""Run one command on any number of files. A file that fails does not stop the others."""

import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import bilateral
from bilateral import io
from bilateral.cli.command import Command, FileSet
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.console import is_interactive, print_message, write_stdout
from bilateral.cli.display.messages import print_messages
from bilateral.cli.display.progress import BatchProgress
from bilateral.cli.display.warning_log import collect_warnings
from bilateral.cli.errors import FAILED, StdoutError
from bilateral.cli.files import outputs
from bilateral.cli.files.name_numbers import natural_order
from bilateral.cli.plan import Plan, make_plan
from bilateral.cli.record import Record
from bilateral.cli.report.metrics import measure
from bilateral.cli.wording import command_line_words
from bilateral.io import atomic
from bilateral.io.errors import AlreadyExistsError
from bilateral.io.messages import one_line, printable


@dataclass(frozen=True)
class Batch:
    """A command with its options and its files."""

    command: Command
    common: CommonOptions
    plan: Plan

    @property
    def keys(self) -> list[str]:
        """Keys of all sets of files, as in `Source`."""
        return self.plan.pairing.keys

    def process(self, key: str) -> tuple[Record, str]:
        """Process one set of files; return its record and its section of the report."""
        record, start, section = Record(key, names=[key]), time.perf_counter(), ""
        try:
            input_path = self.plan.input_path(key)
            record.input = str(input_path)
            path = self.plan.output_path(input_path, key)
            record.names += [str(input_path), input_path.name, str(path), path.name]
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
                return Record(
                    record.input, record.output, status="skipped"
                ), ""  # by another process
            record.status = "failed"
            record.error = _error_message(error, self._file_at_fault(error, key, record.input))
            if self.common.debug:
                traceback.print_exception(error)
        record.seconds = time.perf_counter() - start
        return record, section

    def _file_at_fault(self, error: Exception, key: str, default: str) -> str:
        """Return the file of the argument that an error of the library names, else `default`."""
        source = self.plan.pairing.sources.get(str(error).partition(":")[0])
        return default if source is None else str(source.find(key))

    def _process_files(self, key: str, path: Path, record: Record) -> str:
        """Read the files, run the command, write the result; return the report's section."""
        common, to_stdout = self.common, self.common.output == outputs.STDOUT
        outputs.refuse_unknown_format(path)
        if not to_stdout:
            outputs.refuse_existing(path, common.force)
        paths = self.plan.paths(key)
        record.names += [text for file in paths.values() for text in (str(file), file.name)]
        if common.pair != "name":
            record.inputs = {name: str(file) for name, file in paths.items()}
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
    if command.run_large is not None:
        return command.run_large(common)
    batch = Batch(command, common, make_plan(command, common))
    pairing = batch.plan.pairing
    if not common.quiet:
        for text in pairing.summary:
            print_message(text)
    records: dict[str, Record] = {}
    sections: dict[str, str] = {}
    interactive = is_interactive(common.quiet)
    with BatchProgress(len(batch.keys), pairing.many, interactive, common.quiet) as progress:
        for key, record, section in _process_all(batch):
            records[key], sections[key] = record, section
            if common.json:
                write_stdout(record.to_json() + "\n")
            progress.advance(record)
    if common.report is not None and any(sections.values()):
        _write_report(common.report, batch, records, sections)
    ordered = [records[key] for key in batch.keys]
    progress.print_summary(ordered)
    print_messages(ordered, common.verbose)
    return FAILED if any(record.status == "failed" for record in ordered) else 0


def _process_all(batch: Batch) -> Iterator[tuple[str, Record, str]]:
    """Process all sets of files in parallel; yield each one when it is done."""
    keys = batch.keys
    cores = bilateral.get_num_threads()
    jobs = min(batch.common.jobs or cores, len(keys))
    if batch.command.in_order:
        keys, jobs = sorted(keys, key=natural_order), 1
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


def _error_message(error: Exception, name: str) -> str:
    """Return one line that names the file and the reason."""
    if isinstance(error, io.FileError):  # its message names the file already
        return str(error)
    if isinstance(error, MemoryError):
        return f"{printable(name)}: does not fit into memory."
    text = one_line(error, 500)
    if isinstance(error, ValueError | TypeError):
        return f"{printable(name)}: {command_line_words(text)}"
    return f"{printable(name)}: unexpected {type(error).__name__}: {text} (--debug shows where)"
