"""Divide a stream of frames into windows that overlap."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Window(NamedTuple):
    """Size of the windows in frames."""

    length: int
    margin: int
    """Frames at both ends that serve only as context."""

    @classmethod
    def of_cells(cls, sigma_t: float) -> "Window":
        """Return windows for a grid with cells of so many frames: two cells, and one around."""
        cell = math.ceil(sigma_t)
        return cls(4 * cell, cell)

    def over(self, frames: Iterable[T]) -> Iterator[tuple[list[T], slice]]:
        """Yield lists of frames, each with the part to keep. The parts are all frames, in order.

        Examples
        --------
        >>> [(window, window[kept]) for window, kept in Window(4, 1).over("abcdef")]
        [(['a', 'b', 'c', 'd'], ['a', 'b', 'c']), (['c', 'd', 'e', 'f'], ['d', 'e', 'f'])]
        """
        held: list[T] = []
        first = 0
        for frame in frames:
            if len(held) == self.length:
                yield held, slice(first, self.length - self.margin)
                held, first = held[self.length - 2 * self.margin :], self.margin
            held.append(frame)
        if held:
            yield held, slice(first, len(held))
