"""`refine_depth` and `complete_depth` of tensors: PyTorch's shapes, dtypes and batches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral.torch
from bilateral import tasks

RNG = np.random.default_rng(3)
PHOTO = np.clip(RNG.normal(70, 3, (40, 60, 3)), 0, 255).astype(np.uint8)
PHOTO[:, 30:] += 120
DEPTH = (np.where(np.arange(60) < 30, 3, 1.5) + RNG.normal(0, 2e-3, (40, 60))).astype(np.float32)
DEPTH[10:20, 20:28] = np.nan
DEPTH[::7, ::5] = 9
POINTS = np.zeros((40, 60), np.float32)
POINTS[3::6, 2::7] = np.where(np.arange(60) < 30, 3, 1.5)[2::7]

IMAGE = torch.from_numpy(PHOTO).movedim(-1, 0)
MAPS = {"refine_depth": torch.from_numpy(DEPTH), "complete_depth": torch.from_numpy(POINTS)}
TASKS = {
    "refine_depth": (bilateral.torch.refine_depth, tasks.refine_depth),
    "complete_depth": (bilateral.torch.complete_depth, tasks.complete_depth),
}
each_task = pytest.mark.parametrize("task", TASKS)


def expected(task: str, value: Tensor, *args: Any, **options: Any) -> Any:
    function: Callable[..., Any] = TASKS[task][1]
    return function(value.numpy(), PHOTO, *args, **options)


@each_task
@pytest.mark.parametrize("shape", [(40, 60), (1, 40, 60), (1, 1, 40, 60)])
def test_one_map_matches_the_array_task(task: str, shape: tuple[int, ...]) -> None:
    found = TASKS[task][0](MAPS[task].reshape(shape), IMAGE)
    assert found.shape == shape
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.reshape(40, 60).numpy(), expected(task, MAPS[task]))


@each_task
@pytest.mark.parametrize("channel", [False, True])
def test_a_batch_is_its_maps_one_by_one(task: str, channel: bool) -> None:
    function = TASKS[task][0]
    maps = torch.stack([MAPS[task], MAPS[task].flip(1)])
    images = torch.stack([IMAGE, IMAGE.flip(2)])
    weights = torch.linspace(0.5, 1, 60).expand(2, 40, 60)
    mask = torch.ones(2, 40, 60, dtype=torch.bool)
    mask[1, :9] = False
    given = [value.unsqueeze(1) if channel else value for value in (maps, weights, mask)]
    found = function(given[0], images, given[1], mask=given[2])
    assert found.shape == given[0].shape
    for i in range(2):
        alone = function(maps[i], images[i], weights[i], mask=mask[i])
        assert torch.equal(found[i].reshape(40, 60), alone)
    shared = function(maps, IMAGE, weights[0], mask=mask[1])
    alone = function(maps[1], IMAGE, weights[0], mask=mask[1])
    assert torch.equal(shared[1], alone)


@each_task
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.uint16, torch.int32]
)
def test_dtypes(task: str, dtype: torch.dtype) -> None:
    value = (1000 * MAPS[task].nan_to_num()).to(dtype)
    found = TASKS[task][0](value, IMAGE, invalid=0)
    assert found.dtype == dtype
    known = value.double()[value.double() > 0]
    assert known.min() * 0.99 <= found.double().min()
    assert found.double().max() <= known.max() * 1.01
    wide = TASKS[task][0](value, IMAGE, invalid=0, dtype=torch.float64)
    assert wide.dtype == torch.float64
    precision = 1 if not dtype.is_floating_point else 3200 * torch.finfo(dtype).eps
    assert (wide - found.double()).abs().max() <= precision


def test_options_reach_the_task() -> None:
    options: dict[str, Any] = {"preset": "stereo", "scale": 2.0, "sigma_xy": 6.0, "sigma_luma": 9.0}
    found = bilateral.torch.refine_depth(MAPS["refine_depth"], IMAGE, **options)
    np.testing.assert_array_equal(
        found.numpy(), expected("refine_depth", MAPS["refine_depth"], **options)
    )
    options = {"kind": "depth", "sigma_chroma": 9.0, "reference_max": 300}
    found = bilateral.torch.complete_depth(MAPS["complete_depth"], IMAGE, **options)
    np.testing.assert_array_equal(
        found.numpy(), expected("complete_depth", MAPS["complete_depth"], **options)
    )


def test_confidence_of_completed_maps() -> None:
    points = MAPS["complete_depth"].double().expand(2, 1, 40, 60)
    dense, trust = bilateral.torch.complete_depth(points, IMAGE, return_confidence=True)
    _, alone = expected("complete_depth", points[0, 0], return_confidence=True)
    assert dense.dtype == torch.float64
    assert (dense.shape, trust.shape) == (points.shape, points.shape)
    assert trust.dtype == torch.float32
    np.testing.assert_array_equal(trust[1, 0].numpy(), alone)


@each_task
def test_a_gray_photograph(task: str) -> None:
    gray = IMAGE[:1]
    found = TASKS[task][0](MAPS[task], gray)
    alone = TASKS[task][1](MAPS[task].numpy(), PHOTO[..., 0])
    np.testing.assert_array_equal(found.numpy(), alone)


@each_task
def test_aliases_and_layouts(task: str) -> None:
    wide = torch.stack([MAPS[task], MAPS[task]], dim=-1)[..., 0]  # strided
    photo = IMAGE.unsqueeze(0).contiguous(memory_format=torch.channels_last)
    found = TASKS[task][0](target=wide, photo=photo) if task == "refine_depth" else None
    if found is None:
        found = TASKS[task][0](depth=wide, photo=photo)
    np.testing.assert_array_equal(found.numpy(), expected(task, MAPS[task]))


@each_task
def test_the_result_has_no_gradient(task: str) -> None:
    found = TASKS[task][0](MAPS[task].clone().requires_grad_(), IMAGE)
    assert not found.requires_grad


@each_task
def test_an_error_names_the_image(task: str) -> None:
    maps = torch.stack([MAPS[task], torch.full((40, 60), torch.nan)])
    with pytest.raises(ValueError, match="at least one known pixel") as caught:
        TASKS[task][0](maps, IMAGE)
    assert caught.value.__notes__ == ["In image 1 of the batch."]


@each_task
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": DEPTH}, r"expected a tensor, got ndarray. .* bilateral.tasks"),
        ({"reference": PHOTO}, "reference: expected a tensor, got ndarray"),
        ({"confidence": 1.0}, "confidence: expected a tensor, got float"),
        ({"mask": DEPTH > 0}, "mask: expected a tensor, got ndarray"),
        ({"value": torch.zeros(2, 3, 40, 60)}, "expected one number per pixel, shape"),
        ({"value": torch.zeros(0, 40, 60)}, "with at least one pixel"),
        ({"value": torch.zeros(40, 60) > 0}, "expected real numbers, got torch.bool"),
        ({"value": torch.zeros(40, 60, device="meta")}, "on meta"),
        ({"value": torch.zeros(40, 60).to_sparse()}, "expected a dense tensor"),
        ({"reference": IMAGE[..., 1:]}, r"reference: expected shape \(3 or 1, 40, 60\)"),
        ({"reference": IMAGE.movedim(0, -1)}, "Channels come first"),
        ({"reference": IMAGE[0]}, "Gray has one channel: reference.unsqueeze"),
        ({"reference": torch.zeros(4, 40, 60)}, "Drop the alpha channel"),
        ({"reference": torch.zeros(2, 3, 40, 60)}, "reference: expected shape"),
        ({"confidence": torch.ones(2, 40, 60)}, "confidence: expected one number per pixel"),
        ({"confidence": -torch.ones(40, 60)}, "confidence"),
        ({"mask": torch.ones(40, 59)}, "mask: expected one number per pixel"),
        ({"mask": torch.ones(40, 60)}, "mask: expected bool or integers"),
        ({"dtype": np.float32}, "dtype: expected a dtype of PyTorch"),
        ({"dtype": torch.complex64}, "dtype: expected a real dtype"),
        ({"sigma_xy": -1}, "sigma_xy"),
        ({"sigma_xyz": 1}, "sigma_xyz"),
    ],
)
def test_wrong_input(task: str, change: dict[str, Any], message: str) -> None:
    options = {"value": MAPS[task], "reference": IMAGE, **change}
    value, reference = options.pop("value"), options.pop("reference")
    with pytest.raises((ValueError, TypeError), match=message):
        TASKS[task][0](value, reference, **options)
