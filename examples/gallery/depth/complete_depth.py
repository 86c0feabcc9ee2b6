"""
Few points to a dense map
=========================

SLAM, COLMAP and LiDARs give the depth of a few pixels. `complete_depth` gives all the others, and
how far each can be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

photo, _, disparity = stereo_motorcycle()
truth = np.where(np.isfinite(disparity), 100 / (disparity + 10), np.nan)  # metres

known = np.random.default_rng(0).random(truth.shape) < 0.002
points = np.where(known, truth, np.nan)
depth, confidence = tasks.complete_depth(points, photo, return_confidence=True)
print(f"{np.isfinite(points).sum()} points, mean error {np.nanmean(abs(depth - truth)):.3f} m")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(photo)
rows, columns = np.nonzero(np.isfinite(points))
axes[0].scatter(columns, rows, 6, points[rows, columns], cmap="turbo")
axes[1].imshow(depth, cmap="turbo")
axes[2].imshow(confidence, cmap="gray")
for axis, title in zip(axes, ("points", "completed", "confidence"), strict=True):
    axis.set_title(title)
    axis.axis("off")
plt.show()
