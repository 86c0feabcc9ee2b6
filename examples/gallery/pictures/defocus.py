"""
Refocus a photograph
====================

`defocus` renders a shallow depth of field: what lies at `focus` is sharp.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

photo, _, disparity = stereo_motorcycle()
disparity = np.where(np.isfinite(disparity), disparity, np.nan)
depth = 100 / (tasks.refine_depth(disparity, photo, preset="stereo") + 10)

figure, axes = plt.subplots(1, 3, figsize=(14, 3.3), layout="constrained")
axes[0].imshow(photo)
axes[0].set_title("photograph")
for axis, focus, title in zip(axes[1:], (1.7, 4.0), ("focus at 1.7 m", "at 4 m"), strict=True):
    axis.imshow(tasks.defocus(photo, depth, focus, aperture=40))
    axis.set_title(title)
for axis in axes:
    axis.axis("off")
plt.show()
