"""Data types of a command: its inputs, the function for one set of files, and its result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from bilateral.cli.device import Task

Array = NDArray[Any]
Kind = Literal["map", "photo", "labels"]


@dataclass(frozen=True)
class Result:
    """Result of one set of files."""

    output: Array
    """Array to write to the file, in the dtype of the file."""
    values: Array
    """The same result for display and metrics: a map in its unit, a photograph, or labels."""
    reference: Array | None = None
    input: Array | None = None
    """Input that the command improved, in the same form as `values`."""
    confidence: Array | None = None
    pages: bool = False
    """Whether the first axis of `output` counts pages."""


class FileSet(NamedTuple):
    """Input files that belong together, and the format of their result."""

    paths: Mapping[str, Path]
    """Paths by the names of the inputs, without inputs that were left out."""
    suffix: str
    """Suffix of the output file."""


class VideoInput(NamedTuple):
    """A video, frame by frame."""

    frames: Iterator[Mapping[str, Array]]
    """Arrays of each frame by the names of the inputs."""
    sparse: Mapping[str, Mapping[int, Path]]
    """Files that belong to some frames only, by the name of the input and the number of the frame
    from 0."""
    suffix: str
    """Suffix of single frames of the result."""


@dataclass(frozen=True)
class Command:
    """A command with its options, ready for any number of files."""

    inputs: Mapping[str, str | None]
    """Argument of each input. The first two are those of the command line, in its order."""
    process: Callable[[FileSet], Result]
    read_truth: Callable[[Path], Array]
    """Reads the true result from a file, in the form of `Result.values`."""
    kind: Kind = "map"
    default_suffix: Callable[[Path], str] = lambda path: path.suffix.lower()
    """Suffix of the output if no option sets it, for the path of the leading input."""
    lead: str | None = None
    """Which of the first two inputs names results. Default: the first."""
    run_large: Callable[..., int] | None = None
    """Runs the command on files that do not fit into memory, in place of everything else."""
    task: Task | None = None
    """What `process` calls, if a CUDA device can compute it."""
    in_order: bool = False
    """Whether files are the frames of a video: one at a time, in the order of their numbers."""

    frames: Callable[[VideoInput], Iterator[Array]] | None = None
    """Processes a video; yields the frames of the result, in the dtype of the file."""
    sparse: Sequence[str] = ()
    """Inputs that only some frames of a video have."""
    video: bool = False
    """Whether folders are the frames of one video that is processed as a whole."""
    frames_on_device: bool = False
    """Whether a CUDA device can process videos, too."""

    @property
    def pair(self) -> tuple[str, str]:
        """Names of the first two inputs."""
        first, second, *_ = self.inputs
        return first, second
