"""
One photograph, many maps
=========================

The grid depends only on the photograph. Maps that share it, or channels of one map, share the work.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)
rng = np.random.default_rng(0)

grid = bilateral.BilateralGrid(photo, sigma_xy=4, sigma_luma=16, sigma_chroma=12)
solver = bilateral.BilateralSolver(grid, smoothness="auto")
figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for axis, fraction in zip(axes, (0.1, 0.01, 0.001), strict=True):
    sparse = np.where(rng.random(truth.shape) < fraction, truth, np.nan)
    x, info = solver.solve(sparse, return_info=True)
    print(f"{fraction:.1%} known: {info.iterations} steps, {1000 * info.seconds:.0f} ms")
    axis.imshow(x, cmap="turbo", vmin=0, vmax=60)
    axis.set_title(f"{fraction:.1%} known: mean error {np.nanmean(abs(x - truth)):.2f}")
    axis.axis("off")
plt.show()
