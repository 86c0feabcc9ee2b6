"""
One solve
=========

The result is smooth where the photograph is, and has edges where the photograph has them.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

import bilateral

photo, _, truth = stereo_motorcycle()
noisy = truth + np.random.default_rng(0).normal(0, 6, truth.shape)  # infinite: unknown

smooth, info = bilateral.solve(photo, noisy, return_info=True)
print(f"{info.iterations} steps, {info.n_vertices} vertices for {truth.size} pixels")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
pictures = {"photograph": photo, "noisy disparities": noisy, "solution": smooth}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="turbo", vmin=0, vmax=60)
    axis.set_title(title)
    axis.axis("off")
plt.show()
