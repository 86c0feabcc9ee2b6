"""Kernels of the domain transform: results and gradients of the CPU.

Without a GPU the kernels run in Triton's interpreter, one number at a time: images are tiny, and
so are the chunks into which the kernels cut them.
"""

import importlib
import os
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")


import torch
from torch import Tensor

import bilateral.torch
from bilateral.torch import cpu_filters
from support.filtered_tensors import (
    COMPILED,
    DEVICE,
    GRADIENTS,
    IMAGE,
    MODULE,
    OPTIONS,
    PHOTO,
    TOLERANCE,
    WRONG,
    array,
    derivatives_are_right,
    example,
    one_by_one,
    with_holes,
)

pytestmark = pytest.mark.interpreter


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the kernels; tensors on any device are filtered by kernels."""
    if not COMPILED and os.environ.get("TRITON_INTERPRET") != "1":  # see conftest.py
        pytest.skip("no GPU that PyTorch can use, and no interpreter")
    pytest.importorskip("triton", reason="the kernels need Triton")
    chunks = importlib.import_module("bilateral.backends.cuda.filters.filter_chunks")
    for name, size in (("_CHUNK", 4), ("_STRIP", 4), ("_GROUP", 2)):
        monkeypatch.setattr(chunks, name, size)
    backend = importlib.import_module("bilateral.torch.cuda.filters")
    monkeypatch.setattr(MODULE, "_backend", lambda _: backend)
    return importlib.import_module("bilateral.backends.cuda.filters.domain_transform")


# images, channels, height, width; channels of the reference; photos; masses; holes; passes
CASES = [
    ((1, 1, 1, 1), 1, 1, 0, 0.0, 3),
    ((1, 1, 1, 11), 3, 1, 0, 0.0, 2),
    pytest.param((1, 1, 13, 1), 1, 1, 1, 0.3, 2, marks=pytest.mark.smoke),
    ((2, 2, 6, 5), 2, 1, 0, 0.0, 1),
    ((2, 1, 5, 6), 3, 2, 1, 0.0, 2),
    ((2, 2, 5, 6), 1, 1, 2, 0.4, 1),
    ((1, 1, 10, 6), 1, 1, 0, 0.4, 2),
    ((1, 1, 10, 6), 1, 1, 0, 0.0, 3),
]


@pytest.mark.parametrize("wide", [False, True], ids=["rows", "long rows"])
@pytest.mark.parametrize(("shape", "channels", "photos", "masses", "part", "passes"), CASES)
def test_results_are_the_cpus(
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
    filter_options = cpu_filters.FilterOptions(**options, highest=255.0)
    mine = MODULE._backend(h).apply_transposed(h.to(DEVICE), reference.to(DEVICE), filter_options)
    theirs = cpu_filters.apply_transposed(h, reference, filter_options)
    torch.testing.assert_close(mine.cpu(), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("reference", [torch.uint16, torch.float32, torch.float64])
def test_references_of_any_dtype(kernels: Any, reference: torch.dtype) -> None:
    image, levels, _ = example(1, 1, 5, 6)
    image = image.float()
    scale = 257.0 if reference == torch.uint16 else 1 / 255
    photo = (levels * scale).to(reference)
    found = bilateral.torch.domain_transform(image.to(DEVICE), photo.to(DEVICE), **OPTIONS)
    assert found.dtype == torch.float32
    expected = one_by_one(image, levels, None, **OPTIONS)
    np.testing.assert_allclose(array(found), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constants_stay_exact(kernels: Any, dtype: torch.dtype) -> None:
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
def test_extreme_numbers_give_finite_results(
    kernels: Any, sigma_rgb: float, sigma_xy: float
) -> None:
    rng = np.random.default_rng(0)
    most = np.finfo(np.float32).max
    image = torch.from_numpy(rng.choice([most, -most, 0], (1, 1, 5, 6)).astype(np.float32))
    photo = torch.from_numpy(rng.normal(size=(1, 1, 5, 6)))
    options = {"sigma_xy": sigma_xy, "sigma_rgb": sigma_rgb, "iterations": 2, "reference_max": 1}
    for given_ in (image, with_holes(image, 0.8)):
        x = bilateral.torch.domain_transform(given_.to(DEVICE), photo.to(DEVICE), **options)
        expected = one_by_one(given_, photo, None, **options)
        assert torch.isfinite(x).all()
        if sigma_xy < 1e10 and given_ is image:
            np.testing.assert_allclose(array(x) / most, expected / most, atol=1e-5)


@pytest.mark.parametrize(("shape", "photos", "masses", "weigh", "part"), GRADIENTS[2:4])
def test_gradients_are_the_cpus(
    kernels: Any, shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
) -> None:
    found = []
    image, reference, weights = example(*shape, photos=photos)
    h = torch.from_numpy(np.random.default_rng(2).normal(size=shape))
    for device in (DEVICE, "cpu"):
        values = with_holes(image, part).to(device).requires_grad_()
        mass = weights[:masses].to(device).requires_grad_() if weigh else None
        with pytest.MonkeyPatch.context() as patch:
            if found:
                patch.setattr(MODULE, "_backend", lambda _: cpu_filters)
            y = bilateral.torch.domain_transform(
                values, reference.to(device), **OPTIONS, iterations=2, weights=mass
            )
            y.backward(h.to(device))
        found.append([v.grad.cpu() for v in (values, mass) if v is not None and v.grad is not None])
    assert len(found[0]) == 1 + weigh
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@pytest.mark.smoke
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


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # a NaN is infinitely far away
@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [
        case
        for case in WRONG
        if any(said in case[3] for said in ("none", "everywhere", "row 2", " to "))
    ],
)
def test_errors_name_the_argument(
    kernels: Any, argument: str, value: Tensor, error: type[Exception], told: str
) -> None:
    arguments = {"image": IMAGE, "reference": PHOTO, argument: value}
    there = {name: tensor.to(DEVICE) for name, tensor in arguments.items()}
    with pytest.raises(error, match=f"^{told}"):
        bilateral.torch.domain_transform(**there, sigma_xy=8, sigma_rgb=8, iterations=1)


@pytest.mark.skipif(not COMPILED, reason="needs a GPU")
class TestOnAGpu:
    """Behaviour that Triton's interpreter cannot show."""

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
