"""
Colour a photograph with a few strokes
======================================

`colorize` spreads the colours of strokes up to the edges of the photograph.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.color import rgb2gray
from skimage.data import coffee

from bilateral import tasks

photo = coffee()
gray = (255 * rgb2gray(photo)).astype(np.uint8)

strokes = np.zeros((*gray.shape, 4), np.uint8)  # RGBA: transparent where there is no stroke
rng = np.random.default_rng(0)
for y, x in rng.integers(8, np.array(gray.shape) - 8, (160, 2)):
    strokes[y - 3 : y + 4, x - 3 : x + 4, :3] = np.median(
        photo[y - 3 : y + 4, x - 3 : x + 4], axis=(0, 1)
    )
    strokes[y - 3 : y + 4, x - 3 : x + 4, 3] = 255
coloured = tasks.colorize(gray, strokes)

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(gray, cmap="gray")
axes[0].imshow(strokes)
axes[1].imshow(coloured)
axes[2].imshow(photo)
for axis, title in zip(axes, ("strokes", "coloured", "original"), strict=True):
    axis.set_title(title)
    axis.axis("off")
plt.show()
