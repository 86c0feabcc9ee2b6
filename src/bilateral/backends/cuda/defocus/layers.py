"""Blur an image layer by layer and composite the layers from front to back.

As in core/defocus/defocus.hpp: a pixel belongs to the two layers next to its own blur, in shares
that add up to 1. Each layer covers as much of a pixel as its blurred shares amount to, until the
pixel is full. Behind a blurred edge, the visible background around takes the place of the hidden
one. The blur of a layer takes two numbers of a prefix sum per row of its kernel.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.defocus.bokeh import Bokeh, make_bokeh
from bilateral.backends.cuda.kernel import kernel

_ROW = 1024
"""Pixels of a row that are summed at a time."""
_BLOCK = 128
"""Pixels of a row that one program composites."""
_LEAST_COVER: tl.constexpr = tl.constexpr(1e-6)
"""A layer that covers less of a pixel is ignored."""
_LEAST_OPEN: tl.constexpr = tl.constexpr(1e-4)
"""A pixel with less transmittance is full."""
_LEAST_UNCOVERED: tl.constexpr = tl.constexpr(1e-3)
"""A pixel with less needs no filled background."""


def defocus(
    light: Tensor,
    layers: Tensor,
    present: Sequence[int],
    radii: Sequence[float],
    blades: int,
    rotation: float,
) -> Tensor:
    """Blur linear light (C, H, W), float32.

    Parameters
    ----------
    light : Tensor
    layers : Tensor
        (H, W) float32: from -(N - 1), the farthest, to N - 1, the nearest; 0 is in focus.
    present : sequence of int
        The layers that pixels belong to.
    radii : sequence of float
        N radii: the layers k and -k are blurred by ``radii[abs(k)]``.
    blades : int
        Corners of the kernel; 0 for a disc.
    rotation : float
        In radians.
    """
    scene = _Scene(light, layers)
    kernels = {k: make_bokeh(blades, rotation, radii[abs(k)], k > 0) for k in present}
    order = sorted(present, reverse=True)
    for k in order:
        scene.composite(k, kernels[k])
    scene.uncovered = scene.transmittance.clone()
    for k in order:
        scene.fill_background(k, kernels[k])
    return scene.light / (1 - scene.transmittance)


class _Scene:
    """An image, its layers, and the light of those that were composited."""

    def __init__(self, image: Tensor, layers: Tensor) -> None:
        self._image, self._layers = image.contiguous(), layers.contiguous()
        self.light = torch.zeros_like(self._image)
        self.transmittance = torch.ones_like(self._layers)
        """Fraction of each pixel that no layer covers yet."""
        self.uncovered = self.transmittance
        """What all layers leave uncovered."""
        self._memory = image.new_empty(0, dtype=torch.float64)

    def composite(self, layer: int, bokeh: Bokeh) -> None:
        """Composite a layer behind the layers before it."""
        self._blur(layer, bokeh, self.transmittance, False)

    def fill_background(self, layer: int, bokeh: Bokeh) -> None:
        """Fill what a blurred edge of the layer hides with the visible background around."""
        self._blur(layer, bokeh, self.uncovered, True)

    def _blur(self, layer: int, bokeh: Bokeh, left: Tensor, background: bool) -> None:
        channels, height, width = self._image.shape
        device = self._image.device
        extended = width + 2 * bokeh.reach + 2
        needed = (channels + 1) * height * extended
        if self._memory.numel() < needed:
            self._memory = torch.empty(needed, dtype=torch.float64, device=device)
        used = torch.empty(height, dtype=torch.int32, device=device)
        _sum_rows[(height,)](
            self._image, self._layers, self._memory, used, layer, int(background), channels, height,
            width, extended, bokeh.reach, BLOCK=_ROW,
        )  # fmt: skip
        spans = constant((bokeh.rows, bokeh.firsts, bokeh.lasts), torch.int32, device)
        parts = constant((bokeh.first_parts, bokeh.last_parts), torch.float64, device)
        _composite[(height, triton.cdiv(width, _BLOCK))](
            self._layers, self._memory, used, left, self.transmittance, self.light, spans, parts,
            1 / bokeh.area, layer, int(background), len(bokeh.rows), channels, height, width,
            extended, bokeh.reach, BLOCK=_BLOCK,
        )  # fmt: skip


@triton.jit
def _mirrored(i, size):
    """Return the place inside that an image, continued by its mirror images, has at i."""
    period = 2 * size
    place = (i % period + period) % period
    return tl.where(place < size, place, period - 1 - place)


@triton.jit
def _share(pixel_layer, layer, background):
    """Return the share of pixels in a layer, or in what lies at least one layer behind it."""
    share = 1 - tl.abs(pixel_layer - layer)
    if background != 0:
        share = layer - 1 - pixel_layer
    return tl.minimum(tl.maximum(share, 0.0), 1.0)


@kernel()
def _sum_rows(
    image,
    layers,
    sums,
    used,
    layer,
    background,
    channels,
    height,
    width,
    extended,
    reach,
    BLOCK: tl.constexpr,
):
    """Store prefix sums along a row, with its mirror images, of weighted channels and weights."""
    y = tl.program_id(0)
    pixels = height * width
    most = 0.0
    for c in range(0, channels + 1):
        before = tl.full((), 0.0, tl.float64)
        out = sums + (c * height + y).to(tl.int64) * extended
        for begin in range(0, extended, BLOCK):
            i = begin + tl.arange(0, BLOCK)
            inside = i < extended - 1
            x = _mirrored(i - reach, width)
            share = _share(tl.load(layers + y * width + x), layer, background)
            value = tl.where(inside, share, 0)
            if c < channels:
                value *= tl.load(image + c * pixels + y * width + x)
            else:
                most = tl.maximum(most, tl.max(value, 0))
            wide = value.to(tl.float64)
            tl.store(out + i, before + tl.cumsum(wide, 0) - wide, mask=i < extended)
            before += tl.sum(wide, 0)
    tl.store(used + y, tl.where(most > 0, 1, 0))


@kernel()
def _composite(
    layers,
    sums,
    used,
    left,
    transmittance,
    light,
    spans,
    parts,
    gain,
    layer,
    background,
    count,
    channels,
    height,
    width,
    extended,
    reach,
    BLOCK: tl.constexpr,
):
    """Blur part of a row, and cover what is left of its pixels.

    The background fills only pixels of its own layer.
    """
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = x < width
    at = y * width + x
    open_ = tl.load(left + at, mask=inside, other=0)
    limit = tl.zeros((BLOCK,), tl.float32) + 1
    selected = inside & (open_ > _LEAST_OPEN)
    if background != 0:
        limit = _share(tl.load(layers + at, mask=inside, other=0), layer, 0)
        selected = inside & (open_ > _LEAST_UNCOVERED) & (limit > 0)
    if tl.max(selected.to(tl.int32), 0) > 0:
        plane = height.to(tl.int64) * extended
        weight = tl.zeros((BLOCK,), tl.float64)
        for k in range(0, count):
            row = _mirrored(y + tl.load(spans + k), height)
            if tl.load(used + row) != 0:
                row_sums = sums + channels * plane + row.to(tl.int64) * extended + x + reach
                weight += _span(row_sums, spans, parts, k, count, selected)
        cover = weight.to(tl.float32) * gain
        covers = selected & (cover > _LEAST_COVER)
        if tl.max(covers.to(tl.int32), 0) > 0:
            covered = limit * tl.minimum(open_, cover)
            factor = covered / tl.where(covers, weight.to(tl.float32), 1)
            for c in range(0, channels):
                value = tl.zeros((BLOCK,), tl.float64)
                for k in range(0, count):
                    row = _mirrored(y + tl.load(spans + k), height)
                    if tl.load(used + row) != 0:
                        row_sums = sums + c * plane + row.to(tl.int64) * extended + x + reach
                        value += _span(row_sums, spans, parts, k, count, covers)
                to = light + c * height * width + at
                before = tl.load(to, mask=covers, other=0)
                tl.store(to, before + factor * value.to(tl.float32), mask=covers)
            now = tl.load(transmittance + at, mask=covers, other=0)
            tl.store(transmittance + at, now - covered, mask=covers)


@triton.jit
def _span(row_sums, spans, parts, k, count, mask):
    """Return the sum over the kernel's interval in one row."""
    begin = row_sums + tl.load(spans + count + k)
    end = row_sums + tl.load(spans + 2 * count + k)
    first, last = tl.load(begin, mask=mask, other=0), tl.load(end, mask=mask, other=0)
    after_first = tl.load(begin + 1, mask=mask, other=0)
    after_last = tl.load(end + 1, mask=mask, other=0)
    first += tl.load(parts + k) * (after_first - first)
    last += tl.load(parts + count + k) * (after_last - last)
    return last - first
