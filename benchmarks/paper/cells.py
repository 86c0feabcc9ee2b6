"""What an experiment consists of: cells that are measured one by one, and kept."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.paper.data import Data

Results = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """What a run measures with."""

    data: Data
    quick: bool
    repeats: int
    python: str | None
    """One whose OpenCV has the filters, or none."""
    opencv: dict[str, str]
    """Its versions."""
    threads: tuple[int, ...]


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    name: str
    work: Callable[[], Any]
    """Makes a value of plain Python and NumPy objects."""
    inputs: tuple[Path, ...] = ()
    """The files that it reads."""
    depends: str = ""
    """What else its value depends on, such as a peer's version."""


class Experiment(Protocol):
    """A module of this package."""

    NAME: str
    TITLE: str
    DATA: str | None
    """The folder of data that it is for; None: scikit-image's pictures, always."""

    def cells(self, setting: Setting) -> Iterator[Cell]: ...

    def summary(self, values: Values, setting: Setting) -> Results:
        """What the tables and figures show, ready for JSON, from the cells' values by name."""

    def as_text(self, results: Results) -> str:
        """Tables in Markdown, and where we are behind."""

    def draw(self, values: Values, results: Results, folder: Path) -> None:
        """Write the figures that the text shows."""
