"""Serve images of different sizes by one recording: the sizes of a bucket share its memory.

The tiles of an image are the first ones of the bucket's, cut at the image's edge; all other tiles
are empty. So the vertices, their order and all sums over them are those of the image alone, and the
solution has the same bits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.keys import MAX_PIXELS
from bilateral.backends.cuda.grid.tiles import TileLayout, tile_count, tile_layout, tile_length
from bilateral.numerics import policy
from bilateral.torch.cuda.solve import Inputs
from bilateral.torch.options import LayerOptions

_STEPS = 4
"""Buckets per doubling of the number of tiles along an axis."""
_FEW_SIZES, _REPEATS = 2, 16
"""Up to so many sizes, and after so many solves of one size in a row, each size gets a recording of
its own: it moves no pixels beyond the images."""
_MAX_KINDS = 256
_MIN_PIXELS = 2**15
"""Fewest pixels of a batch: kernels that sum then have as many programs as for its bucket."""


@dataclass(frozen=True)
class SizeBucket:
    """The largest height and width of the images that share a recording."""

    height: int
    width: int

    @property
    def pixels(self) -> int:
        """Number of pixels of the largest image."""
        return self.height * self.width


def size_bucket(inputs: Inputs, options: LayerOptions) -> SizeBucket | None:
    """Return the bucket of a batch; None if the images are too small or the tiles too large."""
    images, _, height, width = inputs.reference.shape
    sigma = options.grid.sigma_xy
    if images * height * width < _MIN_PIXELS or not 1 <= sigma <= MAX_PIXELS**0.5:
        return None
    return SizeBucket(_bucket_length(height, sigma), _bucket_length(width, sigma))


def _bucket_length(length: int, sigma: float) -> int:
    """Round the tiles along an axis up, at most to the next power of two, which keeps the bits."""
    tiles = tile_count(length, sigma, policy.EDGE_GUARD)
    step = max(1, (1 << (tiles - 1).bit_length()) // (2 * _STEPS))
    return tile_length(-(-tiles // step) * step, sigma, policy.EDGE_GUARD)


class SizeHistory:
    """Remembers which sizes of images there were, and tells whether they vary."""

    def __init__(self) -> None:
        self._sizes: dict[Hashable, set[Hashable]] = {}
        self._last: Hashable = None
        self._repeats = 0

    def add(self, kind: Hashable, size: Hashable) -> bool:
        """Remember the size of a solve, and tell whether sizes of this kind of solve vary now."""
        repeated = self._last == (kind, size)
        self._repeats = self._repeats + 1 if repeated else 0
        self._last = kind, size
        sizes = self._sizes.setdefault(kind, set())
        while len(self._sizes) > _MAX_KINDS:
            self._sizes.pop(next(iter(self._sizes)))
        if len(sizes) <= _FEW_SIZES:
            sizes.add(size)
        return len(sizes) > _FEW_SIZES and self._repeats < _REPEATS


class BucketMemory:
    """The inputs of a bucket's recording, which begin at the first pixel of its images.

    Parameters
    ----------
    bucket : SizeBucket
    inputs : Inputs
        Give numbers and dtypes of images, channels and values.
    sigma_xy : float
    """

    def __init__(self, bucket: SizeBucket, inputs: Inputs, sigma_xy: float) -> None:
        reference, values, _, _ = inputs
        images, channels = reference.shape[:2]
        device = values.device
        size = bucket.height, bucket.width
        self._full = tile_layout(*size, float(sigma_xy), policy.EDGE_GUARD, device)
        self.tiles: TileLayout = replace(
            self._full, top=self._full.top.clone(), left=self._full.left.clone()
        )
        self.pixels = torch.ones(1, dtype=torch.float64, device=device)
        """Number of pixels of an image."""
        self.reference = reference.new_zeros((images, channels, *size))
        self._values = values.new_zeros((images, *size, values.shape[1]))
        self._weights = values.new_zeros((images, *size, 1))
        self._size = 0, 0

    @property
    def values(self) -> Tensor:
        """(B H W, K) values of the bucket's pixels."""
        return self._values.view(-1, self._values.shape[3])

    @property
    def weights(self) -> Tensor:
        """(B H W, 1) weights, 0 beyond the images."""
        return self._weights.view(-1, 1)

    def load_reference(self, reference: Tensor) -> None:
        """Copy references, and cut the tiles at their edges."""
        height, width = reference.shape[2:]
        torch.clamp(self._full.top, max=height, out=self.tiles.top)
        torch.clamp(self._full.left, max=width, out=self.tiles.left)
        self.pixels.fill_(height * width)
        self.reference[..., :height, :width].copy_(reference)

    def load_values(self, inputs: Inputs) -> None:
        """Copy values and weights."""
        reference, values, weights, _ = inputs
        height, width = size = reference.shape[2], reference.shape[3]
        if size != self._size:  # what is left of other sizes must not count
            self._values.zero_()
            self._weights.zero_()
            self._size = size
        here = self._values[:, :height, :width]
        here.copy_(values.view(here.shape))
        here = self._weights[:, :height, :width]
        if weights is None:
            here.fill_(1)
        else:
            here.copy_(weights.view(here.shape))

    def cut(self, pixels: Tensor) -> Tensor:
        """Return the pixels (B h w, K) of the images of those (B H W, K) of the bucket."""
        height, width = self._size
        channels = pixels.shape[1]
        found = pixels.view(*self._values.shape[:3], channels)[:, :height, :width]
        return found.reshape(-1, channels)
