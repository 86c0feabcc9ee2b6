"""Run one command on any number of files. A file that fails does not stop the others."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bilateral.cli.command import Command
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.console import is_interactive, print_message, write_stdout
from bilateral.cli.display.messages import print_messages
from bilateral.cli.display.progress import BatchProgress
from bilateral.cli.errors import FAILED
from bilateral.cli.files import outputs
from bilateral.cli.files.name_numbers import natural_order
from bilateral.cli.plan import Plan, check_device, make_plan
from bilateral.cli.running import shard, threads
from bilateral.cli.running.job import Job, Outcome, Processor
from bilateral.cli.running.manifest import Manifest
from bilateral.io import atomic


@dataclass(frozen=True)
class Batch:
    """A command with its options, its files and the record of earlier runs."""

    processor: Processor
    plan: Plan
    keys: list[str]
    """Keys of the files of this run, as in `Source`."""
    manifest: Manifest | None = None

    def outcomes(self) -> Iterator[Outcome]:
        """Process all files in threads or on a cluster; yield each outcome when it is there."""
        common = self.processor.common
        jobs = [self.plan.job(key) for key in self.keys]
        if not (jobs and common.clustered):
            count = 1 if self.processor.command.in_order else common.jobs
            return threads.run(jobs, self._process, count)
        from bilateral.cli.running import cluster

        folder = Path(common.output) if self.plan.pairing.many else jobs[0].output.parent
        outputs.make_folder(folder)
        return cluster.run(jobs, self.processor, self._settle, folder)

    def _process(self, job: Job) -> Outcome:
        repeated = self.manifest is not None and self.manifest.resumed
        return self._settle(job) or self.processor.process(job, repeated=repeated)

    def _settle(self, job: Job) -> Outcome | None:
        """Return the outcome of a job that needs no work, else None."""
        if self.manifest is not None and self.manifest.resumed:
            return self._continued(self.manifest, job)
        return self.processor.settle(job)

    def _continued(self, manifest: Manifest, job: Job) -> Outcome | None:
        """Skip a file that an earlier run finished.

        A result that the manifest does not have may come from a run that was killed. It is no
        reason to refuse the job: it is compared with the new result.
        """
        common = self.processor.common
        if job.output.is_file() and (manifest.is_done(job.input) or common.skip_existing):
            return Outcome(job.key, self.processor.new_record(job, "skipped"))
        return None


def run(command: Command, common: CommonOptions) -> int:
    """Run a command on all its files, print the outcome, and return the exit code."""
    if command.run_large is not None:
        check_device(command, common)
        return command.run_large(common)
    part = None if common.shard is None else shard.parse(common.shard)
    plan = make_plan(command, common)
    keys = plan.pairing.keys if part is None else part.select(plan.pairing.keys)
    if command.in_order:
        keys = sorted(keys, key=natural_order)
    if not common.quiet:
        for text in plan.pairing.summary:
            print_message(text)
    outcomes: dict[str, Outcome] = {}
    many, interactive = plan.pairing.many, is_interactive(common.quiet)
    with ExitStack() as stack:
        manifest = None
        if common.manifest is not None:
            manifest = stack.enter_context(Manifest(common.manifest))
        batch = Batch(Processor(command, common), plan, keys, manifest)
        progress = BatchProgress(len(keys), many, interactive, common.quiet)
        stack.enter_context(progress)
        for outcome in batch.outcomes():
            outcomes[outcome.key] = outcome
            if manifest is not None:
                manifest.add(outcome.record)
            if common.json:
                write_stdout(outcome.record.to_json() + "\n")
            progress.advance(outcome.record)
    ordered = [outcomes[key] for key in plan.pairing.keys if key in outcomes]
    if common.report is not None and any(outcome.section for outcome in ordered):
        _write_report(common.report, ordered, common.force)
    records = [outcome.record for outcome in ordered]
    progress.print_summary(records)
    print_messages(records, common.verbose)
    return FAILED if any(record.status == "failed" for record in records) else 0


def _write_report(path: str, outcomes: list[Outcome], force: bool) -> None:
    from bilateral.cli.report.html_page import render_note, render_page

    outputs.make_folder(Path(path).parent)
    parts = [section or render_note(record.input, record.error) for _, record, section in outcomes]
    page = render_page("bilateral", parts)
    atomic.write_bytes(path, page, overwrite=force)
