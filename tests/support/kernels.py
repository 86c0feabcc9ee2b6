"""Send the tensors of filters and tasks to the kernels: on a GPU, or in Triton's interpreter."""

from typing import Any

import pytest

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch
from torch import Tensor

import bilateral
from bilateral.filters.domain_transform import first_scale

__all__ = ["COMPILED", "DEVICE", "cpu_domain_transform", "kernels_filter"]


def kernels_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels compute filters and tasks of tensors on any device."""
    from bilateral.torch import operators
    from bilateral.torch.tasks import tensors

    operators.load_cuda_operators()
    monkeypatch.setattr(tensors, "on_cuda", lambda _: True)


def cpu_domain_transform(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """Let the CPU filter what a module filters by the domain transform.

    The interpreter takes seconds for its scans, and other tests compare these kernels.
    """

    def transform(
        image: Tensor,
        weights: Tensor | None,
        reference: Tensor,
        scale: tuple[float, float],
        passes: int,
        limits: tuple[float, float],
        weighed: bool,
    ) -> tuple[Tensor, None]:
        assert weights is None
        assert not weighed
        assert passes == 3
        assert limits[0] < limits[1]
        step, level = scale
        first = first_scale(1.0, 1.0, 3)
        sigmas = first[0] / step, first[0] / level
        photo = reference[0].movedim(0, -1).cpu().numpy()
        pixels = image[0].movedim(0, -1).cpu().numpy()
        out = bilateral.domain_transform(pixels, photo, *sigmas, reference_max=255.0)
        filtered = torch.from_numpy(out).movedim(-1, 0).contiguous()
        return filtered[None].to(image.device), None

    if not COMPILED:
        monkeypatch.setattr(module, "domain_transform", transform)
