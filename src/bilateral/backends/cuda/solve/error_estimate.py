"""How far from the solution is an iteration? As core/estimate.hpp, on the device."""

import triton
import triton.language as tl

from bilateral.backends.cuda.grid.laplacian import ratio, sum_parts


@triton.jit
def step_lengths(
    parts, norm, alpha, finished, image, images, programs, k, KP: tl.constexpr, PP: tl.constexpr
):
    """R^T z, beta and alpha of a step, from the parts of r^T z and z^T A z.

    D^T A d is z^T A z - beta r^T z / alpha, with the alpha before; where there was none, the
    directions begin anew.
    """
    own = image * KP + k
    following = sum_parts(parts, 0, image, images, programs, k, KP, PP)
    bend = sum_parts(parts, 1, image, images, programs, k, KP, PP)
    before = tl.load(alpha + own)
    beta = tl.where(before > 0, ratio(following, tl.load(norm + own)), 0.0)
    a = ratio(following, bend - ratio(beta * following, before))
    return following, beta, tl.where(tl.load(finished + own) == 0, a, 0.0)


@triton.jit
def judge(
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
    image,
    images,
    programs,
    k,
    FIXED: tl.constexpr,
    STEADY: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """By the lengths of all steps so far, how far the solution is, per channel.

    The estimate is that of core/estimate.hpp.
    """
    own = image * KP + k
    scalars = parts, norm, alpha, finished
    following, _, a = step_lengths(*scalars, image, images, programs, k, KP, PP)
    moved = sum_parts(parts, 2, image, images, programs, k, KP, PP)
    limit, pixels = tl.load(numbers), tl.load(numbers + 1)
    was = tl.load(finished + own)
    s = tl.load(step + image)
    length = a * tl.sqrt(moved / pixels)
    # The lengths of all steps that count, the last one first.
    j = tl.arange(0, WINDOW)
    before_now = (j[:, None] > 0) & (j[:, None] <= s)
    at = (s - j)[:, None] * images * KP + own[None, :]
    lengths_before = tl.load(lengths + at, mask=before_now, other=0.0)
    each = tl.where(j[:, None] == 0, length[None, :], lengths_before)
    if STEADY:
        behind = ((j > 0) & (j <= 3))[:, None] & before_now
        at_next = (s - j + 1)[:, None] * images * KP + own[None, :]
        after = tl.load(lengths + at_next, mask=behind & (j[:, None] > 1), other=0.0)
        after = tl.where(j[:, None] == 1, length[None, :], after)
        last = length
        rho = tl.max(tl.where(behind, ratio(after, each), 0.0), 0)
        least = 0.5
    else:
        last = tl.max(tl.where(j[:, None] < 3, each, 0.0), 0)
        window = tl.minimum(tl.maximum((s + 1) // 3, 1), WINDOW // 2)
        now = tl.sum(tl.where(j[:, None] < window, each * each, 0.0), 0)
        earlier = (j[:, None] >= window) & (j[:, None] < 2 * window)
        before = tl.sum(tl.where(earlier, each * each, 0.0), 0)
        some = (before > 0) & (now > 0)
        shrunk = tl.where(some, now / tl.where(some, before, 1.0), 1.0)
        rho = tl.where(some, tl.exp(tl.log(shrunk) * (0.5 / window.to(tl.float64))), 0.0)
        least = 1.5
    rho = tl.minimum(rho, 1 - 0.25 / (s + 1).to(tl.float64))
    left = tl.where(s == 0, least * last, last * tl.maximum(rho / (1 - rho), least))
    if scale is None:
        size = tl.sqrt(sum_parts(parts, 3, image, images, programs, k, KP, PP) / pixels)
        left /= tl.where(size > 0, size, 1.0)
    else:
        left /= tl.load(scale + own)
    if tl.load(done + image) == 0:
        tl.store(lengths + s * images * KP + own, length)
        tl.store(norm + own, following)
        tl.store(alpha + own, a)
        tl.store(errors + s * images + image, tl.max(tl.where(was != 0, 0.0, left), 0))
        tl.store(step + image, s + 1)
        ended = tl.where(s + 1 < most_steps, 0, 2)
        if not FIXED:
            now_done = (was != 0) | ((s >= 1) & (left <= limit))
            tl.store(finished + own, now_done.to(tl.int32))
            ended = tl.where(tl.min(now_done.to(tl.int32), 0) != 0, 1, ended)
        tl.store(done + image, ended)
