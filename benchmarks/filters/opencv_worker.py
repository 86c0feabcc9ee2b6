"""OpenCV's domain transform, timed call by call: a script for a Python that has it.

Without arguments it prints OpenCV's version and leaves. With a folder of photo.npy, it answers
each request on its standard input, one line of JSON, with another, and leaves result.npy.
"""

import json
import os
import sys
import time
from typing import Any

import cv2  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from numpy.typing import NDArray


def main(folder: str) -> None:
    photo = np.load(os.path.join(folder, "photo.npy"))
    for line in sys.stdin:
        request = json.loads(line)
        save = request.pop("save")
        answer, result = run(photo, **request)
        if save:
            np.save(os.path.join(folder, "result.npy"), result)
        print(json.dumps(answer), flush=True)


def run(
    photo: NDArray[np.uint8],
    dtype: str,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int,
    threads: int,
) -> tuple[dict[str, Any], NDArray[Any]]:
    cv2.setNumThreads(threads)
    image = photo.astype(dtype)
    began = time.perf_counter()
    result = cv2.ximgproc.dtFilter(
        photo, image, sigma_xy, sigma_rgb, mode=cv2.ximgproc.DTF_RF, numIters=iterations
    )
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "cpu_seconds": time.process_time()}, result


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        run(np.zeros((8, 8, 3), np.uint8), "uint8", 8, 8, 1, 1)
        print(json.dumps({"opencv": cv2.__version__, "opencv_numpy": np.__version__}))
