"""Write the report of a recorded solve: one row of numbers, which the host reads in one copy."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.image_parts import padded_images
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.solve.input_stats import InputStats
from bilateral.backends.cuda.solve.iteration import Iteration

HEADER = 13
"""Numbers before the errors of all steps."""
CONVERGED, DIVERGED = HEADER - 1, HEADER - 2
"""Places of two of them."""
_STEPS_AT_ONCE = 32
"""Steps whose errors are reduced at a time."""


def new_report(max_iterations: int, device: torch.device) -> Tensor:
    """Allocate a report on at most this many steps."""
    return torch.empty(HEADER + max_iterations, dtype=torch.float64, device=device)


def write_report(
    out: Tensor,
    grid: Grid,
    stats: InputStats,
    loose_counts: Tensor,
    overflow: Tensor | None,
    has_faint_component: Tensor | None,
    iteration: Iteration,
) -> None:
    """Write the header, then the error after each step, of the worst image.

    The header has these numbers:

    - 0 to 2: numbers of vertices, of the pyramid's first level, and of its other levels;
    - 3: whether the reference has values outside of its range, or NaN;
    - 4 and 5: the two numbers of `count_loose`;
    - 6: whether multigrid's hierarchy had too little room;
    - 7: whether a component is faint, so that float32 does not suffice;
    - 8: the smallest sum of weights of an image;
    - 9: the largest number of invalid weights of an image;
    - 10: the largest number of values of an image that are not finite;
    - 11: whether some channel diverged;
    - 12: whether all images have converged, as their errors say.
    """
    steps, images = iteration.errors.shape
    _write[(1,)](
        *(out, grid.total, *grid.pyramid.totals, grid.tile_keys.out_of_range),
        *(loose_counts, overflow, has_faint_component),
        *(stats.weight_sum, stats.invalid_weights, stats.nonfinite_values),
        stats.weight_sum.stride(0),
        *(iteration.diverged, iteration.diverged.shape[0]),
        *(iteration.done, iteration.errors, steps, images),
        PD=padded_images(iteration.diverged.shape[0]),
        PI=padded_images(images),
        STEPS=_STEPS_AT_ONCE,
    )


@triton.jit
def _put(out, at, value):
    tl.store(out + at, value.to(tl.float64))


@kernel()
def _write(
    out,
    total,
    lower_total,
    upper_total,
    strange,
    loose_counts,
    overflow,
    has_faint_component,
    weight_sum,
    invalid_weights,
    nonfinite_values,
    stride,
    diverged,
    channels,
    done,
    errors,
    steps,
    images,
    PD: tl.constexpr,
    PI: tl.constexpr,
    STEPS: tl.constexpr,
):
    i = tl.arange(0, PI)
    mask = i < images
    none = tl.zeros((), tl.int32)
    _put(out, 0, tl.load(total))
    _put(out, 1, tl.load(lower_total))
    _put(out, 2, tl.load(upper_total))
    _put(out, 3, tl.load(strange))
    _put(out, 4, tl.load(loose_counts))
    _put(out, 5, tl.load(loose_counts + 1))
    _put(out, 6, none if overflow is None else tl.load(overflow).to(tl.int32))
    _put(out, 7, none if has_faint_component is None else tl.load(has_faint_component))
    _put(out, 8, tl.min(tl.load(weight_sum + i * stride, mask=mask, other=float("inf")), 0))
    _put(out, 9, tl.max(tl.load(invalid_weights + i * stride, mask=mask, other=0), 0))
    _put(out, 10, tl.max(tl.load(nonfinite_values + i * stride, mask=mask, other=0), 0))
    converged = (tl.load(done + i, mask=mask, other=1) == 1).to(tl.int32)
    c = tl.arange(0, PD)
    _put(out, 11, tl.max(tl.load(diverged + c, mask=c < channels, other=0), 0))
    _put(out, 12, tl.min(converged, 0))
    for at in range(0, steps, STEPS):
        step = at + tl.arange(0, STEPS)
        both = (step < steps)[:, None] & mask[None, :]
        error = tl.load(errors + step[:, None] * images + i[None, :], mask=both, other=0)
        tl.store(out + 13 + step, tl.max(error, 1), mask=step < steps)
