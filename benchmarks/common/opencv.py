"""Call OpenCV in a process of another Python, through `opencv_worker.py`."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.common import Array

SCRIPT = Path(__file__).with_name("opencv_worker.py")


def probe(python: str, call: str) -> dict[str, str] | None:
    """Versions of OpenCV and its NumPy under that Python, or None if the call does not work."""
    try:
        command = [python, "-I", str(SCRIPT), "--try", call]
        return json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))
    except (OSError, subprocess.CalledProcessError):
        return None


def skipped(python: str, call: str) -> str:
    return (
        f"OpenCV skipped: {python} has no cv2 that can do this: {call}. On Debian and Ubuntu: "
        "apt-get install python3-opencv. No wheel of pip has the bilateral solver."
    )


class Worker:
    """The worker's process with a folder of arrays; a context manager."""

    def __init__(self, python: str, arrays: dict[str, Array]) -> None:
        self.cpu_seconds = 0.0
        self._folder = tempfile.TemporaryDirectory()
        for name, values in arrays.items():
            np.save(Path(self._folder.name) / name, np.ascontiguousarray(values))
        # -I keeps our folder and our environment's packages off its path.
        command = [python, "-I", str(SCRIPT), self._folder.name]
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        self._process: Any = subprocess.Popen(command, text=True, **pipes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def run(
        self, call: str, arrays: str, *settings: float, threads: int = -1, save: bool = False
    ) -> dict[str, Any]:
        """Make one of the worker's `CALLS` with named arrays; `save` it for `result`."""
        request = {"call": call, "arrays": arrays.split(), "settings": settings}
        request |= {"threads": threads, "save": save}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer's process ended with {self._process.wait()}")
        answer = json.loads(line)
        self.cpu_seconds = answer["cpu_seconds"]
        return answer

    def result(self) -> Array:
        return np.asarray(np.load(Path(self._folder.name) / "result.npy"))
