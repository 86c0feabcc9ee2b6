"""Draw small depth maps with surfaces, jumps, noise, outliers and holes."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.strategies import seeds

Array = NDArray[Any]

JUMPS = [(0.6, 0.0, 0.0), (0.01, 0.015, 0.0), (0.004, 0.015, 0.01)]


@st.composite
def depth_maps(draw: st.DrawFn) -> Array:
    """Slanted surfaces with jumps, noise, outliers and holes."""
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(seeds))
    y, x = np.mgrid[:height, :width]
    z = 2 + rng.uniform(-0.2, 0.2) * x + rng.uniform(0, 0.2) * y + rng.normal(0, 0.02, y.shape)
    z = np.where(x * rng.uniform() + y * rng.uniform() > 6, z + rng.uniform(1, 4), z)
    z = np.where(rng.uniform(size=z.shape) < 0.1, rng.uniform(1, 8, z.shape), z)
    holes = rng.uniform(size=z.shape) < draw(st.sampled_from([0, 0.1, 0.5]))
    return np.where(holes, np.nan, z).astype(np.float32)


jumps = st.sampled_from(JUMPS)
