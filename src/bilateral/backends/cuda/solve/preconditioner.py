"""The paper's preconditioners (section 4): Jacobi's, and the hierarchical one.

M^-1 r = P^T ((z_weight P(1) P(r)) / P(diag A)), z_weight being 1 at level 0, else 2^-(5 + k).
"""

from torch import Tensor

from bilateral.backends.cuda.grid import pyramid_transfer as sums
from bilateral.backends.cuda.grid.laplacian import Matrix


class Preconditioner:
    """r / diag A, and what the levels above the grid add to it."""

    def __init__(self, matrix: Matrix, kind: str) -> None:
        self.factors: Tensor | None = None
        """Of the sums over coarse vertices; None if there are none."""
        if kind == "pyramid":
            grid = matrix.grid
            diagonal = matrix.diagonal[:, None]
            self.factors = sums.over_coarse_sums(grid, diagonal, grid.pyramid.push)[:, 0]
