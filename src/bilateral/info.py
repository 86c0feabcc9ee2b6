"""What a solve tells besides its result."""

from dataclasses import dataclass


class ConvergenceWarning(UserWarning):
    """A solve ended at `max_iterations` before it reached its tolerance."""


@dataclass(frozen=True)
class SolveInfo:
    """How a solve went.

    Attributes
    ----------
    iterations : int
        Steps of conjugate gradients; with several channels, of the slowest.
    converged : bool
        Whether the last entry of `residuals` is within the tolerance for every channel.
    residuals : tuple of float
        After each step, an estimate of the remaining RMS error over the pixels, relative to the
        range of the known target values; with several channels, the largest.
    n_vertices : int
        Size of the linear system.
    seconds : float
        Wall-clock time of the call, the grid included where the call built it.
    rank : int
        Number of channels solved: those of the target, or fewer with a `rank_tolerance`.
    """

    iterations: int
    converged: bool
    residuals: tuple[float, ...]
    n_vertices: int
    seconds: float
    rank: int = 1
