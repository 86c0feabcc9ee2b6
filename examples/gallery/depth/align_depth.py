"""
A network's relative depth, made metric
=======================================

Networks give depth up to an unknown scale and shift. Fifty metric points are enough to find both,
and to correct the network where it is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

photo, _, disparity = stereo_motorcycle()
truth = np.where(np.isfinite(disparity), 100 / (disparity + 10), np.nan)  # metres

# A relative inverse depth that is tilted, as networks' often are.
tilt = np.linspace(-0.06, 0.06, truth.shape[1])
relative = np.where(np.isfinite(disparity), 0.3 * (disparity + 10) / 100 + 0.1 + tilt, 0.2)
known = (np.random.default_rng(1).random(truth.shape) < 1.5e-4) & np.isfinite(truth)
metric = np.where(known, truth, np.nan)

aligned, info = tasks.align_depth(relative, metric, photo, return_info=True)
print(info)
slope, offset = np.polyfit(relative[known], 1 / truth[known], 1)
scaled = 1 / (slope * relative + offset)
for name, z in (("one scale and shift", scaled), ("align_depth", aligned)):
    print(f"{name}: mean error {np.nanmean(abs(z - truth)):.3f} m")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for axis, z, title in zip(axes, (photo, scaled, aligned), ("", "scaled", "aligned"), strict=True):
    axis.imshow(z, cmap="turbo", vmin=1.4, vmax=5)
    axis.set_title(title)
    axis.axis("off")
plt.show()
