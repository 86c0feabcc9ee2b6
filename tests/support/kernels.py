"""Send the tensors of filters and tasks to the kernels: on a GPU, or in Triton's interpreter."""

import pytest

from support.kernel_device import COMPILED, DEVICE

__all__ = ["COMPILED", "DEVICE", "kernels_filter"]


def kernels_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels compute filters and tasks of tensors on any device."""
    from bilateral.torch import operators
    from bilateral.torch.tasks import tensors

    operators.load_cuda_operators()
    monkeypatch.setattr(tensors, "on_cuda", lambda _: True)
