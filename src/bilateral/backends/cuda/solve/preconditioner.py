"""Prepare the paper's preconditioners (section 4): Jacobi, and the hierarchical one, the pyramid.

M^-1 r = P^T ((z_weight P(1) P(r)) / P(diag A)), where z_weight is 1 at level 0, else 2^-(5 + k).
"""

from torch import Tensor

from bilateral.backends.cuda.grid import pyramid_transfer
from bilateral.backends.cuda.grid.laplacian import Laplacian


class Preconditioner:
    """The factors of a preconditioner: r / diag A, plus sums of r over coarse vertices.

    `kind` is "jacobi" or "pyramid".
    """

    def __init__(self, matrix: Laplacian, kind: str) -> None:
        self.factors: Tensor | None = None
        """Factor of the sum over each coarse vertex; None for Jacobi, which has no such sums."""
        if kind == "pyramid":
            grid = matrix.grid
            diagonal = matrix.diagonal[:, None]
            factors = pyramid_transfer.over_coarse_sums(grid, diagonal, grid.pyramid.push)
            self.factors = factors[:, 0]
