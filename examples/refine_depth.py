"""Refine a spoiled disparity map with its photograph, in plain NumPy.

    pip install 'bilateral[demo]'
    python examples/refine_depth.py

The script takes the Motorcycle pair of scikit-image, adds noise, outliers and holes to its true
disparities, and repairs them. It prints the mean errors and writes ``refine_depth.png``:
photograph, spoiled map and refined map side by side.
"""

import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import io, tasks


def spoil(disparity: np.ndarray, seed: int = 0) -> np.ndarray:
    """Add noise of 1 pixel, make 5 % of the pixels wrong, and cut a hole; NaN means unknown."""
    rng = np.random.default_rng(seed)
    spoiled = disparity + rng.normal(0, 1, disparity.shape).astype(np.float32)
    wrong = rng.random(disparity.shape) < 0.05
    spoiled[wrong] = rng.uniform(5, 60, wrong.sum())
    spoiled[100:160, 150:250] = np.nan
    return spoiled


def main() -> None:
    photo, _, truth = stereo_motorcycle()
    truth = np.where(np.isfinite(truth), truth, np.nan)
    spoiled = spoil(truth)
    refined = tasks.refine_depth(spoiled, photo)
    for name, values in (("spoiled", spoiled), ("refined", refined)):
        print(f"{name}: mean error {np.nanmean(abs(values - truth)):.2f} pixels")
    gray = [np.clip(4 * np.nan_to_num(values), 0, 255) for values in (spoiled, refined)]
    panels = [photo, *(np.repeat(values[..., np.newaxis], 3, axis=2) for values in gray)]
    io.write("refine_depth.png", np.hstack(panels).astype(np.uint8))


if __name__ == "__main__":
    main()
