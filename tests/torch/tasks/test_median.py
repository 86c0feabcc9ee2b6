"""`median` of tensors: PyTorch's layout, the values of the CPU, and the kernels."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="tensors need PyTorch")

import torch

import bilateral
import bilateral.torch
from oracles.median import median_filter
from support.kernels import DEVICE, kernels_filter

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]


def image(dtype: torch.dtype, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    values = np.random.default_rng(seed).integers(0, 100, shape)
    return torch.from_numpy(values > 60 if dtype == torch.bool else values).to(dtype)


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_plane_is_filtered_as_an_array(dtype: torch.dtype, size: int) -> None:
    batch = image(dtype, (2, 3, 9, 8))
    found = bilateral.torch.median(batch, size)
    assert found.dtype == dtype
    plain = batch.float() if dtype == torch.bfloat16 else batch
    for i, k in np.ndindex(2, 3):
        expected = torch.from_numpy(bilateral.median(plain[i, k].numpy(), size))
        assert torch.equal(found[i, k], expected.to(dtype))
    assert torch.equal(bilateral.torch.median(batch[0], size), found[0])


def test_no_gradient_and_no_compiled_graph() -> None:
    given_ = image(torch.float32, (1, 5, 6)).requires_grad_()
    found = bilateral.torch.median(given_)
    assert not found.requires_grad
    with torch.inference_mode():
        assert torch.equal(bilateral.torch.median(given_.detach()), found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((1, 4, 5)),), "image: expected a tensor, got ndarray"),
        ((torch.zeros(4, 5),), "image: expected shape"),
        ((torch.zeros(1, 0, 5),), "image: expected shape"),
        ((torch.zeros(1, 4, 5), 4), "size: expected"),
        ((torch.zeros(1, 4, 5).to_sparse(),), "image: expected a dense tensor"),
        ((torch.zeros(1, 4, 5, dtype=torch.complex64),), "image: expected real numbers"),
        ((torch.zeros(1, 4, 5, device="meta"),), "image: expected a tensor on the CPU or a CUDA"),
    ],
)
def test_wrong_input(arguments: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.median(*arguments)


@pytest.mark.interpreter
class TestKernels:
    """The kernels, in Triton's interpreter where there is no GPU."""

    @pytest.fixture(autouse=True)
    def _kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kernels_filter(monkeypatch)

    @pytest.mark.parametrize("size", [3, 5])
    @pytest.mark.parametrize(
        ("shape", "levels"),
        [
            pytest.param((2, 4, 129), 1000, marks=pytest.mark.smoke),
            ((1, 1, 1), 9),
            ((1, 1, 6), 9),
            ((1, 7, 1), 9),
            ((1, 2, 2), 9),
            ((1, 5, 140), 3),
        ],
    )
    def test_values_are_the_oracles(
        self, size: int, shape: tuple[int, int, int], levels: int
    ) -> None:
        values = np.random.default_rng(sum(shape)).integers(0, levels, shape).astype(np.float64)
        found = bilateral.torch.median(torch.from_numpy(values).to(DEVICE), size).cpu()
        expected = np.stack([median_filter(plane, size) for plane in values])
        np.testing.assert_array_equal(found.numpy(), expected)

    @pytest.mark.parametrize("size", [3, 5])
    @pytest.mark.parametrize("part", [0.1, 0.6, 1.0])
    def test_missing_and_infinite_values(self, size: int, part: float) -> None:
        rng = np.random.default_rng(3)
        values = rng.normal(0, 1, (2, 6, 7)).astype(np.float32)
        values[rng.random(values.shape) < 0.1] = np.inf
        values[rng.random(values.shape) < 0.1] = -np.inf
        values[rng.random(values.shape) < 0.05] = np.finfo(np.float32).max
        values[rng.random(values.shape) < part] = np.nan
        found = bilateral.torch.median(torch.from_numpy(values).to(DEVICE), size).cpu().numpy()
        expected = np.stack([bilateral.median(plane, size) for plane in values])
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
        batch = image(dtype, (2, 1, 6, 5))
        found = bilateral.torch.median(batch.to(DEVICE)).cpu()
        monkeypatch.undo()
        assert found.dtype == dtype
        assert torch.equal(found, bilateral.torch.median(batch))
