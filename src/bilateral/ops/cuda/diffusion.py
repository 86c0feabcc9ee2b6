"""B-bar, the bistochastization, and products with A."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.constants import constant
from bilateral.ops.cuda.grid import Grid
from bilateral.ops.cuda.kernel import kernel
from bilateral.ops.cuda.sums import part_of_image

Blur = tuple[float, float, float]

_STEPS = {torch.float32: 14, torch.float64: 80}
"""Of the bistochastization: the CPU needs 14 for 2e-6, and 45 for 1e-12."""


def bistochastize(grid: Grid, blur: Blur, dtype: torch.dtype) -> Tensor:
    """Find n such that D_n B-bar D_n has the row sums m, the vertices' pixels.

    By the steps of core/bistochastize.hpp, of which there are always as many.
    """
    m = grid.mass.to(dtype)
    n = torch.ones_like(m)
    change, new = torch.zeros_like(m), torch.empty_like(m)
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
    numbers = constant(tuple(table), dtype, n.device)
    for step in range(_STEPS[dtype]):
        _balance[(triton.cdiv(n.shape[0], block),)](
            n,
            m,
            grid.neighbours,
            change,
            new,
            grid.total,
            n.shape[0],
            numbers[step],
            D=grid.neighbours.shape[0],
            BLOCK=block,
        )
        n, new = new, n
        if step == 0:
            change.zero_()
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
        self._factors = (smoothness * weights).to(weight.dtype)
        self.mass = grid.mass.to(weight.dtype)

    @property
    def diagonal(self) -> Tensor:
        """diag(A)."""
        out = torch.zeros_like(self._weight)
        block = 256
        _degrees[(triton.cdiv(out.shape[0], block),)](
            self.n,
            self._weight,
            self.grid.neighbours,
            out,
            self.grid.total,
            out.shape[0],
            self._factors,
            D=self.grid.neighbours.shape[0],
            BLOCK=block,
        )
        return out

    def multiply(self, d: Tensor) -> Tensor:
        """A d of (n_vertices, K)."""
        q = torch.empty_like(d)
        self.launch(d, q)
        return q

    def launch(
        self,
        d: Tensor,
        q: Tensor,
        z: Tensor | None = None,
        parts: Tensor | None = None,
        norm: Tensor | None = None,
        done: Tensor | None = None,
    ) -> None:
        """Q = A d, or as a step of conjugate gradients A (z + beta d), unless `done`.

        Then parts of sums are given, as of `pcg.Iteration`, and two of them come from here.
        """
        images, channels = self.grid.shape[0], d.shape[1]
        padded = triton.next_power_of_2(channels)
        programs = self.grid.programs
        _multiply[(programs, images)](
            d,
            z,
            self.n,
            self._weight,
            self.mass,
            self.grid.neighbours,
            self.grid.first_vertex,
            q,
            parts,
            norm,
            done,
            self.grid.room,
            self._factors,
            channels,
            D=self.grid.neighbours.shape[0],
            KP=padded,
            PP=triton.next_power_of_2(programs),
            BLOCK=max(16, 512 // padded),
            num_warps=8,
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


@kernel
def _balance(
    n,
    m,
    neighbours,
    change,
    new,
    total,
    count,
    numbers,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One step of log n towards m / (n B-bar n) = 1."""
    centre, space, range_ = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    gain, momentum = tl.load(numbers + 3), tl.load(numbers + 4)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), count)
    own = tl.load(n + i, mask=mask, other=1)
    blurred = own * centre
    for k in tl.static_range(D):
        j = tl.load(neighbours + k * count.to(tl.int64) + i, mask=mask, other=-1)
        blurred += (space if k < 4 else range_) * tl.load(n + j, mask=j >= 0, other=0)
    residual = tl.log(tl.load(m + i, mask=mask, other=1) / (own * blurred))
    step = gain * residual + momentum * tl.load(change + i, mask=mask, other=0)
    tl.store(change + i, step.to(own.dtype), mask=mask)
    tl.store(new + i, (own * tl.exp(step)).to(own.dtype), mask=mask)


@kernel
def _degrees(
    n,
    weight,
    neighbours,
    out,
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
    for k in tl.static_range(D):
        j = tl.load(neighbours + k * count.to(tl.int64) + i, mask=mask, other=-1)
        other = tl.load(n + j, mask=j >= 0, other=0)
        sums += ((space if k < 4 else range_) * own * other).to(sums.dtype)
    tl.store(out + i, sums, mask=mask)


@triton.jit
def sum_parts(parts, kind, image, images, programs, k, KP: tl.constexpr, PP: tl.constexpr):
    """The sum of one kind over all programs of an image."""
    p = tl.arange(0, PP)
    at = ((kind * images + image) * programs + p[:, None]) * KP + k[None, :]
    return tl.sum(tl.load(parts + at, mask=(p < programs)[:, None], other=0), 0)


@kernel
def _multiply(
    d,
    z,
    n,
    weight,
    mass,
    neighbours,
    first_vertex,
    q,
    parts,
    norm,
    done,
    count,
    factors,
    channels,
    D: tl.constexpr,
    KP: tl.constexpr,
    PP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A d from differences, as core/laplacian.hpp, and this program's part of two sums."""
    space, range_ = tl.load(factors), tl.load(factors + 1)
    program, image = tl.program_id(0), tl.program_id(1)
    programs, images = tl.num_programs(0), tl.num_programs(1)
    begin, end = part_of_image(first_vertex, image, program, programs)
    k = tl.arange(0, KP)
    beta = tl.zeros((KP,), n.dtype.element_ty)
    if z is not None:
        end = tl.where(tl.load(done + image) != 0, begin, end)
        following = sum_parts(parts, 0, image, images, programs, k, KP, PP)
        beta = ratio(following, tl.load(norm + image * KP + k)).to(beta.dtype)
    bend, moved = tl.zeros((KP,), tl.float64), tl.zeros((KP,), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        both = mask[:, None] & (k[None, :] < channels)
        where = i.to(tl.int64)[:, None] * channels + k[None, :]
        own_n = tl.load(n + i, mask=mask, other=0)
        own = tl.load(d + where, mask=both, other=0)
        if z is not None:
            own = tl.load(z + where, mask=both, other=0) + beta[None, :] * own
        total = tl.load(weight + i, mask=mask, other=0)[:, None] * own
        for e in tl.static_range(D):
            j = tl.load(neighbours + e * count.to(tl.int64) + i, mask=mask, other=-1)
            there = j >= 0
            far_n = tl.load(n + j, mask=there, other=0)
            factor = (space if e < 4 else range_) * own_n * far_n
            on = there[:, None] & (k[None, :] < channels)
            far = j.to(tl.int64)[:, None] * channels + k[None, :]
            other = tl.load(d + far, mask=on, other=0)
            if z is not None:
                other = tl.load(z + far, mask=on, other=0) + beta[None, :] * other
            total += (factor[:, None] * (own - other)).to(own.dtype)
        tl.store(q + where, total, mask=both)
        if z is not None:
            pixels = tl.load(mass + i, mask=mask, other=0)[:, None]
            bend += tl.sum((own * total).to(tl.float64), 0)
            moved += tl.sum((pixels * own * own).to(tl.float64), 0)
    if z is not None:
        to = parts + ((images + image) * programs + program) * KP + k
        tl.store(to, bend)
        tl.store(to + images * programs * KP, moved)


@triton.jit
def ratio(a, b):
    """A / b, and 0 where b is not above 0."""
    some = b > 0
    return tl.where(some, a / tl.where(some, b, 1.0), 0.0)


@kernel
def _dot(a, b, first_vertex, parts, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    k = tl.arange(0, KP)
    total = tl.zeros((KP,), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k[None, :] < channels)
        where = i.to(tl.int64)[:, None] * channels + k[None, :]
        left = tl.load(a + where, mask=both, other=0).to(tl.float64)
        total += tl.sum(left * tl.load(b + where, mask=both, other=0).to(tl.float64), 0)
    tl.store(parts + (image * programs + program) * KP + k, total)
