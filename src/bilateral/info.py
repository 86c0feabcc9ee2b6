"""Report of a solve: iterations, convergence and time."""

import math
from dataclasses import dataclass


class ConvergenceWarning(UserWarning):
    """A solve reached `max_iterations` before its tolerance.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import bilateral
    >>> target = np.random.default_rng(0).random((64, 64))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     out = bilateral.solve(np.zeros((64, 64)), target, max_iterations=1, tolerance=1e-6)
    >>> caught[0].category is bilateral.ConvergenceWarning
    True
    """


@dataclass(frozen=True)
class SolveInfo:
    """Report of a solve.

    Attributes
    ----------
    iterations : int
        Number of conjugate gradient steps, the largest over the channels.
    converged : bool
        Whether the last entry of `residuals` is within the tolerance for every channel, and can be
        trusted.
    residuals : tuple of float
        Estimated RMS error over the pixels after each step, relative to the range of the known
        target values; the largest over the channels.
    n_vertices : int
        Size of the linear system.
    seconds : float
        Wall-clock time of the call. It includes the grid if the call built it.
    rank : int
        Number of solved channels: those of the target, or fewer with a `rank_tolerance`.
    smoothness : float
        The smoothness of the solve: the caller's, or the one that "auto" chose. NaN if unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo, target = np.zeros((16, 24)), np.eye(16, 24)
    >>> out, info = bilateral.solve(photo, target, return_info=True)
    >>> info.converged, info.n_vertices, info.smoothness
    (True, 6, 4.0)
    """

    iterations: int
    converged: bool
    residuals: tuple[float, ...]
    n_vertices: int
    seconds: float
    rank: int = 1
    smoothness: float = math.nan
