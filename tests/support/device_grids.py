"""Grids of the same images on the CPU and on the device, and tiny pictures."""

import numpy as np
import torch

import bilateral
from bilateral import color
from bilateral.backends.cuda.grid.grid import build_grid
from bilateral.numerics.policy import EDGE_GUARD
from support.kernel_device import DEVICE

BLUR = (2.0, 1.0, 0.125)
HALF = tuple(weight / 2 for weight in BLUR)  # as the core gets it


class Both:
    """Grids of one batch on both devices, and the translation between their vertices."""

    def __init__(self, pixels, sigma_xy=3.0, sigma=8.0, highest=255.0):
        images, self.height, self.width, channels = pixels.shape
        matrix, offset = color.feature_map(channels, highest)
        self.grid = build_grid(
            torch.from_numpy(pixels).permute(0, 3, 1, 2).to(DEVICE),
            matrix.tolist(),
            offset.tolist(),
            [sigma] * channels,
            highest,
            sigma_xy,
            edge_guard=EDGE_GUARD,
        )
        self.cpus = [
            bilateral.BilateralGrid(p, sigma_xy, sigma, sigma, BLUR, reference_max=highest)
            for p in pixels
        ]
        self.starts = self.grid.first_vertex.tolist()
        vertex = self.grid.parent.cpu().numpy().reshape(images, -1)
        self.own = []  # the CPU's number of each vertex, image by image
        for image, grid in enumerate(self.cpus):
            there = grid.slice(np.arange(grid.n_vertices, dtype=float)).astype(int).ravel()
            pairs = {*zip((vertex[image] - self.starts[image]).tolist(), there, strict=True)}
            assert len(pairs) == grid.n_vertices == self.starts[image + 1] - self.starts[image]
            self.own.append(np.array([b for _, b in sorted(pairs)]))

    def here(self, of_images):
        """Values at the CPU's vertices, for the device."""
        mine = [np.asarray(v)[own] for v, own in zip(of_images, self.own, strict=True)]
        return torch.from_numpy(np.concatenate(mine)).to(DEVICE)

    def there(self, values):
        """Values at the device's vertices, for the CPU."""
        out = []
        for image, own in enumerate(self.own):
            part = values[self.starts[image] : self.starts[image + 1]].cpu().numpy()
            back = np.empty_like(part)
            back[own] = part
            out.append(back)
        return out


def pictures(seed, images, height, width, channels=3, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (images, height, width, channels)) * 45
    return values.astype(dtype)


CASES = [
    ((1, 7, 9, 3), 3.0, np.uint8),
    ((2, 5, 8, 1), 2.5, np.float32),
    ((1, 1, 13, 3), 4.0, np.uint8),
    ((3, 4, 3, 3), 0.5, np.float64),
    ((1, 12, 10, 3), 64.0, np.uint8),
    ((1, 14, 13, 3), 12.0, np.uint8),  # tiles of many pixels
    ((2, 18, 17, 3), 64.0, np.uint8),  # of very many
]
