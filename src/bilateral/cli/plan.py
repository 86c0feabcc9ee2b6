"""Find the files of a command, name their results, and check both before the work starts."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bilateral.cli.command import Command
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.device import Task
from bilateral.cli.errors import UsageError
from bilateral.cli.files import outputs
from bilateral.cli.files.output_plan import OutputPlan, check_folder, check_writable
from bilateral.cli.files.pairing import Pairing, pair
from bilateral.cli.files.sources import Source, expand
from bilateral.cli.running.job import Job
from bilateral.cli.video import plan as video_plan
from bilateral.io.errors import FileError
from bilateral.io.messages import printable
from bilateral.io.video import SUFFIXES as VIDEO_SUFFIXES
from bilateral.io.video import is_video


@dataclass(frozen=True)
class Plan:
    """The files of a command, and the paths of their results."""

    pairing: Pairing
    output_path: Callable[[Path, str], Path]
    video: bool = False
    """Whether the files are videos."""
    visible: bool = False
    """Whether a single video may show its progress."""

    def input_path(self, key: str) -> Path:
        """Return the file that names the result of a key."""
        return self.pairing.sources[self.pairing.leading].find(key)

    def paths(self, key: str) -> dict[str, Path]:
        """Return the files of a key by the names of their inputs."""
        return {name: source.find(key) for name, source in self.pairing.sources.items()}

    def job(self, key: str) -> Job:
        """Return the files of a key and the path of its result, or the reason why they lack."""
        try:
            input_path = self.input_path(key)
        except FileError as error:
            return Job(key, key, problem=str(error))
        output = self.output_path(input_path, key)
        try:
            alone = self.visible and not self.pairing.many
            paths = self.paths(key)
            return Job(key, str(input_path), output, paths, video=self.video, alone=alone)
        except FileError as error:
            return Job(key, str(input_path), output, problem=str(error))


def make_plan(command: Command, common: CommonOptions) -> Plan:
    """Find all files and check the options; make the output folder of many files."""
    _check_options(common)
    if command.in_order and (common.clustered or common.shard is not None):
        raise UsageError(
            "--video: expected no --workers, --scheduler or --shard beside it: each frame needs "
            "those before."
        )
    arguments = {**command.inputs, "truth": common.truth}
    given = {name: text for name, text in arguments.items() if text is not None}
    names, one_video = command.pair, video_plan.is_one_video(command, common)
    if one_video:
        sources = {name: Source(text, Path(text)) for name, text in given.items()}
    else:
        suffixes = VIDEO_SUFFIXES if command.frames is not None else ()
        sources = {name: expand(text, suffixes) for name, text in given.items()}
    pairing = pair(sources, names, command.lead or names[0], common.pair)
    plan = Plan(pairing, *_output_paths(command, common, pairing, one_video))
    check_device(command, common, video=plan.video)
    _check_outputs(plan, common)
    return plan


def check_device(command: Command, common: CommonOptions, *, video: bool = False) -> None:
    """Refuse a device that cannot compute the command, or that this machine does not have."""
    task = command.task or Task("", common.device, "this command")
    if command.run_large is not None:
        task = replace(task, cpu_only="an image larger than memory")
    elif video and not command.frames_on_device:
        task = replace(task, cpu_only="a video")
    if common.scheduler is None or task.cpu_only:  # the workers of a scheduler have other machines
        task.check()


def _output_paths(
    command: Command, common: CommonOptions, pairing: Pairing, one_video: bool
) -> tuple[Callable[[Path, str], Path], bool, bool]:
    """Return the function that names results, and the entries of a plan about videos."""
    leading = pairing.sources[pairing.leading]
    found = [path for paths in leading.many.values() for path in paths]
    if not one_video and not video_plan.has_videos(command, found):
        suffix = outputs.format_suffix(common.format)
        paths = outputs.output_paths(common.output, pairing.many, command.default_suffix, suffix)
        return paths, False, False
    video_plan.check_options(common)
    if one_video:
        return video_plan.output_paths(command, common), True, not common.clustered
    return video_plan.many_output_paths(command, common), True, False


def _check_options(common: CommonOptions) -> None:
    """Refuse options that contradict each other."""
    to_stdout = common.output == outputs.STDOUT
    if not common.output:
        raise UsageError("--output: expected the name of a file or a folder, got an empty text.")
    if to_stdout and common.json:
        raise UsageError("--json: prints to stdout, which --output - uses for the result.")
    if to_stdout and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("--output: stdout is a terminal; redirect it to a file or a program.")
    if to_stdout and common.preview:
        raise UsageError("--preview: a result on stdout has no folder for it; use --report.")
    if common.scheduler is not None and common.workers is not None:
        raise UsageError("--scheduler and --workers exclude each other.")
    if common.clustered and common.jobs is not None:
        raise UsageError("--jobs: a cluster has one job per thread of its workers; leave it out.")
    if common.clustered and to_stdout:
        raise UsageError("--output: workers of a cluster cannot write to stdout; name a file.")
    if common.force and common.skip_existing:
        raise UsageError("--force and --skip-existing exclude each other.")
    if common.range is not None and not common.range[0] < common.range[1]:
        raise UsageError("--range: expected LOW below HIGH.")
    if common.dtype is not None:
        outputs.parse_dtype(common.dtype)


def _check_outputs(plan: Plan, common: CommonOptions) -> None:
    """Refuse outputs that replace each other or an input, or that cannot be written."""
    to_stdout = common.output == outputs.STDOUT
    files = OutputPlan(stdout=to_stdout or common.json)
    complete: dict[str, dict[str, Path]] = {}
    for key in plan.pairing.keys:
        try:
            complete[key] = plan.paths(key)
        except FileError:  # reported as the failure of this set of files
            continue
        for path in complete[key].values():
            files.add_input(path)
    for key in [] if to_stdout else complete:
        input_path = plan.input_path(key)
        path, name = plan.output_path(input_path, key), printable(input_path)
        files.add_output(path, f"the result of {name}", replaces=input_path)
        if common.preview:
            files.add_output(outputs.preview_path(path), f"the preview of {name}")
    if common.report is not None:
        report = Path(common.report)
        files.add_output(report, "the report")
        outputs.refuse_existing(report, common.force)
        check_writable(report)
    if common.manifest is not None:
        files.add_output(Path(common.manifest), "the manifest")
        check_writable(Path(common.manifest))
    if plan.pairing.many:
        outputs.make_folder(Path(common.output))
        check_folder(Path(common.output))
    elif not to_stdout:
        for key in complete:
            path = plan.output_path(plan.input_path(key), key)
            if plan.video and not is_video(path):  # a folder of frames
                outputs.make_folder(path)
                check_folder(path)
            else:
                check_writable(path)
