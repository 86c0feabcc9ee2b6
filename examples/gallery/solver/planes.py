"""
Planes instead of constants
===========================

The usual model flattens slanted surfaces between known pixels into stairs. With `model="planar"`
each grid vertex holds a plane.
"""

import matplotlib.pyplot as plt
import numpy as np

import bilateral

# A floor and a box in front of a wall, in disparities.
y, x = np.mgrid[:240, :320].astype(float)
truth = np.maximum(12, 0.25 * (y - 60))
photo = np.where(truth > 12, 0.45, 0.75)
box = (abs(x - 200) < 50) & (abs(y - 130) < 45)
truth[box], photo[box] = 30 + 0.08 * (x[box] - 150), 0.15
photo += np.random.default_rng(1).normal(0, 0.01, photo.shape)
sparse = np.where(np.random.default_rng(0).random(truth.shape) < 0.003, truth, np.nan)

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
axes[0].imshow(photo, cmap="gray")
rows, columns = np.nonzero(np.isfinite(sparse))
axes[0].scatter(columns, rows, 3, "red")
axes[0].set_title(f"{rows.size} known pixels")
for axis, model in zip(axes[1:], ("constant", "planar"), strict=True):
    solution = bilateral.solve(photo, sparse, smoothness="auto", model=model)
    axis.contourf(solution, levels=np.arange(8, 46, 2), cmap="turbo")
    axis.invert_yaxis()
    axis.set_title(f"{model}: mean error {np.mean(abs(solution - truth)):.2f}")
for axis in axes:
    axis.axis("off")
plt.show()
