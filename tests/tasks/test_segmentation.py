"""`refine_segmentation`: properties for any input, errors, and quality on a synthetic scene."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bilateral
from bilateral.backends import cpu
from bilateral.filters import resize
from bilateral.tasks import refine_segmentation
from bilateral.tasks.segmentation.small_regions import merge_small_regions

Array = NDArray[Any]


def scene(seed: int = 0, shape: tuple[int, int] = (96, 128)) -> tuple[Array, Array]:
    """A photograph of a disc, a box and a bar on noise, and its labels from 0 to 3."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]] / shape[0]
    truth = np.zeros(shape, np.int64)
    truth[np.hypot(y - 0.4, x - 0.4) < 0.27] = 1
    truth[(y > 0.55) & (y < 0.9) & (x > 0.75) & (x < 1.2)] = 2
    truth[(x > 0.82) & (x < 0.94) & (y < 0.5)] = 3
    colours = np.array([[90, 90, 90], [200, 80, 60], [60, 90, 200], [80, 200, 90]])
    photo = colours[truth] + rng.normal(0, 6, (*shape, 3))
    return np.clip(photo, 0, 255).astype(np.uint8), truth


def network(truth: Array, classes: int = 4, cell: int = 8, seed: int = 0) -> Array:
    """Logits on a coarse grid, off by a part of a cell, as a network would return them."""
    rng = np.random.default_rng(seed)
    moved = np.roll(truth, (cell // 3, -cell // 3), (0, 1))
    one_hot = np.eye(classes)[moved]
    blocks = one_hot.reshape(truth.shape[0] // cell, cell, truth.shape[1] // cell, cell, classes)
    means = blocks.mean(axis=(1, 3))
    logits: Array = 6 * means + rng.normal(0, 0.3, means.shape)
    return logits.astype(np.float32)


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mean_iou(found: Array, truth: Array) -> float:
    ratios = [
        np.sum((found == k) & (truth == k)) / np.sum((found == k) | (truth == k))
        for k in np.unique(truth)
    ]
    return float(np.mean(ratios))


@pytest.fixture(scope="module")
def made() -> tuple[Array, Array, Array]:
    photo, truth = scene()
    return photo, truth, network(truth)


def test_outlines_move_to_the_photograph(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    before = resize.bilinear(logits, truth.shape).argmax(axis=2)
    found = refine_segmentation(logits, photo, labels=True)
    assert mean_iou(before, truth) < 0.8
    assert mean_iou(found, truth) > 0.93


@pytest.mark.parametrize("confidence", ["uniform", "entropy", "array"])
def test_every_kind_of_confidence_improves_the_labels(
    made: tuple[Array, Array, Array], confidence: str
) -> None:
    photo, truth, logits = made
    c: Any = np.ones(truth.shape) if confidence == "array" else confidence
    found = refine_segmentation(logits, photo, labels=True, confidence=c)
    before = resize.bilinear(logits, truth.shape).argmax(axis=2)
    assert mean_iou(found, truth) > mean_iou(before, truth) + 0.05
    if confidence == "array":
        same = refine_segmentation(logits, photo, labels=True, confidence="uniform")
        np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("smoothness", [1e-6, 1e6])
def test_any_confidence_and_smoothness_converge(
    made: tuple[Array, Array, Array], smoothness: float
) -> None:
    photo, truth, logits = made
    c = 10.0 ** np.random.default_rng(0).uniform(-9, 3, truth.shape)
    p = refine_segmentation(logits, photo, confidence=c, smoothness=smoothness)  # gives no warning
    np.testing.assert_allclose(p.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_sum_to_one_in_their_dtype(
    made: tuple[Array, Array, Array], dtype: Any
) -> None:
    photo, truth, logits = made
    p = refine_segmentation(logits.astype(dtype), photo)
    assert p.dtype == dtype
    assert p.shape == (*truth.shape, 4)
    assert p.min() >= 0
    assert p.max() <= 1
    np.testing.assert_allclose(
        p.sum(axis=2, dtype=np.float64), 1, atol=3 * np.finfo(dtype).eps + 3e-7
    )


def test_labels_are_the_most_probable_classes(made: tuple[Array, Array, Array]) -> None:
    photo, _, logits = made
    labels = refine_segmentation(logits, photo, labels=True)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, refine_segmentation(logits, photo).argmax(axis=2))
    small = refine_segmentation(logits, photo, labels=True, dtype=np.uint8)
    assert small.dtype == np.uint8
    np.testing.assert_array_equal(labels, small)


def test_labels_stay_the_most_probable_among_many_faint_classes() -> None:
    photo, truth = scene()
    rng = np.random.default_rng(1)
    p = 0.2 + 0.04 * rng.random((*truth.shape, 5)) + 0.1 * np.eye(5)[truth]
    p /= p.sum(axis=2, keepdims=True)
    labels = refine_segmentation(p, photo, labels=True)
    np.testing.assert_array_equal(labels, refine_segmentation(p, photo).argmax(axis=2))


def test_classes_have_no_order(made: tuple[Array, Array, Array]) -> None:
    photo, _, logits = made
    order = [2, 0, 3, 1]
    p = refine_segmentation(logits, photo)
    turned = refine_segmentation(logits[..., order], photo)
    np.testing.assert_allclose(turned, p[..., order], atol=0.02)
    assert np.mean(turned.argmax(axis=2) != p[..., order].argmax(axis=2)) < 1e-3


def test_coarse_maps_are_enlarged_linearly(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    coarse = refine_segmentation(logits, photo)
    np.testing.assert_allclose(
        coarse, refine_segmentation(resize.bilinear(logits, truth.shape), photo), atol=1e-5
    )


def test_logits_and_their_probabilities_are_the_same(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    full = resize.bilinear(logits, truth.shape)
    a, b = (refine_segmentation(scores, photo) for scores in (full, softmax(full)))
    np.testing.assert_allclose(a, b, atol=1e-4)
    shifted = refine_segmentation(full + 1000, photo, logits=True)
    np.testing.assert_allclose(a, shifted, atol=2e-3)


def test_a_foreground_is_one_of_two_classes() -> None:
    photo, truth = scene()
    p = resize.bilinear(softmax(network((truth == 1).astype(int), 2)), truth.shape)
    both = refine_segmentation(p, photo)
    alone = refine_segmentation(p[..., 1], photo)
    assert alone.shape == truth.shape
    np.testing.assert_allclose(alone, both[..., 1], atol=1e-4)
    logits = np.log(p[..., 1]) - np.log(p[..., 0])
    np.testing.assert_allclose(refine_segmentation(logits, photo), alone, atol=1e-3)
    channel = refine_segmentation(p[..., 1:], photo)
    np.testing.assert_array_equal(channel[..., 0], alone)


def test_masks_may_be_bool_or_integers() -> None:
    photo, truth = scene()
    mask = np.roll(truth == 1, 3, axis=1)
    found = refine_segmentation(mask, photo)
    assert found.dtype == np.float32
    assert mean_iou(found > 0.5, truth == 1) > mean_iou(mask, truth == 1)
    np.testing.assert_array_equal(found, refine_segmentation(mask.astype(np.uint8), photo))
    one_hot = np.stack([~mask, mask], axis=2)
    np.testing.assert_allclose(refine_segmentation(one_hot, photo)[..., 1], found, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 3), (33, 47)])
@pytest.mark.parametrize("p", [[1.0], [0.2, 0.8], [0.5, 0.3, 0.16, 0.04]])
def test_constant_maps_are_kept(shape: tuple[int, int], p: list[float]) -> None:
    photo = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    full = np.broadcast_to(np.array(p), (*shape, len(p)))
    np.testing.assert_allclose(refine_segmentation(full, photo), full, atol=1e-5)
    labels = refine_segmentation(full, photo, labels=True)
    assert (labels == (1 if len(p) == 1 else np.argmax(p))).all()


@pytest.mark.parametrize("classes", [21, 150])
def test_many_classes(classes: int) -> None:
    photo, truth = scene()
    numbers = np.array([0, 7, classes - 1, 3])
    logits = np.full((*truth.shape, classes), -9.0, np.float32)
    logits[..., numbers] = resize.bilinear(network(truth), truth.shape)
    few = refine_segmentation(logits[..., numbers], photo, labels=True)
    p = refine_segmentation(logits, photo)
    np.testing.assert_allclose(p.sum(axis=2), 1, atol=1e-5)
    assert np.mean(p.argmax(axis=2) != numbers[few]) < 0.01


def test_classes_that_are_all_alike_stay_so() -> None:
    photo, _ = scene()
    flat = np.full((12, 16, 150), 1 / 150)
    np.testing.assert_allclose(refine_segmentation(flat, photo), 1 / 150, atol=1e-5)


@pytest.mark.parametrize("hidden", [np.nan, np.inf, 1e6])
@pytest.mark.parametrize("confidence", ["boundary", "uniform", "entropy"])
def test_ignored_pixels_never_matter(
    made: tuple[Array, Array, Array], hidden: float, confidence: str
) -> None:
    photo, truth, logits = made
    full = resize.bilinear(logits, truth.shape)
    ignore = np.zeros(truth.shape, np.uint8)
    ignore[30:60, 40:70] = 1
    other = full.copy()
    other[ignore > 0] = hidden
    a, b = (
        refine_segmentation(scores, photo, ignore=ignore, logits=True, confidence=confidence)
        for scores in (full, other)
    )
    np.testing.assert_array_equal(a, b)
    assert np.isfinite(a).all()
    assert (a.argmax(axis=2) == truth)[ignore > 0].mean() > 0.9  # the photograph shows the label


def test_pixels_that_are_not_finite_are_unknown(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    full = softmax(resize.bilinear(logits, truth.shape))
    hole = np.zeros(truth.shape, np.bool_)
    hole[10:30, 20:50] = True
    spoilt = full.copy()
    spoilt[hole, 1] = np.nan
    found = refine_segmentation(spoilt, photo)
    np.testing.assert_allclose(found, refine_segmentation(full, photo, ignore=hole), atol=1e-6)


def test_unknown_cells_of_a_coarse_map(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    spoilt = logits.copy()
    spoilt[4, 5], spoilt[0, 0, 2] = np.nan, np.inf
    p = refine_segmentation(spoilt, photo)
    assert np.isfinite(p).all()
    assert mean_iou(p.argmax(axis=2), truth) > 0.9


def test_minus_infinity_is_a_logit(made: tuple[Array, Array, Array]) -> None:
    photo, _, logits = made
    masked = np.concatenate([logits, np.full((*logits.shape[:2], 1), -np.inf)], axis=2)
    p = refine_segmentation(masked, photo)
    assert p[..., 4].max() < 1e-6
    np.testing.assert_allclose(p[..., :4], refine_segmentation(logits, photo), atol=1e-3)


def test_small_regions_survive() -> None:
    """A region as small as a cell of the network keeps its label."""
    photo = np.full((120, 160, 3), 90, np.uint8)
    photo[50:62, 70:82] = (200, 60, 60)
    truth = (photo[..., 0] > 100).astype(int)
    p = softmax(network(truth, 2, cell=8))
    found = refine_segmentation(p, photo, labels=True)
    assert mean_iou(found, truth) > 0.9


def test_gray_and_deep_images(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    deep = refine_segmentation(logits, photo.astype(np.uint16) * 257, labels=True)
    floating = refine_segmentation(logits, photo / 255, labels=True)
    np.testing.assert_array_equal(deep, floating)
    assert refine_segmentation(logits, photo[..., 0], labels=True).shape == truth.shape


def test_the_input_is_left_alone(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    p = softmax(resize.bilinear(logits, truth.shape))
    before = p.copy()
    p.flags.writeable = photo.flags.writeable = False
    refine_segmentation(p, photo)
    np.testing.assert_array_equal(p, before)


def test_threads_change_nothing(keep_num_threads: None) -> None:
    photo, truth = scene(shape=(384, 512))  # large enough for several threads
    logits, results = network(truth), []
    for threads in (1, 3):
        bilateral.set_num_threads(threads)
        results.append(refine_segmentation(logits, photo))
    np.testing.assert_array_equal(*results)


def test_label_depth_is_one_in_the_middle_of_any_region() -> None:
    labels = np.zeros((40, 60), np.int32)
    labels[:, 30:33] = 1
    depth = cpu.label_depth(labels, 40)
    assert (depth[:, 31] == 1).all()
    np.testing.assert_allclose(depth[:, [30, 32]], 1 / 3)
    assert (depth[:, 0] == 1).all()
    assert (cpu.label_depth(np.zeros((4, 5), np.int32), 3) == 1).all()


def test_small_regions_take_the_label_around_them() -> None:
    labels = np.zeros((20, 30), np.int32)
    labels[:, 20:] = 2
    labels[5:8, 5:8] = 1
    labels[6, 6] = 3
    labels[10:12, 22:24] = 1
    labels[15, 19] = 4
    expected = np.zeros_like(labels)
    expected[:, 20:] = 2
    np.testing.assert_array_equal(merge_small_regions(labels, 10), expected)
    np.testing.assert_array_equal(merge_small_regions(labels, 1), labels)
    np.testing.assert_array_equal(merge_small_regions(labels, 1e9), labels)


def test_a_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the classes"):
        cpu.majority(np.full((3, 3), 2, np.int32), 2, 1)


PHOTO = np.zeros((8, 10, 3), np.uint8)
HALF = np.full((8, 10, 2), 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(5), PHOTO), r"probabilities: expected shape \(h, w, K\)"),
        ((np.zeros((0, 4, 3)), PHOTO), "at least one value"),
        ((np.zeros((3, 8, 10)), PHOTO), r"channels last.*np.moveaxis"),
        ((np.full((8, 10), 255, np.uint8), PHOTO), "mask of 0 and 255"),
        ((np.array([["a"]]), PHOTO), "real numbers"),
        ((HALF, PHOTO[..., :2]), "image: expected a gray image"),
        ((HALF * np.nan, PHOTO), "finite values at one pixel"),
        ((HALF, np.full((8, 10), np.nan)), "image: expected finite"),
    ],
)
def test_wrong_input(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        refine_segmentation(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": "sure"}, "confidence: expected one of 'boundary'"),
        ({"confidence": np.ones((3, 3))}, "confidence: expected one number per pixel"),
        ({"confidence": np.full((8, 10), -1.0)}, "confidence: expected finite numbers, 0 or above"),
        ({"confidence": np.zeros((8, 10))}, "have no confidence"),
        ({"ignore": np.ones((8, 10), bool)}, "ignored"),
        ({"ignore": np.ones((8, 10))}, "ignore: expected bool or integers"),
        ({"ignore": np.ones((4, 5), bool)}, "ignore: expected one number per pixel"),
        ({"logits": "yes"}, "logits: expected True, False or None"),
        ({"sigma_xy": 0}, "sigma_xy: expected a number above 0"),
        ({"sigma_luma": -1}, "sigma_luma"),
        ({"sigma_chroma": "x"}, "sigma_chroma"),
        ({"smoothness": 0}, "smoothness"),
        ({"rank_tolerance": 2}, "rank_tolerance"),
        ({"dtype": "colour"}, "dtype"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        refine_segmentation(HALF, PHOTO, **options)


def test_negative_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"since logits=False, got -0\.5"):
        refine_segmentation(HALF - 1, PHOTO, logits=False)
    with pytest.raises(ValueError, match="got 2"):
        refine_segmentation(HALF[..., 0] + 1.5, PHOTO, logits=False)


def test_probabilities_of_another_sum_are_scaled(made: tuple[Array, Array, Array]) -> None:
    photo, truth, logits = made
    p = softmax(resize.bilinear(logits, truth.shape))
    scaled = refine_segmentation(3 * p, photo, logits=False)
    np.testing.assert_allclose(scaled, refine_segmentation(p, photo), atol=1e-5)
    p[:4] = 0  # no class at all: unknown
    assert np.isfinite(refine_segmentation(p, photo, logits=False)).all()
