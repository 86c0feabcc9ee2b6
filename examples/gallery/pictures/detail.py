"""
Smooth and sharpen with the domain transform
============================================

The domain transform is a fast edge-aware filter. The difference from its result is the detail.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import chelsea

import bilateral

photo = chelsea() / 255.0
smooth = bilateral.domain_transform(photo, photo, sigma_xy=20, sigma_rgb=40)
sharper = np.clip(smooth + 2.5 * (photo - smooth), 0, 1)

figure, axes = plt.subplots(1, 3, figsize=(13, 3), layout="constrained")
for axis, picture, title in zip(
    axes, (photo, smooth, sharper), ("photograph", "smooth", "more detail"), strict=True
):
    axis.imshow(picture)
    axis.set_title(title)
    axis.axis("off")
plt.show()
