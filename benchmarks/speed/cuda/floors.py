"""The fewest bytes that each stage of a solve must move, and so its least time.

Every input of a stage is read once and every output written once, as if all between them stayed in
registers. Numbers are of 4 bytes where nothing else is said: float32 or int32. Steps that each need
sums over all vertices of the last one are passes of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What the bytes depend on, of one image with one channel to solve for."""

    pixels: int
    channels: int
    """Of the reference, in 8 bits."""
    tiles: int
    vertices: int
    edges: int
    """From vertices to their neighbours, in both directions."""
    code: int
    """Bytes of a vertex's place in the order."""
    coarse: int
    """Vertices of all levels of the pyramid above the grid."""
    above: int
    """Entries of the table of ancestors: vertices of the first level times the levels above."""
    balance_steps: int
    steps: int


def colours(s: Sizes) -> int:
    """Reference to pixels' colours (2 bytes), keys, tiles and sizes; tiles' first colours."""
    return s.pixels * (s.channels + 2) + 4 * (3 * s.vertices + s.tiles)


def order(s: Sizes) -> int:
    """Keys, tiles and sizes to codes, the order, its inverse and masses."""
    return 6 * 4 * s.vertices + s.code * s.vertices


def assignment(s: Sizes) -> int:
    """Pixels' colours (2 bytes), ranks and first colours to pixels' vertices."""
    return 6 * s.pixels + 4 * (s.vertices + s.tiles)


def neighbours(s: Sizes) -> int:
    """Keys, tiles, the order, its inverse and first colours to edges."""
    return 4 * (4 * s.vertices + s.tiles) + _edges(s)


def pyramid(s: Sizes) -> int:
    """Codes to parents and ancestors; per coarse vertex four ends and two weights of 8 bytes."""
    return s.vertices * (s.code + 4) + 4 * s.above + s.coarse * (4 * 4 + 2 * 8)


def bistochastization(s: Sizes) -> int:
    """Each step: n, m, the last change and edges to n and the change."""
    return s.balance_steps * (4 * s.vertices * (3 + 2) + _edges(s))


def survey_and_splat(s: Sizes) -> int:
    """Values, weights and pixels' colours (2 bytes), ranks and masses to two sums."""
    return s.pixels * (4 + 4 + 2) + 4 * s.vertices * (2 + 2)


def start(s: Sizes) -> int:
    """Two sums and the pyramid (its ends, one weight of 8 bytes, what is above) to x."""
    return 4 * (s.vertices * (2 + 1 + 1) + s.above) + s.coarse * (2 * 4 + 8)


def preconditioner(s: Sizes) -> int:
    """n, weights, masses and edges to four diagonals; the pyramid's ends and weights to factors."""
    return 4 * s.vertices * (3 + 4) + _edges(s) + s.coarse * (2 * 4 + 8 + 4)


def residual(s: Sizes) -> int:
    """x, n, weights, b and edges to r, its coarse sums, and u."""
    return 4 * s.vertices * (4 + 2) + _edges(s) + _lifted(s)


def conjugate_gradients(s: Sizes) -> int:
    """Each step in three passes, apart because of its sums over all vertices; then x."""
    product = 4 * s.vertices * (3 + 1) + _edges(s)  # y, n, diagonal and edges to A z
    descent = 4 * s.vertices * (7 + 4)  # y, d, A z, A d, u, r and masses to d, A d, u and r
    x = 4 * s.vertices * (2 + 1)  # from u and n
    return s.steps * (product + descent + _lifted(s) + _preconditioned(s)) + x


def slices(s: Sizes) -> int:
    """Pixels' vertices and x to the output."""
    return 4 * (2 * s.pixels + s.vertices)


def _edges(s: Sizes) -> int:
    """A word for each vertex, and where each edge leads."""
    return 4 * (s.vertices + s.edges)


def _lifted(s: Sizes) -> int:
    """Coarse sums of r, which is at hand, by their ends and factors."""
    return 4 * s.coarse * (2 + 1 + 1)


def _preconditioned(s: Sizes) -> int:
    """r, the diagonal's inverse, n, coarse sums and where they are to y."""
    return 4 * (s.vertices * (4 + 1) + s.coarse + s.above)


FLOORS: dict[str, Callable[[Sizes], int]] = {
    "colours of tiles": colours,
    "order": order,
    "assignment of pixels": assignment,
    "neighbours": neighbours,
    "pyramid": pyramid,
    "bistochastization": bistochastization,
    "survey and splat": survey_and_splat,
    "start": start,
    "preconditioner": preconditioner,
    "first residual": residual,
    "steps": conjugate_gradients,
    "slice": slices,
}
"""Of all stages, in their order."""


def floors(sizes: Sizes, bandwidth: float) -> dict[str, float]:
    """Seconds of each stage at so many bytes per second, read and written."""
    return {name: fewest(sizes) / bandwidth for name, fewest in FLOORS.items()}
