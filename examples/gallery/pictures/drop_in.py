"""
The solver of TokenCut and FOUND, replaced
==========================================

`bilateral.compat` has the calls of other bilateral solvers. One import line changes.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import astronaut
from skimage.transform import resize

from bilateral.compat import bilateral_solver_output

photo = astronaut()
coarse = np.zeros((32, 32))  # a coarse mask, as a vision transformer's attention gives it
coarse[2:13, 11:18] = 1
coarse[13:32, 5:24] = 1
target = resize(coarse, photo.shape[:2], order=0)

soft, mask = bilateral_solver_output(img=photo, target=target, sigma_spatial=16)

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
axes[0].imshow(photo)
axes[0].imshow(target, alpha=0.5)
axes[1].imshow(soft, cmap="gray")
axes[2].imshow(np.where(mask[..., np.newaxis], photo, 255))
for axis, title in zip(axes, ("target", "soft map", "mask"), strict=True):
    axis.set_title(title)
    axis.axis("off")
plt.show()
