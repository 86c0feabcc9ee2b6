"""Estimate the remaining error of an iteration on the device, as core/solve/error_estimate.hpp."""

import triton
import triton.language as tl

from bilateral.backends.cuda.grid.image_parts import ratio, sum_parts
from bilateral.backends.cuda.solve.best_step import is_better, is_diverged


@triton.jit
def step_lengths(
    parts, norm, alpha, finished, image, images, programs, k, KP: tl.constexpr, PP: tl.constexpr
):
    """Return r^T z, beta and alpha of a step, from the programs' parts of r^T z and z^T A z.

    d^T A d is z^T A z - beta r^T z / alpha, with alpha of the step before. If that is 0, there was
    no step before, and the directions begin anew.
    """
    place = image * KP + k
    new_norm = sum_parts(parts, 0, image, images, programs, k, KP, PP)
    curvature = sum_parts(parts, 1, image, images, programs, k, KP, PP)
    last_alpha = tl.load(alpha + place)
    beta = tl.where(last_alpha > 0, ratio(new_norm, tl.load(norm + place)), 0.0)
    new_alpha = ratio(new_norm, curvature - ratio(beta * new_norm, last_alpha))
    return new_norm, beta, tl.where(tl.load(finished + place) == 0, new_alpha, 0.0)


@triton.jit
def _remaining_error(
    lengths, length, s, place, images, STEADY: tl.constexpr, KP: tl.constexpr, WINDOW: tl.constexpr
):
    """Estimate the remaining error per channel; `length` is the length of step s, the last one.

    If steps shrink by a factor rho each, the remaining error is the last length times
    rho / (1 - rho). STEADY: lengths shrink from each step to the next. Otherwise they fluctuate,
    so that rho compares the last third of the steps with the third before, and the largest of the
    last three lengths replaces the last.
    """
    # Row j holds the length of step s - j.
    j = tl.arange(0, WINDOW)
    exists = (j[:, None] > 0) & (j[:, None] <= s)
    at = (s - j)[:, None] * images * KP + place[None, :]
    past = tl.load(lengths + at, mask=exists, other=0.0)
    each = tl.where(j[:, None] == 0, length[None, :], past)
    if STEADY:
        # The largest of the last three ratios of a length to the one before.
        compared = ((j > 0) & (j <= 3))[:, None] & exists
        at_next = (s - j + 1)[:, None] * images * KP + place[None, :]
        after = tl.load(lengths + at_next, mask=compared & (j[:, None] > 1), other=0.0)
        after = tl.where(j[:, None] == 1, length[None, :], after)
        last = length
        rho = tl.max(tl.where(compared, ratio(after, each), 0.0), 0)
        least = 0.5
    else:
        last = tl.max(tl.where(j[:, None] < 3, each, 0.0), 0)
        window = tl.minimum(tl.maximum((s + 1) // 3, 1), WINDOW // 2)
        late_squares = tl.sum(tl.where(j[:, None] < window, each * each, 0.0), 0)
        early = (j[:, None] >= window) & (j[:, None] < 2 * window)
        early_squares = tl.sum(tl.where(early, each * each, 0.0), 0)
        positive = (early_squares > 0) & (late_squares > 0)
        shrunk = tl.where(positive, late_squares / tl.where(positive, early_squares, 1.0), 1.0)
        root = tl.exp(tl.log(shrunk) * (0.5 / window.to(tl.float64)))
        rho = tl.where(positive, root, 0.0)
        least = 1.5
    rho = tl.minimum(rho, 1 - 0.25 / (s + 1).to(tl.float64))
    return tl.where(s == 0, least * last, last * tl.maximum(rho / (1 - rho), least))


@triton.jit
def judge_step(
    state,
    best,
    max_iterations,
    place_in_batch,
    k,
    FIXED: tl.constexpr,
    STEADY: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """Estimate the error of each channel of an image after a step, and end those that converged.

    `state` is (parts, norm, alpha, scale, numbers, lengths, errors, finished, done, step) of an
    `Iteration`, `best` is (kept_norm, start_norm, diverged), and `place_in_batch` is the image, the
    number of images, and the number of programs per image. FIXED: always make `max_iterations`
    steps.
    """
    image, images, programs = place_in_batch
    parts, norm, alpha, scale, numbers, lengths, errors, finished, done, step = state
    kept_norm, start_norm, diverged = best
    place = image * KP + k
    scalars = parts, norm, alpha, finished
    new_norm, _, new_alpha = step_lengths(*scalars, image, images, programs, k, KP, PP)
    movement = sum_parts(parts, 2, image, images, programs, k, KP, PP)
    limit, pixels = tl.load(numbers), tl.load(numbers + 1)
    was_finished = tl.load(finished + place)
    s = tl.load(step + image)
    length = new_alpha * tl.sqrt(movement / pixels)
    error = _remaining_error(lengths, length, s, place, images, STEADY, KP, WINDOW)
    if scale is None:
        rms = tl.sqrt(sum_parts(parts, 3, image, images, programs, k, KP, PP) / pixels)
        error /= tl.where(rms > 0, rms, 1.0)
    else:
        error /= tl.load(scale + place)
    start = tl.where(s == 0, new_norm, tl.load(start_norm + place))
    kept = tl.load(kept_norm + place)
    kept = tl.where(is_better(new_norm, kept, s, numbers), new_norm, kept)
    if tl.load(done + image) == 0:
        tl.store(start_norm + place, start)
        tl.store(kept_norm + place, kept)
        tl.store(diverged + place, is_diverged(new_norm, kept, start, numbers))
        tl.store(lengths + s * images * KP + place, length)
        tl.store(norm + place, new_norm)
        tl.store(alpha + place, new_alpha)
        tl.store(errors + s * images + image, tl.max(tl.where(was_finished != 0, 0.0, error), 0))
        tl.store(step + image, s + 1)
        ended = tl.where(s + 1 < max_iterations, 0, 2)
        if not FIXED:
            is_finished = (was_finished != 0) | ((s >= 1) & (error <= limit))
            tl.store(finished + place, is_finished.to(tl.int32))
            ended = tl.where(tl.min(is_finished.to(tl.int32), 0) != 0, 1, ended)
        tl.store(done + image, ended)
