"""
Enlarge a depth map
===================

A camera with few pixels, such as a phone's, and a photograph with many.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle
from skimage.transform import downscale_local_mean, resize

from bilateral import tasks

photo, _, truth = stereo_motorcycle()
photo, truth = photo[:496, :736], truth[:496, :736]
truth = tasks.refine_depth(truth, photo, preset="stereo")  # without holes

low = downscale_local_mean(truth, (4, 4))
low += np.random.default_rng(0).normal(0, 0.5, low.shape)
bicubic = resize(low, truth.shape, order=3)
enlarged = tasks.superres_depth(low, photo)
for name, d in (("bicubic", bicubic), ("superres_depth", enlarged)):
    print(f"{name}: RMS error {np.sqrt(np.mean((d - truth) ** 2)):.2f} pixels")

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, d, title in zip(
    axes, (low, bicubic, enlarged), ("input, 124 x 184", "bicubic", "superres_depth"), strict=True
):
    h, w = d.shape
    axis.imshow(d[h // 5 : 7 * h // 10, w // 4 : 3 * w // 4], cmap="turbo", vmin=0, vmax=60)
    axis.set_title(title)
    axis.axis("off")
plt.show()
