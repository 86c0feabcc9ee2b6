"""What a tool is: it makes the picture of a view, and the files to save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from bilateral.studio.workspace import View, Workspace

Array = NDArray[Any]
Check = Callable[[int, float], None]
"""Callback of solves: raises `Stale` when nobody wants the result any more."""


class Stale(Exception):  # noqa: N818
    """The work was overtaken by a newer stroke, or takes too long."""


class File(NamedTuple):
    """A file to save."""

    name: str
    data: bytes


class Tool(Protocol):
    """One tool of the studio."""

    def picture(
        self, workspace: Workspace, view: View, fields: dict[str, Any], check: Check
    ) -> Array:
        """Return the picture of a view, uint8: (H, W, 3), or (H, W, 4) with its opacity."""

    def save(self, workspace: Workspace, what: str, fields: dict[str, Any], check: Check) -> File:
        """Return the file that a person asked for."""
