"""Factors of classes with which each is the label of as many pixels as it should be."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 512
_PROGRAMS = 256
_ROWS = 16


class Areas:
    """Biases of the logarithms (K, H, W) of scores, of which `close` pixels may change labels."""

    def __init__(self, logarithms: Tensor, close: Tensor, sure: Tensor, wanted: Tensor) -> None:
        """`sure` and `wanted`: (K,), how many pixels have each label anyway, and should have."""
        self._logarithms, self._close = logarithms.contiguous(), close
        self._sure, self._wanted = sure, wanted
        classes, device = len(logarithms), logarithms.device
        self.bias = torch.zeros(classes, dtype=torch.float64, device=device)
        self._settled = torch.zeros(1, dtype=torch.int32, device=device)
        self._programs = min(_PROGRAMS, triton.cdiv(close.numel(), _BLOCK))
        self._counts = torch.empty((self._programs, classes), dtype=torch.int32, device=device)

    def adjust(self, step: float, largest: float, few: int, enough: float) -> None:
        """One step from the areas to those wanted, unless the one before was `enough` or less.

        Biases move by `step` times the logarithm of the areas' ratios, up to the `largest`. What
        is a `few` pixels does not count.
        """
        classes = len(self._logarithms)
        _count[(self._programs,)](
            self._logarithms,
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
            self._sure,
            self._wanted,
            self.bias,
            self._settled,
            classes,
            self._programs,
            STEP=step,
            LARGEST=largest,
            FEW=few,
            ENOUGH=enough,
            ROWS=_ROWS,
            KP=triton.next_power_of_2(classes),
        )


@kernel("classes", "count")
def _count(
    logarithms,
    close,
    bias,
    settled,
    counts,
    classes,
    count,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    if tl.load(settled) == 0:
        every = tl.arange(0, KP)
        found = tl.zeros((KP,), tl.int32)
        for begin in range(program * BLOCK, count, programs * BLOCK):
            i = begin + tl.arange(0, BLOCK)
            mask = i < count
            mask &= tl.load(close + i, mask=mask, other=0) != 0
            best = tl.full((BLOCK,), float("-inf"), tl.float64)
            label = tl.zeros((BLOCK,), tl.int32)
            at = logarithms + i
            for k in range(0, classes):
                x = tl.load(at, mask=mask, other=0).to(tl.float64) + tl.load(bias + k)
                label = tl.where(x > best, k, label)
                best = tl.maximum(best, x)
                at += count
            for k in range(0, classes):
                found += tl.where(every == k, tl.sum((mask & (label == k)).to(tl.int32), 0), 0)
        tl.store(counts + program * classes + every, found, mask=every < classes)


@kernel("classes", "programs")
def _adjust(
    counts,
    sure,
    wanted,
    bias,
    settled,
    classes,
    programs,
    STEP: tl.constexpr,
    LARGEST: tl.constexpr,
    FEW: tl.constexpr,
    ENOUGH: tl.constexpr,
    ROWS: tl.constexpr,
    KP: tl.constexpr,
):
    if tl.load(settled) == 0:
        k = tl.arange(0, KP)
        mask = k < classes
        parts = tl.zeros((ROWS, KP), tl.int32)
        rows = tl.arange(0, ROWS)[:, None]
        for begin in range(0, programs, ROWS):
            row = begin + rows
            at = counts + row * classes + k[None, :]
            parts += tl.load(at, mask=mask[None, :] & (row < programs), other=0)
        found = tl.load(sure + k, mask=mask, other=0) + tl.sum(parts, 0)
        area = tl.load(wanted + k, mask=mask, other=0)
        ratio = (area + FEW).to(tl.float64) / (found + FEW).to(tl.float64)
        last = tl.load(bias + k, mask=mask, other=0)
        new = tl.minimum(tl.maximum(last + STEP * tl.log(ratio), -LARGEST), LARGEST)
        tl.store(bias + k, new, mask=mask)
        change = tl.max(tl.where(mask, tl.abs(new - last), 0), 0)
        tl.store(settled, (change < ENOUGH).to(tl.int32))
