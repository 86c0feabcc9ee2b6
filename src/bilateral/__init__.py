"""The Fast Bilateral Solver (Barron & Poole, ECCV 2016).

The solver smooths a noisy, sparse or coarse map (depth, flow, colours, a mask) and aligns it with
the edges of a photograph, by one sparse linear solve in bilateral space. Start with `solve`, or
with a function of `tasks`.

>>> import numpy as np
>>> import bilateral
>>> photo = np.zeros((64, 64, 3), np.uint8)
>>> photo[:, 32:] = 200
>>> noise = np.random.default_rng(0).normal(size=(64, 64))
>>> depth = np.where(np.arange(64) < 32, 1.0, 3.0) + 0.3 * noise
>>> smooth = bilateral.solve(photo, depth, smoothness=32)
>>> smooth.shape, bool(abs(smooth[:, :32] - 1).max() < 0.3)
((64, 64), True)
"""

from collections.abc import Callable
from typing import Any

from bilateral import confidence, tasks
from bilateral.filters.block_means import BlockMeans
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.filters.polish import polish
from bilateral.functional import solve
from bilateral.grid import BilateralGrid
from bilateral.info import ConvergenceWarning, SolveInfo
from bilateral.losses import Barron, Cauchy, Charbonnier, GemanMcClure, Huber, Loss, Welsch
from bilateral.solver import BilateralSolver
from bilateral.tasks.segmentation import array_types
from bilateral.threads import get_num_threads, set_num_threads

__version__: str

__all__ = [
    "Barron",
    "BilateralGrid",
    "BilateralSolver",
    "BlockMeans",
    "Cauchy",
    "Charbonnier",
    "ConvergenceWarning",
    "GemanMcClure",
    "Huber",
    "Loss",
    "SolveInfo",
    "Welsch",
    "__version__",
    "confidence",
    "domain_transform",
    "get_num_threads",
    "median",
    "polish",
    "set_num_threads",
    "solve",
    "tasks",
]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here because it takes longer than all other imports together.
    from importlib.metadata import version

    return version(__name__)


def _refine_tensors() -> Callable[..., Any]:
    """Import the refinement of tensors only when a tensor arrives."""
    from bilateral.torch import refine_segmentation

    return refine_segmentation


array_types.register("torch.Tensor", _refine_tensors)
