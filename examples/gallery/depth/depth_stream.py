"""
A live depth camera
===================

`DepthStream` refines frame by frame and averages what stands still, so that the map is steady.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import stereo_motorcycle

from bilateral import tasks

photo, _, disparity = stereo_motorcycle()
truth = np.where(np.isfinite(disparity), 100 / (disparity + 10), 5.0).astype(np.float32)

rng = np.random.default_rng(0)
stream = tasks.DepthStream()
frames, refined = [], []
for _ in range(8):
    frame = truth + 0.004 * truth**2 * rng.normal(0, 1, truth.shape).astype(np.float32)
    frames.append(frame)
    refined.append(stream.push(frame, photo))

figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
for axis, video, title in zip(axes, (frames, refined), ("camera", "stream"), strict=True):
    flicker = np.std(video[4:], axis=0)
    print(f"{title}: {1000 * np.median(flicker):.1f} mm of flicker")
    picture = axis.imshow(1000 * flicker, cmap="magma", vmin=0, vmax=60)
    axis.set_title(f"{title}: standard deviation in time, mm")
    axis.axis("off")
figure.colorbar(picture, ax=axes)
plt.show()
