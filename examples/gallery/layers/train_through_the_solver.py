"""
Train through the solver
========================

The solver is a layer of PyTorch. Here gradient descent finds out which pixels of a spoiled map can
be trusted, by the error of the solution alone.
"""

import matplotlib.pyplot as plt
import torch
from skimage.data import stereo_motorcycle

import bilateral.torch

torch.manual_seed(0)
photo, _, truth = stereo_motorcycle()
photo = photo[150:350:2, 250:550:2]
truth = bilateral.solve(photo, truth[150:350:2, 250:550:2], smoothness=0.02)  # without holes
photo, truth = torch.tensor(photo).permute(2, 0, 1)[None], torch.tensor(truth)[None, None]
wrong = torch.zeros_like(truth, dtype=torch.bool)
wrong[..., 30:60, 40:110] = True
spoiled = torch.where(wrong, 10 + 40 * torch.rand(truth.shape), truth)

logits = torch.zeros_like(truth, requires_grad=True)
optimizer = torch.optim.Adam([logits], lr=1.0)
for _ in range(40):
    solution = bilateral.torch.solve(photo, spoiled, torch.sigmoid(logits), smoothness=1.0)
    loss = (solution - truth).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"mean error {loss.item():.2f} pixels")

figure, axes = plt.subplots(1, 3, figsize=(12, 3), layout="constrained")
for axis, picture in zip(axes, (spoiled, torch.sigmoid(logits), solution), strict=True):
    axis.imshow(picture.detach()[0, 0].numpy(), cmap="turbo")
for axis, title in zip(axes, ("spoiled", "learned confidence", "solution"), strict=True):
    axis.set_title(title)
    axis.axis("off")
plt.show()
