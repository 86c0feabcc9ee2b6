"""
Choose the smoothness
=====================

`smoothness` is the paper's lambda. It weighs the smoothness of the result against its closeness to
the data. With few known pixels it must be small: "auto" chooses it.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)
rng = np.random.default_rng(0)
noisy = truth + rng.normal(0, 3, truth.shape)
sparse = np.where(rng.random(truth.shape) < 0.01, truth, np.nan)

choices = (0.05, 4.0, 128.0, "auto")
figure, axes = plt.subplots(2, len(choices), figsize=(14, 5), layout="constrained")
for row, target, name in zip(axes, (noisy, sparse), ("noisy", "1 % known"), strict=True):
    for axis, smoothness in zip(row, choices, strict=True):
        x, info = bilateral.solve(photo, target, smoothness=smoothness, return_info=True)
        error = np.nanmean(abs(x - truth))
        axis.imshow(x, cmap="turbo", vmin=0, vmax=60)
        axis.set_title(f"{name}, {smoothness} ({info.smoothness:.2g}): error {error:.2f}")
        axis.axis("off")
plt.show()
