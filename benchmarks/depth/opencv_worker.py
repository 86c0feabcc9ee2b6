"""OpenCV's edge-aware filters: a script for a Python that has them.

Without arguments it prints OpenCV's version and leaves. With a folder of photo.npy, filled.npy (a
map without holes) and confidence.npy, it answers each request on its standard input, one line of
JSON, with another, and leaves result.npy.
"""

import json
import os
import sys
import time
from typing import Any

import cv2  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def main(folder: str) -> None:
    arrays = [
        np.load(os.path.join(folder, f"{name}.npy")) for name in ("photo", "filled", "confidence")
    ]
    # The bilateral solver prints to standard output: keep that for the answers alone.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        cv2.setNumThreads(request.get("threads", -1))
        began = time.perf_counter()
        result = FILTERS[request["filter"]](*arrays, *request["settings"])
        seconds = time.perf_counter() - began
        np.save(os.path.join(folder, "result.npy"), result.astype(np.float32))
        answer = {"seconds": seconds, "cpu_seconds": time.process_time()}
        print(json.dumps(answer), file=answers, flush=True)


def guided(photo: Array, z: Array, _: Array, radius: int, sigma: float) -> Array:
    return cv2.ximgproc.guidedFilter(photo, z, radius, sigma**2)


def domain_transform(photo: Array, z: Array, _: Array, sigma_xy: float, sigma_rgb: float) -> Array:
    return cv2.ximgproc.dtFilter(photo, z, sigma_xy, sigma_rgb, mode=cv2.ximgproc.DTF_RF)


def weighted_median(photo: Array, z: Array, _: Array, radius: int, sigma: float) -> Array:
    return cv2.ximgproc.weightedMedianFilter(photo, z, radius, sigma, cv2.ximgproc.WMF_EXP)


def global_smoother(photo: Array, z: Array, _: Array, smoothness: float, sigma: float) -> Array:
    return cv2.ximgproc.fastGlobalSmootherFilter(photo, z, smoothness, sigma)


def wls(photo: Array, z: Array, _: Array, smoothness: float, sigma: float) -> Array:
    """As OpenCV has it for one map; it takes 16ths of a pixel."""
    smoother = cv2.ximgproc.createDisparityWLSFilterGeneric(False)
    smoother.setLambda(smoothness)
    smoother.setSigmaColor(sigma)
    return smoother.filter(np.rint(z * 16).astype(np.int16), photo) / 16


def wls_with_confidence(
    photo: Array, z: Array, confidence: Array, smoothness: float, sigma: float
) -> Array:
    """The same with a confidence, which OpenCV makes only from a second map."""
    smoother = cv2.ximgproc.createFastGlobalSmootherFilter(photo, smoothness, sigma)
    weights = np.maximum(confidence, 1e-6)
    return smoother.filter(z * weights) / np.maximum(smoother.filter(weights), 1e-12)


def bilateral_solver(
    photo: Array,
    z: Array,
    confidence: Array,
    sigma_xy: float,
    sigma_luma: float,
    sigma_chroma: float,
    smoothness: float,
    steps: int,
) -> Array:
    guide = np.ascontiguousarray(photo[..., ::-1])
    sigmas = sigma_xy, sigma_luma, sigma_chroma
    solver = cv2.ximgproc.createFastBilateralSolverFilter(guide, *sigmas, smoothness, steps, 1e-20)
    return solver.filter(z, confidence)


FILTERS = {
    "guided filter": guided,
    "domain transform": domain_transform,
    "weighted median": weighted_median,
    "fast global smoother": global_smoother,
    "WLS": wls,
    "WLS with confidence": wls_with_confidence,
    "fast bilateral solver": bilateral_solver,
}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        guided(np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.float32), np.zeros(1), 2, 1.0)
        print(json.dumps({"opencv": cv2.__version__, "opencv_numpy": np.__version__}))
