"""Tensors, expected results and wrong arguments for the tests of `domain_transform`."""

import importlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch
from torch import Tensor
from torch.autograd import gradcheck

import bilateral.torch
from support.strategies import Array

COMPILED = torch.cuda.is_available()
DEVICE = "cuda" if COMPILED else "cpu"
MODULE: Any = importlib.import_module("bilateral.torch.filters")
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def tensor(image: Array) -> Tensor:
    """Convert an array (H, W) or (H, W, K) to a tensor (K, H, W)."""
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
    """Filter each image with `bilateral.domain_transform`."""
    count = len(image)
    out = []
    for i in range(count):
        photo = array(reference[min(i, len(reference) - 1)])
        mass = None if weights is None else weights[min(i, len(weights) - 1), 0].numpy()
        out.append(bilateral.domain_transform(array(image[i]), photo, weights=mass, **options))
    return np.stack(out)


OPTIONS: dict[str, Any] = {"sigma_xy": 3.0, "sigma_rgb": 40.0}


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
    ("reference", PHOTO.float(), ValueError, r"reference: .*up to 47\. Divide it by 255"),
    ("reference", PHOTO / 48 - 1, ValueError, r"reference: .*down to -1\. Undo"),
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
