"""Solve A x = b on a batch by preconditioned conjugate gradients, until all images converge."""

from typing import NamedTuple

from torch import Tensor

from bilateral.backends.cuda.grid.laplacian import Laplacian
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve.iteration import Iteration, PcgOptions
from bilateral.backends.cuda.solve.preconditioner import Preconditioner

_STEPS_PER_CHECK = 8
"""Steps between checks of the error: at each check the host waits for the device."""


class Outcome(NamedTuple):
    """The errors of a solve, and whether it has converged."""

    residuals: list[float]
    """Estimated error after each step, of the worst channel."""
    converged: bool
    diverged: bool
    """Whether rounding errors grew in some channel, so that its solution is the best step."""


def solve(
    matrix: Laplacian,
    preconditioner: Preconditioner | VCycle,
    b: Tensor,
    x: Tensor,
    scale: Tensor | None,
    active: Tensor | None,
    options: PcgOptions,
) -> Outcome:
    """Improve x in place until its estimated error is below the tolerance.

    The parameters are those of `Iteration`.
    """
    if options.max_iterations == 0:
        return Outcome([], converged=False, diverged=False)
    iteration = Iteration(matrix, preconditioner, b, x, scale, active, options)
    for step in range(1, options.max_iterations + 1):
        iteration.step()
        check = step % _STEPS_PER_CHECK == 0 and options.tolerance >= 0
        if check and bool((iteration.done != 0).all()):
            break
    iteration.finish()
    errors = trim_errors(iteration.errors[:step].amax(1).tolist())
    diverged = bool(iteration.diverged.any())
    return Outcome(errors, bool((iteration.done == 1).all()) and not diverged, diverged)


def trim_errors(errors: list[float]) -> list[float]:
    """Remove the zeros at the end, which stand for steps that no image made; keep the first."""
    while len(errors) > 1 and errors[-1] == 0:
        errors.pop()
    return errors
