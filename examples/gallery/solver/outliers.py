"""
Ignore outliers
===============

A plain solve spreads wrong values over their surroundings. `solve_robust` finds and ignores them.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
truth = np.where(np.isfinite(truth), truth, np.nan)
rng = np.random.default_rng(0)
spoiled = np.where(rng.random(truth.shape) < 0.3, rng.uniform(0, 60, truth.shape), truth)

solver = bilateral.BilateralSolver(bilateral.BilateralGrid(photo), smoothness=1.0)
plain = solver.solve(spoiled)
robust = solver.solve_robust(spoiled, loss=bilateral.GemanMcClure(2.0), iterations=16)
for name, x in (("plain", plain), ("robust", robust)):
    print(f"{name}: mean error {np.nanmean(abs(x - truth)):.2f} pixels")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
titles = ("30 % of the pixels are wrong", "plain solve", "robust solve")
for axis, x, title in zip(axes, (spoiled, plain, robust), titles, strict=True):
    axis.imshow(x, cmap="turbo", vmin=0, vmax=60)
    axis.set_title(title)
    axis.axis("off")
plt.show()
