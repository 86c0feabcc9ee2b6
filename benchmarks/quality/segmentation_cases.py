"""Read or make class probabilities with their true labels, run a dense CRF, and score labels."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage import color, filters
from skimage.io import imread

from benchmarks.common.photos import OWN
from benchmarks.quality.lowrank import read_images
from bilateral.filters import resize

try:
    from pydensecrf import densecrf

    CRF_VERSION = version("pydensecrf2")
except ImportError:
    CRF_VERSION = None

Array = NDArray[Any]

BAND = 2  # pixels near an edge of the truth do not count: annotators place edges only roughly
CELLS = (4, 8, 16, 16)  # sizes of the made networks' cells, in pixels
CRF_MISSING = "Dense CRF skipped: install it with pip install pydensecrf2."
# sigmas of the bilateral kernel, in pixels and in grey levels
CRF_SETTINGS = {"CRF 67 / 3": (67, 3), "CRF 30 / 5": (30, 5)}
CRF_STEPS = 10


class Case(NamedTuple):
    """A photograph, class probabilities (H, W, K), and the true labels, below 0 if unknown."""

    name: str
    source: str
    photo: Array
    p: Array
    truth: Array


def from_folder(folder: Path) -> Iterator[Case]:
    """Read a network's scores for photographs with labels (NAME_5labels.png, or NAME.npy)."""
    for image in read_images(folder):
        files = sorted(folder.glob(f"**/{image.name}_5labels.png"))
        files += sorted(folder.glob(f"**/{image.name}.npy"))
        if files:
            truth = np.load(files[0]) if files[0].suffix == ".npy" else imread(files[0])
            photo = np.ascontiguousarray(image.reference[..., :3])
            yield Case(image.name, "network", photo, image.probabilities, truth.astype(int))


def pictures(side: int) -> Iterator[tuple[str, Array, Array]]:
    """scikit-image's pictures, with three classes of brightness as labels."""
    for name, picture in OWN.items():
        photo = picture()[:side, :side]
        smooth = ndimage.gaussian_filter(color.rgb2gray(photo), 3)
        truth = np.digitize(smooth, filters.threshold_multiotsu(smooth, 3))
        yield name, np.ascontiguousarray(photo), truth


def made(name: str, photo: Array, truth: Array, cell: int, seed: int) -> Case:
    """Imitate the scores of a network with cells of some pixels: warped, blurred, noisy truth."""
    rng = np.random.default_rng(seed)
    known = np.where(truth < 0, 0, truth)
    labels = np.unique(known)

    def smooth_noise(shape: tuple[int, ...], sigma: float) -> Array:
        noise = ndimage.gaussian_filter(rng.normal(size=shape), (sigma, sigma, 0)[: len(shape)])
        return np.asarray(noise / (noise.std() or 1))

    warp = [0.4 * cell * smooth_noise(known.shape, 1.3 * cell) for _ in range(2)]
    places = np.indices(known.shape) + warp
    moved = ndimage.map_coordinates(known, places, order=0, mode="nearest")
    soft = [ndimage.gaussian_filter((moved == k).astype(float), 0.45 * cell) for k in labels]
    low = tuple(max(1, round(n / cell)) for n in known.shape)
    at = [((np.arange(n) + 0.5) * m / n).astype(int) for n, m in zip(low, known.shape, strict=True)]
    means = np.stack(soft, axis=2)[np.ix_(*at)]
    logits = 1.5 * np.log(means + 0.01) + smooth_noise(means.shape, 1)
    e = np.exp(resize.bilinear(logits.astype(np.float32), known.shape))
    p = np.zeros((*known.shape, int(labels.max()) + 1), np.float32)
    p[..., labels] = e / e.sum(axis=2, keepdims=True)
    return Case(name, f"made, cells of {cell}", photo, p, truth)


def mean_iou(labels: Array, truth: Array) -> float:
    """Mean intersection over union in percent, over the classes of one image's truth.

    Pixels whose 5 x 5 neighbourhood has several true labels do not count.
    """
    size = 2 * BAND + 1
    plain = ndimage.maximum_filter(truth, size) == ndimage.minimum_filter(truth, size)
    predicted, expected = (a[plain & (truth >= 0)] for a in (labels, truth))
    ratios = [
        np.sum((predicted == k) & (expected == k)) / np.sum((predicted == k) | (expected == k))
        for k in np.unique(expected)
    ]
    return 100 * float(np.mean(ratios))


def dense_crf(p: Array, photo: Array, sigmas: tuple[float, float]) -> Array:
    """Labels by the fully connected CRF of Krähenbühl and Koltun (2011), by pydensecrf2.

    Only for the classes that are the label of any pixel: the others would only cost time.
    """
    labels = np.unique(p.argmax(axis=2))
    height, width, count = *p.shape[:2], len(labels)
    energy = -np.log(np.maximum(np.moveaxis(p[..., labels], 2, 0), 1e-5))
    crf = densecrf.DenseCRF2D(width, height, count)
    crf.setUnaryEnergy(np.ascontiguousarray(energy.reshape(count, -1), np.float32))
    crf.addPairwiseGaussian(sxy=3, compat=3)
    crf.addPairwiseBilateral(sxy=sigmas[0], srgb=sigmas[1], rgbim=photo, compat=4)
    marginals = np.asarray(crf.inference(CRF_STEPS)).reshape(count, height, width)
    return np.asarray(labels[marginals.argmax(axis=0)])
