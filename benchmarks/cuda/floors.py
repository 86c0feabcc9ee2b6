"""Bound the time of each stage of a solve from below: the fewest bytes that it must move.

Every input of a stage is read once and every output written once, as if all intermediate values
stayed in registers. Numbers take 4 bytes (float32 or int32) unless the comment says otherwise. A
step that needs sums over all vertices from the step before is a pass of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The numbers that the bytes depend on, for one image with one channel to solve for."""

    pixels: int
    channels: int  # of the reference, in 8 bits
    tiles: int
    vertices: int
    edges: int  # from vertices to their neighbours, in both directions
    code: int  # bytes of a vertex's place in the order
    coarse: int  # vertices of all levels of the pyramid above the grid
    above: int  # entries of the table of ancestors: vertices of the first level times the levels
    balance_steps: int
    steps: int

    @property
    def edge_bytes(self) -> int:
        return 4 * (self.vertices + self.edges)

    @property
    def coarse_sum_bytes(self) -> int:
        """Coarse sums of r, which is in registers, by their ends and factors."""
        return 4 * self.coarse * (2 + 1 + 1)


def _steps(s: Sizes) -> int:
    """Each step of PCG in three passes, separated by sums over all vertices; then x."""
    product = 4 * s.vertices * (3 + 1) + s.edge_bytes  # y, n, diagonal and edges to A z
    descent = 4 * s.vertices * (7 + 4)  # y, d, A z, A d, u, r and masses to d, A d, u and r
    # r, the diagonal's inverse, n, coarse sums and their places to y
    preconditioner = 4 * (s.vertices * (4 + 1) + s.coarse + s.above)
    x = 4 * s.vertices * (2 + 1)  # from u and n
    return s.steps * (product + descent + s.coarse_sum_bytes + preconditioner) + x


FLOORS: dict[str, Callable[[Sizes], int]] = {
    # reference to pixels' colours (2 bytes), keys, tiles and sizes; tiles' first colours
    "keys of tiles": lambda s: s.pixels * (s.channels + 2) + 4 * (3 * s.vertices + s.tiles),
    # keys, tiles and sizes to codes, the order, its inverse and masses
    "order": lambda s: 6 * 4 * s.vertices + s.code * s.vertices,
    # pixels' colours (2 bytes), ranks and first colours to pixels' vertices
    "assignment of pixels": lambda s: 6 * s.pixels + 4 * (s.vertices + s.tiles),
    # keys, tiles, the order, its inverse and first colours to edges
    "neighbours": lambda s: 4 * (4 * s.vertices + s.tiles) + s.edge_bytes,
    # codes to parents and ancestors; per coarse vertex four ends and two weights of 8 bytes
    "pyramid": lambda s: s.vertices * (s.code + 4) + 4 * s.above + s.coarse * (4 * 4 + 2 * 8),
    # each step: n, m, the last change and edges to n and the change
    "bistochastization": lambda s: s.balance_steps * (4 * s.vertices * (3 + 2) + s.edge_bytes),
    # values, weights and pixels' colours (2 bytes), ranks and masses to two sums
    "input statistics and splat": lambda s: s.pixels * (4 + 4 + 2) + 4 * s.vertices * (2 + 2),
    # two sums and the pyramid (its ends, one weight of 8 bytes, its ancestors) to x
    "start": lambda s: 4 * (s.vertices * (2 + 1 + 1) + s.above) + s.coarse * (2 * 4 + 8),
    # n, weights, masses and edges to four diagonals; the pyramid's ends and weights to factors
    "preconditioner": lambda s: (
        4 * s.vertices * (3 + 4) + s.edge_bytes + s.coarse * (2 * 4 + 8 + 4)
    ),
    # x, n, weights, b and edges to r, its coarse sums, and u
    "first residual": lambda s: 4 * s.vertices * (4 + 2) + s.edge_bytes + s.coarse_sum_bytes,
    "steps": _steps,
    # pixels' vertices and x to the output
    "slice": lambda s: 4 * (2 * s.pixels + s.vertices),
}
"""Bytes of every stage, in the stages' order."""


def floors(sizes: Sizes, bandwidth: float) -> dict[str, float]:
    return {name: count(sizes) / bandwidth for name, count in FLOORS.items()}
