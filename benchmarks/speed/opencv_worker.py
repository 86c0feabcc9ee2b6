"""OpenCV's solver, timed call by call: a script for a Python that has it, often an old one.

Without arguments it prints OpenCV's version and leaves. With a folder of guide.npy (BGR),
target.npy, confidence.npy and clean.npy, it answers each request on its standard input, one line
of JSON, with another.
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

import cv2  # type: ignore[import-not-found, unused-ignore]
import numpy as np
from numpy.typing import NDArray


def main(folder: str) -> None:
    # The filter prints to standard output: keep that for the answers alone.
    answers = os.fdopen(os.dup(1), "w")
    chatter = tempfile.TemporaryFile()  # noqa: SIM115
    os.dup2(chatter.fileno(), 1)
    maps = [
        np.load(os.path.join(folder, name + ".npy"))
        for name in ("guide", "target", "confidence", "clean")
    ]
    for line in sys.stdin:
        answer = run(*maps, **json.loads(line))
        chatter.seek(0)
        answer["iterations"] = iterations(chatter.read().decode())
        chatter.seek(0)
        chatter.truncate()
        print(json.dumps(answer), file=answers, flush=True)


def run(
    guide: NDArray[np.uint8],
    target: NDArray[np.float32],
    confidence: NDArray[np.float32],
    clean: NDArray[np.float32],
    sigma: float,
    smoothness: float,
    steps: int,
    threads: int,
) -> dict[str, Any]:
    cv2.setNumThreads(threads)
    began = time.perf_counter()
    solver = cv2.ximgproc.createFastBilateralSolverFilter(
        guide, sigma, sigma, sigma, smoothness, steps, 1e-20
    )
    construction = time.perf_counter() - began
    result = solver.filter(target, confidence)
    seconds = time.perf_counter() - began
    error = np.sqrt(np.mean((result - clean) ** 2, dtype=np.float64))
    return {
        "seconds": seconds,
        "construction": construction,
        "error": float(error),
        "cpu_seconds": time.process_time(),
    }


def iterations(chatter: str) -> int | None:
    for line in chatter.splitlines():
        if line.startswith("#iterations:"):
            return int(line.split(":")[1])
    return None


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        cv2.ximgproc.createFastBilateralSolverFilter(np.zeros((8, 8, 3), np.uint8), 8, 8, 8)
        print(json.dumps({"opencv": cv2.__version__, "opencv_numpy": np.__version__}))
