"""Drop-ins for the bilateral solvers in use today: the same calls and results, faster and finite.

`bilateral_solver_output` has the call of TokenCut and FOUND; `BilateralGrid`, `bistochastize` and
`BilateralSolver` are the classes of the authors' notebook; `fastBilateralSolverFilter` and
`createFastBilateralSolverFilter` are OpenCV's (``cv2.ximgproc``).

Each gives the results of its original: its cells, its blur, its number of steps. Where the original
fails (NaN without confidence, merged cells beyond 255 in a row), the result is that of
`bilateral.solve`, which is also the better choice for new code: it converges.
"""

from bilateral.compat.notebook import BilateralGrid, BilateralSolver, bistochastize
from bilateral.compat.object_mask import bilateral_solver_output
from bilateral.compat.opencv import (
    FastBilateralSolverFilter,
    createFastBilateralSolverFilter,
    fastBilateralSolverFilter,
)

__all__ = [
    "BilateralGrid",
    "BilateralSolver",
    "FastBilateralSolverFilter",
    "bilateral_solver_output",
    "bistochastize",
    "createFastBilateralSolverFilter",
    "fastBilateralSolverFilter",
]
