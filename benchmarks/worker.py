"""A peer that lives under another Python: a script that answers requests, one line each."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


def probe(python: str, script: Path) -> dict[str, str] | None:
    """What the script says of itself under that Python, or None where it cannot run."""
    try:
        done = subprocess.run(
            [python, "-I", str(script)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


class Worker:
    """The script in a process of its own, given a folder of arrays; a context manager."""

    def __init__(self, python: str, script: Path, arrays: dict[str, NDArray[Any]]) -> None:
        self.cpu_seconds = 0.0
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        for name, values in arrays.items():
            np.save(self.folder / name, np.ascontiguousarray(values))
        # -I: neither our folder nor our environment's packages on its path.
        self._process = subprocess.Popen(
            [python, "-I", str(script), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request, wait for its answer, and note the process's CPU seconds in it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer's process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        self.cpu_seconds = answer["cpu_seconds"]
        return answer
