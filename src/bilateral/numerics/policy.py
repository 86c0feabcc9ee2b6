"""Hold every threshold and choice of a solve that the CPU and CUDA share.

This module imports nothing, so that every room may use it. Backends and the C++ core receive its
numbers as arguments.
"""

import math
from collections.abc import Callable

PRECONDITIONERS = ("multigrid", "pyramid", "jacobi")
INITIALS = ("pyramid", "nested", "flat")
METHODS = ("paper",)
MODELS = ("constant", "planar")

MAX_ITERATIONS = 100
PAPER_ITERATIONS = 25
"""Steps of ``method="paper"``."""

EDGE_GUARD = 1e-9
"""Added to a coordinate in units of cells before it is rounded down, so that a value on the border
of two cells falls into the upper one in spite of rounding errors."""

LOWEST_EIGENVALUE = -0.98
"""Lowest eigenvalue of the normalized blur that the Chebyshev steps of the bistochastization
assume. At -1 they would not converge."""

STEP_NOISE = 0.05
"""Steps below this many machine epsilons are rounding errors: the solve has converged."""

ERROR_WINDOW = 256
"""The error estimate compares two windows of at most this many steps."""

KEEP_FROM = 25
"""From this step on, a solve keeps a copy of its best step: the one with the least r^T M^-1 r. A
solve that converges as usual ends before."""
KEEP_GAIN = 0.1
"""A step replaces the kept one if it lowers r^T M^-1 r by this factor, so that copies are rare."""
DIVERGENCE = 1e6
"""A solve diverged if its last r^T M^-1 r exceeds that of the kept step by this factor. That of a
healthy solve goes up and down by less. BestStep of core/solve/pcg.hpp has the same numbers."""

LEVEL_STIFFNESS = 1.3
"""On level k of multigrid, the smoothness is divided by this number to the power k. Without it,
aggregation would make the level too stiff for the smooth errors that it must represent."""

FAINT_EPSILONS = 100.0
"""A connected component of the grid is faint if its confidence is below this many machine epsilons,
relative to the smoothness term: rounding errors hide its mean."""

FLOAT32_TOLERANCE = 1e-5
"""Below this tolerance, rounding errors of float32 are visible: solve in float64."""

LARGEST_FLOAT32 = 1e12
LARGEST_FLOAT64 = 1e100
"""Values, confidences and smoothness above these limits, or below their inverse, make products in a
solve overflow or underflow."""

FLOAT32_STIFFNESS = 100.0
"""Largest smoothness per confidence that float32 solves, relative to the square root of the number
of vertices. Above it, rounding errors of the smoothness term exceed the data term."""

EASY_SMOOTHNESS = 100.0
"""Up to this smoothness per confidence, the pyramid preconditioner converges fast enough."""

FAINT_FRACTION = 1e-3
"""Largest fraction of pixels at faint vertices with which the pyramid converges fast enough. A
vertex is faint if it has less confidence than `EASY_SMOOTHNESS` asks for. Also the largest fraction
of pixels at loose vertices for sweeps over the planes of a grid."""

LOOSE_SMOOTHNESS = 300.0
"""Smoothness per confidence above which a vertex with only such neighbours is loose: the paper's
preconditioners hardly reduce its error."""

LOOSE_ERROR = 2.0
"""Largest error of the loose vertices, in tolerances, that the paper's preconditioners may miss."""

AUTO = "auto"
"""The smoothness that `smoothness_rule` chooses."""
SMOOTHNESS = 4.0
"""The default, and the rule's for a complete map with little noise."""
SPARSE_SMOOTHNESS = 0.02
"""The rule's for few exact values. Smaller numbers change almost nothing."""
NOISE_STRENGTH = {"constant": 85.0, "planar": 340.0}
"""The rule's smoothness for noise of the size of the signal, if all pixels are known. Planes have
more freedom to follow noise. docs/notes/sparse.md has the measurements."""
LARGEST_AUTO_SMOOTHNESS = 256.0

SLOPE_SMOOTHNESS = 3.0
SLOPE_RIDGE = 1e-3
"""Penalties of the planar model that suit most data; docs/notes/planar.md has the measurements."""

PLANE_LEVEL_STIFFNESS = 1.15
"""As `LEVEL_STIFFNESS`, for planes; core/planes/rows.hpp has the same number."""

LEAST_DERIVATIVE_RIDGE = 1e-7
"""Derivatives need a ridge: without one, the matrix of a part whose data determine no slope is
singular. In all other parts, this ridge changes derivatives less than their tolerance."""

PLANE_ADJOINT_TOLERANCE = 1.0
"""As `ADJOINT_TOLERANCE`. Planes that little data hold converge last, and count here."""

SMALL_RIDGE = 1e-5
"""Below this ridge, float32 does not resolve the planes of parts with little data."""

FLOAT32_PLANE_RIDGE = 1e-7
"""Below this smoothness times ridge, relative to the mean confidence of the pixels, planes are
solved in float64: float32 loses the ridge beside the data."""

SWEEP_SMOOTHNESS = 8.0
"""Up to this smoothness per confidence, sweeps over the grid solve planes as well as multigrid."""

SWEEP_LOOSE_SMOOTHNESS = 30.0
"""As `LOOSE_SMOOTHNESS`, for sweeps over the grid."""

SWEEP_TOLERANCE = 1e-3
"""Least tolerance at which sweeps over the grid may replace multigrid: smooth errors of up to this
size do not show in the length of a step."""

CLAMP_MARGIN = 0.05
"""A planar solution may leave the range of the known values by this fraction of it."""

PLANE_ROUNDS = 0.75
"""Fraction of the robust rounds that are planar. The first rounds have constant vertices: planes
would follow regions of outliers."""

TRUSTED_WEIGHT = 0.25
"""After robust rounds, values of at least this part of the largest weight count as known."""

ROUND_FRACTION = 0.5
"""A round of a robust solve stops when its error falls below this fraction of the distance it
moved, or below 500 tolerances of it: the next round has other weights and goes on from there.
Multigrid needs one step for that. More steps lower the objective no further after the same number
of rounds, because the rounds themselves converge slowly."""

EXACT_TOLERANCE = 0.1
"""A forward solve whose confidence needs a gradient stops at this fraction of the tolerance. That
is cheaper than to continue the solve in the backward pass."""

ADJOINT_TOLERANCE = {"multigrid": 12.0, "pyramid": 25.0, "jacobi": 25.0}
"""An adjoint solve stops at an estimated RMS error of this many tolerances, relative to the RMS of
its result. The estimate is too high, most of all for the paper's preconditioners: at a tolerance of
1e-3 the actual error is 0.1 to 0.7 % of the norm."""

SOLUTION_TOLERANCE = {"multigrid": 0.7, "pyramid": 0.9, "jacobi": 0.9}
"""The gradient of the confidence contains target minus solution, which magnifies the error of the
solution. If the solution's estimated error exceeds this many tolerances, improve it first."""

ADJOINT_TRUST = 0.5
"""Repeat an adjoint solve whose result is smaller than this fraction of its start: the error was
judged relative to the start."""

ADJOINT_ATTEMPTS = 4
"""Largest number of such solves."""


def float32_is_enough(smoothness: float, pixels: int, confidence: float, n_vertices: float) -> bool:
    """Whether float32 resolves the data term beside the smoothness term.

    Parameters
    ----------
    smoothness : float
    pixels : int
        Number of pixels of an image.
    confidence : float
        Sum of the confidences of these pixels.
    n_vertices : float
        Number of vertices of the image's grid.
    """
    return smoothness * pixels / confidence <= FLOAT32_STIFFNESS * math.sqrt(n_vertices)


def choose_preconditioner(
    requested: str,
    *,
    smoothness: float,
    pixels: int,
    confidence: float,
    every_vertex_has_data: bool,
    tolerance: float,
    faint_fraction: Callable[[], float],
    loose_fraction: Callable[[], float],
) -> str:
    """Return the requested preconditioner, or "pyramid" where it is as good as "multigrid".

    The pyramid is as good where values need not travel far: every vertex has data of its own, and
    all but a few have enough of it. Its error estimate must also hold.

    Parameters
    ----------
    requested : str
        One of `PRECONDITIONERS`.
    smoothness : float
    pixels : int
        Number of pixels of an image.
    confidence : float
        Sum of the confidences of these pixels.
    every_vertex_has_data : bool
    tolerance : float
    faint_fraction : function
        Returns the fraction of pixels at vertices with too little confidence for their number of
        pixels, by `EASY_SMOOTHNESS`. It is called only if it decides.
    loose_fraction : function
        As for `estimate_holds`.
    """
    if requested != "multigrid":
        return requested
    if not every_vertex_has_data or smoothness * pixels > EASY_SMOOTHNESS * confidence:
        return "multigrid"
    if faint_fraction() > FAINT_FRACTION or not estimate_holds(
        "pyramid", tolerance, loose_fraction
    ):
        return "multigrid"
    return "pyramid"


def estimate_holds(
    preconditioner: str, tolerance: float, loose_fraction: Callable[[], float]
) -> bool:
    """Whether a solve with a preconditioner can trust its error estimate.

    The estimate extrapolates the lengths of the steps. Multigrid reduces all errors alike. The
    paper's preconditioners hardly move vertices that are tied to each other but to little data, so
    that their error shows in no step. Values lie within the target's range, so the RMS error of
    these vertices is at most the root of their fraction.

    Parameters
    ----------
    preconditioner : str
    tolerance : float
    loose_fraction : function
        Returns the fraction of pixels at loose vertices: by `LOOSE_SMOOTHNESS` they have too little
        confidence, and so have all their neighbours, of which there is at least one. It is called
        only if it decides.
    """
    error = min(1.0, LOOSE_ERROR * tolerance)
    return preconditioner == "multigrid" or loose_fraction() <= error**2


def sweeps_are_enough(
    *,
    smoothness: float,
    slope_ridge: float,
    pixels: int,
    confidence: float,
    every_vertex_has_data: bool,
    tolerance: float,
    loose_fraction: Callable[[], float],
) -> bool:
    """Whether sweeps over the grid solve a planar system without coarser levels.

    They do where planes need not travel far: every vertex has data of its own, and all but a few
    have enough of it, or a neighbour that has.

    Parameters
    ----------
    smoothness : float
    slope_ridge : float
    pixels : int
        Number of pixels of an image.
    confidence : float
        Sum of the confidences of these pixels.
    every_vertex_has_data : bool
    tolerance : float
    loose_fraction : function
        As for `estimate_holds`, by `SWEEP_LOOSE_SMOOTHNESS`. It is called only if it decides.
    """
    return (
        tolerance >= SWEEP_TOLERANCE
        and every_vertex_has_data
        and slope_ridge >= SMALL_RIDGE
        and smoothness * pixels <= SWEEP_SMOOTHNESS * confidence
        and loose_fraction() <= FAINT_FRACTION
    )


def default_initial(preconditioner: str) -> str:
    """Return the start that suits a preconditioner."""
    return "nested" if preconditioner == "multigrid" else "pyramid"
