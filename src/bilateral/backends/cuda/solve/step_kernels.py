"""Kernels of one step of preconditioned conjugate gradients; `iteration.py` launches them.

Each program works on one part of an image's vertices, and writes its parts of sums. Every program
that needs a sum adds up all parts: that takes less time than another kernel.
"""

import triton
import triton.language as tl

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.grid.image_parts import part_of_image
from bilateral.backends.cuda.grid.pyramid_transfer import range_sums, sum_ancestors
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.solve.best_step import is_better
from bilateral.backends.cuda.solve.error_estimate import judge_step, step_lengths

_IMAGES_AT_ONCE: tl.constexpr = tl.constexpr(32)
"""Images whose state one load reads: each warp reads all, and none waits for another."""


@triton.jit
def _unfinished_part(first_vertex, done, image, program, programs):
    """Return the vertices of a program's part of an image; none if the image is done."""
    begin, end = part_of_image(first_vertex, image, program, programs)
    return begin, tl.where(tl.load(done + image) != 0, begin, end)


@kernel(ones=("channels",))
def precondition(
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
    """Write y = D_n z for z = M^-1 r, and this program's part of r^T z.

    z is r / diag(A) plus the sums over coarse vertices. Without `inverse`, y holds z on entry.
    """
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = _unfinished_part(first_vertex, done, image, program, programs)
    k = tl.arange(0, KP)
    total = tl.zeros((KP,), tl.float64)
    coarse_parent = parent if coarse is not None else None
    ahead = _read_rows(n, inverse, coarse_parent, begin, end, BLOCK)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        to, both = row_channels(i, mask, channels, k)
        residual = tl.load(r + to, mask=both, other=0)
        n_i, inverse_i, parent_i = ahead
        ahead = _read_rows(n, inverse, coarse_parent, at + BLOCK, end, BLOCK)
        if inverse is None:
            z = tl.load(y + to, mask=both, other=0)
        else:
            z = inverse_i[:, None] * residual
            if coarse is not None:
                z += sum_ancestors(coarse, ancestors, parent_i, mask, lower, channels, LEVELS, k)
            if active is not None:
                is_active = tl.load(active + i, mask=mask, other=0) != 0
                z = tl.where(is_active[:, None], z, 0.0)
        tl.store(y + to, n_i[:, None] * z, mask=both)
        total += tl.sum((residual * z).to(tl.float64), 0)  # sums per thread take 1.5 times as long
    tl.store(parts + (image * programs + program) * KP + k, total)


@triton.jit
def _read_rows(n, inverse, parent, at, end, BLOCK: tl.constexpr):
    """Return a block of n, of `inverse` and of `parent`; the latter two may be None."""
    i = at + tl.arange(0, BLOCK)
    n_i = tl.load(n + i, mask=i < end, other=0)
    inverse_i, parent_i = n_i, i
    if inverse is not None:
        inverse_i = tl.load(inverse + i, mask=i < end, other=0)
    if parent is not None:
        parent_i = tl.load(parent + i, mask=i < end, other=0)
    return n_i, inverse_i, parent_i


@kernel(ones=("channels",))
def update(
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
    best,
    kept_norm,
    step,
    numbers,
    first_vertex,
    channels,
    SQUARES: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Make a step of u and r, or with b start from x; and write prefix sums of r in this part.

    The start is u = n x and r = b - q. If u is the best step so far, it is copied to `best` first,
    unless that is None. SQUARES: also sum x^2 over the pixels.
    """
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    k = tl.arange(0, KP)
    begin, end = _unfinished_part(first_vertex, done, image, program, programs)
    vectors = q, y, d, s, u, r
    if b is None:
        # Loads overlap with the sums of the parts here, and with the work on a block below.
        ahead = _read_vectors(vectors, pixels, begin, end, channels, k, BLOCK)
        scalars = parts, norm, alpha, finished
        norm_k, beta_k, alpha_k = step_lengths(*scalars, image, images, programs, k, KP, PP)
        if best is not None:
            kept = tl.load(kept_norm + image * KP + k)
            better = is_better(norm_k, kept, tl.load(step + image), numbers)
            is_best = tl.max(better.to(tl.int32), 0) != 0
        length = alpha_k.to(u.dtype.element_ty)[None, :]
        beta = beta_k.to(u.dtype.element_ty)[None, :]
    before, movement = tl.zeros((KP,), tl.float64), tl.zeros((BLOCK, KP), tl.float64)
    squares = tl.zeros((BLOCK, KP), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        to, both = row_channels(i, i < end, channels, k)
        if b is None:
            product, direction, last_direction, last_product, solution, residual, m = ahead
            ahead = _read_vectors(vectors, pixels, at + BLOCK, end, channels, k, BLOCK)
            # d and s hold no numbers before the first step, nor after one with an alpha of 0.
            direction += beta * tl.where(beta > 0, last_direction, 0.0)
            product += beta * tl.where(beta > 0, last_product, 0.0)
            tl.store(d + to, direction, mask=both)
            tl.store(s + to, product, mask=both)
            if best is not None:  # noqa: SIM102 (Triton compiles both sides of "and")
                if is_best:
                    tl.store(best + to, solution, mask=both & better[None, :])
            solution += length * direction
            tl.store(u + to, solution, mask=both)
            residual -= length * product
            movement += (m * direction * direction).to(tl.float64)
            if SQUARES:
                squares += (m * solution * solution).to(tl.float64)
        else:
            n_i = tl.load(n + i, mask=i < end, other=0)[:, None]
            tl.store(u + to, n_i * tl.load(x + to, mask=both, other=0), mask=both)
            residual = tl.load(b + to, mask=both, other=0) - tl.load(q + to, mask=both, other=0)
            if active is not None:
                is_active = tl.load(active + i, mask=i < end, other=0) != 0
                residual = tl.where(is_active[:, None], residual, 0.0)
        tl.store(r + to, residual, mask=both)
        if sums is not None:
            wide = residual.to(tl.float64)
            tl.store(sums + to, tl.cumsum(wide, 0) + before[None, :], mask=both)
            before += tl.sum(wide, 0)
    part = image * programs + program
    if b is None:
        tl.store(parts + (2 * images * programs + part) * KP + k, tl.sum(movement, 0))
        if SQUARES:
            tl.store(parts + (3 * images * programs + part) * KP + k, tl.sum(squares, 0))
    if sums is not None:
        unfinished = (k * 0 + tl.load(done + image)) == 0
        tl.store(part_sums + part * KP + k, before, mask=unfinished)


@triton.jit
def _read_vectors(vectors, pixels, at, end, channels, k, BLOCK: tl.constexpr):
    """Return a block of each of the vectors, and of m / n^2."""
    i = at + tl.arange(0, BLOCK)
    to, both = row_channels(i, i < end, channels, k)
    blocks = ()
    for v in tl.static_range(len(vectors)):
        blocks += (tl.load(vectors[v] + to, mask=both, other=0),)  # type: ignore[assignment]
    blocks += (tl.load(pixels + i, mask=i < end, other=0)[:, None],)  # type: ignore[assignment]
    return blocks


@kernel(ones=("channels",))
def judge_and_sum_coarse(
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
    kept_norm,
    start_norm,
    diverged,
    max_iterations,
    images,
    programs,
    first,
    FIXED: tl.constexpr,
    STEADY: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    PA: tl.constexpr,
    WINDOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Judge the error, by one program per image, and sum r over coarse vertices, by all others.

    `first`: there is no step to judge yet.
    """
    program = tl.program_id(0)
    k = tl.arange(0, KP)
    if program < images:
        if first == 0:
            state = parts, norm, alpha, scale, numbers, lengths, errors, finished, done, step
            judge_step(
                state,
                (kept_norm, start_norm, diverged),
                max_iterations,
                (program, images, programs),
                k,
                FIXED,
                STEADY,
                KP,
                PP,
                WINDOW,
            )
    elif factors is not None:
        unfinished = 0
        for at in range(0, images, _IMAGES_AT_ONCE):
            image = at + tl.arange(0, _IMAGES_AT_ONCE)
            is_open = tl.load(done + image, mask=image < images, other=1) == 0
            unfinished += tl.sum(is_open.to(tl.int32), 0)
        if unfinished > 0:
            g = (program - images) * BLOCK + tl.arange(0, BLOCK)
            mask = g < count
            ranges = begin, end, part_before, part_last
            prefix = sums, part_sums, before, all_parts
            total = range_sums(*ranges, *prefix, g, mask, channels, KP, PA)
            total *= tl.load(factors + g, mask=mask, other=0)[:, None]
            to, both = row_channels(g, mask, channels, k)
            tl.store(coarse + to, total.to(coarse.dtype.element_ty), mask=both)


@kernel(ones=("channels",))
def write_solution(
    x, u, best, diverged, n, first_vertex, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    """Write x = u / n, with the best step for u in channels that diverged."""
    program, image = tl.program_id(0), tl.program_id(1)
    begin, end = part_of_image(first_vertex, image, program, tl.num_programs(0))
    k = tl.arange(0, KP)
    worse = (tl.load(diverged + image * KP + k) != 0)[None, :]
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        to, both = row_channels(i, i < end, channels, k)
        solution = tl.load(u + to, mask=both, other=0)
        if best is not None:
            solution = tl.where(worse, tl.load(best + to, mask=both & worse, other=0), solution)
        n_i = tl.load(n + i, mask=i < end, other=1)[:, None]
        tl.store(x + to, solution / n_i, mask=both)
