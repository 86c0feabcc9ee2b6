"""`refine_segmentation` of tensors: PyTorch's shapes, dtypes and batches."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor

import bilateral.torch
from bilateral.tasks import refine_segmentation

RNG = np.random.default_rng(0)
PHOTO = np.clip(RNG.normal(0.3, 0.02, (24, 32, 3)), 0, 1)
PHOTO[:, 14:] += 0.5
LOGITS = np.stack([np.tile([4.0, 4, 1, -4], (3, 1)), np.zeros((3, 4)), -np.ones((3, 4))], axis=2)
IMAGE = torch.from_numpy(PHOTO).movedim(-1, 0)
SCORES = torch.from_numpy(LOGITS).movedim(-1, 0).float()


def test_one_image_matches_the_array_task() -> None:
    expected = refine_segmentation(LOGITS.astype(np.float32), PHOTO)
    found = bilateral.torch.refine_segmentation(SCORES, IMAGE)
    assert found.shape == (3, 24, 32)
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.movedim(0, -1).numpy(), expected)


@pytest.mark.parametrize("edge", [14, 18])
def test_labels_follow_the_edge_of_the_photograph(edge: int) -> None:
    photo = 0.3 + 0.02 * torch.randn(3, 24, 32, generator=torch.Generator().manual_seed(0))
    photo[..., edge:] += 0.5
    left = torch.tensor([4.0, 4, -4, -4]).expand(3, 4)  # the coarse labels change at column 16
    scores = torch.stack([left, -left, torch.full((3, 4), -9.0)])
    labels = bilateral.torch.refine_segmentation(scores, photo.clamp(0, 1), labels=True)
    assert torch.equal(labels, (torch.arange(32) >= edge).long().expand(24, 32))


def test_the_task_hands_tensors_over() -> None:
    found = refine_segmentation(SCORES[None], IMAGE[None], labels=True)
    assert isinstance(found, Tensor)
    assert found.dtype == torch.int64
    expected = refine_segmentation(LOGITS, PHOTO, labels=True)
    np.testing.assert_array_equal(found[0].numpy(), expected)


def test_a_batch_is_its_images_one_by_one() -> None:
    scores = torch.stack([SCORES, SCORES.flip(0)])
    images = torch.stack([IMAGE, IMAGE.flip(1)])
    ignore = torch.zeros(2, 24, 32, dtype=torch.bool)
    ignore[1, 5:9] = True
    found = bilateral.torch.refine_segmentation(scores, images, ignore=ignore)
    for i in range(2):
        alone = bilateral.torch.refine_segmentation(scores[i], images[i], ignore=ignore[i])
        torch.testing.assert_close(found[i], alone)
    shared = bilateral.torch.refine_segmentation(scores, IMAGE, confidence=torch.ones(24, 32))
    assert shared.shape == (2, 3, 24, 32)


def test_one_image_of_logits_makes_the_batch_logits() -> None:
    scores = torch.stack([SCORES, SCORES.softmax(0)])
    found = bilateral.torch.refine_segmentation(scores, IMAGE)
    as_logits = bilateral.torch.refine_segmentation(scores, IMAGE, logits=True)
    torch.testing.assert_close(found, as_logits)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    found = bilateral.torch.refine_segmentation(SCORES.to(dtype), IMAGE)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float().sum(0), torch.ones(24, 32), atol=0.02, rtol=0)
    wide = bilateral.torch.refine_segmentation(SCORES.to(dtype), IMAGE, dtype=torch.float64)
    assert wide.dtype == torch.float64


def test_a_foreground_of_one_channel() -> None:
    found = bilateral.torch.refine_segmentation(-SCORES[:1], IMAGE)
    assert found.shape == (1, 24, 32)
    mask = bilateral.torch.refine_segmentation(-SCORES[:1], IMAGE, labels=True)
    expected = refine_segmentation(-LOGITS[..., 0], PHOTO, labels=True)
    np.testing.assert_array_equal(mask.numpy(), expected)


def test_the_result_has_no_gradient() -> None:
    found = bilateral.torch.refine_segmentation(SCORES.requires_grad_(), IMAGE)
    assert not found.requires_grad


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((SCORES, PHOTO), {}, "image: expected a tensor"),
        ((SCORES[0], IMAGE), {}, "probabilities: expected shape"),
        ((SCORES, IMAGE.movedim(0, -1)), {}, "Channels come first"),
        ((SCORES, IMAGE.expand(2, 3, 24, 32)), {}, "image: expected shape"),
        ((SCORES, IMAGE), {"ignore": [1]}, "ignore: expected a tensor"),
        ((SCORES, IMAGE), {"confidence": torch.ones(2, 24, 32)}, "confidence: expected one number"),
        ((SCORES, IMAGE), {"sigma_xy": -1}, "sigma_xy"),
    ],
)
def test_wrong_input(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.refine_segmentation(*arguments, **options)


def test_the_task_finds_the_layer_by_itself() -> None:
    script = (
        "import torch; from bilateral.tasks import refine_segmentation as refine;"
        "class_maps = torch.nn.Parameter(torch.rand(1, 2, 3, 4));"
        "assert refine(class_maps, torch.zeros(1, 3, 6, 8)).shape == (1, 2, 6, 8)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
