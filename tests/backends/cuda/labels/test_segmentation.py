"""refine_segmentation on a device against the CPU's, from its kernels to the whole.

Without a GPU the kernels run in Triton's interpreter, and the solves on the CPU.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from support.kernel_device import COMPILED, DEVICE

# isort: split
import torch

import bilateral.torch
from bilateral.backends import cpu
from bilateral.backends.cuda.labels import label_depth as depth_kernels
from bilateral.backends.cuda.labels import probabilities as kernels
from bilateral.backends.cuda.labels import regions as region_kernels
from bilateral.backends.cuda.labels.majority import majority
from bilateral.backends.cuda.labels.regions import find_regions
from bilateral.tasks import refine_segmentation
from bilateral.tasks.segmentation import class_balance, label_trust, policy, ranking, small_regions
from bilateral.torch import segmentation
from bilateral.torch.cuda import class_balance as cuda_class_balance
from bilateral.torch.cuda import label_trust as cuda_label_trust
from bilateral.torch.cuda import recorded, recording_cache
from bilateral.torch.cuda import small_regions as cuda_small_regions
from support.eager_graphs import use_eager_graphs
from support.examples import examples
from support.memory_check import within_bounds
from support.strategies import Array, seeds

pytestmark = pytest.mark.interpreter
# Shrinking a failing example would take the interpreter minutes.
FEW = examples(100 if COMPILED else 12, phases=[Phase.generate])


def tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(DEVICE)


def planes(p: Array) -> torch.Tensor:
    return tensor(np.moveaxis(p, -1, 0))


def pixels(p: torch.Tensor) -> Array:
    return p.movedim(0, -1).cpu().numpy()


@st.composite
def label_maps(draw: Any, classes: int = 4, least: int = 0) -> Array:
    """Noise, or regions of all sizes."""
    rng = np.random.default_rng(draw(seeds))
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    size = draw(st.sampled_from([1, 2, 5, 9]))
    coarse = rng.integers(least, classes, (height // size + 1, width // size + 1), np.int32)
    out = coarse.repeat(size, 0).repeat(size, 1)[:height, :width]
    if draw(st.booleans()):
        out = np.where(rng.uniform(size=out.shape) < 0.1, rng.integers(least, classes), out)
    return np.ascontiguousarray(out, np.int32)


def some_probabilities(labels: Array, classes: int, seed: int, sharp: float = 1.0) -> Array:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), labels.shape) + sharp * np.eye(classes)[labels]
    return (p / p.sum(axis=2, keepdims=True)).astype(np.float32)


@pytest.mark.smoke
@FEW
@given(
    arrays.arrays(
        np.float32, st.tuples(*[st.integers(1, 9)] * 3), elements=st.floats(0, 1, width=32)
    )
)
def test_rank(p: Array) -> None:
    expected, found = ranking.rank(p), kernels.rank(planes(p))
    for ours, theirs in zip(found, (*expected, p.max(axis=(0, 1))), strict=True):
        np.testing.assert_array_equal(ours.cpu().numpy(), theirs)
    mask = p[..., 0] > 0.5
    counts = kernels.count_labels(found.labels, p.shape[2], tensor(mask))
    np.testing.assert_array_equal(
        counts.cpu().numpy(), np.bincount(expected.labels[mask], minlength=p.shape[2])
    )


@pytest.mark.smoke
@FEW
@given(label_maps(), st.integers(0, 4))
def test_majority(labels: Array, radius: int) -> None:
    found = majority(tensor(labels), radius)
    np.testing.assert_array_equal(found.cpu().numpy(), cpu.majority(labels, 4, radius))


@FEW
@given(label_maps(least=-1), st.integers(0, 9))
def test_label_depth(labels: Array, radius: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_ROWS", "_COLUMNS", "_BLOCK"):
            patch.setattr(depth_kernels, name, 8)
        found = depth_kernels.label_depth(tensor(labels), radius)
    expected = cpu.label_depth(labels, radius)
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-6)


@pytest.mark.smoke
@FEW
@given(label_maps(), st.sampled_from([1, 2, 5, 32]))
def test_regions(labels: Array, strip: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_kernels, "_STRIP", strip)
        root, size = (t.cpu().numpy() for t in find_regions(tensor(labels)))
    regions, count = cpu.find_regions(labels.astype(np.float32), np.ones(labels.shape, bool), 0.5)
    first = np.unique(regions, return_index=True)[1]
    np.testing.assert_array_equal(root.ravel(), first[regions.ravel() - 1])
    np.testing.assert_array_equal(size[first], np.bincount(regions.ravel())[1:])
    assert np.count_nonzero(size) == count


@FEW
@given(label_maps(), st.integers(1, 60))
def test_merge_small_regions(labels: Array, least: int) -> None:
    found = cuda_small_regions.merge_small_regions(tensor(labels), 4, least)
    np.testing.assert_array_equal(
        found.cpu().numpy(), small_regions.merge_small_regions(labels, least)
    )


def spiral(side: int) -> Array:
    """One thin region that winds through all of the map."""
    out = np.zeros((side, side), np.int32)
    y = x = 0
    dy, dx = 0, 1
    while True:
        out[y, x] = 1
        for _ in range(2):
            near = y + dy, x + dx
            far = y + 2 * dy, x + 2 * dx
            inside = all(0 <= k < side for k in near)
            if inside and not (all(0 <= k < side for k in far) and out[far]):
                break
            dy, dx = dx, -dy
        else:
            return out
        y, x = near


@pytest.mark.smoke
def test_a_region_that_winds() -> None:
    labels = spiral(63)
    root, size = (t.cpu().numpy() for t in find_regions(tensor(labels)))
    assert np.unique(root[labels == 1]).tolist() == [0]
    assert size[0] == labels.sum()


@FEW
@given(label_maps(), seeds, st.booleans())
def test_belt_trust_and_areas(labels: Array, seed: int, holes: bool) -> None:
    p = some_probabilities(labels, 4, seed, sharp=0.3)
    known = np.random.default_rng(seed).uniform(size=labels.shape) < 0.8 if holes else None
    before = ranking.rank(p)
    theirs, mask = kernels.rank(planes(p)), None if known is None else tensor(known)
    assert float(cuda_label_trust.belt_width(theirs, mask)) == pytest.approx(
        label_trust.belt_width(before, known)
    )
    trust = cuda_label_trust.boundary_confidence(theirs.labels, mask, 5)
    np.testing.assert_allclose(
        trust.cpu().numpy(), label_trust.boundary_confidence(before.labels, known, 5), rtol=1e-4
    )
    x = some_probabilities(labels[::-1], 4, seed + 1, sharp=0.2)
    weighed = cuda_class_balance.balance_classes(planes(x), tensor(labels), mask)
    np.testing.assert_allclose(
        pixels(weighed), class_balance.balance_classes(x, labels, known), rtol=1e-5
    )
    calm = planes(x).contiguous().clone()
    old = kernels.rank(calm).labels
    new = cuda_small_regions.merge_small_regions(majority(old, 1), 4, 5)
    kernels.swap_labels(calm, old, new)
    np.testing.assert_array_equal(pixels(calm), small_regions.clean_labels(x, 1, 5))


RNG = np.random.default_rng(0)
LABELS = np.zeros((36, 52), np.int32)
LABELS[8:30, 10:30] = 1
LABELS[20:, 26:44] = 2
PHOTO = np.clip(
    np.array([[0.2, 0.3, 0.5], [0.8, 0.7, 0.3], [0.4, 0.9, 0.8]])[LABELS]
    + RNG.normal(0, 0.02, (36, 52, 3)),
    0,
    1,
).astype(np.float32)


def network(classes: int = 3, size: tuple[int, int] = (9, 13)) -> Array:
    """Logits of a network that sees blurred, displaced labels."""
    at = tuple(np.linspace(0, n - 1, m).astype(int) for n, m in zip((36, 52), size, strict=True))
    labels = np.roll(LABELS, 1, axis=1)[np.ix_(*at)]
    noise = RNG.normal(0, 0.4, (*size, classes))
    return (4 * np.eye(classes)[labels] + noise).astype(np.float32)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solutions that both devices agree about, by kernels for whatever tensors there are."""
    monkeypatch.setattr(policy, "TOLERANCE", 1e-6)
    monkeypatch.setattr(segmentation, "_is_on_cuda", lambda _: True)


def compare(scores: Array, photo: Array, **options: Any) -> None:
    arrays_only = {
        k: v if isinstance(v, str | bool | float | int) or v is None else np.asarray(v)
        for k, v in options.items()
    }
    expected = refine_segmentation(scores, photo, **arrays_only)
    tensors = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    image = tensor(photo if photo.ndim == 3 else photo[..., None]).movedim(-1, 0)
    maps = tensor(scores if scores.ndim == 3 else scores[..., None]).movedim(-1, 0)
    found = bilateral.torch.refine_segmentation(maps, image, **tensors)
    assert found.device.type == DEVICE
    theirs = pixels(found).reshape(expected.shape)
    assert found.dtype == torch.from_numpy(expected).dtype
    # A tie may be broken otherwise here and there.
    off = np.abs(theirs - expected) > 1e-3
    assert off.mean() < 2e-3, f"{off.sum()} of {off.size}, up to {np.abs(theirs - expected).max()}"


HOLES = RNG.uniform(size=(36, 52)) < 0.2


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.smoke),
        {"confidence": "uniform"},
        {"confidence": "entropy", "smoothness": 40.0},
        {"confidence": RNG.uniform(0, 2, (36, 52))},
        {"ignore": HOLES},
        {"ignore": HOLES, "confidence": "uniform"},
        {"sigma_xy": 6.5, "sigma_luma": 10.0, "sigma_chroma": 12.0},
        {"rank_tolerance": None},
        {"logits": True},
    ],
)
def test_it_is_what_arrays_give(options: dict[str, Any]) -> None:
    compare(network(), PHOTO, **options)


def softmax(logits: Array) -> Array:
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(p / p.sum(axis=2, keepdims=True))


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(
    ("scores", "photo"),
    [
        (softmax(network()), PHOTO),
        (network(size=(36, 52)), PHOTO),
        (network().astype(np.float64), PHOTO.astype(np.float64)),
        (network(8), PHOTO),
        (np.where(network() < -0.3, -np.inf, network()), PHOTO),
        (np.where(RNG.uniform(size=(9, 13, 1)) < 0.2, np.nan, network()), PHOTO),
        (network()[..., 1], PHOTO),
        (LABELS == 1, PHOTO),
        ((LABELS == 2).astype(np.int64), PHOTO),
        (np.eye(3)[LABELS], (255 * PHOTO).astype(np.uint8)),
        (network(), (65535 * PHOTO).astype(np.uint16)),
        (network(), PHOTO[..., 0]),
        (np.full((2, 2, 2), 0.5), PHOTO),
        (100 * network(), PHOTO),
        (np.eye(2)[np.ones((36, 52), int)], PHOTO),
        (2 * softmax(network()), PHOTO),
    ],
)
def test_scores_of_all_kinds(scores: Array, photo: Array) -> None:
    compare(scores, photo)


@pytest.mark.usefixtures("exact")
def test_labels_are_the_most_probable_classes() -> None:
    maps, image = planes(network()), planes(PHOTO)
    p = bilateral.torch.refine_segmentation(maps, image)
    labels = bilateral.torch.refine_segmentation(maps, image, labels=True)
    assert labels.dtype == torch.int64
    torch.testing.assert_close(p.argmax(0), labels)
    torch.testing.assert_close(p.sum(0), torch.ones_like(p[0]))
    assert (labels.cpu().numpy() == LABELS).mean() > 0.97


@pytest.mark.usefixtures("exact")
def test_many_classes_of_which_few_take_part() -> None:
    scores = network(40)
    scores[..., 3:] -= 3
    compare(scores, PHOTO)
    compare(scores, PHOTO, rank_tolerance=0.05)


@pytest.mark.usefixtures("exact")
def test_a_batch_is_its_images_one_by_one() -> None:
    maps = torch.stack([planes(network()), planes(network()).flip(0)])
    images = torch.stack([planes(PHOTO), planes(PHOTO).flip(1)])
    found = bilateral.torch.refine_segmentation(maps, images)
    if COMPILED:  # where they might differ
        again = bilateral.torch.refine_segmentation(maps, images)
        torch.testing.assert_close(found, again, atol=0, rtol=0)
    for i in range(2):
        alone = bilateral.torch.refine_segmentation(maps[i], images[i])
        torch.testing.assert_close(found[i], alone)
    maps[1] = torch.nan
    with pytest.raises(ValueError, match="expected finite values at one pixel") as caught:
        bilateral.torch.refine_segmentation(maps, images)
    assert caught.value.__notes__ == ["In image 1 of the batch."]


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": torch.full((36, 52), -1.0)}, "confidence: expected finite numbers"),
        ({"confidence": torch.zeros(36, 52)}, "expected finite values at one pixel"),
        ({"confidence": torch.ones(3, 52)}, "confidence"),
        ({"confidence": "much"}, "confidence: expected one of"),
        ({"ignore": torch.ones(36, 52, dtype=torch.bool)}, "expected finite values at one pixel"),
        ({"ignore": torch.ones(36, 52)}, "ignore: expected bool"),
        ({"logits": False}, "expected probabilities from 0 to 1"),
        ({"logits": 1}, "logits: expected True"),
        ({"reference_max": 0}, "reference_max"),
        ({"sigma_xy": 0}, "sigma_xy"),
        ({"rank_tolerance": 1}, "rank_tolerance"),
    ],
)
def test_errors_are_the_same(options: dict[str, Any], message: str) -> None:
    moved = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    with pytest.raises((ValueError, TypeError), match=message):
        bilateral.torch.refine_segmentation(planes(network()), planes(PHOTO), **moved)


@pytest.mark.usefixtures("exact")
def test_an_image_that_is_not_finite() -> None:
    image = planes(PHOTO)
    image[0, 3, 4] = torch.nan
    with pytest.raises(ValueError, match=r"image: expected finite values, got nan at row 3"):
        bilateral.torch.refine_segmentation(planes(network()), image)


@pytest.mark.usefixtures("exact")
def test_an_image_of_another_scale() -> None:
    with pytest.raises(ValueError, match=r"image: .*reference_max=255"):
        bilateral.torch.refine_segmentation(planes(network()), 255 * planes(PHOTO))


@pytest.mark.smoke
@pytest.mark.usefixtures("exact")
@pytest.mark.skipif(COMPILED, reason="the interpreter looks at addresses")
def test_kernels_stay_within_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    with within_bounds(monkeypatch):
        bilateral.torch.refine_segmentation(planes(network()), planes(PHOTO), ignore=tensor(HOLES))


@pytest.mark.skipif(COMPILED, reason="calls on a GPU are recorded")
def test_recorded_calls_are_the_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmentation, "_is_on_cuda", lambda _: True)
    scores, photo = planes(network(3, (5, 7))), planes(PHOTO)[:, :20, :28]
    calls = [(scores, photo), (scores.flip(2), photo.flip(2))]
    plain = [bilateral.torch.refine_segmentation(*call, sigma_xy=8.0) for call in calls]
    use_eager_graphs(monkeypatch)
    recording_cache.forget()
    for i in (0, 0, 1):
        found = bilateral.torch.refine_segmentation(*calls[i], sigma_xy=8.0)
        assert (found - plain[i]).abs().mean() <= 1e-3
    assert {"_classes", "_activate", "_problem", "_sum_solutions"} <= set(recorded.recordings())
    assert not recorded.failures
    recording_cache.forget()
