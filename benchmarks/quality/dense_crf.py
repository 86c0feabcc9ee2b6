"""Run the fully connected CRF of Krähenbühl and Koltun (2011), if pydensecrf2 is installed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

try:
    from pydensecrf import densecrf  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    densecrf = None

MISSING = "Dense CRF skipped: install it with pip install pydensecrf2."
SETTINGS = {"CRF 67 / 3": (67, 3), "CRF 30 / 5": (30, 5)}
"""Sigmas of the bilateral kernel, in pixels and in grey levels."""
STEPS = 10


def dense_crf(p: Array, photo: Array, sigmas: tuple[float, float]) -> Array:
    """Labels, from the classes that are the label of any pixel: the others would only cost time."""
    labels = np.unique(p.argmax(axis=2))
    height, width, count = *p.shape[:2], len(labels)
    energy = -np.log(np.maximum(np.moveaxis(p[..., labels], 2, 0), 1e-5))
    crf = densecrf.DenseCRF2D(width, height, count)
    crf.setUnaryEnergy(np.ascontiguousarray(energy.reshape(count, -1), np.float32))
    crf.addPairwiseGaussian(sxy=3, compat=3)
    crf.addPairwiseBilateral(sxy=sigmas[0], srgb=sigmas[1], rgbim=photo, compat=4)
    marginals = np.asarray(crf.inference(STEPS)).reshape(count, height, width)
    return np.asarray(labels[marginals.argmax(axis=0)])
