"""The Fast Bilateral Solver (Barron & Poole, ECCV 2016) in plain NumPy and SciPy.

Slow, float64, and independent of the library: the oracle of every other test. Names and equation
numbers are the paper's. Pixels are in row-major order, ``D`` counts the grid's dimensions and
``K`` the target's channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

Array = npt.NDArray[np.float64]
Cells = npt.NDArray[np.int64]
Image = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Blur = str | tuple[float, float, float]
Operator = Callable[[Array], Array]

RGB_TO_YUV = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
)


def yuv(reference: Image, reference_max: float | None = None) -> Array:
    """Full-range BT.601 (H, W, 3) of an RGB image, luma (H, W, 1) of a gray one, in 0..255."""
    if reference_max is None:
        known = {"uint8": 255, "uint16": 65535, "float16": 1, "float32": 1, "float64": 1}
        reference_max = known[reference.dtype.name]
    levels: Array = reference.astype(np.float64) * 255 / reference_max
    if reference.ndim == 2 or reference.shape[2] == 1:
        return levels.reshape(*reference.shape[:2], 1)
    return np.asarray(levels @ RGB_TO_YUV.T + [0, 128, 128])


def grid_coordinates(
    reference: Image,
    sigma_xy: float,
    sigma_luma: float,
    sigma_chroma: float,
    reference_max: float | None = None,
) -> Cells:
    """Each pixel's cell, (n_pixels, D) with columns x, y, l[, u, v].

    A value on a cell's edge, up to rounding, belongs to the upper cell. A column that would have
    negative cells is shifted to start at 0.
    """
    colors = yuv(reference, reference_max)
    y, x = np.indices(colors.shape[:2])
    values = np.dstack([x, y, colors]).reshape(x.size, -1)
    sigmas = [sigma_xy, sigma_xy, sigma_luma, sigma_chroma, sigma_chroma][: values.shape[1]]
    cells: Cells = np.floor(values / sigmas + 1e-9).astype(np.int64)
    return np.asarray(cells - np.minimum(cells.min(axis=0), 0))


@dataclass(frozen=True)
class Grid:
    """A bistochastized bilateral grid and its pyramid."""

    V: Cells  # (n_vertices, D): the vertices' cells, sorted by y, x, l, u, v
    S: sparse.csr_array  # (n_vertices, n_pixels): splat; its transpose is slice
    B: sparse.csr_array  # (n_vertices, n_vertices): B-bar
    n: Array
    m: Array
    levels: list[sparse.csr_array]  # S_k: splat from level k to level k + 1


def simplified_grid(cells: Cells, n_space: int = 2) -> tuple[sparse.csr_array, Cells]:
    """S and V: splat and the distinct cells, sorted by ..., y, x, then the range columns."""
    order = [*reversed(range(n_space)), *range(n_space, cells.shape[1])]
    V, vertex = np.unique(cells[:, order], axis=0, return_inverse=True)
    entries = np.ones(len(cells)), (vertex.ravel(), np.arange(len(cells)))
    return sparse.csr_array(entries, shape=(len(V), len(cells))), V[:, np.argsort(order)]


def blur_matrix(V: Cells, blur: Blur, n_space: int = 2) -> sparse.csr_array:
    """B-bar (Eq. 3): centre * I + the sum over dimensions of weight * (next + previous)."""
    N, D = V.shape
    names = {"paper": (2.0, 1.0, 0.125), "uniform": (2.0 * D, 1.0, 1.0)}
    centre, space, range_ = names[blur] if isinstance(blur, str) else blur
    weights = [space] * n_space + [range_] * (D - n_space)
    index = {tuple(v): i for i, v in enumerate(V.tolist())}
    to_next = sparse.lil_array((N, N))
    for v, i in index.items():
        for d, weight in enumerate(weights):
            j = index.get((*v[:d], v[d] + 1, *v[d + 1 :]))
            if j is not None and weight > 0:
                to_next[i, j] = weight
    return (centre * sparse.eye_array(N) + to_next + to_next.T).tocsr()


def bistochastize(B: sparse.csr_array, m: Array) -> tuple[Array, Array]:
    """Vectors n and m (supplement, Algorithm 1); last, m = n * (B n), so that constants survive."""
    n = np.ones(len(m))
    for _ in range(10_000):
        previous, n = n, np.sqrt(n * m / (B @ n))
        if np.max(np.abs(n / previous - 1)) < 1e-13:
            break
    return n, n * (B @ n)


def grid_from_coordinates(cells: Cells, blur: Blur = "paper", n_space: int = 2) -> Grid:
    """Grid of pixels' cells (n_pixels, D); the first `n_space` columns are space (x, y, ...)."""
    S, V = simplified_grid(cells, n_space)
    B = blur_matrix(V, blur, n_space)
    levels, coarse = [], V
    while len(coarse) > 1:  # supplement, "Bilateral-Space Pyramids"
        S_k, coarse = simplified_grid(coarse // 2, n_space)
        levels.append(S_k)
    return Grid(V, S, B, *bistochastize(B, S.sum(axis=1)), levels)


def image_grid(
    reference: Image,
    sigma_xy: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    blur: Blur = "paper",
    reference_max: float | None = None,
) -> Grid:
    """Grid of a reference image."""
    cells = grid_coordinates(reference, sigma_xy, sigma_luma, sigma_chroma, reference_max)
    return grid_from_coordinates(cells, blur)


def lift(grid: Grid, y: Array) -> list[Array]:
    """P(y): the sums of y over each level's vertices, finest level first."""
    z = [y]
    for S_k in grid.levels:
        z.append(S_k @ z[-1])
    return z


def collapse(grid: Grid, z: list[Array]) -> Array:
    """P^T(z), the transpose of `lift`."""
    y = z[-1]
    for S_k, finer in zip(reversed(grid.levels), reversed(z[:-1]), strict=True):
        y = finer + S_k.T @ y
    return y


def scaled_pyramid(grid: Grid, alpha: float, beta: float, scale: list[Array]) -> Operator:
    """Return y -> P^T(z_weight * scale * P(y)), with z_weight of Eq. 21, for Eq. 20 and 22."""
    z_weight = [1.0 if k == 0 else alpha ** -(beta + k) for k in range(len(scale))]
    D = [sparse.diags_array(w * s) for w, s in zip(z_weight, scale, strict=True)]
    return lambda y: collapse(grid, [D_k @ z for D_k, z in zip(D, lift(grid, y), strict=True)])


def system(
    grid: Grid, target: Image, confidence: Image | None, smoothness: float
) -> tuple[sparse.csr_array, Array, Array]:
    """Return A (sparse), b (n_vertices, K) and S c of Eq. 6.

    A pixel with a non-finite value in any channel of the target has confidence 0.
    """
    if not smoothness > 0:
        raise ValueError(f"smoothness must be positive, got {smoothness}")
    n_pixels = grid.S.shape[1]
    t = target.astype(np.float64).reshape(n_pixels, -1)
    c = np.ones(n_pixels) if confidence is None else confidence.astype(np.float64).ravel()
    seen = np.asarray(np.isfinite(t).all(axis=1))
    c, t = np.where(seen, c, 0.0), np.where(seen[:, None], t, 0.0)
    D_m, D_n = sparse.diags_array(grid.m), sparse.diags_array(grid.n)
    Sc = grid.S @ c
    A = smoothness * (D_m - D_n @ grid.B @ D_n) + sparse.diags_array(Sc)
    return A.tocsr(), grid.S @ (c[:, None] * t), Sc


def ratio(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


def pyramid_start(grid: Grid, b: Array, Sc: Array) -> Array:
    """y_hier (Eq. 22) with (alpha, beta) = (4, 0)."""
    if not Sc.any():
        raise ValueError("no data: every pixel has confidence 0 or a non-finite target")
    push_pull = scaled_pyramid(grid, 4, 0, [1 / count for count in lift(grid, np.ones(len(Sc)))])
    return push_pull(b) / push_pull(Sc)[:, None]


def flat_start(grid: Grid, b: Array, Sc: Array) -> Array:
    """y_flat (Eq. 19), and y_hier at the vertices without data."""
    return np.where(Sc[:, None] > 0, ratio(b, Sc[:, None]), pyramid_start(grid, b, Sc))


def jacobi(A: sparse.csr_array) -> Operator:
    """M_jacobi^-1 (Eq. 18)."""
    inverse = sparse.diags_array(ratio(np.ones(A.shape[0]), A.diagonal()))
    return lambda r: inverse @ r


def pyramid_preconditioner(grid: Grid, A: sparse.csr_array) -> Operator:
    """M_hier^-1 (Eq. 20) with (alpha, beta) = (2, 5)."""
    counts, diagonals = lift(grid, np.ones(A.shape[0])), lift(grid, A.diagonal())
    return scaled_pyramid(grid, 2, 5, [ratio(*z) for z in zip(counts, diagonals, strict=True)])


def has_data(grid: Grid, Sc: Array) -> Mask:
    """Whether each vertex's connected component of the grid holds a vertex with S c > 0.

    A is singular on the other components: their vertices keep the pyramid start's value.
    """
    _, component = connected_components(grid.B, directed=False)
    return np.isin(component, component[Sc > 0])


def direct_solve(
    grid: Grid, A: sparse.csr_array, b: Array, Sc: Array, elsewhere: Array | None = None
) -> Array:
    """A^-1 b (Eq. 7) where there is data; `elsewhere`, or the pyramid start, in other parts."""
    active = has_data(grid, Sc)
    y = pyramid_start(grid, b, Sc) if elsewhere is None else elsewhere.copy()
    y[active] = splu(A[active][:, active].tocsc()).solve(b[active])
    return y


def pcg(
    A: sparse.csr_array,
    b: Array,
    x: Array,
    precondition: Operator,
    steps: int,
    active: Mask | None = None,
) -> Array:
    """Supplement, Algorithm 2, for each column of b; x moves at the `active` vertices only."""
    mask = np.ones((len(b), 1)) if active is None else active[:, None].astype(np.float64)
    r = mask * (b - A @ x)
    d = mask * precondition(r)
    new = np.sum(r * d, axis=0)
    for _ in range(steps):
        q = A @ d
        alpha = ratio(new, np.sum(d * q, axis=0))
        x = x + alpha * d
        r = r - alpha * q
        s = mask * precondition(r)
        old, new = new, np.sum(r * s, axis=0)
        d = s + ratio(new, old) * d
    return x


def solve(
    reference: Image,
    target: Image,
    confidence: Image | None = None,
    *,
    smoothness: float = 4.0,
    **grid_options: Any,
) -> Array:
    """Return S^T A^-1 b (Eq. 8), exactly, in the target's shape; options as for `image_grid`."""
    grid = image_grid(reference, **grid_options)
    y = direct_solve(grid, *system(grid, target, confidence, smoothness))
    return np.asarray(grid.S.T @ y).reshape(target.shape)


def solve_paper(
    reference: Image,
    target: Image,
    confidence: Image | None = None,
    *,
    smoothness: float = 4.0,
    steps: int = 25,
    preconditioner: str = "pyramid",
    initial: str = "pyramid",
    **grid_options: Any,
) -> Array:
    """Return the result of the paper's PCG in the target's shape; options as for `image_grid`.

    `preconditioner` is "pyramid" or "jacobi", `initial` is "pyramid" or "flat".
    """
    grid = image_grid(reference, **grid_options)
    A, b, Sc = system(grid, target, confidence, smoothness)
    start = {"pyramid": pyramid_start, "flat": flat_start}[initial](grid, b, Sc)
    M = {"pyramid": pyramid_preconditioner(grid, A), "jacobi": jacobi(A)}[preconditioner]
    y = pcg(A, b, start, M, steps, has_data(grid, Sc))
    return np.asarray(grid.S.T @ y).reshape(target.shape)


def distance(grid: Grid, y: Array, target: Image) -> Array:
    """Each pixel's distance from the target over all channels, 0 where the target is not finite."""
    t = target.astype(np.float64).reshape(grid.S.shape[1], -1)
    seen = np.isfinite(t).all(axis=1, keepdims=True)
    e = np.where(seen, grid.S.T @ y - np.where(seen, t, 0.0), 0.0)
    return np.asarray(np.linalg.norm(e, axis=1))


def solve_robust(
    reference: Image,
    target: Image,
    confidence: Image | None,
    weight: Callable[[Array], Array],
    rounds: int,
    *,
    smoothness: float = 4.0,
    **grid_options: Any,
) -> Array:
    """Supplement, Algorithm 3, with exact solves; parts that lose all weight keep their values."""
    grid = image_grid(reference, **grid_options)
    y = direct_solve(grid, *system(grid, target, confidence, smoothness))
    for _ in range(rounds - 1):
        c = weight(distance(grid, y, target))
        y = direct_solve(grid, *system(grid, target, c, smoothness), elsewhere=y)
    return np.asarray(grid.S.T @ y).reshape(target.shape)


def robust_objective(
    reference: Image,
    target: Image,
    x: Image,
    rho: Callable[[Array], Array],
    *,
    smoothness: float = 4.0,
    **grid_options: Any,
) -> float:
    """The supplement's robust loss of a solution, every pair of pixels counted once.

    Then its stationary points are the fixed points of Algorithm 3 with rho'(e) / e as the weight.
    """
    grid = image_grid(reference, **grid_options)
    y = grid.S @ x.astype(np.float64).reshape(grid.S.shape[1], -1) / grid.S.sum(axis=1)[:, None]
    known = np.isfinite(target.reshape(grid.S.shape[1], -1)).all(axis=1)
    pairs = sparse.triu(sparse.diags_array(grid.n) @ grid.B @ sparse.diags_array(grid.n), k=1)
    i, j = pairs.nonzero()
    smooth = pairs.tocsr()[i, j] @ np.sum((y[i] - y[j]) ** 2, axis=1) if i.size else 0.0
    return float(smoothness / 2 * smooth + rho(distance(grid, y, target)[known]).sum())
