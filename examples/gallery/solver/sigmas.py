"""
Choose the sigmas
=================

A grid cell has `sigma_xy` pixels and `sigma_luma` grey levels. Larger cells are faster and let
values cross faint edges; smaller ones follow faint edges and texture.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
noisy = truth + np.random.default_rng(0).normal(0, 6, truth.shape)
crop = np.s_[220:420, 250:550]

figure, axes = plt.subplots(3, 3, figsize=(12, 8.5), layout="constrained")
for row, sigma_xy in zip(axes, (4, 8, 32), strict=True):
    for axis, sigma in zip(row, (4, 8, 32), strict=True):
        options = {"sigma_xy": sigma_xy, "sigma_luma": sigma, "sigma_chroma": sigma}
        x, info = bilateral.solve(photo, noisy, **options, return_info=True)
        axis.imshow(x[crop], cmap="turbo", vmin=0, vmax=60)
        axis.set_title(f"{sigma_xy} pixels, {sigma} levels: {info.n_vertices} vertices")
        axis.axis("off")
plt.show()
