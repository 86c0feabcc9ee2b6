"""Recognize videos among the arguments of a command, and name their results."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from bilateral.cli.command import Command
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.errors import UsageError
from bilateral.cli.files import outputs
from bilateral.cli.files.patterns import has_wildcard
from bilateral.io import formats
from bilateral.io.messages import printable
from bilateral.io.video import LOSSLESS, WRITTEN, is_video


def is_one_video(command: Command, common: CommonOptions) -> bool:
    """Return whether all arguments together are one video, whatever they name."""
    if command.frames is None:
        return False
    given = [text for text in command.inputs.values() if text is not None]
    if command.video or any(is_video(text) and not has_wildcard(text) for text in given):
        return True
    frames = any(os.path.isdir(text) or has_wildcard(text) for text in given)
    return frames and is_video(common.output) and not _is_folder(common.output)


def has_videos(command: Command, paths: Iterable[Path]) -> bool:
    """Return whether one of many sets of files is a video."""
    return command.frames is not None and any(map(is_video, paths))


def check_options(common: CommonOptions) -> None:
    """Refuse options that videos do not have."""
    wrong = {
        "--truth": common.truth is not None,
        "--report": common.report is not None,
        "--preview": common.preview,
        "--page": common.page is not None,
    }
    for name, given in wrong.items():
        if given:
            raise UsageError(f"{name}: videos have none; leave it out.")
    if common.pair not in ("name", "sorted"):
        raise UsageError(f"--pair: expected name or sorted for videos, got {common.pair}.")
    if common.output == outputs.STDOUT:
        raise UsageError("--output: a video cannot be written to stdout; name a file or a folder.")


def output_paths(command: Command, common: CommonOptions) -> Callable[[Path, str], Path]:
    """Return the function that gives the result of one video its path: a video or a folder."""
    output = common.output
    suffix = Path(output).suffix.lower()
    is_folder = _is_folder(output)
    if not is_folder and is_video(output):
        listed = " or ".join((LOSSLESS,) if command.kind == "map" else WRITTEN)
        if suffix not in (LOSSLESS, *(WRITTEN if command.kind == "photo" else ())):
            kind = "16-bit maps" if command.kind == "map" else "videos"
            raise UsageError(
                f"--output: expected {listed} for {kind}, or a folder for single frames, got "
                f"{printable(output)}."
            )
    elif not is_folder and formats.by_suffix(output) is not None:
        raise UsageError(
            f"--output: expected a video ({LOSSLESS}) or a folder for the frames of a video, got "
            f"{printable(output)}."
        )
    return lambda *_: Path(output)


def many_output_paths(command: Command, common: CommonOptions) -> Callable[[Path, str], Path]:
    """Return the function that gives each of many videos its path in a folder."""
    default = LOSSLESS if command.kind == "map" else ".mp4"
    suffix = default if common.format is None else "." + common.format.lower().removeprefix(".")
    if suffix not in WRITTEN:
        listed = ", ".join(name[1:] for name in WRITTEN)
        raise UsageError(f"--format: expected one of {listed} for videos, got {common.format}.")
    return lambda path, key: Path(common.output, outputs.output_name(key, path) + suffix)


def picture_suffix(common: CommonOptions, default: str) -> str:
    """Return the suffix of single frames in a folder."""
    suffix = outputs.format_suffix(common.format) or default
    return suffix if formats.by_suffix("x" + suffix) is not None else ".png"


def _is_folder(output: str) -> bool:
    return output.endswith(os.sep) or os.path.isdir(output)
