"""Run a command with the module that a sanitizer watches: `python -m fuzz.sanitized fuzz -- ...`.

The preset `fuzz` (AddressSanitizer and UndefinedBehaviorSanitizer) builds the module into
`build/fuzz/installed`. The command gets it together with this tree's Python files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = {"fuzz": "libasan.so"}


def environment(preset: str, overlay: Path) -> dict[str, str]:
    """Return the variables that load the module of a preset and the sanitizer's library.

    `overlay` is an empty folder, for the module and this tree's Python files.
    """
    installed = ROOT / "build" / preset / "installed" / "bilateral"
    modules = list(installed.glob("_core*.so"))
    if not modules:
        raise SystemExit(f"no module in {installed}: make fuzz builds it")
    shutil.copytree(ROOT / "src" / "bilateral", overlay / "bilateral")
    shutil.copy(modules[0], overlay / "bilateral")
    compiler = os.environ.get("CXX", "g++")
    found = subprocess.run(
        [compiler, f"-print-file-name={LIBRARY[preset]}"],
        check=True,
        capture_output=True,
        text=True,
    )
    runtime = subprocess.run(
        [compiler, "-print-file-name=libstdc++.so"], check=True, capture_output=True, text=True
    )
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(overlay), str(ROOT)]),
        # libstdc++ as well: else the sanitizer finds no __cxa_throw to watch.
        "LD_PRELOAD": f"{found.stdout.strip()} {runtime.stdout.strip()}",
        # Python itself keeps memory until its end; a limit of memory answers with MemoryError.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }


def main() -> int:
    """Run the command after `--`; return its exit code."""
    preset, _, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:  # of this run, since several may run at once
        variables = environment(preset, Path(folder))
        return subprocess.run(command, env=variables, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
