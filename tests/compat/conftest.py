"""Images with gray pixels and pixels on the borders of cells."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]


@pytest.fixture(params=["colours", "gray", "blocks"])
def image(request: pytest.FixtureRequest) -> Array:
    """A small uint8 RGB image, mostly of few colours, so that vertices have several pixels."""
    rng = np.random.default_rng(7)
    if request.param == "blocks":
        palette = rng.integers(0, 256, (6, 3))
        return np.repeat(np.repeat(palette[rng.integers(0, 6, (5, 6))], 8, 0), 7, 1).astype(
            np.uint8
        )
    smooth = np.cumsum(rng.normal(0, 3, (38, 45)), axis=1)[..., None] + rng.normal(
        0, 2, (38, 45, 3)
    )
    levels = np.clip(smooth * 2 + 110, 0, 255).astype(np.uint8)
    return np.repeat(levels[..., :1], 3, axis=2) if request.param == "gray" else levels
