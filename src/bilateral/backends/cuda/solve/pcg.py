"""Preconditioned conjugate gradients on a batch.

Everything of a step happens on the device, its scalars included, and the steps of an image end
where its channels have converged. So the host may launch steps ahead. With the paper's
preconditioners a step is four kernels:

- y = D_n z for z = M^-1 r, and the parts of r^T z;
- q = A z, and the parts of z^T A z;
- d = y + beta d, s = q + beta s, u += alpha d, r -= alpha s, and prefix sums of r;
- r's sums over coarse vertices, and how far the solution is.

That is the variant of Chronopoulos and Gear (1989), in which s is never computed as A times the
direction: a product reads one number per neighbour, not z, n and the direction. Directions and
u = D_n x are times n, as y is, so that z need not be kept; x = u / n where it is asked for.
With multigrid a V-cycle comes before the first kernel, and the last one only judges.

All programs add up the parts of sums they need: that takes less than another kernel.
"""

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.laplacian import Matrix
from bilateral.backends.cuda.grid.pyramid_transfer import Prefix, above, part_of_image, range_sums
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve.error_estimate import judge, step_lengths
from bilateral.backends.cuda.solve.preconditioner import Preconditioner

_BETWEEN_LOOKS = 8
"""Steps between looks at the error, for each of which the host waits for the device."""
_WINDOW = 256  # as in core/estimate.hpp
_SIZE = {torch.float32: {"num_warps": 8, "maxnreg": 64}, torch.float64: {"num_warps": 8}}
"""Of kernels that go over all vertices: some 4 of their programs share a multiprocessor, which has
that many registers for 4."""


class Outcome(NamedTuple):
    """How it went."""

    residuals: list[float]
    """The error estimate after each step, of the worst channel."""
    converged: bool


class Iteration:
    """The vectors and scalars of one solve, (n_vertices, K)."""

    def __init__(
        self,
        matrix: Matrix,
        preconditioner: Preconditioner | VCycle,
        b: Tensor,
        x: Tensor,
        scale: Tensor | None,
        active: Tensor | None,
        most_steps: int,
        tolerance: float,
    ) -> None:
        images, channels = matrix.grid.shape[0], x.shape[1]
        self._A = matrix
        self._M = preconditioner if isinstance(preconditioner, Preconditioner) else None
        self._cycles = preconditioner if isinstance(preconditioner, VCycle) else None
        self._factors = None if self._M is None else self._M.factors
        self._x, self._active = x, active
        padded = triton.next_power_of_2(channels)
        grid, device = matrix.grid, x.device
        wide: dict[str, Any] = {"dtype": torch.float64, "device": device}
        # r^T z, z^T A z and the sums of (d / n)^2 and of x^2 over pixels, by program.
        self._parts = torch.empty(4, images, grid.programs, padded, **wide)
        self._scale = None if scale is None else scale.contiguous()
        if scale is not None and padded > channels:
            self._scale = torch.ones(images, padded, **wide)
            self._scale[:, :channels] = scale
        limit = max(tolerance, 0.05 * torch.finfo(x.dtype).eps)
        pixels = float(math.prod(grid.shape[1:]))
        self._numbers = constant((limit, pixels), torch.float64, device)
        size = images * padded
        # Of the step before: r^T z, and alpha; the lengths of all steps; their errors.
        zeros = torch.zeros(2 * size + most_steps * (size + images), **wide)
        self._norm, self._alpha, self._lengths, errors = zeros.split_with_sizes(
            [size, size, most_steps * size, most_steps * images]
        )
        self.errors = errors.view(most_steps, images)
        """The estimate after each step; 0 where an image had ended before."""
        states = torch.zeros(size + 2 * images, dtype=torch.int32, device=device)
        self._finished, self.done, self._step = states.split_with_sizes([size, images, images])
        """`done`, of each image: 1 if it has converged, 2 if it took all steps that are allowed."""
        if padded > channels:
            self._finished.view(images, padded)[:, channels:] = 1
        self._fixed = tolerance < 0
        self._window = triton.next_power_of_2(2 * max(2, min(most_steps // 3 + 1, _WINDOW)))
        self._r, self._q, self._s, self._y, self._d, self._u = (
            torch.empty_like(x) for _ in range(6)
        )
        self._prefix = Prefix(grid, x, channels)
        self._coarse = x.new_empty(
            (grid.pyramid.begin.shape[0] if self._factors is not None else 0, channels)
        )
        if self._cycles is not None:
            self._cycles.solve_colour0(b, x)
        self._descend(matrix.multiply(x), b)
        self._lift(first=True)

    def step(self) -> None:
        """Z = M^-1 r; d = n z + beta d; u += alpha d; r -= alpha A (d / n)."""
        self._precondition()
        self._A.step(self._y, self._q, self._parts, self.done)
        self._descend(self._q)
        self._lift()

    def finish(self) -> None:
        """Write x. More steps may follow."""
        grid, size = self._A.grid, self._prefix
        _arrive[(triton.cdiv(grid.room, size.block),)](
            self._x,
            self._u,
            self._A.n,
            grid.total,
            grid.room,
            self._x.shape[1],
            KP=size.padded,
            BLOCK=size.block,
        )

    def _descend(self, q: Tensor, b: Tensor | None = None) -> None:
        grid = self._A.grid
        prefix = self._prefix
        _descend[(grid.programs, grid.shape[0])](
            self._x,
            self._u,
            self._A.n,
            self._r,
            b,
            self._y,
            self._d,
            q,
            self._s,
            self._A.pixels,
            self._active,
            self._parts,
            self._norm,
            self._alpha,
            self._finished,
            self.done,
            prefix.sums if self._factors is not None else None,
            prefix.parts,
            grid.first_vertex,
            self._x.shape[1],
            SIZE=self._scale is None,
            KP=prefix.padded,
            PP=triton.next_power_of_2(grid.programs),
            BLOCK=prefix.block,
            **_SIZE[self._x.dtype],
        )

    def _lift(self, *, first: bool = False) -> None:
        grid, prefix = self._A.grid, self._prefix
        images, count = grid.shape[0], self._coarse.shape[0]
        block = prefix.range_block
        _lift[(images + triton.cdiv(count, block),)](
            *grid.pyramid.ranges,
            *prefix.arguments,
            self._factors,
            self._coarse,
            count,
            self._x.shape[1],
            self._parts,
            self._norm,
            self._alpha,
            self._scale,
            self._numbers,
            self._lengths,
            self.errors,
            self._finished,
            self.done,
            self._step,
            self.errors.shape[0],
            images,
            grid.programs,
            FIRST=first,
            FIXED=self._fixed,
            STEADY=self._cycles is not None,
            KP=prefix.padded,
            PI=triton.next_power_of_2(images),
            PP=triton.next_power_of_2(grid.programs),
            PA=prefix.padded_parts,
            WINDOW=self._window,
            BLOCK=block,
        )

    def _precondition(self) -> None:
        if self._cycles is not None:
            self._cycles.apply(self._r, colour0_solved=True, out=self._y)
        grid, prefix = self._A.grid, self._prefix
        pyramid = grid.pyramid
        _precondition[(grid.programs, grid.shape[0])](
            self._r,
            None if self._M is None else self._A.inverse,
            self._coarse if self._factors is not None else None,
            pyramid.parent,
            pyramid.ancestors,
            self._active,
            self._A.n,
            self._y,
            self._parts,
            self.done,
            grid.first_vertex,
            pyramid.rooms[0],
            self._x.shape[1],
            LEVELS=pyramid.ancestors.shape[0],
            KP=prefix.padded,
            BLOCK=prefix.block,
            **_SIZE[self._x.dtype],
        )


def solve(
    matrix: Matrix,
    preconditioner: Preconditioner | VCycle,
    b: Tensor,
    x: Tensor,
    scale: Tensor | None,
    active: Tensor | None,
    most_steps: int,
    tolerance: float,
) -> Outcome:
    """Improve x (n_vertices, K) in place until its estimated error is `tolerance` times `scale`.

    `scale` is (B, K), or None for the root mean square of x itself, over pixels. Only `active`
    vertices move; None: all. A negative tolerance: always as many steps as allowed.
    """
    if most_steps == 0:
        return Outcome([], converged=False)
    run = Iteration(matrix, preconditioner, b, x, scale, active, most_steps, tolerance)
    for step in range(1, most_steps + 1):
        run.step()
        if step % _BETWEEN_LOOKS == 0 and tolerance >= 0 and bool((run.done != 0).all()):
            break
    run.finish()
    errors = until_zero(run.errors[:step].amax(1).tolist())
    return Outcome(errors, bool((run.done == 1).all()))


def until_zero(errors: list[float]) -> list[float]:
    """Without the zeros at the end, but for the first number."""
    while len(errors) > 1 and errors[-1] == 0:
        errors.pop()
    return errors


@kernel()
def _descend(
    x,
    u,
    n,
    r,
    b,
    y,
    d,
    q,
    s,
    pixels,
    active,
    parts,
    norm,
    alpha,
    finished,
    done,
    sums,
    part_sums,
    first_vertex,
    channels,
    SIZE: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A step of u and r, or with b, r = b - q; and prefix sums of r within this program's part."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    k = tl.arange(0, KP)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    vectors = q, y, d, s, u, r
    if b is None:
        # What memory has to bring comes first, and the next block's before this one is done with.
        ahead = _read_vectors(vectors, pixels, begin, end, channels, k, BLOCK)
        scalars = parts, norm, alpha, finished
        lengths = step_lengths(*scalars, image, images, programs, k, KP, PP)
        a = lengths[2].to(u.dtype.element_ty)[None, :]
        beta = lengths[1].to(u.dtype.element_ty)[None, :]
    before, moved = tl.zeros((KP,), tl.float64), tl.zeros((BLOCK, KP), tl.float64)
    size = tl.zeros((BLOCK, KP), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        if b is None:
            product, way, last_way, last_product, there, left, m = ahead
            ahead = _read_vectors(vectors, pixels, at + BLOCK, end, channels, k, BLOCK)
            # There is no d before the first step, nor after one that went nowhere.
            way += beta * tl.where(beta > 0, last_way, 0.0)
            product += beta * tl.where(beta > 0, last_product, 0.0)
            tl.store(d + to, way, mask=both)
            tl.store(s + to, product, mask=both)
            there += a * way
            tl.store(u + to, there, mask=both)
            left -= a * product
            moved += (m * way * way).to(tl.float64)
            if SIZE:
                size += (m * there * there).to(tl.float64)
        else:
            start = tl.load(n + i, mask=i < end, other=0)[:, None]
            tl.store(u + to, start * tl.load(x + to, mask=both, other=0), mask=both)
            left = tl.load(b + to, mask=both, other=0) - tl.load(q + to, mask=both, other=0)
            if active is not None:
                on = tl.load(active + i, mask=i < end, other=0) != 0
                left = tl.where(on[:, None], left, 0.0)
        tl.store(r + to, left, mask=both)
        if sums is not None:
            wide = left.to(tl.float64)
            tl.store(sums + to, tl.cumsum(wide, 0) + before[None, :], mask=both)
            before += tl.sum(wide, 0)
    own = image * programs + program
    if b is None:
        tl.store(parts + (2 * images * programs + own) * KP + k, tl.sum(moved, 0))
        if SIZE:
            tl.store(parts + (3 * images * programs + own) * KP + k, tl.sum(size, 0))
    if sums is not None:
        going = (k * 0 + tl.load(done + image)) == 0
        tl.store(part_sums + own * KP + k, before, mask=going)


@triton.jit
def _read_vectors(vectors, pixels, at, end, channels, k, BLOCK: tl.constexpr):
    """A block of some vectors, and its pixels over n^2."""
    i = at + tl.arange(0, BLOCK)
    both = (i < end)[:, None] & (k[None, :] < channels)
    to = i.to(tl.int64)[:, None] * channels + k[None, :]
    found = ()
    for v in tl.static_range(len(vectors)):
        found += (tl.load(vectors[v] + to, mask=both, other=0),)  # type: ignore[assignment]
    found += (tl.load(pixels + i, mask=i < end, other=0)[:, None],)  # type: ignore[assignment]
    return found


@kernel("count", "most_steps", "images", "programs")
def _lift(
    begin,
    end,
    part_before,
    part_last,
    sums,
    part_sums,
    before,
    all_parts,
    factors,
    coarse,
    count,
    channels,
    parts,
    norm,
    alpha,
    scale,
    numbers,
    lengths,
    errors,
    finished,
    done,
    step,
    most_steps,
    images,
    programs,
    FIRST: tl.constexpr,
    FIXED: tl.constexpr,
    STEADY: tl.constexpr,
    KP: tl.constexpr,
    PI: tl.constexpr,
    PP: tl.constexpr,
    PA: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """R's sums over coarse vertices; the first programs judge the error instead, one per image."""
    program = tl.program_id(0)
    k = tl.arange(0, KP)
    if program < images:
        if not FIRST:
            judge(
                parts,
                norm,
                alpha,
                scale,
                numbers,
                lengths,
                errors,
                finished,
                done,
                step,
                most_steps,
                program,
                images,
                programs,
                k,
                FIXED,
                STEADY,
                KP,
                PP,
                WINDOW,
            )
    elif factors is not None:
        every = tl.arange(0, PI)
        going = tl.load(done + every, mask=every < images, other=1) == 0
        if tl.sum(going.to(tl.int32), 0) > 0:
            g = (program - images) * BLOCK + tl.arange(0, BLOCK)
            mask = g < count
            ranges = begin, end, part_before, part_last
            sums_ = sums, part_sums, before, all_parts
            total = range_sums(*ranges, *sums_, g, mask, channels, KP, PA)
            total *= tl.load(factors + g, mask=mask, other=0)[:, None]
            to = g.to(tl.int64)[:, None] * channels + k[None, :]
            both = mask[:, None] & (k < channels)[None, :]
            tl.store(coarse + to, total.to(coarse.dtype.element_ty), mask=both)


@kernel("lower")
def _precondition(
    r,
    inverse,
    coarse,
    parent,
    ancestors,
    active,
    n,
    y,
    parts,
    done,
    first_vertex,
    lower,
    channels,
    LEVELS: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Y = D_n z for z = r / diag A + what the pyramid adds, and this program's part of r^T z.

    Without `inverse`, z is there already, in y.
    """
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    k = tl.arange(0, KP)
    total = tl.zeros((KP,), tl.float64)
    above_first = parent if coarse is not None else None
    ahead = _read_rows(n, inverse, above_first, begin, end, BLOCK)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        both = mask[:, None] & (k[None, :] < channels)
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        left = tl.load(r + to, mask=both, other=0)
        own, factor, up = ahead
        ahead = _read_rows(n, inverse, above_first, at + BLOCK, end, BLOCK)
        if inverse is None:
            made = tl.load(y + to, mask=both, other=0)
        else:
            made = factor[:, None] * left
            if coarse is not None:
                made += above(coarse, ancestors, up, mask, lower, channels, LEVELS, k)
            if active is not None:
                on = tl.load(active + i, mask=mask, other=0) != 0
                made = tl.where(on[:, None], made, 0.0)
        tl.store(y + to, own[:, None] * made, mask=both)
        total += tl.sum((left * made).to(tl.float64), 0)  # by thread it took half as long again
    tl.store(parts + (image * programs + program) * KP + k, total)


@triton.jit
def _read_rows(n, inverse, parent, at, end, BLOCK: tl.constexpr):
    """A block of n, and of the others if there are any."""
    i = at + tl.arange(0, BLOCK)
    own = tl.load(n + i, mask=i < end, other=0)
    factor, up = own, i
    if inverse is not None:
        factor = tl.load(inverse + i, mask=i < end, other=0)
    if parent is not None:
        up = tl.load(parent + i, mask=i < end, other=0)
    return own, factor, up


@kernel("room")
def _arrive(x, u, n, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    """X = u / n."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask, k = i < tl.minimum(tl.load(total), room), tl.arange(0, KP)
    both = mask[:, None] & (k[None, :] < channels)
    to = i.to(tl.int64)[:, None] * channels + k[None, :]
    own = tl.load(u + to, mask=both, other=0) / tl.load(n + i, mask=mask, other=1)[:, None]
    tl.store(x + to, own, mask=both)
