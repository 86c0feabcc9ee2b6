"""Inputs of the layer: shapes, dtypes, memory formats, and errors."""

import warnings
from typing import Any

import pytest

pytest.importorskip("torch", reason="the layer needs PyTorch")

import torch
from torch import Tensor

import bilateral
import bilateral.torch
from bilateral.backends import cpu
from bilateral.torch import BilateralSolver

PHOTO = torch.rand(3, 12, 16, generator=torch.Generator().manual_seed(0))
TARGET = torch.rand(2, 12, 16, generator=torch.Generator().manual_seed(1))
WEIGHT = torch.rand(12, 16, generator=torch.Generator().manual_seed(2))


def solve(photo: Tensor, target: Tensor, confidence: Any = None, **options: Any) -> Tensor:
    return bilateral.torch.solve(photo, target, confidence, sigma_xy=4, **options)


EXPECTED = solve(PHOTO, TARGET, WEIGHT)


@pytest.mark.parametrize(
    ("photo", "target", "confidence"),
    [
        (PHOTO[None], TARGET, WEIGHT[None]),
        (PHOTO, TARGET[None], WEIGHT[None, None]),
        (PHOTO[None], TARGET[None], WEIGHT),
        (PHOTO, TARGET.expand(3, -1, -1, -1), WEIGHT),
        (PHOTO, TARGET.expand(3, -1, -1, -1), WEIGHT.expand(3, -1, -1)),
        (PHOTO.expand(3, -1, -1, -1), TARGET.expand(3, -1, -1, -1), WEIGHT.expand(3, 1, -1, -1)),
        (PHOTO.expand(3, -1, -1, -1), TARGET.expand(3, -1, -1, -1), WEIGHT[None, None]),
    ],
)
def test_shapes(photo: Tensor, target: Tensor, confidence: Tensor) -> None:
    y = solve(photo, target, confidence)
    assert y.shape == target.shape
    torch.testing.assert_close(y, EXPECTED.expand_as(y), rtol=1e-4, atol=1e-4)


def test_memory_formats() -> None:
    target = TARGET.expand(3, -1, -1, -1)
    plain, last = target.contiguous(), target.contiguous(memory_format=torch.channels_last)
    photos = PHOTO.expand(3, -1, -1, -1)
    assert solve(photos, plain, WEIGHT).is_contiguous()
    found = solve(photos, last, WEIGHT)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found, solve(photos, plain, WEIGHT))
    turned = TARGET.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(solve(PHOTO, turned, WEIGHT), EXPECTED)


def test_one_channel_is_not_copied() -> None:
    from bilateral.torch import inputs as shapes

    for value in (TARGET[:1][None], TARGET[None].contiguous(memory_format=torch.channels_last)):
        assert shapes.as_pixels(value, 1).data_ptr() == value.data_ptr()


def test_references_of_any_dtype() -> None:
    levels = (PHOTO * 255).round()
    expected = solve(levels / 255, TARGET, WEIGHT)
    for photo in (levels.to(torch.uint8), (levels * 257).to(torch.uint16), levels.double() / 255):
        torch.testing.assert_close(solve(photo, TARGET, WEIGHT), expected)
    torch.testing.assert_close(solve(levels, TARGET, WEIGHT, reference_max=255), expected)
    gray = PHOTO[:1]
    torch.testing.assert_close(solve(gray, TARGET), solve(gray.expand(3, -1, -1), TARGET))


def test_whole_numbers_are_rounded() -> None:
    target = (100 * TARGET).to(torch.uint8)
    found = solve(PHOTO, target)
    assert found.dtype == torch.uint8
    assert torch.equal(found, solve(PHOTO, target.float()).round().to(torch.uint8))


def test_wide_integers_are_exact() -> None:
    for dtype, value in (
        (torch.int32, 2**24 + 1),
        (torch.uint32, 2**32 - 1),
        (torch.int64, 2**53),
        (torch.uint64, 2**53 - 1),
    ):
        found = solve(PHOTO, torch.tensor(value, dtype=dtype).expand(2, 12, 16))
        assert found.dtype == dtype
        assert (found.numpy() == value).all()
    largest = torch.tensor(2**64 - 1, dtype=torch.uint64).expand(2, 12, 16)
    with pytest.raises(ValueError, match=rf"target: .*2\*\*53.*{2**64 - 1}"):
        solve(PHOTO, largest)


def test_aliases_of_keywords() -> None:
    expected = bilateral.torch.solve(PHOTO, TARGET)
    aliased: Any = {"photo": PHOTO, "depth": TARGET}
    assert torch.equal(bilateral.torch.solve(**aliased), expected)
    assert torch.equal(BilateralSolver()(**aliased), expected)
    robust = bilateral.torch.solve_robust(PHOTO, TARGET)
    assert torch.equal(bilateral.torch.solve_robust(**aliased), robust)
    sigmas: Any = {"sigma_xy": 3, "sigma_rgb": 9}
    filtered = bilateral.torch.domain_transform(TARGET, PHOTO, **sigmas)
    assert torch.equal(bilateral.torch.domain_transform(**aliased, **sigmas), filtered)
    scores: Any = {"probabilities": TARGET.softmax(0)}
    refined = bilateral.torch.refine_segmentation(**scores, image=PHOTO)
    assert torch.equal(bilateral.torch.refine_segmentation(**scores, photo=PHOTO), refined)
    with pytest.raises(TypeError, match=r"^solve\(\) has no parameter 'lam'.*'smoothness'"):
        bilateral.torch.solve(**aliased, lam=3)
    with pytest.raises(TypeError, match=r"^BilateralSolver\(\) has no parameter 'lam'"):
        BilateralSolver(lam=3)  # type: ignore[call-arg]


def test_a_mask_is_a_confidence() -> None:
    mask = WEIGHT > 0.5
    torch.testing.assert_close(solve(PHOTO, TARGET, mask), solve(PHOTO, TARGET, mask.float()))


def test_no_gradient_reaches_the_reference() -> None:
    photo, target = PHOTO.clone().requires_grad_(), TARGET.clone().requires_grad_()
    solve(photo, target).sum().backward()
    assert photo.grad is None
    assert target.grad is not None


def at(tensor: Tensor, value: float) -> Tensor:
    tensor = tensor.clone()
    tensor[..., 2, 3] = value
    return tensor


# wrong argument, error, text of the message
WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"target": TARGET.numpy()}, TypeError, r"target: expected a tensor, got ndarray"),
    ({"photo": None}, TypeError, r"reference: expected a tensor, got NoneType"),
    ({"target": TARGET[0]}, ValueError, r"target: .* got \(12, 16\).*unsqueeze"),
    ({"target": TARGET[:, :0]}, ValueError, r"target: .* got \(2, 0, 16\)"),
    ({"photo": PHOTO[0]}, ValueError, r"reference: .* got \(12, 16\)"),
    ({"photo": PHOTO[:, :, 1:]}, ValueError, r"reference: .* got \(3, 12, 15\)"),
    ({"photo": torch.zeros(4, 12, 16)}, ValueError, r"reference: .*alpha"),
    ({"photo": torch.zeros(2, 3, 12, 16)}, ValueError, r"reference: .* got \(2, 3, 12, 16\)"),
    ({"photo": PHOTO.long()}, TypeError, r"reference: .*torch.int64"),
    ({"photo": at(PHOTO, torch.nan)}, ValueError, r"reference: .*nan at row 2, column 3"),
    ({"photo": 255 * PHOTO}, ValueError, r"reference: .*Divide it by 255, or give reference_max"),
    ({"photo": PHOTO - 1}, ValueError, r"reference: .*down to -.*normalization"),
    ({"confidence": WEIGHT[1:]}, ValueError, r"confidence: .* got \(11, 16\)"),
    ({"confidence": WEIGHT.expand(2, 12, 16)}, ValueError, r"confidence: .*share"),
    ({"confidence": at(WEIGHT, -1)}, ValueError, r"confidence: .*-1.0 at row 2, column 3"),
    ({"confidence": at(WEIGHT, torch.nan)}, ValueError, r"confidence: .*nan at row 2, column 3"),
    ({"confidence": torch.zeros(12, 16)}, ValueError, r"target: .*got none"),
    ({"target": TARGET.to(torch.complex64)}, TypeError, r"target: .*complex64"),
    ({"target": TARGET * torch.nan}, ValueError, r"target: .*got none"),
    ({"target": torch.full_like(TARGET, 2**60).long()}, ValueError, rf"target: .*{2**60}"),
    ({"confidence": torch.full((12, 16), 2**60)}, ValueError, rf"confidence: .*{2**60}"),
    ({"photo": PHOTO.to_sparse()}, TypeError, r"reference: .*sparse_coo.*to_dense"),
    ({"target": TARGET.to_sparse()}, TypeError, r"target: .*sparse_coo.*to_dense"),
    ({"confidence": WEIGHT.to_sparse()}, TypeError, r"confidence: .*sparse_coo.*to_dense"),
    ({"smoothness": -1.0}, ValueError, r"smoothness: .*above 0, got -1.0"),
    ({"smoothness": torch.tensor(-1.0)}, ValueError, r"smoothness: .*above 0, got -1.0"),
    ({"smoothness": torch.ones(2)}, ValueError, r"smoothness: expected one number"),
    ({"smoothness": torch.tensor(3)}, TypeError, r"smoothness: expected floating point"),
    ({"smoothness": "4"}, TypeError, r"smoothness: .*str"),
    ({"sigma_luma": 0}, ValueError, r"sigma_luma: .*got 0"),
    ({"sigma_chroma": "8"}, TypeError, r"sigma_chroma: .*str"),
    ({"blur": "gauss"}, ValueError, r"blur: .*'gauss'"),
    ({"tolerance": -1}, ValueError, r"tolerance: .*-1"),
    ({"max_iterations": 2.5}, TypeError, r"max_iterations: .*2.5"),
    ({"preconditioner": "none"}, ValueError, r"preconditioner: .*'none'"),
    ({"reference_max": 0}, ValueError, r"reference_max: .*got 0"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_wrong_inputs(wrong: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"photo": PHOTO, "target": TARGET, "confidence": WEIGHT} | wrong
    with pytest.raises(error, match=message):
        solve(**given)


def test_the_wrong_image_of_a_batch_is_named() -> None:
    photos = torch.stack([PHOTO, at(PHOTO, torch.inf)])
    with pytest.raises(ValueError, match="reference: ") as caught:
        solve(photos, torch.stack([TARGET, TARGET]))
    assert caught.value.__notes__ == ["In image 1 of the batch."]


def test_a_layer_checks_its_configuration() -> None:
    with pytest.raises(ValueError, match=r"sigma_xy: .*got 0"):
        BilateralSolver(sigma_xy=0)
    with pytest.raises(ValueError, match=r"smoothness: .*got 0"):
        BilateralSolver(smoothness=0)


def test_other_devices_are_refused() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(ValueError, match=r"\.cpu\(\)"):
        solve(torch.zeros(3, 4, 4, device="xpu"), torch.zeros(1, 4, 4, device="xpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without CUDA")
def test_tensors_on_several_devices_are_refused() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(ValueError, match=r"reference: .*on cuda.*got .*on cpu"):
        solve(torch.zeros(3, 4, 4), torch.zeros(1, 4, 4, device="cuda"))


def test_a_solve_that_diverged_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    pcg = cpu.pcg

    def diverge(*args: Any, **options: Any) -> cpu.Outcome:
        outcome = pcg(*args, **options)
        return outcome._replace(residuals=[1e-9], converged=False, diverged=True)

    monkeypatch.setattr(cpu, "pcg", diverge)
    target = torch.eye(4).expand(1, 1, 4, 4).clone().requires_grad_()
    with pytest.warns(bilateral.ConvergenceWarning, match="diverged"):
        bilateral.torch.solve(torch.zeros(1, 1, 4, 4), target, torch.ones(1, 1, 4, 4))


def test_a_solve_that_ends_too_early_warns_where_it_was_called() -> None:
    ramp, known = torch.linspace(0, 0.3, 16).expand(1, 12, 16), torch.zeros(12, 16)
    known[2, 3] = known[9, 12] = 1
    hard: dict[str, Any] = {"preconditioner": "jacobi", "max_iterations": 2, "smoothness": 100.0}
    with pytest.warns(bilateral.ConvergenceWarning, match="max_iterations=2") as caught:
        y = solve(ramp, TARGET.clone().requires_grad_(), known, **hard)
    assert caught[0].filename == __file__
    with pytest.warns(bilateral.ConvergenceWarning, match="max_iterations=2"):
        y.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(ramp, TARGET, known, smoothness=100.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_extreme_numbers(create_graph: bool) -> None:
    """Units do not matter, even where single precision could not hold the products."""
    expected = None
    for unit, weight in ((1.0, 1.0), (1e15, 1.0), (1.0, 1e-14), (1e-20, 1e14)):
        t, c = (unit * TARGET).requires_grad_(), (weight * WEIGHT).requires_grad_()
        s = torch.tensor(weight * 4.0, requires_grad=True)
        y = solve(PHOTO, t, c, smoothness=s, tolerance=1e-6)
        h = torch.linspace(-1, 1, y.numel()).view_as(y)
        grads = torch.autograd.grad(y, (t, c, s), h, create_graph=create_graph)
        units = unit, 1.0, unit / weight, unit / weight
        plain = [value.detach() / u for value, u in zip((y, *grads), units, strict=True)]
        if expected is None:
            expected = plain
        for found, wanted in zip(plain, expected, strict=True):
            torch.testing.assert_close(
                found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max())
            )
