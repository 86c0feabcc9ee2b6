"""What a recorded solve tells the host: one row of numbers, to be read at once."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.solve.input_stats import Survey
from bilateral.backends.cuda.solve.pcg import Iteration

FACTS = 12
"""Numbers before the errors of all steps."""
_STEPS = 32
"""Whose errors are compared at a time."""


def new_report(steps: int, device: torch.device) -> Tensor:
    """Memory for a report on at most so many steps."""
    return torch.empty(FACTS + steps, dtype=torch.float64, device=device)


def write_report(
    out: Tensor,
    grid: Grid,
    seen: Survey,
    poor: Tensor,
    overflow: Tensor | None,
    faint: Tensor | None,
    run: Iteration,
) -> None:
    """Write it.

    The vertices and the pyramid's in two parts, by number; whether colours are strange; the two
    numbers of `count_poor`; whether there was too little room for multigrid, and whether float32
    is too little; of the poorest image the sum of weights; whether there are weights that are
    invalid, and values that are not finite; whether all images have converged; then the errors
    after each step, of the worst image.
    """
    steps, images = run.errors.shape
    _write[(1,)](
        out,
        grid.total,
        *grid.pyramid.totals,
        grid.colours.strange,
        poor,
        overflow,
        faint,
        seen.total,
        seen.invalid,
        seen.unknown,
        seen.total.stride(0),
        run.done,
        run.errors,
        steps,
        images,
        PI=triton.next_power_of_2(images),
        STEPS=_STEPS,
    )


@triton.jit
def _tell(out, at, value):
    tl.store(out + at, value.to(tl.float64))


@kernel("stride", "steps", "images")
def _write(
    out,
    total,
    lower_total,
    upper_total,
    strange,
    poor,
    overflow,
    faint,
    weight,
    invalid,
    unknown,
    stride,
    done,
    errors,
    steps,
    images,
    PI: tl.constexpr,
    STEPS: tl.constexpr,
):
    i = tl.arange(0, PI)
    there = i < images
    none = tl.zeros((), tl.int32)
    _tell(out, 0, tl.load(total))
    _tell(out, 1, tl.load(lower_total))
    _tell(out, 2, tl.load(upper_total))
    _tell(out, 3, tl.load(strange))
    _tell(out, 4, tl.load(poor))
    _tell(out, 5, tl.load(poor + 1))
    _tell(out, 6, none if overflow is None else tl.load(overflow).to(tl.int32))
    _tell(out, 7, none if faint is None else tl.load(faint))
    _tell(out, 8, tl.min(tl.load(weight + i * stride, mask=there, other=float("inf")), 0))
    _tell(out, 9, tl.max(tl.load(invalid + i * stride, mask=there, other=0), 0))
    _tell(out, 10, tl.max(tl.load(unknown + i * stride, mask=there, other=0), 0))
    ended = (tl.load(done + i, mask=there, other=1) == 1).to(tl.int32)
    _tell(out, 11, tl.min(ended, 0))
    for at in range(0, steps, STEPS):
        step = at + tl.arange(0, STEPS)
        both = (step < steps)[:, None] & there[None, :]
        error = tl.load(errors + step[:, None] * images + i[None, :], mask=both, other=0)
        tl.store(out + 12 + step, tl.max(error, 1), mask=step < steps)
