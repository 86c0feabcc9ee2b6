"""
How certain is the solution?
============================

`variance` estimates the variance of each pixel of the solution: large where no data are near.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)
known = np.random.default_rng(0).random(truth.shape) < 0.02
known[150:350, 250:450] = False
sparse = np.where(known & np.isfinite(truth), truth, np.nan)
weight = np.isfinite(sparse).astype(float)

solver = bilateral.BilateralSolver(bilateral.BilateralGrid(photo), smoothness=0.1)
x = solver.solve(sparse, weight)
deviation = np.sqrt(solver.variance(weight, probes=32))

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(x, cmap="turbo", vmin=0, vmax=60)
axes[1].imshow(deviation, cmap="magma")
axes[2].imshow(abs(x - truth), cmap="magma", vmax=10)
titles = ("solution", "estimated standard deviation", "true error")
for axis, title in zip(axes, titles, strict=True):
    axis.set_title(title)
    axis.axis("off")
plt.show()
