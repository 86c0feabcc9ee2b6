"""Multiply by the matrix A = smoothness (D_m - D_n B-bar D_n) + diag(weight) of the system.

D_m - D_n B-bar D_n is a graph Laplacian with the edge weights n_i n_j B_ij.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.bistochastize import Blur
from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.image_parts import part_of_image
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


class Laplacian:
    """The matrix A of a batch.

    Parameters
    ----------
    grid : Grid
    n : Tensor
        As from `bistochastize`, (room,).
    blur : tuple of float
        The weights of B-bar.
    weight : Tensor
        Splatted confidence, (room,).
    smoothness : Tensor
        A scalar in float64, on the device.
    """

    def __init__(
        self, grid: Grid, n: Tensor, blur: Blur, weight: Tensor, smoothness: Tensor
    ) -> None:
        self.grid = grid
        self.n = n
        self._weight = weight
        # Tensors, since Triton passes Python's floats in single precision.
        weights = constant(tuple(blur[1:]), torch.float64, weight.device)
        self._factors = torch.mul(smoothness, weights, out=weight.new_empty(2))
        self.diagonal, self.inverse = torch.empty_like(weight), torch.empty_like(weight)
        """diag(A), and 1 / diag(A), or 0 where diag(A) is 0."""
        self._scaled, self.pixels = torch.empty_like(weight), torch.empty_like(weight)
        """diag(A) / n^2 and m / n^2, which multiply vectors times n."""
        _find_diagonal[(triton.cdiv(grid.room, _BLOCK),)](
            n,
            weight,
            grid.mass,
            *grid.edges,
            self.diagonal,
            self.inverse,
            self._scaled,
            self.pixels,
            grid.total,
            grid.room,
            self._factors,
            D=grid.edges.directions,
            BLOCK=_BLOCK,
        )

    def multiply(self, d: Tensor) -> Tensor:
        """Return A d of (room, K), from differences between neighbours: exact for constants."""
        q = torch.empty_like(d)
        channels, padded = d.shape[1], triton.next_power_of_2(d.shape[1])
        block = max(16, 256 // padded)
        _multiply[(triton.cdiv(self.grid.room, block),)](
            d,
            self.n,
            self._weight,
            *self.grid.edges,
            q,
            self.grid.total,
            self.grid.room,
            self._factors,
            channels,
            D=self.grid.edges.directions,
            KP=padded,
            BLOCK=block,
        )
        return q

    def step(self, y: Tensor, q: Tensor, parts: Tensor, done: Tensor) -> None:
        """Store q = A z for y = D_n z, (room, K), and each program's part of z^T A z.

        Images that are `done` are skipped. A neighbour costs one number of memory instead of two.
        Rounding errors are relative to diag(A) z, not to differences, which is enough for a step.
        """
        images, channels = self.grid.shape[0], y.shape[1]
        padded = triton.next_power_of_2(channels)
        _step[(self.grid.programs, images)](
            y,
            self.n,
            self._scaled,
            *self.grid.edges,
            self.grid.first_vertex,
            q,
            parts,
            done,
            self._factors,
            channels,
            D=self.grid.edges.directions,
            KP=padded,
            BLOCK=max(16, 512 // padded),
            num_warps=16,
        )

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the sums of a b, (room, K), over the vertices of each image: (B, K) float64."""
        images, channels = self.grid.shape[0], a.shape[1]
        padded, programs = triton.next_power_of_2(channels), self.grid.programs
        parts = torch.empty((images, programs, padded), dtype=torch.float64, device=a.device)
        _dot[(programs, images)](
            a,
            b,
            self.grid.first_vertex,
            parts,
            channels,
            KP=padded,
            BLOCK=max(16, 256 // padded),
        )
        return parts[..., :channels].sum(1)


@kernel()
def _find_diagonal(
    n,
    weight,
    mass,
    words,
    to,
    diagonal,
    inverse,
    scaled,
    pixels,
    total,
    room,
    factors,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store diag(A), 1 / diag(A), diag(A) / n^2 and m / n^2."""
    space, range_ = tl.load(factors), tl.load(factors + 1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    n_i = tl.load(n + i, mask=mask, other=0)
    sums = tl.load(weight + i, mask=mask, other=0)
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = neighbours[e]
        n_j = tl.load(n + j, mask=there, other=0)
        sums += ((space if e < 4 else range_) * n_i * n_j).to(sums.dtype)
    positive = sums > 0
    tl.store(diagonal + i, sums, mask=i < room)
    tl.store(inverse + i, tl.where(positive, 1 / tl.where(positive, sums, 1), 0), mask=i < room)
    squared = tl.where(mask, n_i * n_i, 1)
    tl.store(scaled + i, sums / squared, mask=i < room)
    m = tl.load(mass + i, mask=mask, other=0).to(n_i.dtype)
    tl.store(pixels + i, m / squared, mask=i < room)


@kernel(ones=("channels",))
def _multiply(
    d,
    n,
    weight,
    words,
    to,
    q,
    total,
    room,
    factors,
    channels,
    D: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store q = A d from differences between neighbours, as core/grid/laplacian.hpp."""
    space, range_ = tl.load(factors), tl.load(factors + 1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    where, both = row_channels(i, mask, channels, tl.arange(0, KP))
    n_i = tl.load(n + i, mask=mask, other=0)
    d_i = tl.load(d + where, mask=both, other=0)
    sums = tl.load(weight + i, mask=mask, other=0)[:, None] * d_i
    neighbours = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = neighbours[e]
        n_j = tl.load(n + j, mask=there, other=0)
        factor = (space if e < 4 else range_) * n_i * n_j
        at, on = row_channels(j, there, channels, tl.arange(0, KP))
        d_j = tl.load(d + at, mask=on, other=0)
        sums += (factor[:, None] * (d_i - d_j)).to(d_i.dtype)
    tl.store(q + where, sums, mask=both)


@kernel(ones=("channels",))
def _step(
    y,
    n,
    scaled,
    words,
    to,
    first_vertex,
    q,
    parts,
    done,
    factors,
    channels,
    D: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store q = A z for y = D_n z, and z^T A z of one part of an image, of kind 1 in `parts`."""
    space, range_ = tl.load(factors), tl.load(factors + 1)
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    # Each thread sums by itself, so that none waits for others.
    energy = tl.zeros((BLOCK, KP), tl.float64)
    for block in range(begin, end, BLOCK):
        i = block + tl.arange(0, BLOCK)
        mask = i < end
        where, both = row_channels(i, mask, channels, tl.arange(0, KP))
        neighbours = read_neighbours(words, to, i, mask, D)
        in_space = tl.zeros((BLOCK, KP), y.dtype.element_ty)
        in_range = tl.zeros((BLOCK, KP), y.dtype.element_ty)
        for e in tl.static_range(D):
            there, j = neighbours[e]
            at, on = row_channels(j, there, channels, tl.arange(0, KP))
            y_j = tl.load(y + at, mask=on, other=0)
            if e < 4:
                in_space += y_j
            else:
                in_range += y_j
        y_i = tl.load(y + where, mask=both, other=0)
        product = tl.load(scaled + i, mask=mask, other=0)[:, None] * y_i
        product -= space * in_space + range_ * in_range
        n_i = tl.load(n + i, mask=mask, other=0)[:, None]
        tl.store(q + where, n_i * product, mask=both)
        energy += (y_i * product).to(tl.float64)
    k = tl.arange(0, KP)
    tl.store(parts + ((images + image) * programs + program) * KP + k, tl.sum(energy, 0))


@kernel(ones=("channels",))
def _dot(a, b, first_vertex, parts, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the sums of a b over one part of an image."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    sums = tl.zeros((BLOCK, KP), tl.float64)
    for block in range(begin, end, BLOCK):
        i = block + tl.arange(0, BLOCK)
        where, both = row_channels(i, i < end, channels, tl.arange(0, KP))
        left = tl.load(a + where, mask=both, other=0).to(tl.float64)
        sums += left * tl.load(b + where, mask=both, other=0).to(tl.float64)
    k = tl.arange(0, KP)
    tl.store(parts + (image * programs + program) * KP + k, tl.sum(sums, 0))
