"""The classes of the authors' notebook, over pixels in flat (N, K) arrays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.compat import cells
from bilateral.compat.steps import Options, solve

Array = NDArray[Any]

_CENTRE = 10.0
"""Centre of the blur: 2 for each dimension."""
_OFFSET = 100.0
"""Values may be so many times as far from 0 as from each other, for single precision."""


class BilateralGrid:
    """The grid of an RGB image. Vertices are numbered in another order than in the notebook.

    Parameters
    ----------
    im : (H, W, 3) array
        RGB from 0 to 255, in any real dtype.
    sigma_spatial, sigma_luma, sigma_chroma : float
        Size of a cell, in pixels and grey levels.

    Attributes
    ----------
    npixels, nvertices, dim : int
    S : (nvertices, npixels) SciPy sparse matrix
        Splat matrix.
    blurs : list of SciPy sparse matrices
        The blur [1 0 1] along each dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import BilateralGrid, BilateralSolver
    >>> image = np.zeros((16, 24, 3), np.uint8)
    >>> image[:, 12:] = 200
    >>> grid = BilateralGrid(image, sigma_spatial=8, sigma_luma=4, sigma_chroma=4)
    >>> params = {"lam": 128, "A_diag_min": 1e-5, "cg_tol": 1e-5, "cg_maxiter": 25}
    >>> x = (image[..., :1] > 100).reshape(-1, 1).astype(float)
    >>> y = BilateralSolver(grid, params).solve(x, np.ones((384, 1)))
    >>> bool(np.abs(y - x).max() < 1e-6)
    True
    """

    def __init__(
        self,
        im: ArrayLike,
        sigma_spatial: float = 32,
        sigma_luma: float = 8,
        sigma_chroma: float = 8,
    ) -> None:
        image = np.asarray(im)
        if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
            raise ValueError(
                f"im: expected an RGB image of shape (H, W, 3), got shape {image.shape}. For gray "
                f"images repeat the channel: np.repeat(im[..., None], 3, axis=2)."
            )
        space = validation.positive("sigma_spatial", sigma_spatial)
        luma = validation.positive("sigma_luma", sigma_luma)
        chroma = validation.positive("sigma_chroma", sigma_chroma)
        if image.dtype.kind == "f":
            validation.finite_values("im", image)
        self.grid = cells.build(cells.notebook_cells(image, luma, chroma), space, _CENTRE)
        self.shape: tuple[int, int] = image.shape[:2]
        self.npixels = image.shape[0] * image.shape[1]
        self.nvertices = self.grid.n_vertices
        self.dim = 5

    def splat(self, x: ArrayLike) -> Array:
        """Sum the pixels of each vertex."""
        return self.grid.splat(self._image("x", x))

    def slice(self, y: ArrayLike) -> Array:
        """Give each pixel the value of its vertex."""
        pixels = self.grid.slice(np.asarray(y, np.float64))
        return pixels.reshape(self.npixels, *pixels.shape[2:])

    def blur(self, x: ArrayLike) -> Array:
        """Blur a vector over vertices with [1 2 1] along each dimension."""
        return self.grid.blur(np.asarray(x, np.float64))

    def filter(self, x: ArrayLike) -> Array:
        """Apply the bilateral filter to pixels."""
        values = np.asarray(x, np.float64)
        ones = np.ones_like(values)
        return self.slice(self.blur(self.splat(values))) / self.slice(self.blur(self.splat(ones)))

    def _image(self, name: str, x: ArrayLike) -> Array:
        """Return flat pixels as an image (H, W) or (H, W, K) of doubles."""
        values = np.asarray(x, np.float64)
        if values.ndim not in (1, 2) or len(values) != self.npixels:
            raise ValueError(
                f"{name}: expected shape ({self.npixels},) or ({self.npixels}, K), one row per "
                f"pixel, got shape {values.shape}. Flatten images: {name}.reshape(-1, 1)."
            )
        return values.reshape(*self.shape, *values.shape[1:])

    @cached_property
    def S(self) -> Any:  # noqa: N802
        """The splat matrix, a SciPy sparse matrix."""
        vertex = self.grid.slice(np.arange(self.nvertices, dtype=np.float64)).ravel()
        index = vertex.astype(np.int64), np.arange(self.npixels)
        shape = self.nvertices, self.npixels
        return _sparse().csr_matrix((np.ones(self.npixels), index), shape)

    @cached_property
    def blurs(self) -> list[Any]:
        """The blur [1 0 1] along each dimension, as SciPy sparse matrices."""
        where = {tuple(cell): i for i, cell in enumerate(self.grid.coordinates().tolist())}
        shape = self.nvertices, self.nvertices
        matrices = []
        for axis in range(self.dim):
            pairs = []
            for cell, i in where.items():
                for step in (-1, 1):
                    neighbour = (*cell[:axis], cell[axis] + step, *cell[axis + 1 :])
                    if neighbour in where:
                        pairs.append((i, where[neighbour]))
            index = np.array(pairs, np.int64).reshape(-1, 2).T
            ones = np.ones(index.shape[1])
            matrices.append(_sparse().csr_matrix((ones, (index[0], index[1])), shape))
        return matrices


def bistochastize(grid: BilateralGrid, maxiter: int = 10) -> tuple[Any, Any]:
    """Return the diagonal matrices Dn and Dm that bistochastize a grid, as SciPy sparse matrices.

    `BilateralSolver` does not need them: its own grid is bistochastized to convergence.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import BilateralGrid, bistochastize
    >>> grid = BilateralGrid(np.zeros((16, 24, 3), np.uint8), sigma_spatial=8)
    >>> Dn, Dm = bistochastize(grid)
    >>> np.round(Dm.diagonal()).tolist()
    [64.0, 64.0, 64.0, 64.0, 64.0, 64.0]
    """
    m = grid.splat(np.ones(grid.npixels))
    n = np.ones(grid.nvertices)
    for _ in range(maxiter):
        n = np.sqrt(n * m / grid.blur(n))
    m = n * grid.blur(n)
    return _sparse().diags(n, 0), _sparse().diags(m, 0)


class BilateralSolver:
    """Solves targets on a grid by conjugate gradients with a fixed number of steps.

    Parameters
    ----------
    grid : bilateral.compat.BilateralGrid
    params : mapping
        "lam": the smoothness. "cg_maxiter": number of steps. "cg_tol" and "A_diag_min" are
        accepted: all steps are taken, which can only be more exact.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.compat import BilateralGrid, BilateralSolver
    >>> grid = BilateralGrid(np.zeros((16, 24, 3), np.uint8), sigma_spatial=8)
    >>> solver = BilateralSolver(grid, {"lam": 128, "cg_maxiter": 25})
    >>> solver.solve(np.full((384, 1), 3.0), np.ones((384, 1)))[:2].round(6).tolist()
    [[3.0], [3.0]]
    """

    def __init__(self, grid: BilateralGrid, params: Mapping[str, float]) -> None:
        validation.instance("grid", grid, BilateralGrid, "bilateral.compat.BilateralGrid(image)")
        for key in ("lam", "cg_maxiter"):
            if key not in params:
                raise ValueError(f"params: expected the key {key!r}, got {sorted(params)}.")
        self.grid = grid
        self.params = params
        self._options = Options.checked(params["lam"], int(params["cg_maxiter"]))

    def solve(self, x: ArrayLike, w: ArrayLike) -> Array:
        """Return the smooth (N, K) pixels of the target x (N, K) with the confidence w (N, 1).

        Pixels whose vertices have no confidence, NaN in the notebook, take values from the
        surroundings.
        """
        target = np.asarray(x, np.float64)
        confidence = self.grid._image("w", w)
        if confidence.ndim == 3 and confidence.shape[2] == 1:
            confidence = confidence[..., 0]
        if confidence.ndim == 3:
            raise ValueError(
                f"w: expected one confidence per pixel, (N,) or (N, 1), got {np.shape(w)}."
            )
        pixels = self.grid._image("x", target)
        if _single_precision_is_enough(target):
            pixels, confidence = pixels.astype(np.float32), confidence.astype(np.float32)
        return solve(self.grid.grid, self._options, pixels, confidence).reshape(target.shape)

    @cached_property
    def _diagonals(self) -> tuple[Any, Any]:
        return bistochastize(self.grid)

    @property
    def Dn(self) -> Any:  # noqa: N802
        """Diagonal matrix of `bistochastize`."""
        return self._diagonals[0]

    @property
    def Dm(self) -> Any:  # noqa: N802
        """Diagonal matrix of `bistochastize`."""
        return self._diagonals[1]


def _single_precision_is_enough(values: Array) -> bool:
    """Whether single precision tells the values apart; False for values that are not finite."""
    low, high = float(values.min()), float(values.max())
    return max(-low, high) < _OFFSET * (high - low)


def _sparse() -> Any:
    """Import SciPy's sparse matrices, which only the attributes of the notebook need."""
    try:
        from scipy import sparse
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "This attribute is a SciPy matrix, and SciPy is not installed. Install it with: "
            "pip install scipy",
            name="scipy",
        ) from error
    return sparse
