"""`domain_transform` of tensors matches the oracle: batches, dtypes, gradients and errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="tensors need PyTorch")


import torch
from torch import Tensor

import bilateral.torch
from oracles import filters as oracle
from support.examples import examples
from support.filtered_tensors import (
    GRADIENTS,
    IMAGE,
    OPTIONS,
    PHOTO,
    TOLERANCE,
    WRONG,
    array,
    derivatives_are_right,
    example,
    one_by_one,
    tensor,
    with_holes,
)
from support.strategies import CONFIDENCES, Array, references, seeds, white
from support.strategies import weights as some_weights


@examples(40)
@given(
    references(20),
    seeds,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(CONFIDENCES),
    st.sampled_from([0.0, 0.4]),
    st.integers(1, 4),
    st.sampled_from(["float32", "float64"]),
)
def test_one_image_matches_the_oracle(
    photo: Array, seed: int, maps: int, kind: str, lost: float, iterations: int, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(*photo.shape[:2], maps)).astype(dtype)
    image[rng.uniform(size=image.shape) < lost] = np.nan
    image[0, 0] = 1
    tolerance = 1e-10 if dtype == "float64" else 1e-3
    mass = some_weights(kind, photo.shape[:2], rng)
    if mass is not None:
        mass[0, 0] = mass.max() or 1.0
        mass = mass.astype(dtype)
    expected, total = oracle.domain_transform(image, photo, 5, 50, iterations, mass)
    given_ = None if mass is None else torch.from_numpy(mass)
    found = bilateral.torch.domain_transform(
        *(tensor(image), tensor(photo), 5, 50, iterations),
        weights=given_,
        reference_max=white(photo),
    )
    assert found.dtype == getattr(torch, dtype)
    reached = total > 1e-18 * total.max()  # elsewhere rounding decides the oracle's result
    np.testing.assert_allclose(array(found)[reached], expected[reached], rtol=0, atol=tolerance)


@pytest.mark.parametrize("photos", [1, 3])
@pytest.mark.parametrize("masses", [0, 1, 3])
def test_a_batch_is_its_images_one_by_one(photos: int, masses: int) -> None:
    image, reference, weights = example(3, 2, 7, 9, photos=photos)
    image[1] = with_holes(image[1])
    mass = weights[:masses] if masses else None
    found = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mass)
    np.testing.assert_array_equal(array(found), one_by_one(image, reference, mass, **OPTIONS))


def test_shapes() -> None:
    image, reference, weights = example(1, 2, 6, 8)
    expected = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=weights)
    for mass in (weights, weights[0], weights[0, 0]):
        y = bilateral.torch.domain_transform(image[0], reference[0], **OPTIONS, weights=mass)
        assert torch.equal(y, expected[0])
    last = image.contiguous(memory_format=torch.channels_last)
    y = bilateral.torch.domain_transform(last, reference, **OPTIONS, weights=weights)
    assert torch.equal(y, expected)
    mask = weights > 1
    y = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mask)
    z = bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mask.double())
    assert torch.equal(y, z)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.uint8])
def test_dtypes(dtype: torch.dtype) -> None:
    image, reference, _ = example(2, 1, 6, 8)
    given_ = (image * 20).to(dtype)
    found = bilateral.torch.domain_transform(given_, reference, **OPTIONS)
    assert found.dtype == dtype
    exact = bilateral.torch.domain_transform(given_.double(), reference, **OPTIONS)
    slack = 0.51 if dtype == torch.uint8 else 100 * TOLERANCE[dtype]
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=slack)


def test_references_of_any_dtype() -> None:
    image, reference, _ = example(1, 1, 6, 8)
    expected = bilateral.torch.domain_transform(image, reference, **OPTIONS)
    levels = reference.double()
    for photo in (levels / 255, (levels * 257).to(torch.uint16)):
        y = bilateral.torch.domain_transform(image, photo, **OPTIONS)
        torch.testing.assert_close(y, expected)
    y = bilateral.torch.domain_transform(image, levels, **OPTIONS, reference_max=255)
    torch.testing.assert_close(y, expected)


def test_no_gradient_reaches_the_reference() -> None:
    image, reference, weights = example(1, 1, 5, 6)
    image.requires_grad_()
    photo = (reference / 255.0).requires_grad_()
    y = bilateral.torch.domain_transform(image, photo, **OPTIONS, weights=weights)
    y.sum().backward()
    assert photo.grad is None
    # The filter's weights sum to 1 per pixel, so the gradients of the sum add up to n.
    assert image.grad is not None
    assert image.grad.sum().item() == pytest.approx(30)
    with torch.no_grad():
        z = bilateral.torch.domain_transform(image, photo, **OPTIONS, weights=weights)
    assert not z.requires_grad
    assert torch.equal(z, y)
    (g,) = torch.autograd.grad(
        bilateral.torch.domain_transform(image.float(), photo, **OPTIONS).sum(), image
    )
    assert g.dtype == torch.float64


@pytest.mark.parametrize(("shape", "photos", "masses", "weigh", "part"), GRADIENTS)
def test_gradients_are_finite_differences(
    shape: tuple[int, ...], photos: int, masses: int, weigh: bool, part: float
) -> None:
    assert derivatives_are_right("cpu", shape, photos, masses, weigh, part)


def test_a_zero_weight_has_a_one_sided_derivative() -> None:
    """A weight of 0 has a derivative from above."""
    image, reference, weights = example(1, 1, 4, 5)
    weights[..., 2:] = 0
    weights.requires_grad_()
    h = torch.randn_like(image)

    def loss(mass: Tensor) -> Tensor:
        return (
            bilateral.torch.domain_transform(image, reference, **OPTIONS, weights=mass) * h
        ).sum()

    (g,) = torch.autograd.grad(loss(weights), weights)
    step = torch.zeros_like(weights)
    step[0, 0, 1, 3] = 1e-7
    change = (loss(weights + step) - loss(weights)).item() / 1e-7
    assert g[0, 0, 1, 3].item() == pytest.approx(change, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_far_pixels_are_finite(dtype: torch.dtype) -> None:
    image = torch.full((1, 1, 30, 40), torch.nan, dtype=dtype)
    image[0, 0, 3, 4] = 5
    image.requires_grad_()
    weights = torch.ones(30, 40, dtype=dtype, requires_grad=True)
    photo = torch.arange(1200).reshape(1, 1, 30, 40) / 1200.0
    y = bilateral.torch.domain_transform(image, photo, 0.5, 1, weights=weights)
    assert torch.equal(y, torch.full_like(y, 5))
    (1e3 * y).sum().backward()
    for grad in (image.grad, weights.grad):
        assert grad is not None
        assert torch.isfinite(grad).all()
        assert grad.count_nonzero() <= 1


def test_second_derivatives_are_refused() -> None:
    image, reference, _ = example(1, 1, 3, 4)
    image.requires_grad_()
    y = bilateral.torch.domain_transform(image, reference, **OPTIONS)
    (g,) = torch.autograd.grad(y.square().sum(), image, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


@pytest.mark.parametrize(("argument", "value", "error", "told"), WRONG)
def test_a_wrong_argument_is_named(
    argument: str, value: Any, error: type[Exception], told: str
) -> None:
    arguments = {"image": IMAGE, "reference": PHOTO, "sigma_xy": 8, "sigma_rgb": 8}
    with pytest.raises(error, match=f"^{told}"):
        bilateral.torch.domain_transform(**(arguments | {argument: value}))


def test_an_error_names_the_image_of_the_batch() -> None:
    image = torch.cat([IMAGE, IMAGE * torch.nan])
    with pytest.raises(ValueError, match="got none") as caught:
        bilateral.torch.domain_transform(image, PHOTO, 8, 8)
    assert caught.value.__notes__ == ["In image 1 of the batch."]
