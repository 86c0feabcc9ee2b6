"""Process the frames of one video in order, with few of them in memory."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bilateral.cli.command import Command, VideoInput
from bilateral.cli.commands.options import CommonOptions
from bilateral.cli.display.console import is_interactive
from bilateral.cli.display.progress import BatchProgress
from bilateral.cli.record import Record
from bilateral.cli.video import pairing
from bilateral.cli.video.plan import picture_suffix
from bilateral.cli.video.sink import Sink
from bilateral.cli.video.sources import Frames, numbered
from bilateral.io.errors import FileError

Array = NDArray[Any]

_EXACT_INPUTS = ("depth", "target", "confidence")
"""Inputs whose numbers matter, so that losses of a codec do."""


def process_video(
    command: Command,
    common: CommonOptions,
    paths: Mapping[str, Path],
    output: Path,
    record: Record,
    *,
    visible: bool,
    repeated: bool,
) -> None:
    """Read a video, run the command on its frames, and write the result.

    Parameters
    ----------
    command : Command
    common : CommonOptions
    paths : dict
        Video files, folders of frames, or pictures by the names of the inputs.
    output : Path
        A video file, or a folder for single frames.
    record : Record
        Gets warnings, and the shape and dtype of the result.
    visible : bool
        Show the progress, in frames.
    repeated : bool
        Accept an existing result that is the same.
    """
    assert command.frames is not None
    reader = common.reader()
    with ExitStack() as stack:
        inputs = {}
        for name, path in paths.items():
            if name not in command.sparse:
                inputs[name] = Frames(path, reader)
                stack.callback(inputs[name].close)
        lead = _leading(inputs)
        pairing.check(inputs, by_name=common.pair == "name")
        sparse = {name: numbered(paths[name], lead) for name in command.sparse if name in paths}
        _warn_of_losses(inputs, record)
        rates = [frames.rate for frames in inputs.values() if frames.rate is not None]
        suffix = picture_suffix(common, lead.suffix)
        sink = Sink(
            output,
            suffix,
            lead.names,
            rates[0] if rates else None,
            force=common.force,
            repeated=repeated,
        )
        quiet = common.quiet or not visible
        progress = BatchProgress(
            lead.length, visible, visible and is_interactive(quiet), quiet, noun="frames"
        )
        stack.enter_context(progress)
        stack.enter_context(sink)
        video = VideoInput(pairing.side_by_side(inputs), sparse, suffix)
        _write(command.frames(video), sink, progress, record)


def _write(results: Iterator[Array], sink: Sink, progress: BatchProgress, record: Record) -> None:
    for count, array in enumerate(results, 1):
        sink.write(array)
        progress.count()
        record.shape, record.dtype = [count, *array.shape], str(array.dtype)


def _leading(inputs: Mapping[str, Frames]) -> Frames:
    """Return the first input with a frame for each frame of the result."""
    for frames in inputs.values():
        if not frames.repeats:
            return frames
    raise FileError(
        f"{next(iter(inputs.values())).name}: expected a video, or a folder of numbered frames."
    )


def _warn_of_losses(inputs: Mapping[str, Frames], record: Record) -> None:
    for name, frames in inputs.items():
        if name in _EXACT_INPUTS and not frames.lossless:
            record.warnings.append(
                f"{frames.name} is compressed with losses, which damage maps. Store them as "
                f"16-bit gray pictures, or as FFV1 with gray16le in .mkv."
            )
