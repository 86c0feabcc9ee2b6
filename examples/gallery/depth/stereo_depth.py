"""
Disparities of a stereo pair
============================

`stereo_depth` matches blocks of a rectified pair and refines the disparities with the left
photograph. `match_blocks` shows what it starts from.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

left, right, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)

matched, _ = tasks.match_blocks(left, right, max_disparity=70)  # NaN: unknown
disparity = tasks.stereo_depth(left, right, max_disparity=70)
for name, d in (("matched", matched), ("refined", disparity)):
    right_part = np.mean(abs(d - truth)[np.isfinite(truth)] < 1)  # NaN is not right
    print(f"{name}: {right_part:.0%} of the pixels are right within a pixel")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(left)
for axis, d, title in zip(axes[1:], (matched, disparity), ("matched", "refined"), strict=True):
    axis.imshow(d, cmap="turbo", vmin=0, vmax=60)
    axis.set_title(title)
for axis in axes:
    axis.axis("off")
plt.show()
