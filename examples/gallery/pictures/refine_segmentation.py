"""
Move a network's masks to the edges
===================================

Networks for segmentation give coarse scores. `refine_segmentation` enlarges them, and moves the
boundaries of the classes to the edges of the photograph.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import coins
from skimage.filters import sobel
from skimage.segmentation import watershed
from skimage.transform import resize

from bilateral import tasks

photo = coins()
markers = np.where(photo > 150, 2, photo < 30)
bright = watershed(sobel(photo), markers) == 2
coarse = resize(bright.astype(float), (38, 48), anti_aliasing=True)  # an eighth, as of a network
probabilities = np.stack([1 - coarse, coarse], axis=2)

labels = tasks.refine_segmentation(probabilities, photo, labels=True)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
before = resize(coarse, photo.shape, order=1) > 0.5
for axis, mask, title in zip(axes, (before, labels > 0), ("network", "refined"), strict=True):
    axis.imshow(photo, cmap="gray")
    axis.contour(mask, levels=[0.5], colors="cyan", linewidths=1)
    axis.set_title(title)
    axis.axis("off")
plt.show()
