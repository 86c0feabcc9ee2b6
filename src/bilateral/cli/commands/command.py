"""What a command is made of: its inputs, the work on one set of files, and what that gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]
Kind = Literal["map", "photo", "labels"]


@dataclass(frozen=True)
class Result:
    """Of one set of files."""

    output: Array
    """As it goes to the file."""
    shown: Array
    """The same to look at and to measure: a map in its unit, a photograph, or labels."""
    reference: Array | None = None
    given: Array | None = None
    """What was to be improved, like `shown`."""
    confidence: Array | None = None
    pages: bool = False
    """The first axis of the output counts pages."""


class Files(NamedTuple):
    """What one piece of work starts from."""

    paths: Mapping[str, Path]
    """By the names of the inputs; those that were not given are missing."""
    suffix: str
    """Of the output."""


@dataclass(frozen=True)
class Task:
    """A command with its options, ready for any number of files."""

    inputs: Mapping[str, str | None]
    """What was given for each input. The first two lead: results are named after their files."""
    work: Callable[[Files], Result]
    truth: Callable[[Path], Array]
    """Reads what is right, like `Result.shown`."""
    kind: Kind = "map"
    suffix: Callable[[Path], str] = lambda path: path.suffix.lower()
    """Of the output by default, for the path of the leading input."""
