"""Derivatives of the planar model match finite differences, in both modes and twice."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import numpy as np
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import bilateral
import bilateral.torch
from oracles import planar as oracle
from oracles import reference as oracle_grid

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

SIGMAS: dict[str, Any] = {"sigma_xy": 4, "sigma_luma": 30, "sigma_chroma": 40}
PLANAR: dict[str, Any] = SIGMAS | {"model": "planar"}
EXACT: dict[str, Any] = PLANAR | {"tolerance": 0.0, "max_iterations": 60}


def example(
    channels: int = 3, maps: int = 1, seed: int = 0, shape: tuple[int, int] = (4, 5)
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two shades with noise: reference, target, confidence and smoothness, in float64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator, dtype=torch.float64)

    photo = 0.2 * draw(channels)
    photo[:, :, shape[1] // 2 + 1 :] += 0.7
    return photo, draw(maps), draw(1) + 0.1, torch.tensor(3.0, dtype=torch.float64)


def with_grad(*tensors: Tensor) -> list[Tensor]:
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def check(f: Callable[..., Tensor], *tensors: Tensor) -> None:
    """Compare first and second derivatives in both modes, and batched, with finite differences."""
    given = with_grad(*tensors)
    assert gradcheck(f, given, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(f, given, check_fwd_over_rev=True, fast_mode=True)


def scattered(values: Tensor, where: Tensor) -> Tensor:
    """Put values where a mask is true, with 0 elsewhere."""
    flat = torch.zeros(where.numel(), dtype=values.dtype)
    return flat.index_put((where.flatten().nonzero()[:, 0],), values).view(where.shape)


def as_array(maps: Tensor) -> Any:
    return maps.detach().permute(1, 2, 0).numpy()


def test_gradients_are_those_of_the_exact_matrix() -> None:
    """By the oracle: z = S^T A^-1 S h with a direct solve."""
    photo, target, confidence, _ = example(3, 1, shape=(12, 14))
    grid = oracle_grid.image_grid(as_array(photo), **SIGMAS)
    model = oracle.model(grid, oracle.positions(photo.shape[1:], 4.0))
    A, _ = oracle.system(model, as_array(target), confidence[0].numpy(), 3.0)
    h = np.linspace(-1, 2, target.numel())
    z = (model.F @ np.linalg.solve(A.toarray(), model.F.T @ h)).reshape(target.shape[1:])
    t, c = with_grad(target, confidence)
    y = bilateral.torch.solve(photo, t, c, smoothness=3.0, clamp=False, **EXACT)
    y.backward(torch.from_numpy(h).view_as(y))
    np.testing.assert_allclose(t.grad[0], confidence[0].numpy() * z, rtol=1e-7, atol=1e-9)
    expected = z * (target - y.detach())[0].numpy()
    np.testing.assert_allclose(c.grad[0], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize(("channels", "maps"), [(1, 1), (3, 2)])
def test_gradients_of_target_confidence_and_smoothness(
    channels: int, maps: int, clamp: bool
) -> None:
    photo, target, confidence, smoothness = example(channels, maps)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, c, smoothness=s, clamp=clamp, **EXACT)

    check(f, target, confidence, smoothness)


def test_gradients_without_a_confidence_and_without_a_ridge() -> None:
    photo, target, _, smoothness = example(1, 1)
    photo = 0.1 * photo  # all pixels belong to one part, whose slopes the data determine

    def f(t: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, smoothness=s, slope_ridge=0.0, **EXACT)

    check(f, target, smoothness)


def test_slopes_that_no_data_determine_are_constants_without_a_ridge() -> None:
    """A part with one known pixel takes its slopes from its surroundings."""
    photo, target, confidence, _ = example(1, 1, shape=(12, 16))
    photo = photo.round()
    confidence[..., 9:] = 0
    confidence[0, 5, 12] = 1
    t, c = with_grad(target, confidence)
    y = bilateral.torch.solve(photo, t, c, slope_ridge=0.0, clamp=False, **SIGMAS, model="planar")
    h = torch.linspace(0, 1, y.numel(), dtype=y.dtype).view_as(y)
    of_target, of_confidence = torch.autograd.grad(y, (t, c), h)
    assert of_target[0, 5, 12] == pytest.approx(h[..., 9:].sum().item(), rel=1e-2)
    assert of_confidence[confidence > 0].abs().max() < h.sum()


@pytest.mark.parametrize("clamp", [False, True])
def test_gradients_where_parts_of_the_grid_have_no_data(clamp: bool) -> None:
    photo, target, confidence, smoothness = example(3, 2)
    confidence[:, :, 3:] = 0  # this shade continues the planes of the other one
    confidence[:, 2, 1] = 0
    known = confidence > 0

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        weights = scattered(c, known)
        return bilateral.torch.solve(photo, t, weights, smoothness=s, clamp=clamp, **EXACT)

    check(f, target, confidence[known], smoothness)


def test_gradients_at_a_part_without_data_go_to_the_part_with_data() -> None:
    photo, target, confidence, _ = example(1, 1)
    confidence[:, :, 3:] = 0
    t, c = with_grad(target, confidence)
    bilateral.torch.solve(photo, t, c, clamp=False, **EXACT)[0, :, 4].sum().backward()
    for grad in (t.grad, c.grad):
        assert (grad[:, :, 3:] == 0).all()
        assert (grad[:, :, :3] != 0).any()


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
    target[1, 2, 1], target[0, 3, 4] = torch.nan, -torch.inf  # unknown in both channels
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
        assert (grad[:, 2, 1] == 0).all()
        assert (grad[:, 3, 4] == 0).all()


def test_a_gradient_that_is_not_finite_spreads() -> None:
    photo, target, _, _ = example()
    t = target.requires_grad_()
    y = bilateral.torch.solve(photo, t, **PLANAR)
    h = torch.ones_like(y)
    h[0, 1, 1] = torch.nan
    assert torch.autograd.grad(y, t, h)[0].isnan().all()


@pytest.mark.parametrize("shared", ["reference and confidence", "reference", "none"])
@pytest.mark.parametrize("ridge", [1e-3, None])
def test_a_batch_is_its_images_one_by_one(shared: str, ridge: float | None) -> None:
    ones, others = example(1, 2, seed=1), example(1, 2, seed=2)
    photo, target, confidence = (
        torch.stack([one, other]) for one, other in zip(ones[:3], others[:3], strict=True)
    )
    photo = photo[:1] if "reference" in shared else photo
    confidence = confidence[:1] if "confidence" in shared else confidence
    h = torch.linspace(-1, 1, target.numel(), dtype=target.dtype).view_as(target)

    def solve(photo: Tensor, target: Tensor, confidence: Tensor, h: Tensor) -> list[Tensor]:
        t, c = with_grad(target, confidence)
        y = bilateral.torch.solve(photo, t, c, slope_ridge=ridge, **EXACT)
        return [y.detach(), *torch.autograd.grad(y, (t, c), h)]

    both = solve(photo, target, confidence, h)
    alone = [
        solve(photo[min(i, len(photo) - 1)], target[i], confidence[min(i, len(confidence) - 1)], h)
        for i, h in enumerate(h)
    ]
    for found, parts in zip(both, zip(*alone, strict=True), strict=True):
        expected = torch.stack(parts)
        expected = expected.sum(0, keepdim=True) if len(found) == 1 else expected
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


def test_penalties_that_follow_the_noise_are_constants_for_derivatives() -> None:
    photo, target, confidence, _ = example(1, 1, shape=(24, 24))
    photo = 0.1 * photo
    ramp = torch.linspace(0, 1, 24, dtype=torch.float64).expand_as(target)
    target = ramp + 0.3 * target

    def grads(**options: Any) -> list[Tensor]:
        t, c = with_grad(target, confidence)
        y = bilateral.torch.solve(photo, t, c, smoothness=0.1, **options, **EXACT)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), (t, c))]

    followed = grads(slope_ridge=None)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda value: value):
        rebuilt = grads(slope_ridge=None)  # from the copy of the handle
    for found, expected in zip(rebuilt, followed, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)
    factor = noise_factor(photo, target, confidence)
    assert factor > 1
    given = grads(slope_ridge=1e-3 * factor, slope_smoothness=3.0 * factor)
    for found, expected in zip(given, followed, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def noise_factor(photo: Tensor, target: Tensor, confidence: Tensor) -> float:
    from bilateral.numerics import slope_rule

    grid = bilateral.BilateralGrid(as_array(photo)[..., 0], **SIGMAS)
    return slope_rule.factor(grid, as_array(target), confidence[0].numpy(), 0.1)


def test_the_clamp_follows_the_lowest_and_highest_known_value() -> None:
    """Planes continue a ramp beyond its known part and leave the known range."""
    photo = torch.zeros(1, 4, 12, dtype=torch.float64)
    ramp = torch.linspace(0, 1, 12, dtype=torch.float64).repeat(1, 4, 1)
    ramp[0, 0, 0], ramp[0, 2, 7] = -0.1, 0.7  # the lowest and the highest known value
    confidence = torch.ones_like(ramp)
    ramp[..., 8:], confidence[..., 8:] = 100.0, 0
    options = EXACT | {"smoothness": 0.1, "slope_ridge": 1e-5}
    t = ramp.clone().requires_grad_()
    y = bilateral.torch.solve(photo, t, confidence, **options)
    free = bilateral.torch.solve(photo, t, confidence, clamp=False, **options)
    known = ramp[..., :8]
    low, high = known.min(), known.max()
    limit = high + 0.05 * (high - low)
    clamped = free > limit
    assert clamped.any()
    assert (y[clamped] == limit).all()
    (grad,) = torch.autograd.grad(y[clamped].sum(), t, retain_graph=True)
    expected = torch.zeros_like(ramp)
    expected[0, 0, 0], expected[0, 2, 7] = -0.05 * clamped.sum(), 1.05 * clamped.sum()
    torch.testing.assert_close(grad, expected)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        weights = torch.cat([c, confidence[..., 8:]], -1)
        given = options | {"smoothness": s}
        return bilateral.torch.solve(photo, torch.cat([t, ramp[..., 8:]], -1), weights, **given)

    smoothness = torch.tensor(0.1, dtype=torch.float64)
    check(f, known + 0.01 * example(shape=(4, 8))[1], confidence[..., :8], smoothness)


def test_a_constant_target_comes_back_with_its_gradient() -> None:
    photo, target, _, _ = example()
    t = torch.full_like(target, 0.7).requires_grad_()
    y = bilateral.torch.solve(photo, t, **PLANAR)
    assert (y == 0.7).all()
    (grad,) = torch.autograd.grad(y.sum(), t)
    assert grad.sum() == pytest.approx(t.numel(), rel=1e-3)


@pytest.mark.parametrize("known", [1.0, 0.1])
@pytest.mark.parametrize("smoothness", [4.0, 128.0])
def test_gradients_at_the_default_tolerance_are_within_one_percent(
    known: float, smoothness: float
) -> None:
    generator = torch.Generator().manual_seed(1)
    ramp = torch.linspace(0, 1, 80).expand(1, 60, 80)
    photo = ramp.mul(4).floor().div(4).expand(3, -1, -1) + 0.02 * torch.rand(
        3, 60, 80, generator=generator
    )
    target = ramp + 0.1 * torch.randn(ramp.shape, generator=generator)
    confidence = torch.rand(ramp.shape, generator=generator)
    confidence[torch.rand(ramp.shape, generator=generator) > known] = 0

    def solve(dtype: Any, tolerance: float) -> tuple[Tensor, list[Tensor]]:
        given = (value.to(dtype) for value in (target, confidence, torch.tensor(smoothness)))
        t, c, s = with_grad(*given)
        options = {"model": "planar", "tolerance": tolerance, "max_iterations": 400}
        return bilateral.torch.solve(photo.clamp(0, 1), t, c, smoothness=s, **options), [t, c, s]

    usual, exact = solve(torch.float32, 1e-3), solve(torch.float64, 1e-10)
    h = (exact[0] - ramp).detach()
    found = torch.autograd.grad(*usual, h.float())
    for grad, expected in zip(found, torch.autograd.grad(*exact, h), strict=True):
        assert (grad - expected).norm() < 0.01 * expected.norm()


def test_gradients_of_any_size_are_as_exact() -> None:
    photo, target, confidence, _ = example(1, 1)

    def grad(factor: float) -> Tensor:
        t = target.float().requires_grad_()
        y = bilateral.torch.solve(photo, t, confidence.float(), **PLANAR)
        (y.square().sum() * factor).backward()
        return t.grad

    usual = grad(1.0)
    for factor in (2.0**-60, 2.0**60):
        torch.testing.assert_close(grad(factor) / factor, usual, rtol=0, atol=0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_extreme_numbers(create_graph: bool) -> None:
    """Units do not matter, even where single precision could not hold the products."""
    photo, target, confidence, _ = (value.float() for value in example(3, 2, shape=(12, 16)))
    expected = None
    for unit, weight in ((1.0, 1.0), (1e15, 1.0), (1.0, 1e-14), (1e-20, 1e14)):
        t, c, s = with_grad(unit * target, weight * confidence, torch.tensor(4.0 * weight))
        y = bilateral.torch.solve(photo, t, c, smoothness=s, tolerance=1e-6, **PLANAR)
        h = torch.linspace(-1, 1, y.numel()).view_as(y)
        grads = torch.autograd.grad(y, (t, c, s), h, create_graph=create_graph)
        units = unit, 1.0, unit / weight, unit / weight
        plain = [value.detach() / u for value, u in zip((y, *grads), units, strict=True)]
        expected = expected or plain
        for found, wanted in zip(plain, expected, strict=True):
            torch.testing.assert_close(
                found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max())
            )
