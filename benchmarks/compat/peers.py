"""Load the originals that `bilateral.compat` replaces, from a folder of the reader's own.

They need two changes to run on today's Python: SciPy has renamed ``tol``, and the notebook is for
Python 2 and plots pictures of its own.
"""

import re
from pathlib import Path
from types import ModuleType

import numpy as np

TOKENCUT, FOUND = "tokencut_bilateral_solver.py", "found_bilateral_solver.py"
NOTEBOOK = "poolio_bilateral_solver.py"
ORIGINS = {
    TOKENCUT: "bilateral_solver.py of https://github.com/YangtaoWANG95/TokenCut",
    FOUND: "bilateral_solver.py of https://github.com/valeoai/FOUND",
    NOTEBOOK: "the code cells of the notebook of https://github.com/poolio/bilateral_solver",
}


def load(folder: Path, name: str) -> ModuleType | None:
    """Run an original as a module; None if the folder does not have it."""
    path = folder / name
    if not path.is_file():
        return None
    source = path.read_text()
    if name == NOTEBOOK:  # the classes lie between its inputs and its parameters
        source = source[source.index("RGB_TO_YUV") : source.index("grid_params")]
        source = source.replace("xrange", "range")
    module = ModuleType(path.stem)
    module.__dict__["np"] = np
    exec(compile(re.sub(r"\btol=", "rtol=", source), path, "exec"), module.__dict__)
    return module
