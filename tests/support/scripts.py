"""Run a program in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run(code: str, tmp_path: Path, **environment: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    known = {k: v for k, v in os.environ.items() if k != "BILATERAL_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        env=known | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
