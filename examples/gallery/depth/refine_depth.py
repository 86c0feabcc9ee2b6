"""
Repair the map of a depth camera
================================

`refine_depth` fills holes with the surfaces around them, removes wrong pixels, and keeps what is
right.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

photo, _, disparity = stereo_motorcycle()
truth = np.where(np.isfinite(disparity), 100 / (disparity + 10), np.nan)  # metres

rng = np.random.default_rng(0)
depth = truth + rng.normal(0, 0.004, truth.shape) * truth**2  # noise grows with the distance
depth = np.where(rng.random(depth.shape) < 0.02, rng.uniform(1, 5, depth.shape), depth)
depth[120:180, 420:520] = np.nan  # a shiny surface
depth[:, :25] = np.nan  # the shadow of the projector

refined = tasks.refine_depth(depth, photo)
for name, z in (("camera", depth), ("refined", refined)):
    print(f"{name}: mean error {1000 * np.nanmean(abs(z - truth)):.0f} mm")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(photo)
for axis, z, title in zip(axes[1:], (depth, refined), ("camera", "refined"), strict=True):
    axis.imshow(z, cmap="turbo", vmin=1.4, vmax=5)
    axis.set_title(title)
for axis in axes:
    axis.axis("off")
plt.show()
