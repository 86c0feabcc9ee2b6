"""Find per-class weights that preserve each class's area."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 512
_MAX_PROGRAMS = 256
_ROWS = 16


class ClassBalance:
    """The logarithms of the weights, one bias for each class, and their iteration.

    Parameters
    ----------
    log_scores : Tensor
        (K, H, W): logarithms of the scores.
    close : Tensor
        (H, W) bool: pixels whose label the biases may change.
    fixed_areas : Tensor
        (K,) int64: number of pixels that have each label and are not `close`.
    target_areas : Tensor
        (K,) int64: number of pixels that should have each label.
    """

    def __init__(
        self, log_scores: Tensor, close: Tensor, fixed_areas: Tensor, target_areas: Tensor
    ) -> None:
        self._log_scores, self._close = log_scores.contiguous(), close
        self._fixed_areas, self._target_areas = fixed_areas, target_areas
        classes, device = len(log_scores), log_scores.device
        self.bias = torch.zeros(classes, dtype=torch.float64, device=device)
        """(K,): logarithm of each class's weight."""
        self._settled = torch.zeros(1, dtype=torch.int32, device=device)
        self._programs = min(_MAX_PROGRAMS, triton.cdiv(close.numel(), _BLOCK))
        self._counts = torch.empty((self._programs, classes), dtype=torch.int32, device=device)

    def adjust(self, step: float, largest: float, few: int, settled: float) -> None:
        """Move the biases one step towards the target areas, unless they have settled.

        Parameters
        ----------
        step : float
            A bias moves by this many times log(target area / area).
        largest : float
            Largest absolute value of a bias.
        few : int
            Number of pixels added to both areas, so that a few pixels do not matter.
        settled : float
            After a step that moves every bias by less than this, further steps do nothing.
        """
        classes = len(self._log_scores)
        _count[(self._programs,)](
            self._log_scores,
            self._close,
            self.bias,
            self._settled,
            self._counts,
            classes,
            self._close.numel(),
            KP=triton.next_power_of_2(classes),
            BLOCK=_BLOCK,
        )
        _adjust[(1,)](
            self._counts,
            self._fixed_areas,
            self._target_areas,
            self.bias,
            self._settled,
            classes,
            self._programs,
            STEP=step,
            LARGEST=largest,
            FEW=few,
            SETTLED=settled,
            ROWS=_ROWS,
            KP=triton.next_power_of_2(classes),
        )


@kernel()
def _count(
    log_scores,
    close,
    bias,
    settled,
    counts,
    classes,
    pixels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store how many `close` pixels of each program get each label: (programs, classes)."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    if tl.load(settled) == 0:
        every = tl.arange(0, KP)
        areas = tl.zeros((KP,), tl.int32)
        for begin in range(program * BLOCK, pixels, programs * BLOCK):
            i = begin + tl.arange(0, BLOCK)
            mask = i < pixels
            mask &= tl.load(close + i, mask=mask, other=0) != 0
            best = tl.full((BLOCK,), float("-inf"), tl.float64)
            label = tl.zeros((BLOCK,), tl.int32)
            at = log_scores + i
            for k in range(0, classes):
                x = tl.load(at, mask=mask, other=0).to(tl.float64) + tl.load(bias + k)
                label = tl.where(x > best, k, label)
                best = tl.maximum(best, x)
                at += pixels
            for k in range(0, classes):
                areas += tl.where(every == k, tl.sum((mask & (label == k)).to(tl.int32), 0), 0)
        tl.store(counts + program * classes + every, areas, mask=every < classes)


@kernel()
def _adjust(
    counts,
    fixed_areas,
    target_areas,
    bias,
    settled,
    classes,
    programs,
    STEP: tl.constexpr,
    LARGEST: tl.constexpr,
    FEW: tl.constexpr,
    SETTLED: tl.constexpr,
    ROWS: tl.constexpr,
    KP: tl.constexpr,
):
    """Add up the counts of all programs, and move the biases."""
    if tl.load(settled) == 0:
        k = tl.arange(0, KP)
        mask = k < classes
        parts = tl.zeros((ROWS, KP), tl.int32)
        rows = tl.arange(0, ROWS)[:, None]
        for begin in range(0, programs, ROWS):
            row = begin + rows
            at = counts + row * classes + k[None, :]
            parts += tl.load(at, mask=mask[None, :] & (row < programs), other=0)
        area = tl.load(fixed_areas + k, mask=mask, other=0) + tl.sum(parts, 0)
        target = tl.load(target_areas + k, mask=mask, other=0)
        ratio = (target + FEW).to(tl.float64) / (area + FEW).to(tl.float64)
        last = tl.load(bias + k, mask=mask, other=0)
        new = tl.minimum(tl.maximum(last + STEP * tl.log(ratio), -LARGEST), LARGEST)
        tl.store(bias + k, new, mask=mask)
        change = tl.max(tl.where(mask, tl.abs(new - last), 0), 0)
        tl.store(settled, (change < SETTLED).to(tl.int32))
