"""The planar model of the layer: its numbers, its robust rounds, PyTorch's tools, errors."""

import copy
from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import numpy as np
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import bilateral
import bilateral.torch
from bilateral.torch import BilateralSolver, operators
from bilateral.torch.options import LayerOptions
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


def as_array(maps: Tensor) -> Any:
    return maps.detach().permute(1, 2, 0).numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "options",
    [{}, {"clamp": False}, {"slope_ridge": None}, {"slope_ridge": 0.0, "slope_smoothness": 1.0}],
    ids=repr,
)
def test_the_same_numbers_as_the_call_for_arrays(options: dict[str, Any], dtype: Any) -> None:
    photo, target, confidence, _ = (v.to(dtype) for v in example(3, 2, shape=(20, 26)))
    target[0, 2, 3] = torch.nan
    confidence[:, :, 14:] = 0  # a part without data
    y = bilateral.torch.solve(photo, target, confidence, smoothness=2.0, **PLANAR, **options)
    arrays = as_array(photo), as_array(target), confidence[0].numpy()
    expected = bilateral.solve(*arrays, smoothness=2.0, **PLANAR, **options)
    np.testing.assert_array_equal(as_array(y), expected)
    constant = bilateral.torch.solve(photo, target, confidence, smoothness=2.0, **SIGMAS)
    assert (y - constant).abs().max() > 0.01


@pytest.mark.parametrize("tolerance", [1e-4, 1e-5])
def test_solutions_are_those_of_the_oracle(tolerance: float) -> None:
    photo, target, confidence, _ = example(3, 2, shape=(20, 26))
    given = {"smoothness": 2.0, "tolerance": tolerance, "clamp": False}
    y = bilateral.torch.solve(photo, target, confidence, **given, **PLANAR)
    grid = oracle_grid.image_grid(as_array(photo), **SIGMAS)
    model = oracle.model(grid, oracle.positions(photo.shape[1:], 4.0))
    exact = oracle.solve(model, as_array(target), confidence[0].numpy(), smoothness=2.0)
    assert np.sqrt(np.mean((as_array(y) - exact.x) ** 2)) < tolerance


def test_dtypes_and_shapes() -> None:
    photo, target, confidence, _ = example(3, 2, shape=(8, 10))
    whole = (100 * target).to(torch.uint8)
    y = bilateral.torch.solve(photo, whole, **PLANAR)
    assert y.dtype == torch.uint8
    assert torch.equal(y, bilateral.torch.solve(photo, whole.float(), **PLANAR).round().byte())
    half = target.to(torch.bfloat16).requires_grad_()
    y = bilateral.torch.solve(photo, half, confidence, **PLANAR)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert half.grad.dtype == torch.bfloat16


def operator_arguments() -> tuple[list[Tensor], tuple[Any, ...]]:
    """Return reference, target, confidence with an empty part, smoothness; and the options."""
    photo, target, confidence, smoothness = example(3, 2)
    confidence[..., 3:] = 0
    options = LayerOptions.checked(EXACT | {"blur": "paper", "reference_max": None}, 3)
    return [photo[None], target[None], confidence[None], smoothness], options.arguments


def test_operators_keep_their_promises() -> None:
    (photo, *given), options = operator_arguments()
    _, handle = operators.solve(photo, *given, None, *options)
    t, c, s = with_grad(*given)
    torch.library.opcheck(operators.solve, (photo, t, c, s, None, *options))
    for transposed in (False, True):
        torch.library.opcheck(
            operators.apply_planes, (handle, photo, t, c, s, transposed, *options)
        )


def test_the_transposed_matrix() -> None:
    (photo, target, *others), options = operator_arguments()
    _, handle = operators.solve(photo, target, *others, None, *options)
    generator = torch.Generator().manual_seed(3)
    g, h = (torch.rand(target.shape, generator=generator, dtype=target.dtype) for _ in range(2))
    forward = operators.apply_planes(handle, photo, g, *others, False, *options)
    backward = operators.apply_planes(handle, photo, h, *others, True, *options)
    torch.testing.assert_close((forward * h).sum(), (backward * g).sum())
    assert (forward[..., 3:] != 0).all()
    assert (backward[..., 3:] == 0).all()


def test_each_image_has_its_own_penalties_if_they_follow_the_noise() -> None:
    photo, noise, confidence, _ = example(1, 1, shape=(24, 24))
    photo, options = 0.1 * photo, EXACT | {"smoothness": 0.1}
    ramp = torch.linspace(0, 1, 24, dtype=torch.float64).expand_as(noise)
    targets = torch.stack([ramp + 0.3 * noise, ramp + 0.6 * noise])

    def f(t: Tensor) -> Tensor:
        return bilateral.torch.solve(photo, t, confidence, slope_ridge=None, **options)

    alone = torch.stack([f(t) for t in targets])
    fixed = bilateral.torch.solve(photo, targets, confidence, **options)
    assert (alone - fixed).abs().amax((1, 2, 3)).min() > 1e-3
    for found in (f(targets), torch.vmap(f)(targets)):
        torch.testing.assert_close(found, alone, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-3, None])
def test_vmap_and_compiled(ridge: float | None) -> None:
    photo, _, confidence, smoothness = example(3, 1)
    confidence[..., 3:] = 0
    targets = torch.stack([example(3, 1, seed)[1] for seed in (1, 2)])

    def loss(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        y = bilateral.torch.solve(photo, t, c, smoothness=s, slope_ridge=ridge, **EXACT)
        return (y * torch.linspace(0, 1, 5, dtype=y.dtype)).square().sum()

    gradient = torch.func.grad(loss, argnums=(0, 1, 2))
    found = torch.vmap(gradient, in_dims=(0, None, None))(targets, confidence, smoothness)
    for i, t in enumerate(targets):
        for part, expected in zip(found, gradient(t, confidence, smoothness), strict=True):
            torch.testing.assert_close(part[i], expected, rtol=1e-6, atol=1e-8)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    one, other = (with_grad(targets[0], confidence, smoothness) for _ in range(2))
    ours = torch.autograd.grad(compiled(*one), one)
    for part, expected in zip(ours, torch.autograd.grad(loss(*other), other), strict=True):
        torch.testing.assert_close(part, expected, rtol=0, atol=0)


def test_the_layer() -> None:
    photo, target, confidence, _ = (value.float() for value in example(3, 1, shape=(12, 16)))
    options = PLANAR | {"slope_smoothness": 2.0, "slope_ridge": 1e-2, "clamp": False}
    layer = BilateralSolver(**options, smoothness=2.5, learn_smoothness=True)
    expected = bilateral.torch.solve(photo, target, confidence, smoothness=2.5, **options)
    for same in (layer, copy.deepcopy(layer)):
        torch.testing.assert_close(same(photo, target, confidence), expected)
    assert list(layer.state_dict()) == ["log_smoothness"]
    assert repr(layer) == (
        "BilateralSolver(sigmas=(4, 30, 40), smoothness=2.5, learned, model='planar')"
    )
    plain = BilateralSolver(model="planar")
    assert repr(plain) == "BilateralSolver(sigmas=(8, 8, 8), smoothness=4, model='planar')"


def test_training_finds_the_smoothness_and_the_confidence() -> None:
    photo, target, _, _ = (value.float() for value in example(3, 1, shape=(12, 16)))
    wanted = torch.linspace(0, 1, 16).expand_as(target)
    noisy = wanted + 0.3 * (target - 0.5)
    noisy[0, 3:6, 4:7] += 2  # wrong
    trust = torch.zeros(1, 12, 16, requires_grad=True)
    layer = BilateralSolver(**PLANAR, smoothness=1.0, learn_smoothness=True)
    optimizer = torch.optim.Adam([trust, *layer.parameters()], lr=0.3)
    errors = []
    for _ in range(12):
        optimizer.zero_grad()
        error = (layer(photo, noisy, trust.exp()) - wanted).square().mean()
        error.backward()
        optimizer.step()
        errors.append(error.item())
    assert errors[-1] < 0.2 * errors[0]
    assert trust[0, 3:6, 4:7].mean() < trust.mean() - 1


def rounds(photo: Tensor, target: Tensor, confidence: Tensor, models: list[str]) -> Tensor:
    """Solve by rounds of `bilateral.solve`, with the clamp of the last one."""
    arrays, weights = (as_array(photo), as_array(target)), confidence[0].numpy()
    x = None
    for model in models:
        if x is not None:
            weights = bilateral.GemanMcClure(0.7).weight(x[..., 0] - arrays[1][..., 0])
        exact = EXACT | {"model": model}
        x = bilateral.solve(*arrays, weights, clamp=False, smoothness=2.0, **exact)
    used = arrays[1][..., 0][weights >= 0.25 * weights.max()]
    margin = 0.05 * (used.max() - used.min())
    return torch.from_numpy(np.clip(x, used.min() - margin, used.max() + margin)).movedim(-1, 0)


def test_robust_rounds() -> None:
    photo, target, confidence, smoothness = example(3, 1)
    photo = 0.1 * photo
    target[0, 1, 1] += 3
    loss = bilateral.GemanMcClure(0.7)

    def f(t: Tensor, c: Tensor, s: Tensor) -> Tensor:
        return bilateral.torch.solve_robust(photo, t, c, loss, 4, smoothness=s, **EXACT)

    found = f(target, confidence, torch.tensor(2.0, dtype=torch.float64))
    expected = rounds(photo, target, confidence, ["constant", *["planar"] * 3])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
    given = with_grad(target, confidence, smoothness)
    assert gradcheck(f, given, check_forward_ad=True)
    assert gradgradcheck(f, given, fast_mode=True)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": "quadratic"}, r"model: .*'planar'.*'quadratic'"),
    ({"preconditioner": "pyramid"}, r"preconditioner \(model='planar'\): .*'multigrid'"),
    ({"slope_smoothness": 0}, r"slope_smoothness: .*got 0"),
    ({"slope_ridge": -1.0}, r"slope_ridge: .*-1"),
    ({"clamp": "yes"}, r"clamp: .*'yes'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_options(wrong: dict[str, Any], message: str) -> None:
    photo, target, _, _ = example()
    options = PLANAR | wrong
    for solve in (bilateral.torch.solve, bilateral.torch.solve_robust):
        with pytest.raises((TypeError, ValueError), match=message):
            solve(photo, target, **options)
    with pytest.raises((TypeError, ValueError), match=message):
        BilateralSolver(**options)


def test_robust_rounds_need_a_ridge() -> None:
    photo, target, _, _ = example()
    with pytest.raises(ValueError, match=r"slope_ridge: expected a number .*got None"):
        bilateral.torch.solve_robust(photo, target, slope_ridge=None, **PLANAR)


def test_a_target_without_data_is_refused() -> None:
    photo, target, confidence, _ = example()
    with pytest.raises(ValueError, match=r"target: .*confidence above 0"):
        bilateral.torch.solve(photo, target, 0 * confidence, **PLANAR)


@pytest.mark.parametrize("seed", [0, 76, 90])
def test_large_confidences_do_not_hide_the_ridge_of_float32(seed: int) -> None:
    """Float32 results are those of float64, as without PyTorch."""
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(rng.random((1, 7, 10)).astype(np.float32))
    weights = 1e5 * rng.random((1, 7, 10)) * (rng.random((1, 7, 10)) < 0.5)
    confidence = torch.from_numpy(weights.astype(np.float32))
    noise = np.random.default_rng(0).integers(0, 12, (7, 10, 3))
    noise[:, 5:] += 120
    image = torch.from_numpy(noise.astype(np.uint8)).permute(2, 0, 1)
    options: dict[str, Any] = {"sigma_xy": 4, "model": "planar", "clamp": False}
    options |= {"slope_ridge": 1e-3, "max_iterations": 300, "smoothness": 0.05}
    x = bilateral.torch.solve(image, target, confidence, tolerance=1e-3, **options)
    precise = bilateral.torch.solve(image, target.double(), confidence, tolerance=1e-9, **options)
    assert torch.sqrt(torch.mean((x - precise) ** 2)) <= 3e-3
