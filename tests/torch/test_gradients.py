"""Derivatives of the layer match finite differences, in both modes and twice, and exact ones."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import numpy as np
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import bilateral.torch
from oracles import reference as oracle

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

EXACT: dict[str, Any] = {
    "sigma_xy": 4,
    "sigma_luma": 30,
    "sigma_chroma": 40,
    "tolerance": 0.0,
    "max_iterations": 60,
}
SHAPE = 5, 6


def example(channels: int, maps: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two shades with noise: reference, target, confidence and smoothness, in float64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> Tensor:
        return torch.rand(count, *SHAPE, generator=generator, dtype=torch.float64)

    photo = 0.2 * draw(channels)
    photo[:, :, 4:] += 0.7
    return photo, draw(maps), draw(1) + 0.1, torch.tensor(3.0, dtype=torch.float64)


def with_grad(*tensors: Tensor) -> list[Tensor]:
    return [tensor.clone().requires_grad_() for tensor in tensors]


def check(f: Callable[..., Tensor], *tensors: Tensor) -> None:
    """Compare first and second derivatives in both modes, and batched, with finite differences."""
    given = with_grad(*tensors)
    assert gradcheck(f, given, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, given, check_fwd_over_rev=True)


@pytest.mark.parametrize("maps", [1, 2])
@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_of_target_confidence_and_smoothness(channels: int, maps: int) -> None:
    photo, target, confidence, smoothness = example(channels, maps)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, c, smoothness=s, **EXACT)

    check(f, target, confidence, smoothness)


def test_gradients_without_a_confidence() -> None:
    photo, target, _, smoothness = example(1, 1)

    def f(t: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, smoothness=s, **EXACT)

    check(f, target, smoothness)


def scattered(values: Tensor, where: Tensor) -> Tensor:
    """Put values where a mask is true, with 0 elsewhere."""
    flat = torch.zeros(where.numel(), dtype=values.dtype)
    return flat.index_put((where.flatten().nonzero()[:, 0],), values).view(where.shape)


def test_gradients_where_parts_of_the_grid_have_no_data() -> None:
    photo, target, confidence, smoothness = example(3, 2)
    confidence[:, :, 4:] = 0  # this shade takes its values from the other one
    confidence[:, 2, 2] = 0
    known = confidence > 0

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, scattered(c, known), smoothness=s, **EXACT)

    check(f, target, confidence[known], smoothness)


def test_gradients_at_a_part_without_data_go_to_the_part_with_data() -> None:
    photo, target, confidence, _ = example(1, 1)
    confidence[:, :, 4:] = 0
    t, c = with_grad(target, confidence)
    bilateral.torch.solve(photo, t, c, **EXACT)[0, :, 5].sum().backward()
    for grad in (t.grad, c.grad):
        assert (grad[:, :, 4:] == 0).all()
        assert (grad[:, :, :4] != 0).any()


def test_a_zero_confidence_beside_data_has_the_one_sided_derivative() -> None:
    photo, target, confidence, _ = example(1, 1)
    confidence[0, 2, 1] = 0
    c = confidence.clone().requires_grad_()
    y = bilateral.torch.solve(photo, target, c, **EXACT)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
    (y * weights).sum().backward()
    step = torch.zeros_like(confidence)
    step[0, 2, 1] = 1e-6
    moved = bilateral.torch.solve(photo, target, confidence + step, **EXACT)
    slope = ((moved - y.detach()) * weights).sum() / 1e-6
    assert c.grad[0, 2, 1] == pytest.approx(float(slope), rel=1e-4)


def test_values_that_are_not_finite_get_and_spread_no_gradient() -> None:
    photo, target, confidence, smoothness = example(3, 2)
    target[1, 2, 3], target[0, 4, 5] = torch.nan, -torch.inf  # unknown in both channels
    finite = torch.isfinite(target).all(0, keepdim=True)
    both = finite.expand_as(target)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        whole = torch.where(both, scattered(t, both), target)
        return bilateral.torch.solve(photo, whole, scattered(c, finite), smoothness=s, **EXACT)

    check(f, target[both], confidence[finite], smoothness)
    t, c = with_grad(target, confidence)
    bilateral.torch.solve(photo, t, c, **EXACT).square().sum().backward()
    for grad in (t.grad, c.grad):
        assert torch.isfinite(grad).all()
        assert (grad[:, 2, 3] == 0).all()
        assert (grad[:, 4, 5] == 0).all()


@pytest.mark.parametrize("shared", ["reference and confidence", "reference", "confidence", "none"])
def test_gradients_of_a_batch(shared: str) -> None:
    ones, others = example(1, 2, seed=1), example(1, 2, seed=2)
    photo, target, confidence = (
        torch.stack([one, other]) for one, other in zip(ones[:3], others[:3], strict=True)
    )
    photo = photo[:1] if "reference" in shared else photo
    confidence = confidence[:1] if "confidence" in shared else confidence

    def f(t: Tensor, c: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, c, **EXACT)

    assert gradcheck(f, with_grad(target, confidence), check_forward_ad=True)
    both = f(target, confidence)
    for i in range(2):
        own = f_of(photo, i), target[i], f_of(confidence, i)
        alone = bilateral.torch.solve(*own, **EXACT)
        torch.testing.assert_close(both[i], alone, rtol=1e-10, atol=1e-12)


def f_of(tensor: Tensor, i: int) -> Tensor:
    """Image i, or the one that all share."""
    return tensor[min(i, len(tensor) - 1)]


def test_gradients_are_those_of_the_exact_matrix() -> None:
    """By the oracle: z = S^T A^-1 S h with dense linear algebra."""
    photo, target, confidence, _ = example(3, 1)
    options = {key: EXACT[key] for key in ("sigma_xy", "sigma_luma", "sigma_chroma")}
    pixels = photo.permute(1, 2, 0).numpy()
    grid = oracle.image_grid(pixels, **options)
    A, _, _ = oracle.system(grid, target[0].numpy(), confidence[0].numpy(), 3.0)
    S = grid.S.toarray()
    h = np.linspace(-1, 2, target.numel())
    z = (S.T @ np.linalg.solve(A.toarray(), S @ h)).reshape(SHAPE)
    t, c = with_grad(target, confidence)
    y = bilateral.torch.solve(photo, t, c, smoothness=3.0, **EXACT)
    y.backward(torch.from_numpy(h).view_as(y))
    np.testing.assert_allclose(t.grad[0], confidence[0].numpy() * z, rtol=1e-9)
    expected = z * (target - y.detach())[0].numpy()
    np.testing.assert_allclose(c.grad[0], expected, rtol=1e-8, atol=1e-12)


def photograph(height: int, width: int, seed: int = 0) -> Tensor:
    """Smooth shading with edges and a little noise, (3, H, W)."""
    generator = torch.Generator().manual_seed(seed)
    small = torch.rand(1, 3, 6, 8, generator=generator)
    large = torch.nn.functional.interpolate(small, (height, width), mode="bicubic")[0]
    edges = torch.nn.functional.interpolate(small.flip(1), (height, width), mode="nearest")[0]
    noise = torch.randn(3, height, width, generator=generator)
    return (0.5 * large + 0.4 * edges + 0.01 * noise).clamp(0, 1)


@pytest.mark.parametrize("known", [1.0, 0.1])
@pytest.mark.parametrize("smoothness", [4.0, 32.0, 128.0])
def test_gradients_at_the_default_tolerance_are_within_one_percent(
    known: float, smoothness: float
) -> None:
    photo = photograph(120, 160)
    generator = torch.Generator().manual_seed(1)
    truth = photo.mean(0, keepdim=True)
    target = truth + 0.1 * torch.randn(truth.shape, generator=generator)
    confidence = torch.rand(truth.shape, generator=generator)
    confidence[torch.rand(truth.shape, generator=generator) > known] = 0

    def solve(dtype: Any, tolerance: float) -> tuple[Tensor, list[Tensor]]:
        given = (value.to(dtype) for value in (target, confidence, torch.tensor(smoothness)))
        t, c, s = with_grad(*given)
        y = bilateral.torch.solve(photo, t, c, smoothness=s, tolerance=tolerance)
        return y, [t, c, s]

    usual, exact = solve(torch.float32, 1e-3), solve(torch.float64, 1e-10)
    h = (exact[0] - truth).detach()
    found = torch.autograd.grad(*usual, h.float())
    for grad, expected in zip(found, torch.autograd.grad(*exact, h), strict=True):
        assert (grad - expected).norm() < 0.01 * expected.norm()


def test_gradients_of_any_size_are_as_exact() -> None:
    photo, target, confidence, _ = example(1, 1)

    def grad(factor: float) -> Tensor:
        t = target.float().requires_grad_()
        y = bilateral.torch.solve(photo, t, confidence.float(), sigma_xy=2)
        (y.square().sum() * factor).backward()
        return t.grad

    usual = grad(1.0)
    for factor in (2.0**-60, 2.0**60):
        torch.testing.assert_close(grad(factor) / factor, usual, rtol=0, atol=0)
