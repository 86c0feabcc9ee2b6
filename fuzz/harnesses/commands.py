"""The command line: any options give an exit code from 0 to 2, and never a traceback."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np

from bilateral import io as files
from bilateral.cli.main import main
from fuzz.call import Call, Case, require
from fuzz.draw import Draw

COMMANDS = ("solve", "depth", "complete", "superres", "filter", "median", "info", "convert")
OPTIONS = ("--smoothness", "--sigma-xy", "--jobs", "--limit", "--dtype", "--preset", "--invalid")
VALUES = ("4", "-1", "nan", "auto", "uint16", "sensor", "x", "", "1e400", "0", "\u00e4", "8,8")
FLAGS = ("--force", "--json", "--dry-run", "--help", "--nonsense", "-q", "-v", "--")


def quietly(arguments: list[str]) -> tuple[int, str]:
    """Run the command; return its exit code and what it wrote to stderr."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, errors.getvalue()


def commands(d: Draw) -> Case:
    """A command on small files in a folder that is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shape = d.shape(12)
        files.write(place / "photo.png", (255 * d.levels((*shape, 3))).astype(np.uint8))
        files.write(place / "depth.pfm", (1 + d.levels(shape)).astype(np.float32))
        arguments = [d.choice(COMMANDS)]
        output = str(place / d.choice(("out.pfm", "out.png", "out.npy", "no/out.pfm", "out.xyz")))
        if d.chance(0.8):
            arguments += [str(place / "depth.pfm"), str(place / "photo.png"), "-o", output]
        for _ in range(d.choice((0, 0, 0, 1, 2))):
            at = d.randrange(1, len(arguments) + 1)
            arguments[at:at] = [d.choice(OPTIONS), d.choice(VALUES)]
        if d.chance(0.2):
            arguments.insert(d.randrange(1, len(arguments) + 1), d.choice(FLAGS))
        code, errors = yield Call(quietly, arguments)
        require(code in (0, 1, 2), "exit code", code, arguments)
        require("Traceback" not in errors, "a traceback", arguments)
        require(code == 0 or errors or "--json" in arguments, "a silent failure", arguments)
