"""Find the best step of an iteration, and whether it diverges, as BestStep of core/solve/pcg.hpp.

Rounding errors may make late steps arbitrarily bad if the smoothness term exceeds the data term by
more than the dtype resolves. Steps are compared by r^T M^-1 r, per channel.
"""

import triton
import triton.language as tl


@triton.jit
def is_better(norm, kept_norm, step, numbers):
    """Whether a step is so much better than the kept one that it is kept instead.

    A `kept_norm` of 0 means that there is none yet.
    """
    keep_from, keep_gain = tl.load(numbers + 2).to(tl.int32), tl.load(numbers + 3)
    limit = tl.where(kept_norm == 0, float("inf"), keep_gain * kept_norm)
    limit = tl.where(step >= keep_from, limit, 0.0)
    return (norm > 0) & (norm < limit)


@triton.jit
def is_diverged(norm, kept_norm, start_norm, numbers):
    """Return 1 if a step is far worse than the kept one, else 0."""
    divergence, noise = tl.load(numbers + 4), tl.load(numbers + 5)
    most = divergence * tl.maximum(kept_norm, noise * start_norm)
    return tl.where((kept_norm == 0) | (norm <= most), 0, 1)  # 1 for NaN
