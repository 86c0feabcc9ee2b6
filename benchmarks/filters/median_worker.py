"""OpenCV's median filter, timed call by call: a script for a Python that has it, often an old one.

Without arguments it prints OpenCV's version and leaves. With a folder of .npy files, it filters the
one that each request on its standard input names, one line of JSON, and answers with another.
"""

import json
import os
import sys
import time

import cv2  # type: ignore[import-not-found, unused-ignore]
import numpy as np


def main(folder: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        image = np.load(os.path.join(folder, request["image"] + ".npy"))
        cv2.setNumThreads(request["threads"])
        began = time.perf_counter()
        result = cv2.medianBlur(image, request["size"])
        seconds = time.perf_counter() - began
        if request["save"]:
            np.save(os.path.join(folder, "result.npy"), result)
        answer = {"seconds": seconds, "cpu_seconds": time.process_time()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        print(json.dumps({"opencv": cv2.__version__}))
