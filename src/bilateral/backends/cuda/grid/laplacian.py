"""B-bar, the bistochastization, and products with A."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.pyramid_transfer import part_of_image
from bilateral.backends.cuda.kernel import kernel

Blur = tuple[float, float, float]

_STEPS = {torch.float32: 14, torch.float64: 80}
"""Of the bistochastization: the CPU needs 14 for 2e-6, and 45 for 1e-12."""


def bistochastize(grid: Grid, blur: Blur, dtype: torch.dtype) -> Tensor:
    """Find n such that D_n B-bar D_n has the row sums m, the vertices' pixels.

    By the steps of core/bistochastize.hpp, of which there are always as many.
    """
    device = grid.mass.device
    change, n, new = (torch.empty(grid.room, dtype=dtype, device=device) for _ in range(3))
    centre, space, range_ = blur
    around = 4 * space + grid.features * range_
    mu = (centre - around) / (centre + around)
    low, high = 1 + min(max(mu, -0.98), 0.0), 2.0
    middle, half = (low + high) / 2, (high - low) / 2
    rho, block = 0.0, 256
    table = []
    for step in range(_STEPS[dtype]):
        last = rho
        rho = half / middle if step <= 1 else 1 / (2 * middle / half - last)
        gain = 1 / middle if step <= 1 else 2 * rho / half
        momentum = 0.0 if step <= 1 else rho * last
        table.append((centre, space, range_, 0.5 if step == 0 else gain, momentum))
    numbers = constant(tuple(table), dtype, device)
    for step in range(_STEPS[dtype]):
        _balance[(triton.cdiv(grid.room, block),)](
            n,
            grid.mass,
            *grid.edges,
            change,
            new,
            grid.total,
            grid.room,
            numbers[step],
            FIRST=step == 0,
            LATER=step > 1,
            D=grid.edges.directions,
            BLOCK=block,
        )
        n, new = new, n
    return n


class Matrix:
    """A = smoothness (D_m - D_n B-bar D_n) + diag(weight); smoothness is () in float64."""

    def __init__(
        self, grid: Grid, n: Tensor, blur: Blur, weight: Tensor, smoothness: Tensor
    ) -> None:
        self.grid = grid
        self.n = n
        self._weight = weight
        # Tensors, since a kernel takes Python's numbers in single precision.
        weights = constant(tuple(blur[1:]), torch.float64, weight.device)
        self._factors = torch.mul(smoothness, weights, out=weight.new_empty(2))
        self.diagonal, self.inverse = torch.empty_like(weight), torch.empty_like(weight)
        """diag(A), and 1 / diag(A), or 0 where that is 0."""
        self._scaled, self.pixels = torch.empty_like(weight), torch.empty_like(weight)
        """diag(A) / n^2, and m / n^2: for vectors times n."""
        block = 256
        _degrees[(triton.cdiv(grid.room, block),)](
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
            BLOCK=block,
        )

    def multiply(self, d: Tensor) -> Tensor:
        """A d of (n_vertices, K), from differences between neighbours: exact for constants."""
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
        """Q = A z for y = D_n z, of images that are not done, and the parts of z^T A z.

        Rounding is relative to diag(A) z, not to differences, which serves for steps. A neighbour
        costs one number of memory instead of two.
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
        """The sums over each image of a b, (n_vertices, K): (B, K) in float64."""
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


@kernel("count")
def _balance(
    n,
    m,
    words,
    to,
    change,
    new,
    total,
    count,
    numbers,
    FIRST: tl.constexpr,
    LATER: tl.constexpr,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One step of log n towards m / (n B-bar n) = 1. FIRST: from n = 1. LATER: with momentum."""
    centre, space, range_ = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    gain, momentum = tl.load(numbers + 3), tl.load(numbers + 4)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), count)
    one = tl.full((BLOCK,), 1, n.dtype.element_ty)
    own = one if FIRST else tl.load(n + i, mask=mask, other=1)
    blurred = own * centre
    near = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = near[e]
        other = tl.where(there, one, 0) if FIRST else tl.load(n + j, mask=there, other=0)
        blurred += (space if e < 4 else range_) * other
    pixels = tl.load(m + i, mask=mask, other=1).to(own.dtype)
    step = gain * tl.log(pixels / (own * blurred))
    if LATER:
        step += momentum * tl.load(change + i, mask=mask, other=0)
    tl.store(change + i, step.to(own.dtype), mask=mask)
    tl.store(new + i, (own * tl.exp(step)).to(own.dtype), mask=mask)


@kernel("count")
def _degrees(
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
    count,
    factors,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    space, range_ = tl.load(factors), tl.load(factors + 1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), count)
    own = tl.load(n + i, mask=mask, other=0)
    sums = tl.load(weight + i, mask=mask, other=0)
    near = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = near[e]
        other = tl.load(n + j, mask=there, other=0)
        sums += ((space if e < 4 else range_) * own * other).to(sums.dtype)
    some = sums > 0
    tl.store(diagonal + i, sums, mask=i < count)
    tl.store(inverse + i, tl.where(some, 1 / tl.where(some, sums, 1), 0), mask=i < count)
    squared = tl.where(mask, own * own, 1)
    tl.store(scaled + i, sums / squared, mask=i < count)
    m = tl.load(mass + i, mask=mask, other=0).to(own.dtype)
    tl.store(pixels + i, m / squared, mask=i < count)


@triton.jit
def sum_parts(parts, kind, image, images, programs, k, KP: tl.constexpr, PP: tl.constexpr):
    """The sum of one kind over all programs of an image."""
    p = tl.arange(0, PP)
    at = ((kind * images + image) * programs + p[:, None]) * KP + k[None, :]
    return tl.sum(tl.load(parts + at, mask=(p < programs)[:, None], other=0), 0)


@kernel("count")
def _multiply(
    d,
    n,
    weight,
    words,
    to,
    q,
    total,
    count,
    factors,
    channels,
    D: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A d from differences, as core/laplacian.hpp."""
    space, range_ = tl.load(factors), tl.load(factors + 1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, KP)
    mask = i < tl.minimum(tl.load(total), count)
    both = mask[:, None] & (k[None, :] < channels)
    where = i.to(tl.int64)[:, None] * channels + k[None, :]
    own_n = tl.load(n + i, mask=mask, other=0)
    own = tl.load(d + where, mask=both, other=0)
    sums = tl.load(weight + i, mask=mask, other=0)[:, None] * own
    near = read_neighbours(words, to, i, mask, D)
    for e in tl.static_range(D):
        there, j = near[e]
        far_n = tl.load(n + j, mask=there, other=0)
        factor = (space if e < 4 else range_) * own_n * far_n
        on = there[:, None] & (k[None, :] < channels)
        other = tl.load(d + j.to(tl.int64)[:, None] * channels + k[None, :], mask=on, other=0)
        sums += (factor[:, None] * (own - other)).to(own.dtype)
    tl.store(q + where, sums, mask=both)


@kernel()
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
    space, range_ = tl.load(factors), tl.load(factors + 1)
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    begin, end = part_of_image(first_vertex, image, program, programs)
    end = tl.where(tl.load(done + image) != 0, begin, end)
    k = tl.arange(0, KP)
    bend = tl.zeros((BLOCK, KP), tl.float64)  # by thread, so that none waits for others
    for block in range(begin, end, BLOCK):
        i = block + tl.arange(0, BLOCK)
        mask = i < end
        both = mask[:, None] & (k[None, :] < channels)
        where = i.to(tl.int64)[:, None] * channels + k[None, :]
        beside = read_neighbours(words, to, i, mask, D)
        near = tl.zeros((BLOCK, KP), y.dtype.element_ty)
        far = tl.zeros((BLOCK, KP), y.dtype.element_ty)
        for e in tl.static_range(D):
            there, j = beside[e]
            on = there[:, None] & (k[None, :] < channels)
            other = tl.load(y + j.to(tl.int64)[:, None] * channels + k[None, :], mask=on, other=0)
            if e < 4:
                near += other
            else:
                far += other
        own = tl.load(y + where, mask=both, other=0)
        product = tl.load(scaled + i, mask=mask, other=0)[:, None] * own
        product -= space * near + range_ * far
        own_n = tl.load(n + i, mask=mask, other=0)[:, None]
        tl.store(q + where, own_n * product, mask=both)
        bend += (own * product).to(tl.float64)
    tl.store(parts + ((images + image) * programs + program) * KP + k, tl.sum(bend, 0))


@triton.jit
def ratio(a, b):
    """A / b, and 0 where b is not above 0."""
    some = b > 0
    return tl.where(some, a / tl.where(some, b, 1.0), 0.0)


@kernel()
def _dot(a, b, first_vertex, parts, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    k = tl.arange(0, KP)
    total = tl.zeros((BLOCK, KP), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        where = i.to(tl.int64)[:, None] * channels + k[None, :]
        left = tl.load(a + where, mask=both, other=0).to(tl.float64)
        total += left * tl.load(b + where, mask=both, other=0).to(tl.float64)
    tl.store(parts + (image * programs + program) * KP + k, tl.sum(total, 0))
