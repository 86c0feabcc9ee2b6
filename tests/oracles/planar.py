"""The planar model: each vertex holds an affine function of the position instead of a constant.

Slow, float64, solved directly, and independent of the library. With p_i the position of pixel i
over the D planar axes (x, y[, t]), each divided by its own sigma, and p_v the mean of p_i over the
pixels of vertex v, the unknowns are the value a_v at p_v and the slopes g_v per sigma. They
minimize

    E = lambda sum_{u~v} w_uv [(a_u + g_u.d/2 - a_v + g_v.d/2)^2 + mu |g_u - g_v|^2]
      + lambda eps sum_v m_v |g_v|^2
      + sum_i c_i (a_v(i) + g_v(i).(p_i - p_v(i)) - t_i)^2,        d = p_v - p_u,

where w_uv = n_u B_uv n_v and every unordered pair of neighbours counts once. Because m is the row
sum of n B n with its diagonal, sum_{u~v} w_uv (y_u - y_v)^2 = y^T (D_m - D_n B D_n) y: the pairs
have factor 1, and eps -> infinity (all slopes 0) is the ordinary system of Eq. 6.

Half the gradient of E is A z - b with z_v = (a_v, g_v). Form per edge, for a product with A or for
assembly, with h = d / 2, f_u = (1, h), f_v = (1, -h), J = diag(0, 1, ..., 1):

    jump      r = (a_u + g_u.h) - (a_v - g_v.h),  q = mu (g_u - g_v)
    product   (A z)_u += lambda w (r, r h + q),   (A z)_v -= lambda w (r, -r h + q)
    blocks    A_uu += lambda w (f_u f_u^T + mu J),  A_vv += lambda w (f_v f_v^T + mu J)
              A_uv -= lambda w (f_u f_v^T + mu J),  A_vu = A_uv^T
    vertex    A_vv += lambda eps m_v J + sum_i c_i f_i f_i^T,  b_v = sum_i c_i t_i f_i,
              f_i = (1, p_i - p_v)

The diagonal of B takes no part in the edges; it enters through m only. A vertex of one pixel has
p_i = p_v, so the data say nothing about its slope: the ridge and its neighbours determine it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from oracles.reference import Array, Grid, Image, Mask, has_data

RIDGE_AT_ZERO = 1e-6  # temporary ridge of `solve_vertices` for eps = 0
REFINEMENTS = 50  # most steps that take this ridge out again


@dataclass(frozen=True)
class Model:
    """Matrices of the model on one grid; vertex v has columns v (1 + D) .. v (1 + D) + D."""

    grid: Grid
    F: sparse.csr_array  # (n_pixels, n_unknowns): slice; row i is (1, p_i - p_v)
    E: sparse.csr_array  # (n_edges, n_unknowns): jump of the two planes midway between vertices
    G: list[sparse.csr_array]  # D of (n_edges, n_unknowns): difference of the slopes along an axis
    w: Array  # (n_edges,)
    R: sparse.csr_array  # (n_unknowns, n_unknowns): m on the diagonal at the slopes, 0 elsewhere
    centres: Array  # (n_vertices, D): p_v

    @property
    def block(self) -> int:
        """Unknowns per vertex, 1 + D."""
        return 1 + int(self.centres.shape[1])


@dataclass(frozen=True)
class Solution:
    """Result of a solve; both arrays are NaN where the part of the grid has no data."""

    x: Array  # values of the pixels, in the target's shape
    z: Array  # (n_vertices, 1 + D, K): value at the centre, then slopes per sigma along x, y[, t]
    active: Mask  # (n_vertices,): whether the vertex is connected to data


def positions(shape: Sequence[int], sigma_space: float | Sequence[float]) -> Array:
    """Positions (n_pixels, D), columns x, y[, t], in sigmas; sigma_space as for `from_features`."""
    sigmas = np.broadcast_to(sigma_space, len(shape))
    axes = np.indices(shape).reshape(len(shape), -1) / sigmas[:, None]
    return np.asarray(axes[::-1].T)


def model(grid: Grid, position: Array) -> Model:
    """Return the matrices for pixels at `position` (n_pixels, D), in units of their sigmas."""
    n_vertices, D = grid.S.shape[0], position.shape[1]
    centres = (grid.S @ position) / grid.S.sum(axis=1)[:, None]
    vertex = grid.S.tocsc().indices.astype(np.int64)  # each pixel's; one entry per column

    def matrix(vertices: Array, blocks: Array) -> sparse.csr_array:
        """Return one row per vertex in `vertices`, with its block (n, 1 + D) in its columns."""
        place = vertices[:, None] * (1 + D) + np.arange(1 + D)
        row = np.broadcast_to(np.arange(len(vertices))[:, None], place.shape)
        shape = (len(vertices), n_vertices * (1 + D))
        return sparse.csr_array((blocks.ravel(), (row.ravel(), place.ravel())), shape=shape)

    def plane(vertices: Array, at: Array) -> sparse.csr_array:
        """Return rows that evaluate the vertices' planes at positions `at`."""
        offset = at - centres[vertices]
        return matrix(vertices, np.column_stack([np.ones(len(vertices)), offset]))

    def slope(vertices: Array, axis: int) -> sparse.csr_array:
        return matrix(vertices, np.tile(np.eye(1 + D)[1 + axis], (len(vertices), 1)))

    scale = sparse.diags_array(grid.n)
    pairs = sparse.triu(scale @ grid.B @ scale, k=1).tocoo()
    u, v, w = pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data
    midway = (centres[u] + centres[v]) / 2
    slopes = np.tile([0.0] + [1.0] * D, n_vertices)
    return Model(
        grid=grid,
        F=plane(vertex, position),
        E=plane(u, midway) - plane(v, midway),
        G=[slope(u, axis) - slope(v, axis) for axis in range(D)],
        w=w,
        R=sparse.diags_array(slopes * np.repeat(grid.m, 1 + D)).tocsr(),
        centres=centres,
    )


def data(model: Model, target: Image, confidence: Image | None) -> tuple[Array, Array]:
    """Vectors c (n_pixels) and t (n_pixels, K), both 0 where a channel is not finite."""
    n_pixels = model.grid.S.shape[1]
    t = target.astype(np.float64).reshape(n_pixels, -1)
    c = np.ones(n_pixels) if confidence is None else confidence.astype(np.float64).ravel()
    seen = np.asarray(np.isfinite(t).all(axis=1))
    return np.where(seen, c, 0.0), np.where(seen[:, None], t, 0.0)


def system(
    model: Model,
    target: Image,
    confidence: Image | None,
    smoothness: float,
    slope_smoothness: float = 3.0,
    slope_ridge: float = 1e-3,
) -> tuple[sparse.csr_array, Array]:
    """Return A and b (n_unknowns, K): half the gradient of E is A z - b."""
    c, t = data(model, target, confidence)
    W, C = sparse.diags_array(model.w), sparse.diags_array(c)
    L = model.E.T @ W @ model.E + slope_ridge * model.R
    for G in model.G:
        L = L + slope_smoothness * (G.T @ W @ G)
    A = smoothness * L + model.F.T @ C @ model.F
    return A.tocsr(), model.F.T @ (c[:, None] * t)


def solve_vertices(
    model: Model,
    target: Image,
    confidence: Image | None = None,
    *,
    smoothness: float = 4.0,
    slope_smoothness: float = 3.0,
    slope_ridge: float = 1e-3,
) -> tuple[Array, Mask]:
    """Return z (n_vertices, 1 + D, K), and which vertices are connected to data; NaN at the others.

    With eps = 0, A is singular if a part has too few data for its planes. The result is then the
    minimizer with the least sum of m_v |g_v|^2, the limit of eps -> 0: a ridge is added and taken
    out again by the proximal point method z <- (A + R)^-1 (b + R z) from z = 0, whose steps never
    leave the R-orthogonal complement of A's null space.
    """
    A, b = system(model, target, confidence, smoothness, slope_smoothness, slope_ridge)
    c, _ = data(model, target, confidence)
    active = has_data(model.grid, model.grid.S @ c)
    unknown = np.repeat(active, model.block)
    z = np.full(b.shape, np.nan)
    if slope_ridge > 0:
        z[unknown] = splu(A[unknown][:, unknown].tocsc()).solve(b[unknown])
    else:
        R = smoothness * RIDGE_AT_ZERO * model.R
        inverse = splu((A + R)[unknown][:, unknown].tocsc())
        R, z[unknown] = R[unknown][:, unknown], 0.0
        for _ in range(REFINEMENTS):
            previous = z[unknown]
            z[unknown] = inverse.solve(b[unknown] + R @ previous)
            if np.abs(z[unknown] - previous).max(initial=0) <= 1e-13 * np.abs(z[unknown]).max():
                break
    return z.reshape(len(active), model.block, -1), active


def slice_planes(model: Model, z: Array) -> Array:
    """Return a_v + g_v.(p_i - p_v) at each pixel, (n_pixels, K)."""
    return np.asarray(model.F @ z.reshape(model.F.shape[1], -1))


def clamp(
    model: Model, x: Array, target: Image, confidence: Image | None = None, margin: float = 0.05
) -> Array:
    """Clip each channel of x to the range of the known values, widened by `margin` of itself."""
    c, t = data(model, target, confidence)
    low, high = t[c > 0].min(axis=0), t[c > 0].max(axis=0)
    widened = low - margin * (high - low), high + margin * (high - low)
    return np.asarray(np.clip(x.reshape(t.shape), *widened).reshape(x.shape))


def solve(
    model: Model,
    target: Image,
    confidence: Image | None = None,
    *,
    smoothness: float = 4.0,
    slope_smoothness: float = 3.0,
    slope_ridge: float = 1e-3,
) -> Solution:
    """Solve and slice, without the clamp."""
    z, active = solve_vertices(
        model,
        target,
        confidence,
        smoothness=smoothness,
        slope_smoothness=slope_smoothness,
        slope_ridge=slope_ridge,
    )
    return Solution(slice_planes(model, z).reshape(target.shape), z, active)


def solve_robust(
    model: Model,
    target: Image,
    confidence: Image | None,
    weight: Callable[[Array], Array],
    rounds: int,
    *,
    smoothness: float = 4.0,
    slope_smoothness: float = 3.0,
    slope_ridge: float = 1e-3,
) -> Solution:
    """Algorithm 3 of the supplement with exact planar solves, as `reference.solve_robust`.

    The first round uses `confidence`; later ones use weight(|x - t|). A part that loses all its
    weight keeps its planes. A part without data in the first round stays without.
    """
    options = {
        "smoothness": smoothness,
        "slope_smoothness": slope_smoothness,
        "slope_ridge": slope_ridge,
    }
    z, active = solve_vertices(model, target, confidence, **options)
    finite, t = data(model, target, None)
    for _ in range(rounds - 1):
        distance = np.linalg.norm(slice_planes(model, z) - t, axis=1)
        used = (finite > 0) & np.isfinite(distance)
        c = np.where(used, weight(np.where(used, distance, 0.0)), 0.0)
        new, still = solve_vertices(model, target, c, **options)
        z = np.where(still[:, None, None], new, z)
    return Solution(slice_planes(model, z).reshape(target.shape), z, active)


def variance(model: Model, A: sparse.csr_array, active: Mask) -> Array:
    """f_i^T A^-1 f_i per pixel, the posterior variance; infinite without data. Dense."""
    unknown = np.repeat(active, model.block)
    inverse = np.linalg.inv(A[unknown][:, unknown].toarray())
    F = model.F.toarray()[:, unknown]
    seen = (active @ model.grid.S) > 0
    return np.where(seen, np.einsum("ij,jk,ik->i", F, inverse, F), np.inf)
