"""domain_transform of tensors: that of arrays, with batches and gradients, on both devices.

Without a GPU the kernels run in Triton's interpreter, one number at a time: so the pictures are
tiny, and the chunks that they are cut into as well.
"""

import importlib
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="tensors need PyTorch")

from torch.autograd import gradcheck

import bilateral.torch
import torch
from support.examples import examples
from support.strategies import CONFIDENCES, Array, references, seeds
from support.strategies import weights as some_weights
from torch import Tensor

COMPILED = torch.cuda.is_available()
DEVICE = "cuda" if COMPILED else "cpu"
MODULE: Any = importlib.import_module("bilateral.torch.filters")
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the kernels, which now filter whatever tensors there are."""
    if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
        pytest.skip("no GPU that PyTorch can use, and no interpreter")
    pytest.importorskip("triton", reason="the kernels need Triton")
    chunks = importlib.import_module("bilateral.backends.cuda.filters.filter_chunks")
    for name, size in (("_CHUNK", 4), ("_STRIP", 4), ("_GROUP", 2)):
        monkeypatch.setattr(chunks, name, size)
    backend = MODULE._Backend(MODULE._filter_on_device, MODULE._transposed_on_device)
    monkeypatch.setattr(MODULE, "_backend", lambda _: backend)
    return importlib.import_module("bilateral.backends.cuda.filters.domain_transform")


def tensor(image: Array) -> Tensor:
    """(H, W) or (H, W, K) to (K, H, W)."""
    return torch.from_numpy(image.reshape(*image.shape[:2], -1)).movedim(-1, 0)


def array(image: Tensor) -> Array:
    return image.detach().cpu().movedim(-3, -1).numpy()


def example(
    *shape: int, channels: int = 3, photos: int | None = None, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Image (B, K, H, W), reference (photos, channels, H, W) and weights (B, 1, H, W)."""
    rng = np.random.default_rng(seed)
    images, _, *size = shape
    image = torch.from_numpy(rng.normal(3, 1, shape))
    levels = rng.integers(0, 5, (photos or images, channels, *size)) * 12
    mass = torch.from_numpy(rng.uniform(0.1, 2, (images, 1, *size)))
    return image, torch.from_numpy(levels.astype(np.uint8)), mass


def with_holes(image: Tensor, part: float = 0.3) -> Tensor:
    rng = np.random.default_rng(1)
    holes = torch.from_numpy(rng.uniform(size=tuple(image.shape)) < part)
    holes[..., 0, 0] = False
    return torch.where(holes, torch.nan, image)


def one_by_one(image: Tensor, reference: Tensor, weights: Tensor | None, **options: Any) -> Array:
    """What `bilateral.domain_transform` makes of each image."""
    count = len(image)
    out = []
    for i in range(count):
        photo = array(reference[min(i, len(reference) - 1)])
        mass = None if weights is None else weights[min(i, len(weights) - 1), 0].numpy()
        out.append(bilateral.domain_transform(array(image[i]), photo, weights=mass, **options))
    return np.stack(out)


OPTIONS: dict[str, Any] = {"sigma_xy": 3.0, "sigma_rgb": 40.0}


@examples(40)
@given(
    references(20),
    seeds,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(CONFIDENCES),
    st.sampled_from([0.0, 0.4]),
    st.integers(1, 4),
    st.sampled_from(["float32", "float64"]),
)
def test_one_image_is_what_arrays_give(
    photo: Array, seed: int, maps: int, kind: str, lost: float, iterations: int, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(*photo.shape[:2], maps)).astype(dtype)
    image[rng.uniform(size=image.shape) < lost] = np.nan
    image[0, 0] = 1
    mass = some_weights(kind, photo.shape[:2], rng)
    if mass is not None:
        mass[0, 0] = mass.max() or 1.0
        mass = mass.astype(dtype)
    expected = bilateral.domain_transform(image, photo, 5, 50, iterations, weights=mass)
    given_ = None if mass is None else torch.from_numpy(mass)
    found = bilateral.torch.domain_transform(
        tensor(image), tensor(photo), 5, 50, iterations, weights=given_
    )
    assert found.dtype == getattr(torch, dtype)
    np.testing.assert_array_equal(array(found), expected)


@pytest.mark.parametrize("photos", [1, 3])
@pytest.mark.parametrize("masses", [0, 1, 3])
def test_a_batch_is_its_images_one_by_one(photos: int, masses: int) -> None:
    image, reference, weights = example(3, 2, 7, 9, photos=photos)
    image[1] = with_holes(image[1])
    mass = weights[:masses] if masses else None
    found = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mass)
    np.testing.assert_array_equal(array(found), one_by_one(image, reference, mass, **OPTIONS))


def test_shapes() -> None:
    image, reference, weights = example(1, 2, 6, 8)
    expected = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=weights)
    for mass in (weights, weights[0], weights[0, 0]):
        y = bilateral.torch.domain_transform(image[0], reference[0], **OPTIONS, weights=mass)
        assert torch.equal(y, expected[0])
    last = image.contiguous(memory_format=torch.channels_last)
    y = bilateral.torch.domain_transform(last, reference, **OPTIONS, weights=weights)
    assert torch.equal(y, expected)
    mask = weights > 1
    y = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mask)
    z = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mask.double())
    assert torch.equal(y, z)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.uint8])
def test_dtypes(dtype: torch.dtype) -> None:
    image, reference, _ = example(2, 1, 6, 8)
    given_ = (image * 20).to(dtype)
    found = bilateral.torch.domain_transform(given_, reference, **OPTIONS)
    assert found.dtype == dtype
    exact = bilateral.torch.domain_transform(given_.double(), reference, **OPTIONS)
    slack = 0.51 if dtype == torch.uint8 else 100 * TOLERANCE[dtype]
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=slack)


def test_references_of_any_dtype() -> None:
    image, reference, _ = example(1, 1, 6, 8)
    expected = bilateral.torch.domain_transform(image, reference, **OPTIONS)
    levels = reference.double()
    for photo in (levels / 255, (levels * 257).to(torch.uint16)):
        y = bilateral.torch.domain_transform(image, photo, **OPTIONS)
        torch.testing.assert_close(y, expected)
    y = bilateral.torch.domain_transform(image, levels, **OPTIONS, reference_max=255)
    torch.testing.assert_close(y, expected)


def test_gradients_only_where_they_are_wanted() -> None:
    image, reference, weights = example(1, 1, 5, 6)
    image.requires_grad_()
    photo = (reference / 255.0).requires_grad_()
    y = bilateral.torch.domain_transform(image, photo, **OPTIONS, weights=weights)
    y.sum().backward()
    assert photo.grad is None
    # All that a filter takes from the pixels sums to 1, so all gradients of the sum do to n.
    assert image.grad is not None
    assert image.grad.sum().item() == pytest.approx(30)
    with torch.no_grad():
        z = bilateral.torch.domain_transform(image, photo, **OPTIONS, weights=weights)
    assert not z.requires_grad
    assert torch.equal(z, y)
    (g,) = torch.autograd.grad(
        bilateral.torch.domain_transform(image.float(), photo, **OPTIONS).sum(), image
    )
    assert g.dtype == torch.float64


GRADIENTS = [
    ((1, 1, 4, 5), 1, 1, False, 0.0),
    ((2, 2, 3, 4), 2, 2, True, 0.0),
    ((2, 1, 4, 3), 1, 1, True, 0.3),
    ((2, 2, 3, 4), 1, 2, False, 0.4),
    ((1, 2, 1, 6), 1, 1, True, 0.3),
    ((1, 1, 5, 1), 1, 1, True, 0.0),
]


def derivatives_are_right(
    device: str, shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
) -> bool:
    image, reference, weights = example(*shape, photos=photos)
    image = with_holes(image, part).to(device)
    known = torch.isfinite(image)
    values = torch.where(known, image, 0).requires_grad_()

    def f(values: Tensor, mass: Tensor | None = None) -> Tensor:
        holed = torch.where(known, values, torch.nan)
        photo = reference.to(device)
        return bilateral.torch.domain_transform(holed, photo, **OPTIONS, weights=mass)

    if not weigh:
        return bool(gradcheck(f, (values,)))
    return bool(gradcheck(f, (values, weights[:masses].to(device).requires_grad_())))


@pytest.mark.parametrize(("shape", "photos", "masses", "weigh", "part"), GRADIENTS)
def test_gradients_are_finite_differences(
    shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
) -> None:
    assert derivatives_are_right("cpu", shape, photos, masses, weigh, part)


def test_gradients_of_the_first_weight_to_come() -> None:
    """A weight of 0 has a derivative, too: on one side."""
    image, reference, weights = example(1, 1, 4, 5)
    weights[..., 2:] = 0
    weights.requires_grad_()
    h = torch.randn_like(image)

    def loss(mass: Tensor) -> Tensor:
        return (
            bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mass) * h
        ).sum()

    (g,) = torch.autograd.grad(loss(weights), weights)
    step = torch.zeros_like(weights)
    step[0, 0, 1, 3] = 1e-7
    change = (loss(weights + step) - loss(weights)).item() / 1e-7
    assert g[0, 0, 1, 3].item() == pytest.approx(change, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_however_far_a_pixel_is(dtype: torch.dtype) -> None:
    image = torch.full((1, 1, 30, 40), torch.nan, dtype=dtype)
    image[0, 0, 3, 4] = 5
    image.requires_grad_()
    weights = torch.ones(30, 40, dtype=dtype, requires_grad=True)
    photo = torch.arange(1200).reshape(1, 1, 30, 40) / 1200.0
    y = bilateral.torch.domain_transform(image, photo, 0.5, 1, weights=weights)
    assert torch.equal(y, torch.full_like(y, 5))
    (1e3 * y).sum().backward()
    for grad in (image.grad, weights.grad):
        assert grad is not None
        assert torch.isfinite(grad).all()
        assert grad.count_nonzero() <= 1


def test_the_reverse_of_a_backward_is_refused() -> None:
    image, reference, _ = example(1, 1, 3, 4)
    image.requires_grad_()
    y = bilateral.torch.domain_transform(image, reference, **OPTIONS)
    (g,) = torch.autograd.grad(y.square().sum(), image, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


# images, channels, height, width; channels of the reference; photos; masses; holes; passes
CASES = [
    ((1, 1, 1, 1), 1, 1, 0, 0.0, 3),
    ((1, 1, 1, 11), 3, 1, 0, 0.0, 2),
    ((1, 1, 13, 1), 1, 1, 1, 0.3, 2),
    ((2, 2, 6, 5), 2, 1, 0, 0.0, 1),
    ((2, 1, 5, 6), 3, 2, 1, 0.0, 2),
    ((2, 2, 5, 6), 1, 1, 2, 0.4, 1),
    ((1, 1, 10, 6), 1, 1, 0, 0.4, 2),
    ((1, 1, 10, 6), 1, 1, 0, 0.0, 3),
]


@pytest.mark.parametrize("wide", [False, True], ids=["rows", "long rows"])
@pytest.mark.parametrize(("shape", "channels", "photos", "masses", "part", "passes"), CASES)
def test_the_kernels_give_what_arrays_give(
    kernels: Any,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    channels: int,
    photos: int,
    masses: int,
    part: float,
    passes: int,
    wide: bool,
) -> None:
    if wide:
        monkeypatch.setattr(kernels, "_MAX_ROW", 0)
    image, reference, weights = example(*shape, channels=channels, photos=photos)
    image = with_holes(image, part)
    mass = weights[:masses] if masses else None
    options = OPTIONS | {"iterations": passes}
    there = None if mass is None else mass.to(DEVICE)
    found = bilateral.torch.domain_transform(
        image.to(DEVICE), reference.to(DEVICE), **options, weights=there
    )
    expected = one_by_one(image, reference, mass, **options)
    np.testing.assert_allclose(array(found), expected, rtol=0, atol=1e-12)
    h = torch.from_numpy(np.random.default_rng(2).normal(size=shape))
    config = MODULE._Options(**options, highest=255.0)
    mine = MODULE._transposed_on_device(h.to(DEVICE), reference.to(DEVICE), config)
    theirs = MODULE._transposed(h, reference, config)
    torch.testing.assert_close(mine.cpu(), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("reference", [torch.uint16, torch.float32, torch.float64])
def test_the_kernels_take_references_of_any_dtype(kernels: Any, reference: torch.dtype) -> None:
    image, levels, _ = example(1, 1, 5, 6)
    image = image.float()
    scale = 257.0 if reference == torch.uint16 else 1 / 255
    photo = (levels * scale).to(reference)
    found = bilateral.torch.domain_transform(image.to(DEVICE), photo.to(DEVICE), **OPTIONS)
    assert found.dtype == torch.float32
    expected = one_by_one(image, levels, None, **OPTIONS)
    np.testing.assert_allclose(array(found), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernels_keep_constants(kernels: Any, dtype: torch.dtype) -> None:
    _, reference, weights = example(1, 1, 5, 6)
    most = torch.finfo(dtype).max
    for value in (0.1, -1e30, most):
        constant = torch.full((1, 1, 5, 6), value, dtype=dtype)
        for image, mass in ((constant, None), (with_holes(constant), weights.to(dtype))):
            there = None if mass is None else mass.to(DEVICE)
            y = bilateral.torch.domain_transform(
                image.to(DEVICE), reference.to(DEVICE), 4, 30, 1, weights=there
            )
            assert torch.equal(y.cpu(), constant)


@pytest.mark.parametrize("sigma_xy", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("sigma_rgb", [1e-300, 1e300])
def test_the_kernels_give_finite_results(kernels: Any, sigma_rgb: float, sigma_xy: float) -> None:
    rng = np.random.default_rng(0)
    most = np.finfo(np.float32).max
    image = torch.from_numpy(rng.choice([most, -most, 0], (1, 1, 5, 6)).astype(np.float32))
    photo = torch.from_numpy(rng.normal(size=(1, 1, 5, 6)))
    for given_ in (image, with_holes(image, 0.8)):
        x = bilateral.torch.domain_transform(
            given_.to(DEVICE), photo.to(DEVICE), sigma_xy, sigma_rgb, 2
        )
        expected = one_by_one(
            given_, photo, None, sigma_xy=sigma_xy, sigma_rgb=sigma_rgb, iterations=2
        )
        assert torch.isfinite(x).all()
        if sigma_xy < 1e10 and given_ is image:
            np.testing.assert_allclose(array(x) / most, expected / most, atol=1e-5)


@pytest.mark.parametrize(("shape", "photos", "masses", "weigh", "part"), GRADIENTS[2:4])
def test_the_kernels_have_the_same_gradients(
    kernels: Any, shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
) -> None:
    found = []
    image, reference, weights = example(*shape, photos=photos)
    h = torch.from_numpy(np.random.default_rng(2).normal(size=shape))
    on_cpu = MODULE._Backend(MODULE._filter, MODULE._transposed)
    for device in (DEVICE, "cpu"):
        values = with_holes(image, part).to(device).requires_grad_()
        mass = weights[:masses].to(device).requires_grad_() if weigh else None
        with pytest.MonkeyPatch.context() as patch:
            if found:
                patch.setattr(MODULE, "_backend", lambda _: on_cpu)
            y = bilateral.torch.domain_transform(
                values, reference.to(device), **OPTIONS, iterations=2, weights=mass
            )
            y.backward(h.to(device))
        found.append([v.grad.cpu() for v in (values, mass) if v is not None and v.grad is not None])
    assert len(found[0]) == 1 + weigh
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


def test_equal_weights_have_gradients_too(kernels: Any) -> None:
    image, reference, _ = example(1, 1, 2, 3)
    weights = torch.ones(2, 3, dtype=torch.float64, device=DEVICE, requires_grad=True)
    y = bilateral.torch.domain_transform(
        image.to(DEVICE), reference.to(DEVICE), **OPTIONS, iterations=1, weights=weights
    )
    y[..., 0, 0].sum().backward()
    assert weights.grad is not None
    assert weights.grad.abs().max() > 1e-3
    # Only ratios of weights matter.
    assert weights.grad.sum().item() == pytest.approx(0, abs=1e-12)


IMAGE = torch.linspace(0, 1, 48).reshape(1, 1, 6, 8)
PHOTO = torch.arange(48, dtype=torch.uint8).reshape(1, 1, 6, 8)


def at(maps: Tensor, value: float) -> Tensor:
    out = maps.clone()
    out[..., 2, 3] = value
    return out


WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("image", IMAGE.numpy(), TypeError, r"image: expected a tensor, got ndarray.*domain_transform"),
    ("image", IMAGE[0, 0], ValueError, r"image: .* got \(6, 8\).*unsqueeze"),
    ("image", IMAGE.to(torch.complex64), TypeError, r"image: .*complex64"),
    ("image", IMAGE * torch.nan, ValueError, r"image: .*got none"),
    ("image", IMAGE[..., 1:], ValueError, r"reference: .*\(1, 1, 6, 8\)"),
    ("reference", torch.zeros(4, 6, 8), ValueError, r"reference: .*alpha"),
    ("reference", torch.zeros(2, 1, 6, 8), ValueError, r"reference: .*\(2, 1, 6, 8\)"),
    ("reference", PHOTO.long(), TypeError, r"reference: .*torch.int64"),
    ("reference", at(PHOTO / 48, torch.nan), ValueError, r"reference: .*nan at row 2, column 3"),
    ("reference_max", 0, ValueError, r"reference_max: .*0"),
    ("sigma_xy", 0, ValueError, r"sigma_xy: .*0"),
    ("sigma_rgb", "8", TypeError, r"sigma_rgb: .*str"),
    ("iterations", 0, ValueError, r"iterations: .*0"),
    ("weights", torch.ones(6, 7), ValueError, r"weights: .*\(6, 7\)"),
    ("weights", torch.ones(1, 2, 6, 8), ValueError, r"weights: .*share"),
    ("weights", torch.zeros(6, 8), ValueError, r"weights: .*0 everywhere"),
    ("weights", at(torch.ones(6, 8), -1), ValueError, r"weights: .*-1.0 at row 2, column 3"),
    ("weights", at(torch.ones(6, 8), torch.nan), ValueError, r"weights: .*nan at row 2, column 3"),
]


@pytest.mark.parametrize(("argument", "value", "error", "told"), WRONG)
def test_a_wrong_argument_is_named(
    argument: str, value: Any, error: type[Exception], told: str
) -> None:
    arguments = {"image": IMAGE, "reference": PHOTO, "sigma_xy": 8, "sigma_rgb": 8}
    with pytest.raises(error, match=f"^{told}"):
        bilateral.torch.domain_transform(**(arguments | {argument: value}))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # a NaN is infinitely far away
@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [case for case in WRONG if any(said in case[3] for said in ("none", "everywhere", "row 2"))],
)
def test_the_kernels_name_it_too(
    kernels: Any, argument: str, value: Tensor, error: type[Exception], told: str
) -> None:
    arguments = {"image": IMAGE, "reference": PHOTO, argument: value}
    there = {name: tensor.to(DEVICE) for name, tensor in arguments.items()}
    with pytest.raises(error, match=f"^{told}"):
        bilateral.torch.domain_transform(**there, sigma_xy=8, sigma_rgb=8, iterations=1)


def test_an_error_tells_the_image() -> None:
    image = torch.cat([IMAGE, IMAGE * torch.nan])
    with pytest.raises(ValueError, match="got none") as caught:
        bilateral.torch.domain_transform(image, PHOTO, 8, 8)
    assert caught.value.__notes__ == ["In image 1 of the batch."]


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
class TestOnAGpu:
    """What only the real thing can show."""

    @pytest.mark.parametrize("size", [(97, 130), (700, 61), (33, 5000)])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_it_agrees_and_repeats(self, dtype: torch.dtype, size: tuple[int, int]) -> None:
        image, reference, weights = example(2, 3, *size)
        image, weights = image.to(dtype), weights.to(dtype)
        for values, mass in (
            (image, None),
            (with_holes(image), None),
            (image, weights * (weights > 1)),
        ):
            x = bilateral.torch.domain_transform(values, reference, 12, 90, weights=mass)
            there = None if mass is None else mass.cuda()
            on = values.cuda(), reference.cuda(), 12, 90
            y = bilateral.torch.domain_transform(*on, weights=there)
            assert y.is_cuda
            torch.testing.assert_close(y.cpu(), x, rtol=0, atol=10 * TOLERANCE[dtype])
            assert torch.equal(y, bilateral.torch.domain_transform(*on, weights=there))

    @pytest.mark.parametrize(("shape", "photos", "masses", "weigh", "part"), GRADIENTS)
    def test_gradcheck(
        self, shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
    ) -> None:
        assert derivatives_are_right("cuda", shape, photos, masses, weigh, part)

    def test_it_can_be_recorded(self) -> None:
        image, reference, _ = example(1, 2, 50, 60)
        there, photo = with_holes(image).cuda(), reference.cuda()
        bilateral.torch.domain_transform(there, photo, **OPTIONS)  # compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = bilateral.torch.domain_transform(there, photo, **OPTIONS)
        there.copy_(image)
        graph.replay()
        expected = bilateral.torch.domain_transform(image, reference, **OPTIONS)
        torch.testing.assert_close(y.cpu(), expected, rtol=0, atol=1e-10)
