"""Define the timed problem: denoise a gray image with its photograph as the reference."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.common.photos import Image, Photo, centre, mirrored

SIGMAS = (8, 16)
SMOOTHNESS = 4.0
STEPS = 25
NOISE = 0.1

Map = NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """A reference with a noisy target, its confidence, and the target without noise."""

    reference: Image
    target: Map
    confidence: Map
    clean: Map

    @property
    def shape(self) -> tuple[int, int]:
        return self.target.shape[0], self.target.shape[1]

    @property
    def n_pixels(self) -> int:
        return self.target.size

    def error(self, result: Map) -> float:
        """RMS difference from the map without noise."""
        return float(np.sqrt(np.mean((result - self.clean) ** 2, dtype=np.float64)))

    def mirrored(self, times: int) -> "Problem":
        """Tile the problem `times` x `times` with mirror images: the texture stays the same."""
        height, width = self.shape
        return self._each(lambda map_: mirrored(map_, times * height, times * width))

    def centre(self, height: int, width: int) -> "Problem":
        return self._each(lambda map_: centre(map_, height, width))

    def _each(self, change: Any) -> "Problem":
        maps = (self.reference, self.target, self.confidence, self.clean)
        return Problem(*(change(map_) for map_ in maps))


def problem(photo: Photo) -> Problem:
    """The gray photograph plus noise; confidence 1 at one pixel of 4 x 4, 0.01 at the others."""
    luma = np.array([0.299, 0.587, 0.114], np.float32) / np.float32(255)
    clean: Map = photo.pixels @ luma
    noise = np.random.default_rng(0).standard_normal(clean.shape, np.float32)
    confidence = np.full(clean.shape, 0.01, np.float32)
    confidence[::4, ::4] = 1
    return Problem(photo.pixels, clean + np.float32(NOISE) * noise, confidence, clean)


def solve(problem: Problem, sigma: float) -> Map:
    """Solve by the public function: the call that is timed."""
    maps = problem.reference, problem.target, problem.confidence
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), sigma)
    result: Map = bilateral.solve(
        *maps, **sigmas, smoothness=SMOOTHNESS, method="paper", max_iterations=STEPS
    )
    return result
