"""Tiny problems for the oracles, small enough for dense matrices over all pixels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oracles.reference import (
    Array,
    Grid,
    Image,
    Mask,
    grid_coordinates,
    image_grid,
)

BLURS = ["paper", "uniform", (3.0, 0.5, 0.25), (2.0, 1.0, 0.0)]


@dataclass
class Problem:
    """Arguments of `solve` for a tiny image."""

    reference: Image
    target: Array
    confidence: Array | None
    smoothness: float
    options: dict[str, Any]

    @property
    def grid(self) -> Grid:
        """The oracle's grid."""
        return image_grid(self.reference, **self.options)

    @property
    def cells(self) -> list[tuple[int, ...]]:
        """Each pixel's cell (x, y, l[, u, v])."""
        sigmas = [self.options[f"sigma_{name}"] for name in ("xy", "luma", "chroma")]
        return [tuple(row) for row in grid_coordinates(self.reference, *sigmas).tolist()]

    @property
    def data(self) -> tuple[Array, Array]:
        """Vectors c (n_pixels) and t (n_pixels, K), both 0 where the target is not finite."""
        n_pixels = self.reference.shape[0] * self.reference.shape[1]
        t = self.target.reshape(n_pixels, -1).copy()
        c = np.ones(n_pixels) if self.confidence is None else self.confidence.reshape(-1).copy()
        for i in range(n_pixels):
            if not all(np.isfinite(value) for value in t[i]):
                c[i], t[i] = 0, 0
        return c, t


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    channels: tuple[int, ...] = draw(st.sampled_from([(), (1,), (3,)]))
    levels = draw(st.sampled_from([st.integers(0, 255), st.sampled_from([0, 40, 250])]))
    reference = draw(hnp.arrays(np.uint8, shape + channels, elements=levels))
    value = st.floats(-10, 10, width=32) | st.sampled_from([np.nan, np.inf, -np.inf])
    target = draw(hnp.arrays(np.float64, shape + draw(st.sampled_from([(), (2,)])), elements=value))
    weight = st.sampled_from([0.0, 0.0, 0.1, 1.0, 7.5])
    confidence = draw(st.none() | hnp.arrays(np.float64, shape, elements=weight))
    seen = draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))
    target[seen] = draw(st.floats(-10, 10, width=32))
    if confidence is not None:
        confidence[seen] = 1.0
    options = {
        "sigma_xy": draw(st.sampled_from([1, 1.5, 2, 8])),
        "sigma_luma": draw(st.sampled_from([8, 40, 300])),
        "sigma_chroma": draw(st.sampled_from([8, 40, 300])),
        "blur": draw(st.sampled_from(BLURS)),
    }
    return Problem(reference, target, confidence, draw(st.sampled_from([0.1, 4, 128])), options)


def photo() -> Problem:
    """Return a fixed problem: 2 channels, sparse data, components with and without data."""
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 32, (12, 14)).astype(np.uint8)
    reference[3:9, 5:] = 56
    reference[9:, :4] = 250
    confidence = rng.uniform(0, 2, (12, 14)) * (rng.uniform(size=(12, 14)) < 0.3)
    confidence[reference >= 32] = 0
    target = rng.normal(size=(12, 14, 2))
    options = {"sigma_xy": 2, "sigma_luma": 16, "sigma_chroma": 16, "blur": "paper"}
    return Problem(reference, target, confidence, 4.0, options)


def affinity(grid: Grid) -> Array:
    """Return W-hat of Eq. 4, a dense (n_pixels, n_pixels) matrix."""
    S, B = grid.S.toarray(), grid.B.toarray()
    D = np.diag(grid.n / grid.m)
    return np.asarray(S.T @ D @ B @ D @ S)


def connected(W: Array, c: Array) -> Mask:
    """Mark the pixels that reach a pixel with confidence along positive affinities."""
    reach = np.linalg.matrix_power((W > 0).astype(float), len(W)) > 0
    return np.array([bool(np.any(c[row] > 0)) for row in reach])


def pixel_loss(W: Array, x: Array, c: Array, t: Array, smoothness: float) -> Array:
    """Eq. 1, per channel."""
    difference = x[:, None, :] - x[None, :, :]
    smooth = np.einsum("ij,ijk->k", W, difference**2)
    return np.asarray(smoothness / 2 * smooth + c @ (x - t) ** 2)
