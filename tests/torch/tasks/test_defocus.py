"""`defocus` of tensors: PyTorch's layout, the values of the CPU, and the kernels."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral.torch
from bilateral.tasks import defocus
from support.kernels import DEVICE, kernels_filter


def scene(images: int = 2, channels: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Images (B, C, H, W) of uint8, and depths (B, H, W) with an edge and a slope."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (images, channels, 11, 13)).astype(np.uint8)
    depth = np.where(np.arange(13) < 6, 1.5, 4.0) + 0.1 * np.arange(11)[:, None]
    return torch.from_numpy(image), torch.from_numpy(np.stack([depth] * images))


def array(image: Tensor) -> Any:
    return image.movedim(0, -1).squeeze(-1).numpy()


@pytest.mark.parametrize("channels", [1, 3])
def test_each_image_is_blurred_as_an_array(channels: int) -> None:
    image, depth = scene(channels=channels)
    found = bilateral.torch.defocus(image, depth, 2.0, 6.0)
    for i in range(2):
        expected = defocus(array(image[i]), depth[i].numpy(), 2.0, 6.0)
        np.testing.assert_array_equal(array(found[i]), expected)
        alone = bilateral.torch.defocus(image[i], depth[i], 2.0, 6.0)
        assert torch.equal(alone, found[i])
    shared = bilateral.torch.defocus(image, depth[0], 2.0, 6.0)
    assert torch.equal(shared, found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    image, depth = scene(1)
    light = (image / 255).to(dtype).requires_grad_()
    found = bilateral.torch.defocus(light, depth, 2.0, 6.0)
    assert found.dtype == dtype
    assert not found.requires_grad
    expected = bilateral.torch.defocus(light.detach().double(), depth, 2.0, 6.0)
    assert (found.double() - expected).abs().max() < 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": np.zeros((3, 11, 13))}, "image: expected a tensor"),
        ({"image": torch.zeros(2, 11, 13)}, "image: expected 1 or 3 channels"),
        ({"image": torch.full((3, 11, 13), torch.nan)}, "image: expected finite"),
        ({"depth": torch.ones(11, 12)}, "depth: expected 11 x 13 pixels"),
        ({"depth": torch.zeros(11, 13)}, "depth: expected numbers above 0"),
        ({"depth": torch.full((11, 13), torch.nan), "kind": "disparity"}, "depth: expected finite"),
        ({"focus": 0.0}, "focus"),
        ({"aperture": -1.0}, "aperture"),
        ({"blades": 2}, "blades"),
        ({"max_radius": 0}, "max_radius"),
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
    image, depth = scene(1)
    arguments = {"image": image[0], "depth": depth[0], "focus": 2.0, "aperture": 6.0, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.defocus(**arguments)


@pytest.mark.interpreter
class TestKernels:
    """The kernels, in Triton's interpreter where there is no GPU."""

    @pytest.mark.parametrize(
        ("dtype", "options"),
        [
            pytest.param(torch.uint8, {}, marks=pytest.mark.smoke),
            (torch.uint16, {"blades": 5, "rotation": 10.0}),
            (torch.float32, {"kind": "disparity", "aperture": 0.8}),
            (torch.float32, {"linear": False, "max_radius": 1.5}),
            (torch.uint8, {"linear": True}),
            (torch.float64, {"aperture": 0.0}),
        ],
    )
    def test_images_are_the_cpus(
        self, dtype: torch.dtype, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image, depth = scene(1, 3 if dtype == torch.uint8 else 1)
        white = float(torch.iinfo(dtype).max) if not dtype.is_floating_point else 1.0
        image = (image.double() * (white / 255)).to(dtype)
        arguments = {"focus": 2.0, "aperture": 8.0, **options}
        expected = bilateral.torch.defocus(image, depth, **arguments)
        kernels_filter(monkeypatch)
        found = bilateral.torch.defocus(image.to(DEVICE), depth.to(DEVICE), **arguments).cpu()
        assert found.dtype == expected.dtype
        error = (found.double() - expected.double()).abs().max()
        assert error <= max(1e-4 * white, float(not dtype.is_floating_point))
