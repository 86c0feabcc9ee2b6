"""`polish` of tensors: PyTorch's layout, the values of the CPU, and the kernels."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral
import bilateral.torch
from support.kernels import DEVICE, kernels_filter

OPTIONS: dict[str, Any] = {"scale": 0.5, "rounds": 2, "steps": 3}


def scene(
    images: int = 2, channels: int = 2, shape: tuple[int, int] = (6, 7), seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Image, reference, target with holes, and weights."""
    rng = np.random.default_rng(seed)
    image, target = rng.normal(size=(2, images, channels, *shape))
    target[..., 2, 3] = np.nan
    photo = rng.integers(0, 256, (images, 3, *shape)) // 64 * 60
    weights = rng.uniform(0, 2, (images, 1, *shape))
    arrays = image, photo.astype(np.uint8), target, weights
    image_, photo_, target_, weights_ = (torch.from_numpy(values) for values in arrays)
    return image_, photo_, target_, weights_


def one_by_one(image: Tensor, *others: Tensor | None, **options: Any) -> Tensor:
    out = []
    for i in range(len(image)):
        maps = [None if t is None else t[min(i, len(t) - 1)] for t in (image, *others)]
        arrays = [None if t is None else t.movedim(0, -1).numpy() for t in maps]
        if len(arrays) == 4 and arrays[3] is not None:
            arrays[3] = arrays[3][..., 0]
        found = bilateral.polish(*arrays, **options)  # type: ignore[arg-type]
        out.append(torch.from_numpy(found).movedim(-1, 0))
    return torch.stack(out)


def test_each_image_is_polished_as_an_array() -> None:
    image, photo, target, weights = scene()
    expected = one_by_one(image, photo, target, weights, **OPTIONS)
    assert torch.equal(bilateral.torch.polish(image, photo, target, weights, **OPTIONS), expected)
    found = bilateral.torch.polish(image[0], photo[0], target[0], weights[0, 0], **OPTIONS)
    assert torch.equal(found, expected[0])
    shared = bilateral.torch.polish(image, photo[:1], **OPTIONS)
    assert torch.equal(shared, one_by_one(image, photo[:1], **OPTIONS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_dtypes(dtype: torch.dtype) -> None:
    image, photo, _, _ = scene()
    given = (10 * image).to(dtype)
    found = bilateral.torch.polish(given.requires_grad_(dtype.is_floating_point), photo, scale=5)
    assert found.dtype == dtype
    assert not found.requires_grad
    expected = bilateral.torch.polish(given.detach().double(), photo, scale=5)
    tolerance = 0.51 if dtype == torch.int32 else 0.1 if dtype == torch.bfloat16 else 0.01
    assert (found.double() - expected).abs().max() < tolerance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": np.zeros((1, 6, 7))}, "image: expected a tensor"),
        ({"image": torch.full((2, 2, 6, 7), torch.nan)}, "image: expected finite"),
        ({"reference": torch.zeros(2, 3, 6, 8)}, "reference: expected 2 images of 6 x 7 pixels"),
        ({"reference": torch.zeros(2, 9, 6, 7)}, "reference: expected"),
        ({"reference": torch.full((1, 3, 6, 7), 9.0)}, "reference: expected floating-point"),
        ({"reference": torch.full((1, 3, 6, 7), torch.nan)}, "reference: expected finite"),
        ({"target": torch.zeros(2, 1, 6, 7)}, "target: expected"),
        ({"weights": -torch.ones(6, 7)}, "weights: expected finite numbers"),
        ({"weights": torch.ones(6, 7), "target": None}, "target"),
        ({"weights": torch.ones(3, 6, 7)}, "weights: expected one number per pixel"),
        ({"scale": 0}, "scale"),
        ({"observation": 3}, "observation"),
    ],
)
@pytest.mark.parametrize(
    "kernels", [False, pytest.param(True, marks=pytest.mark.interpreter)], ids=["cpu", "kernels"]
)
def test_wrong_input(
    change: dict[str, Any], message: str, kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels:
        kernels_filter(monkeypatch)
    image, photo, target, _ = scene()
    arguments = {"image": image, "reference": photo, "target": target, "scale": 1.0, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.polish(**arguments)


@pytest.mark.interpreter
class TestKernels:
    """The kernels, in Triton's interpreter where there is no GPU."""

    @pytest.fixture(autouse=True)
    def _kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kernels_filter(monkeypatch)
        from bilateral.backends.cuda.filters import polish

        monkeypatch.setattr(polish, "_PIXELS", 16)

    @pytest.mark.parametrize(
        ("given", "shape"),
        [
            pytest.param("image", (6, 7), marks=pytest.mark.smoke),
            ("target", (6, 7)),
            ("weights", (5, 9)),
            ("blocks", (6, 7)),
            ("blocks", (9, 4)),
            ("image", (1, 5)),
            ("image", (5, 1)),
        ],
    )
    def test_results_are_the_cpus(self, given: str, shape: tuple[int, int]) -> None:
        image, photo, target, weights = scene(2, 1, shape=shape if min(shape) > 3 else (6, 7))
        if min(shape) <= 3:
            image, photo = image[..., : shape[0], : shape[1]], photo[..., : shape[0], : shape[1]]
        data = target if given in ("target", "weights") else None
        mass = weights if given == "weights" else None
        options = dict(OPTIONS)
        if given == "blocks":
            low = np.random.default_rng(5).normal(size=(3, 4))
            low[1, 1] = np.nan
            options["observation"] = bilateral.BlockMeans(low, shape)
        on = [None if t is None else t.to(DEVICE) for t in (image, photo, data, mass)]
        found = bilateral.torch.polish(*on, **options).cpu()  # type: ignore[arg-type]
        expected = one_by_one(image, photo, data, mass, **options)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)

    def test_single_precision_and_a_shared_reference(self) -> None:
        image, photo, _, _ = scene(2, 2)
        found = bilateral.torch.polish(
            image.float().to(DEVICE), (photo[:1] / 255).to(DEVICE), **OPTIONS
        ).cpu()
        expected = one_by_one(image, photo[:1], **OPTIONS)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)

    def test_a_map_that_has_converged_stays(self) -> None:
        image = torch.full((1, 1, 4, 5), 3.0)
        photo = torch.zeros(1, 1, 4, 5)
        found = bilateral.torch.polish(image.to(DEVICE), photo.to(DEVICE), scale=1, rounds=1)
        assert torch.equal(found.cpu(), image)
