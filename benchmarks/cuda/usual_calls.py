"""The calls that `bilateral.torch` compiles its kernels for ahead of time, first calls first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import bilateral.torch

KNOWN = 0.02
MANY_STEPS = {"max_iterations": 25, "preconditioner": "pyramid", "tolerance": 0.0}


@dataclass(frozen=True)
class UsualCall:
    """A call with a random map and a photograph of squares."""

    name: str
    size: tuple[int, int] = (800, 1280)
    known: float | None = None
    """Fraction of pixels that are known; None: no confidence is given."""
    gray: bool = False
    photo: torch.dtype = torch.uint8
    maps: torch.dtype = torch.float32
    channels: int = 1
    batch: int = 1
    gradient: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def tensors(self, device: str) -> tuple[Tensor, Tensor, Tensor | None]:
        """Draw a photograph, a map and a confidence."""
        draw = torch.Generator().manual_seed(0)
        height, width = self.size
        cells = (self.batch, 1 if self.gray else 3, -(-height // 16), -(-width // 16))
        squares = torch.randint(0, 220, cells, generator=draw, dtype=torch.int32)
        photo = squares.repeat_interleave(16, 2).repeat_interleave(16, 3)[..., :height, :width]
        photo = photo + torch.randint(0, 30, photo.shape, generator=draw, dtype=torch.int32)
        if self.photo == torch.uint16:
            photo = photo * 257
        photo = (photo / 255 if self.photo.is_floating_point else photo).to(self.photo)
        shape = self.batch, self.channels, height, width
        target = torch.rand(shape, generator=draw, dtype=self.maps)
        confidence = None
        if self.known is not None:
            mask = torch.rand(self.batch, 1, height, width, generator=draw) < self.known
            confidence = mask.to(self.maps).to(device)
        return photo.contiguous().to(device), target.to(device), confidence

    def run(self, photo: Tensor, target: Tensor, confidence: Tensor | None) -> None:
        """Solve, and differentiate if this is a call for gradients."""
        if self.gradient:
            target = target.detach().requires_grad_()
        y = bilateral.torch.solve(photo, target, confidence, **self.options)
        if self.gradient:
            y.sum().backward()


def _both(name: str, **settings: Any) -> Iterator[UsualCall]:
    """Yield a call with data everywhere, and one with few known pixels, which needs multigrid."""
    yield UsualCall(name, **settings)
    yield UsualCall(f"{name}, few known", known=KNOWN, **settings)


def usual_calls() -> Iterator[UsualCall]:
    """Yield all calls; each one differs from the first in the thing that it is named after."""
    yield from _both("default")
    yield from _both("600 x 777 pixels", size=(600, 777))
    yield from _both("1500 x 2500 pixels", size=(1500, 2500))
    yield from _both("200 x 300 pixels", size=(200, 300))
    for sigma in (4, 16, 32, 48):
        sigmas = {f"sigma_{axis}": sigma for axis in ("xy", "luma", "chroma")}
        yield from _both(f"sigmas {sigma}", options=sigmas)
    yield UsualCall(
        "sigmas 5.5, 3, 7", options={"sigma_xy": 5.5, "sigma_luma": 3, "sigma_chroma": 7}
    )
    yield UsualCall("smoothness 64", options={"smoothness": 64.0})
    yield UsualCall("tolerance 1e-4", options={"tolerance": 1e-4})
    yield UsualCall("25 steps", options=MANY_STEPS)
    yield UsualCall("with confidence", known=0.9)
    yield from _both("gray", gray=True)
    yield UsualCall("photograph of float32", photo=torch.float32)
    yield UsualCall("photograph of uint16", photo=torch.uint16)
    for channels in (2, 3, 4, 8):
        yield from _both(f"{channels} channels", channels=channels)
    yield from _both("2 images", batch=2)
    yield from _both("5 images", batch=5)
    yield from _both("gradient", gradient=True)
    yield from _both("float64", maps=torch.float64)
    yield UsualCall("gradient of float64", maps=torch.float64, gradient=True)
