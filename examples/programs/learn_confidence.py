"""Train a network through the solver, to predict how much each pixel of a depth map can be trusted.

A simulated depth camera fails on dark surfaces and in saturated light; the photograph shows both.
The network receives photograph and raw depth. It predicts a confidence and a correction for each
pixel. The bilateral solver, used as a layer, spreads the corrected depth along the edges of the
photograph, and its gradients train the network.

The script compares three methods on scenes that were not used for training:

- the solver with a constant confidence,
- the same network alone, trained to predict the depth itself,
- the network followed by the solver.

    pip install 'bilateral[torch]' matplotlib
    python examples/programs/learn_confidence.py

The script takes about half a minute on two cores and writes ``learn_confidence.png`` with the
losses and the first scenes.
"""

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn

import bilateral.torch

SIZE = 64


# A simulated depth camera


def scenes(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return photographs (B, 3, H, W) from 0 to 1, raw and true depths (B, 1, H, W)."""
    rng = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    y, x = y / SIZE - 0.5, x / SIZE - 0.5
    photos, raws, truths = [], [], []
    for _ in range(count):
        slope = torch.empty(2).uniform_(-0.5, 0.5, generator=rng)
        depth = 3 + slope[0] * x + slope[1] * y
        colour = torch.rand(3, 1, 1, generator=rng).expand(3, SIZE, SIZE).clone()
        for _ in range(6):
            covered, nearer = shape(x, y, rng)
            depth = torch.where(covered, depth.clamp(max=3) - nearer, depth)
            colour = torch.where(covered, torch.rand(3, 1, 1, generator=rng), colour)
        light = 1 + 0.25 * torch.sin(9 * x + 5 * y + 6 * torch.rand(1, generator=rng))
        photo = (colour * light + 0.02 * torch.randn(3, SIZE, SIZE, generator=rng)).clamp(0, 1)
        photos.append(photo)
        truths.append(depth[None])
        raws.append(measured(depth, photo, rng)[None])
    return torch.stack(photos), torch.stack(raws), torch.stack(truths)


def shape(x: Tensor, y: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return a mask of a random ellipse or bar, and its distance from the background."""
    u = torch.rand(6, generator=rng)
    cx, cy = u[0] - 0.5, u[1] - 0.5
    across, along = 0.08 + 0.25 * u[2], 0.08 + 0.25 * u[3]
    turned = torch.cos(6 * u[4]) * (x - cx) + torch.sin(6 * u[4]) * (y - cy)
    other = torch.cos(6 * u[4]) * (y - cy) - torch.sin(6 * u[4]) * (x - cx)
    if u[5] < 0.5:
        covered = (turned / across) ** 2 + (other / along) ** 2 < 1
    else:
        covered = (turned.abs() < across) & (other.abs() < along)
    return covered, 0.3 + 0.9 * u[5]


def measured(depth: Tensor, photo: Tensor, rng: torch.Generator) -> Tensor:
    """Return the raw depth: dark surfaces and saturated light cause noise and outliers."""
    bright = photo.mean(0)
    bad = torch.sigmoid(25 * (0.3 - bright)) + torch.sigmoid(40 * (bright - 0.9))
    noise = (0.04 + 0.3 * bad) * torch.randn(depth.shape, generator=rng)
    outlier = torch.rand(depth.shape, generator=rng) < 0.03 + 0.5 * bad
    wrong = torch.empty(depth.shape).uniform_(0.5, 5, generator=rng)
    return torch.where(outlier, wrong, depth + noise)


# The networks


class Network(nn.Sequential):
    """Four convolutions with 16 channels; the input is photograph and raw depth."""

    def __init__(self, outputs: int) -> None:
        def block(inputs: int, dilation: int) -> list[nn.Module]:
            return [nn.Conv2d(inputs, 16, 3, padding=dilation, dilation=dilation), nn.ReLU()]

        super().__init__(
            *block(4, 1), *block(16, 2), *block(16, 4), nn.Conv2d(16, outputs, 3, padding=1)
        )


class Alone(nn.Module):
    """The network alone: it predicts the depth as a correction of the raw depth."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network(1)

    def forward(self, photo: Tensor, raw: Tensor) -> Tensor:
        return raw + self.network(torch.cat([photo, raw - 3], 1))


class Solved(nn.Module):
    """The network predicts a confidence and a correction; the solver computes the depth."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network(2)
        self.solver = bilateral.torch.BilateralSolver(
            sigma_xy=4, sigma_luma=12, sigma_chroma=12, smoothness=1.0, learn_smoothness=True
        )

    def confidence(self, photo: Tensor, raw: Tensor) -> tuple[Tensor, Tensor]:
        correction, logit = self.network(torch.cat([photo, raw - 3], 1)).chunk(2, 1)
        return raw + correction, torch.sigmoid(logit) + 1e-3

    def forward(self, photo: Tensor, raw: Tensor) -> Tensor:
        target, confidence = self.confidence(photo, raw)
        return self.solver(photo, target, confidence)


def constant(photo: Tensor, raw: Tensor, smoothness: float) -> Tensor:
    """Solve with the same confidence for all pixels."""
    return bilateral.torch.solve(
        photo, raw, sigma_xy=4, sigma_luma=12, sigma_chroma=12, smoothness=smoothness
    )


# Training


def train(model: nn.Module, steps: int, batch: int) -> list[float]:
    """Train on new scenes in each step; return the loss of each step, the mean error of depth."""
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=steps)
    losses = []
    for step in range(steps):
        photo, raw, truth = scenes(batch, seed=step)
        loss = (model(photo, raw) - truth).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def error(depth: Tensor, truth: Tensor) -> float:
    return (depth - truth).abs().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a confidence through the solver.")
    parser.add_argument("--steps", type=int, default=300, help="steps of training (%(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="scenes per step (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("learn_confidence.png"))
    options = parser.parse_args()

    torch.manual_seed(0)
    start = time.perf_counter()
    test = scenes(64, seed=10**6)
    photo, raw, truth = test
    models = {"network alone": Alone(), "network and solver": Solved()}
    losses = {name: train(model, options.steps, options.batch) for name, model in models.items()}
    with torch.no_grad():
        depths = {name: model(photo, raw) for name, model in models.items()}
        tuning = scenes(32, seed=10**6 + 1)  # for a fair comparison, tune the constant, too
        best = min(
            (0.25, 1.0, 4.0, 16.0, 64.0),
            key=lambda s: error(constant(*tuning[:2], smoothness=s), tuning[2]),
        )
        depths = {"raw": raw, f"solver, smoothness {best:g}": constant(photo, raw, best)} | depths
    print("mean error of depth")
    for name, depth in depths.items():
        print(f"{name:<24}{error(depth, truth):.4f}")
    solved = models["network and solver"]
    assert isinstance(solved, Solved)
    print(f"learned smoothness      {solved.solver.smoothness.item():.2f}")
    print(f"{time.perf_counter() - start:.0f} s")
    with torch.no_grad():
        confidence = solved.confidence(photo, raw)[1]
    draw(options.output, losses, photo, {"truth": truth} | depths, confidence)
    print(f"written: {options.output}")


def draw(
    path: Path,
    losses: dict[str, list[float]],
    photo: Tensor,
    depths: dict[str, Tensor],
    confidence: Tensor,
) -> None:
    """Draw the losses, and four scenes below them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = 4
    titles = ["photo", *depths, "confidence"]
    figure = plt.figure(figsize=(2 * len(titles), 2 * rows + 3), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[3, 2 * rows])
    axes = above.subplots()
    for name, values in losses.items():
        smooth = torch.tensor(values).unfold(0, 20, 1).mean(1)
        axes.plot(smooth, label=name)
    axes.set(xlabel="step", ylabel="mean error over 20 steps", yscale="log")
    axes.legend()
    grid = below.subplots(rows, len(titles))
    for row, line in enumerate(grid):
        pictures = [photo[row].permute(1, 2, 0), *(d[row, 0] for d in depths.values())]
        pictures.append(confidence[row, 0])
        for axis, title, picture in zip(line, titles, pictures, strict=True):
            limits = {} if title in ("photo", "confidence") else {"vmin": 1, "vmax": 3.5}
            axis.imshow(picture.clamp(0, 4), **limits)
            axis.set_axis_off()
            if row == 0:
                axis.set_title(title, fontsize=9)
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
