"""`complete_depth` of tensors on a device against the task for arrays.

Without a GPU the kernels run in Triton's interpreter.
"""

import numpy as np
import pytest

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

import bilateral.torch
from bilateral import tasks
from bilateral.torch import operators
from bilateral.torch.tasks import completion as task
from support.strategies import Array

pytestmark = pytest.mark.interpreter


@pytest.fixture(autouse=True)
def device_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the way of CUDA tensors where there is no GPU, too."""
    if not COMPILED:
        monkeypatch.setattr(task, "_is_on_cuda", lambda _: True)
        monkeypatch.setattr(operators, "load_cuda_operators", lambda: None)


def scene(height: int, width: int) -> tuple[Array, Array]:
    """A photograph of a slanted floor and a box, and some of its depths."""
    rng = np.random.default_rng(4)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    near = (x > 0.5 * width) & (y > 6) & (x < width - 4)
    z = np.where(near, 1.5, 8 / (1 + 0.1 * y)).astype(np.float32)
    photo = np.where(near, 190, 60)[..., None] + rng.normal(0, 3, (height, width, 3))
    return np.clip(photo, 0, 255).astype(np.uint8), np.where(rng.random(z.shape) < 0.2, z, 0)


def tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE)


def test_points_of_a_scene() -> None:
    photo, points = scene(10, 13)
    image = tensor(np.moveaxis(photo, -1, 0))
    found = bilateral.torch.complete_depth(tensor(points), image, kind="depth")
    expected = tasks.complete_depth(points, photo, kind="depth")
    assert (found.shape, found.dtype, found.device) == (points.shape, torch.float32, image.device)
    difference = found.cpu().numpy() - expected
    # Solves stop at another error below their tolerance.
    assert np.sqrt(np.mean(difference**2)) <= 1e-3 * np.ptp(expected)


def test_a_batch_with_weights_and_confidence() -> None:
    photo, points = scene(16, 20)
    photos = np.stack([photo[..., 0], photo[..., ::-1, 0]]).astype(np.uint16) * 257
    maps = np.stack([points, points[:, ::-1]])
    weights = np.linspace(0.5, 1, 20, dtype=np.float32) * np.ones_like(maps)
    found, trust = bilateral.torch.complete_depth(
        tensor(maps), tensor(photos[:, None]), tensor(weights), return_confidence=True
    )
    for i in range(2):
        expected, sure = tasks.complete_depth(
            maps[i], photos[i], weights[i], return_confidence=True
        )
        difference = found[i].cpu().numpy() - expected
        assert np.sqrt(np.mean(difference**2)) <= 1e-3 * np.ptp(expected)
        np.testing.assert_allclose(trust[i].cpu().numpy(), sure, rtol=1e-4)
