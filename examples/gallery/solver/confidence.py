"""
Tell the solver what to trust
=============================

A confidence of 0 means unknown. Between 0 and 1, the solver moves a value the more, the less it is
trusted. `bilateral.confidence` computes confidences from the map itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral
from bilateral import tasks

left, right, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)
target, _ = tasks.match_blocks(left, right, max_disparity=70, consistency=None)

sure = bilateral.confidence.edge_aware_variance(target, left)
plain = bilateral.solve(left, target)
trusted = bilateral.solve(left, target, sure)
for name, x in (("equal", plain), ("edge_aware_variance", trusted)):
    print(f"{name}: mean error {np.nanmean(abs(x - truth)):.2f} pixels")

figure, axes = plt.subplots(1, 4, figsize=(15, 3), layout="constrained")
titles = ("matched", "confidence", "all pixels trusted equally", "with the confidence")
for axis, picture, title in zip(axes, (target, 60 * sure, plain, trusted), titles, strict=True):
    axis.imshow(picture, cmap="gray" if title == "confidence" else "turbo", vmin=0, vmax=60)
    axis.set_title(title)
    axis.axis("off")
plt.show()
