"""Bistochastize the blur B-bar: find n such that D_n B-bar D_n has the row sums m.

m is the number of pixels of each vertex (Algorithm 1 of the paper's supplement).
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

Blur = tuple[float, float, float]
"""Weights of B-bar: of a vertex itself, of its neighbours in x and y, and along the features."""

STEPS = {torch.float32: 14, torch.float64: 80}
"""Number of steps. The CPU, which measures the error, needs 14 for 2e-6 and 45 for 1e-12."""
_BLOCK = 256


def bistochastize(grid: Grid, blur: Blur, dtype: torch.dtype, lowest_eigenvalue: float) -> Tensor:
    """Return n, (room,), after a fixed number of the steps of core/grid/bistochastize.hpp."""
    device = grid.mass.device
    change, n, new = (torch.empty(grid.room, dtype=dtype, device=device) for _ in range(3))
    table = _chebyshev_steps(blur, grid.features, STEPS[dtype], lowest_eigenvalue)
    numbers = constant(table, dtype, device)
    for step in range(STEPS[dtype]):
        _balance[(triton.cdiv(grid.room, _BLOCK),)](
            n,
            grid.mass,
            *grid.edges,
            change,
            new,
            grid.total,
            grid.room,
            numbers[step],
            FIRST=step == 0,
            LATER=step > 1,
            D=grid.edges.directions,
            BLOCK=_BLOCK,
        )
        n, new = new, n
    return n


def _chebyshev_steps(
    blur: Blur, features: int, steps: int, lowest_eigenvalue: float
) -> tuple[tuple[float, ...], ...]:
    """Return the blur's weights, the gain and the momentum of each step.

    The first step is the paper's, which moves log n by half the residual log(m / (n B-bar n)).
    Chebyshev's steps follow, for eigenvalues in the interval [low, high].
    """
    centre, space, range_ = blur
    around = 4 * space + features * range_
    mu = (centre - around) / (centre + around)
    low, high = 1 + min(max(mu, lowest_eigenvalue), 0.0), 2.0
    middle, half = (low + high) / 2, (high - low) / 2
    rho = 0.0
    table = []
    for step in range(steps):
        last = rho
        rho = half / middle if step <= 1 else 1 / (2 * middle / half - last)
        gain = 1 / middle if step <= 1 else 2 * rho / half
        momentum = 0.0 if step <= 1 else rho * last
        table.append((centre, space, range_, 0.5 if step == 0 else gain, momentum))
    return tuple(table)


@kernel()
def _balance(
    n,
    mass,
    words,
    to,
    change,
    new,
    total,
    room,
    numbers,
    FIRST: tl.constexpr,
    LATER: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Move log n one step towards m / (n B-bar n) = 1; from n = 1 if FIRST, with momentum if LATER.

    `words` and `to` are those of `Edges`, `numbers` a row of `_chebyshev_steps`.
    """
    centre, space, range_ = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    gain, momentum = tl.load(numbers + 3), tl.load(numbers + 4)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    one = tl.full((BLOCK,), 1, n.dtype.element_ty)
    n_i = one if FIRST else tl.load(n + i, mask=mask, other=1)
    blurred = n_i * centre
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = neighbours[e]
        n_j = tl.where(there, one, 0) if FIRST else tl.load(n + j, mask=there, other=0)
        blurred += (space if e < 4 else range_) * n_j
    m = tl.load(mass + i, mask=mask, other=1).to(n_i.dtype)
    step = gain * tl.log(m / (n_i * blurred))
    if LATER:
        step += momentum * tl.load(change + i, mask=mask, other=0)
    tl.store(change + i, step.to(n_i.dtype), mask=mask)
    tl.store(new + i, (n_i * tl.exp(step)).to(n_i.dtype), mask=mask)
