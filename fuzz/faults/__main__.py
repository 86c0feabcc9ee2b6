"""`python -m fuzz.faults [call ...]`: fail every allocation of the core in turn."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "faults"


def library() -> Path:
    """Build the allocator that fails on purpose."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    built = FOLDER / "liballocator.so"
    compiler = os.environ.get("CXX", "g++")
    source = Path(__file__).with_name("allocator.cpp")
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(built)], check=True)
    return built


def main() -> int:
    """Run the calls in a process with the allocator; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.faults", description=__doc__)
    parser.add_argument("call", nargs="*", help="all by default")
    parser.add_argument("--every", type=int, default=1, help="fail every n-th allocation only")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    built = str(library())
    command = [sys.executable, "-m", "fuzz.faults.run", built, str(given.every), *given.call]
    environment = {
        **os.environ,
        "LD_PRELOAD": built,
        "BILATERAL_NUM_THREADS": str(given.threads),
    }
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
