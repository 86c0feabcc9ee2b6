"""`refine_depth` of camera maps on a device against the task for arrays.

Without a GPU the kernels run in Triton's interpreter.
"""

from typing import Any

import numpy as np
import pytest

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

import bilateral.torch
from bilateral import tasks
from bilateral.backends.cuda.depth import growth
from bilateral.torch import operators
from bilateral.torch.cuda.tasks import camera
from bilateral.torch.tasks import depth as task
from support.strategies import Array

pytestmark = pytest.mark.interpreter


@pytest.fixture(autouse=True)
def device_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the way of CUDA tensors where there is no GPU, too; look often whether all is done."""
    if not COMPILED:
        monkeypatch.setattr(task, "_is_on_cuda", lambda _: True)
        monkeypatch.setattr(operators, "load_cuda_operators", lambda: None)
        monkeypatch.setattr(growth, "LAUNCHES", 2)


def room() -> tuple[Array, Array]:
    """A photograph, and depths with noise, flying pixels and holes."""
    rng = np.random.default_rng(2)
    y, x = np.mgrid[:26, :31].astype(np.float32)
    near = (x > 16) & (y > 5)
    z = np.where(near, 1.2 + 0.004 * y, 2.5 + 0.01 * x) * (1 + rng.normal(0, 1e-3, x.shape))
    z[7:, 17] = rng.uniform(1.4, 2.4, 19)
    z[8:12, 14:17] = np.nan
    z[18:21, 4:8] = np.nan
    photo = np.clip(np.where(near, 190, 60)[..., None] + rng.normal(0, 3, (26, 31, 3)), 0, 255)
    return photo.astype(np.uint8), z.astype(np.float32)


def tensors(photo: Array, *maps: Array) -> list[torch.Tensor]:
    values = (np.moveaxis(photo, -1, 0), *maps)
    return [torch.from_numpy(np.ascontiguousarray(value)).to(DEVICE) for value in values]


def agree(found: Array, expected: Array) -> None:
    """Check that two maps are equal but for rounding."""
    difference = found - expected
    # A device rounds otherwise than the interpreter, and few pixels amplify that.
    limit = max(1e-4 * np.ptp(expected), 2e-5 * expected.max())
    assert np.sqrt(np.mean(difference**2)) <= limit
    if not COMPILED:
        assert np.abs(difference).max() <= 2e-5 * expected.max()


@pytest.mark.smoke
def test_a_map_of_a_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    photo, z = room()
    made: list[Any] = []
    refine = camera.refine
    monkeypatch.setattr(camera, "refine", lambda *args: made.append(refine(*args)) or made[-1])
    image, depth = tensors(photo, z)
    found = bilateral.torch.refine_depth(depth[None, None], image[None])
    assert len(made) == 1
    assert made[0] is not None
    assert (found.shape, found.dtype) == ((1, 1, 26, 31), torch.float32)
    expected = tasks.refine_depth(z, photo)
    agree(found[0, 0].cpu().numpy(), expected)


def test_options_and_dtypes() -> None:
    photo, z = room()
    millimetres = np.nan_to_num(1000 * z).astype(np.uint16)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.2, 1, z.shape).astype(np.float32)
    mask = rng.uniform(size=z.shape) < 0.95
    options: dict[str, Any] = {"invalid": 0, "sigma_xy": 6.0, "sigma_luma": 12.0}
    image, depth, confidence, known = tensors(photo, millimetres, weights, mask)
    found = bilateral.torch.refine_depth(depth, image, confidence, mask=known, **options)
    expected = tasks.refine_depth(millimetres, photo, weights, mask=mask, **options)
    assert found.dtype == torch.uint16
    difference = np.abs(found.cpu().numpy().astype(int) - expected.astype(int))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.01


@pytest.mark.parametrize("kind", ["all known", "enlarged", "few", "zeros", "constant"])
def test_maps_that_go_another_way(kind: str) -> None:
    photo, z = room()
    maps = {
        "all known": np.where(np.isnan(z), np.float32(2.6), z),
        "enlarged": np.repeat(np.repeat(z[:13, :16], 2, 0), 2, 1)[:, :31],
        "few": np.where(np.arange(31) % 8 == 0, z, np.float32(np.nan)),
        "zeros": np.zeros_like(z),
        "constant": np.ones_like(z),
    }
    value = maps[kind].astype(np.float32)
    image, depth = tensors(photo, value)
    found = bilateral.torch.refine_depth(depth, image).cpu().numpy()
    agree(found, tasks.refine_depth(value, photo))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": np.nan}, "at least one known pixel"),
        ({"confidence": -1.0}, "confidence"),
        ({"mask": 1.0}, "mask: expected bool or integers"),
        ({"reference": np.nan}, "reference"),
        ({"reference": 9.0}, "reference"),
    ],
)
def test_invalid_values_are_named(change: dict[str, Any], message: str) -> None:
    photo, z = room()
    image, depth = tensors((photo / 255).astype(np.float32), z)
    arguments: dict[str, Any] = {"depth": depth, "reference": image}
    for name, value in change.items():
        arguments[name] = torch.full_like(arguments.get(name, depth), value)
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.refine_depth(**arguments)
