"""Refine the output of a segmentation network, so that its outlines fit the photograph.

Networks of torchvision return a dictionary. Its entry "out" holds logits (B, 21, H, W), enlarged
from cells of 8 to 16 pixels. One line moves the outlines to the edges of the photograph:

    labels = refine_segmentation(model(normalize(photo))["out"], photo, labels=True)

Here `photo` is the photograph before its normalization.

    pip install 'bilateral[torch]' matplotlib
    pip install torchvision  # for a real network; its weights are downloaded
    python examples/programs/refine_segmentation.py [photo.jpg]

The script writes ``refine_segmentation.png``. Without a photograph it uses a synthetic picture and
a simple classifier that is as coarse as a network; torchvision is then not needed.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn

from bilateral.torch import refine_segmentation

CLASSES = 21
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class ColourClassifier(nn.Module):
    """Classify large cells by their colours: as coarse and as uncertain as a network."""

    def __init__(self, colours: dict[int, tuple[float, float, float]], cell: int = 20) -> None:
        super().__init__()
        self.cell = cell
        self.labels = torch.tensor(list(colours))
        self.register_buffer("colours", torch.tensor(list(colours.values())))

    def forward(self, batch: Tensor) -> dict[str, Tensor]:
        """Return {"out": logits (B, 21, H, W)} for normalized images (B, 3, H, W)."""
        photo = batch * DEVIATION + MEAN
        distance = (photo[:, None] - self.colours[None, :, :, None, None]).square().sum(2)
        share = (-50 * distance).softmax(1)
        low = nn.functional.avg_pool2d(share, self.cell, ceil_mode=True)
        low = nn.functional.avg_pool2d(low, 3, 1, 1, count_include_pad=False)
        logits = torch.full((len(batch), CLASSES, *low.shape[2:]), -20.0)
        logits[:, self.labels] = 4 * torch.log(low + 0.02)
        size = batch.shape[2:]
        return {"out": nn.functional.interpolate(logits, size, mode="bilinear")}


COLOURS = {0: (0.45, 0.5, 0.45), 8: (0.85, 0.55, 0.2), 15: (0.2, 0.3, 0.75)}


def synthetic_picture(height: int = 240, width: int = 320) -> tuple[Tensor, Tensor]:
    """Return a picture (3, H, W) of a disc and an inclined bar, and its labels (H, W)."""
    y, x = torch.meshgrid(
        torch.arange(height) / height, torch.arange(width) / height, indexing="ij"
    )
    labels = torch.zeros(height, width, dtype=torch.int64)
    labels[(y - 0.55) ** 2 + (x - 0.4) ** 2 < 0.06] = 8
    labels[((x - 0.9) + 0.4 * (y - 0.5)).abs() < 0.08] = 15
    photo = torch.zeros(3, height, width)
    for label, colour in COLOURS.items():
        photo[:, labels == label] = torch.tensor(colour)[:, None]
    light = 1 + 0.15 * torch.sin(7 * x + 4 * y)
    noise = 0.02 * torch.randn(photo.shape, generator=torch.Generator().manual_seed(0))
    return (photo * light + noise).clamp(0, 1), labels


def load(path: Path) -> tuple[nn.Module, Tensor]:
    """Return torchvision's DeepLabv3 and a photograph (3, H, W) from 0 to 1."""
    from torchvision.io import ImageReadMode, read_image
    from torchvision.models.segmentation import (
        DeepLabV3_MobileNet_V3_Large_Weights,
        deeplabv3_mobilenet_v3_large,
    )

    weights = DeepLabV3_MobileNet_V3_Large_Weights.DEFAULT
    photo = read_image(str(path), ImageReadMode.RGB).float() / 255
    return deeplabv3_mobilenet_v3_large(weights=weights).eval(), photo


def segment(model: nn.Module, photo: Tensor) -> tuple[Tensor, Tensor]:
    """Return the labels (H, W) of the network, and the refined labels."""
    with torch.inference_mode():
        logits = model(((photo - MEAN) / DEVIATION)[None])["out"]
    refined = refine_segmentation(logits, photo[None], labels=True)
    return logits[0].argmax(0), refined[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Refine the output of a segmentation network.")
    parser.add_argument("photo", type=Path, nargs="?")
    parser.add_argument("--output", type=Path, default=Path("refine_segmentation.png"))
    options = parser.parse_args()
    if options.photo is None:
        photo, truth = synthetic_picture()
        before, after = segment(ColourClassifier(COLOURS), photo)
        for name, labels in (("network", before), ("refined", after)):
            print(f"{name}: {100 * (labels == truth).float().mean():.1f} % of the labels are right")
    else:
        model, photo = load(options.photo)
        before, after = segment(model, photo)
    draw(options.output, photo, before, after)
    print(f"written: {options.output}")


def draw(path: Path, photo: Tensor, before: Tensor, after: Tensor) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
    axes[0].imshow(photo.movedim(0, -1))
    for axis, title, labels in zip(axes[1:], ("network", "refined"), (before, after), strict=True):
        axis.imshow(photo.movedim(0, -1))
        axis.imshow(labels, cmap="tab20", vmin=0, vmax=CLASSES - 1, alpha=0.6)
        axis.set_title(title)
    for axis in axes:
        axis.set_axis_off()
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
