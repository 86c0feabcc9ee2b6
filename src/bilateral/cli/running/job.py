"""Process one set of files: read them, run the command, write the result."""

import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from bilateral import io
from bilateral.cli.command import Command, FileSet
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.warning_log import collect_warnings
from bilateral.cli.errors import StdoutError
from bilateral.cli.files import outputs
from bilateral.cli.record import Record
from bilateral.cli.report.metrics import measure
from bilateral.cli.wording import command_line_words
from bilateral.io.errors import AlreadyExistsError
from bilateral.io.messages import one_line, printable


@dataclass(frozen=True)
class Job:
    """One set of files, and the path of its result."""

    key: str
    input: str
    """Name of the file that names the result, for messages."""
    output: Path = Path()
    paths: Mapping[str, Path] = field(default_factory=dict)
    """Input files by the names of the inputs."""
    problem: str | None = None
    """Why there is no complete set of files."""
    video: bool = False
    """Whether the files are videos."""
    alone: bool = False
    """Whether this is the only job, so that it may show its progress."""

    def names(self) -> list[str]:
        """Return the key and all paths, by which messages about different files differ."""
        files = [Path(self.input), self.output, *self.paths.values()]
        return [self.key, *(text for file in files for text in (str(file), file.name))]


class Outcome(NamedTuple):
    """What became of a job."""

    key: str
    record: Record
    section: str = ""
    """Section of the report."""


@dataclass(frozen=True)
class Processor:
    """A command with its options, for any number of jobs. Workers of a cluster get a copy."""

    command: Command
    common: CommonOptions

    def settle(self, job: Job) -> Outcome | None:
        """Return the outcome of a job whose result exists already, else None."""
        if not job.output.is_file() or self.common.output == outputs.STDOUT:
            return None
        if self.common.skip_existing:
            return Outcome(job.key, self.new_record(job, status="skipped"))
        if not self.common.force:
            return self.failed(job, AlreadyExistsError(printable(job.output)))
        return None

    def process(self, job: Job, *, repeated: bool = False) -> Outcome:
        """Process one set of files.

        Parameters
        ----------
        job : Job
        repeated : bool
            The job may have run before, in a process that was killed: a result that exists and is
            exactly the one of this job counts as done.
        """
        start, record, section = time.perf_counter(), self.new_record(job), ""
        try:
            with collect_warnings(record.warnings):
                section = self._process_files(job, record, repeated)
        except StdoutError:
            raise
        except Exception as error:
            if self.common.skip_existing and isinstance(error, AlreadyExistsError):
                return Outcome(
                    job.key, self.new_record(job, status="skipped")
                )  # by another process
            return self.failed(job, error, record, time.perf_counter() - start)
        record.seconds = time.perf_counter() - start
        return Outcome(job.key, record, section)

    def new_record(self, job: Job, status: Literal["done", "skipped"] = "done") -> Record:
        """Return a record with the names of a job's files."""
        has_name = self.common.output != outputs.STDOUT and job.output.name
        return Record(
            job.input, str(job.output) if has_name else None, status=status, names=job.names()
        )

    def failed(
        self, job: Job, error: Exception, record: Record | None = None, seconds: float = 0.0
    ) -> Outcome:
        """Return the outcome of a job that raised an error."""
        record = record or self.new_record(job)
        # Errors of the library name the argument first.
        at_fault = job.paths.get(str(error).partition(":")[0], job.input)
        record.status, record.seconds = "failed", seconds
        record.error = _error_message(error, str(at_fault))
        if self.common.debug:
            traceback.print_exception(error)
        return Outcome(job.key, record)

    def _process_files(self, job: Job, record: Record, repeated: bool) -> str:
        """Read the files, run the command, write the result; return the report's section."""
        common, to_stdout = self.common, self.common.output == outputs.STDOUT
        if job.output.name and not job.video:
            outputs.refuse_unknown_format(job.output)
        if job.problem is not None:
            raise io.FileError(job.problem)
        if job.video:
            from bilateral.cli.video.run import process_video

            process_video(
                self.command,
                common,
                job.paths,
                job.output,
                record,
                visible=job.alone,
                repeated=repeated,
            )
            return ""
        if common.pair != "name":
            record.inputs = {name: str(file) for name, file in job.paths.items()}
        result = self.command.process(FileSet(job.paths, job.output.suffix.lower()))
        truth = None
        if "truth" in job.paths:
            truth = self.command.read_truth(job.paths["truth"])
            record.metrics = measure(self.command.kind, result, truth)
        record.shape, record.dtype = list(result.output.shape), str(result.output.dtype)
        data = io.encode(result.output, job.output, pages=result.pages)
        if common.preview:  # before the result, so that a result always has its preview
            from bilateral.cli.display.previews import preview

            picture = preview(self.command.kind, result.values, common.range)
            outputs.save(outputs.preview_path(job.output), io.encode(picture, "x.png"), force=True)
        outputs.save(job.output, data, to_stdout=to_stdout, force=common.force, repeated=repeated)
        if not common.report:
            return ""
        from bilateral.cli.report.html_page import render_section

        return render_section(
            record.input, self.command.kind, result, truth, record.metrics, common.range
        )


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
