"""Time OpenCV's functions call by call: a script for another Python that has cv2.

``--try CALL`` makes a small call and prints OpenCV's version. With a folder of .npy files, the
script reads requests from standard input, one line of JSON each, and answers with one line each.
"""

import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from typing import Any

import cv2  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CONSTRUCTION = {"seconds": 0.0}  # of the last solver


def main(folder: str) -> None:
    # The bilateral solver prints to standard output: keep that for the answers alone.
    answers = os.fdopen(os.dup(1), "w")
    printed = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(printed.fileno(), 1)
    arrays = {file[:-4]: np.load(os.path.join(folder, file)) for file in os.listdir(folder)}
    for line in sys.stdin:
        request = json.loads(line)
        cv2.setNumThreads(request["threads"])
        inputs = [arrays[name] for name in request["arrays"]]
        began = time.perf_counter()
        result = CALLS[request["call"]](*inputs, *request["settings"])
        seconds = time.perf_counter() - began
        if request["save"]:
            np.save(os.path.join(folder, "result.npy"), result)
        printed.seek(0)
        counts = re.findall(rb"#iterations: *(\d+)", printed.read())
        answer = {"seconds": seconds, "construction": CONSTRUCTION["seconds"]}
        answer |= {"iterations": int(counts[-1]) if counts else None}
        answer |= {"cpu_seconds": time.process_time()}
        printed.truncate(0)
        print(json.dumps(answer), file=answers, flush=True)


def domain_transform(photo: Array, z: Array, *settings: float) -> Array:
    """The recursive filter; settings: two sigmas and, by default 3, iterations."""
    sigmas, iterations = settings[:2], int(settings[2]) if settings[2:] else 3
    mode = cv2.ximgproc.DTF_RF
    return cv2.ximgproc.dtFilter(photo, z, *sigmas, mode=mode, numIters=iterations)


def wls(photo: Array, z: Array, smoothness: float, sigma: float) -> Array:
    """OpenCV's filter of one disparity map, which takes 16ths of a pixel."""
    smoother = cv2.ximgproc.createDisparityWLSFilterGeneric(False)
    smoother.setLambda(smoothness)
    smoother.setSigmaColor(sigma)
    return smoother.filter(np.rint(z * 16).astype(np.int16), photo) / 16


def wls_with_confidence(photo: Array, z: Array, confidence: Array, *settings: float) -> Array:
    """The same with our confidence: OpenCV can make one only from a second map."""
    smoother = cv2.ximgproc.createFastGlobalSmootherFilter(photo, *settings)
    weights = np.maximum(confidence, 1e-6)
    return smoother.filter(z * weights) / np.maximum(smoother.filter(weights), 1e-12)


def bilateral_solver(guide: Array, z: Array, confidence: Array, *settings: float) -> Array:
    """The solver; settings: three sigmas, smoothness, steps. The guide is BGR."""
    began = time.perf_counter()
    solver = cv2.ximgproc.createFastBilateralSolverFilter(guide, *settings, 1e-20)
    CONSTRUCTION["seconds"] = time.perf_counter() - began
    return solver.filter(z, confidence)


def ip_basic(z: Array) -> Array:
    """IP-Basic (Ku et al. 2018) from the file that IP_BASIC names; depths in metres, 0 unknown."""
    np.bool = bool  # an alias that it uses and NumPy removed
    spec = importlib.util.spec_from_file_location("ip_basic", os.environ["IP_BASIC"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.fill_in_multiscale(z, extrapolate=True)[0]


CALLS = {
    "median": lambda image, size: cv2.medianBlur(image, size),
    "guided filter": lambda photo, z, r, sigma: cv2.ximgproc.guidedFilter(photo, z, r, sigma**2),
    "domain transform": domain_transform,
    "weighted median": lambda photo, z, radius, sigma: cv2.ximgproc.weightedMedianFilter(
        photo, z, radius, sigma, cv2.ximgproc.WMF_EXP
    ),
    "fast global smoother": lambda *inputs: cv2.ximgproc.fastGlobalSmootherFilter(*inputs),
    "WLS": wls,
    "WLS with confidence": wls_with_confidence,
    "fast bilateral solver": bilateral_solver,
    "IP-Basic": ip_basic,
}


def attempt(call: str) -> None:
    """Make a small call: some builds have a function and fail when it is called."""
    photo, z = np.zeros((16, 16, 3), np.uint8), np.zeros((16, 16), np.float32)
    inputs = {"guided filter": (photo, z, 2, 1.0), "domain transform": (photo, z, 8, 8)}
    if call == "fast bilateral solver":  # only constructed: its filter prints
        cv2.ximgproc.createFastBilateralSolverFilter(photo, 8, 8, 8)
    else:
        CALLS[call](*inputs.get(call, (z, 3)))


if __name__ == "__main__":
    if sys.argv[1] == "--try":
        attempt(sys.argv[2])
        print(json.dumps({"opencv": cv2.__version__, "opencv_numpy": np.__version__}))
    else:
        main(sys.argv[1])
