"""The tests' oracle, for tiny problems."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from oracles import reference as oracle

Array = NDArray[Any]
GRID = ("sigma_xy", "sigma_luma", "sigma_chroma", "blur")


def oracle_options(
    options: dict[str, Any], photo: Array, target: Array, confidence: Array | None
) -> bool:
    """Whether the oracle has the options, and float64 has the digits for an exact comparison."""
    known = set(GRID) | {"tolerance", "smoothness", "preconditioner", "initial", "max_iterations"}
    if not set(options) <= known or photo.dtype.name == "float16":
        return False
    smoothness = options.get("smoothness", 4.0)
    if isinstance(smoothness, str) or not 1e-3 <= smoothness <= 1e3:
        return False
    weights = np.ones(1) if confidence is None else confidence[confidence > 0]
    return bool(weights.min() > 1e-3 and weights.max() < 1e3) and target.dtype.kind != "b"


def exact(
    photo: Array, target: Array, confidence: Array | None, options: dict[str, Any]
) -> NDArray[np.float64]:
    """Solve directly."""
    grid = {name: options[name] for name in GRID if name in options}
    photo = np.ascontiguousarray(photo).astype(photo.dtype.newbyteorder("="))
    target = np.ascontiguousarray(target).astype(np.float64)
    smoothness = options.get("smoothness", 4.0)
    return oracle.solve(photo, target, confidence, smoothness=smoothness, **grid)
