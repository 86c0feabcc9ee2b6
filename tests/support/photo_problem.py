"""Fixed problem with a photograph of three surfaces, and the comparison of solutions."""

import numpy as np
import pytest

from support.strategies import Array, Problem

EXACTLY = {"tolerance": 0, "max_iterations": 3000}
may_stop_early = pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")


def photo(
    shape: tuple[int, int] = (96, 128), known: float = 1.0, channels: tuple[int, ...] = ()
) -> Problem:
    """Return a photograph of three surfaces with a noisy map; `known` is the fraction of data."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
    surface = (x + 0.3 * y > 0.5).astype(int) + (np.hypot(x - 0.6, y - 0.4) < 0.2)
    shade = 60 + 70 * surface + 30 * x + rng.normal(0, 3, shape)
    tint = np.array([1.0, 0.9, 0.7]) * shade[..., None] + np.array([0, 8, 20])
    depth = 2.0 + surface + 0.5 * y + rng.normal(0, 0.2, shape)
    target = np.stack([depth * (k + 1) for k in range(*channels)], axis=2) if channels else depth
    confidence = (rng.uniform(size=shape) < known).astype(float)
    image = np.clip(np.rint(tint), 0, 255).astype(np.uint8)
    return Problem(image, target, confidence, 4.0, {"sigma_xy": 4, "sigma_luma": 8})


def assert_close(found: Array, expected: Array, problem: Problem, tolerance: float) -> None:
    """Compare in units of the largest known value."""
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() <= tolerance * problem.size
