"""Draw the picture of alignment, alignment.jpg, from scikit-image's stereo pair.

Run ``python docs/images/alignment.py``; it needs ``pip install '.[demo]'``.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from overview import GAP, WIDTH, row
from PIL import Image
from skimage import data

import bilateral
from bilateral.cli.display.colormaps import turbo
from bilateral.tasks import align_depth

Array = NDArray[Any]

POINTS, WRONG = 50, 8


def main() -> None:
    """Align a made relative map, and write the picture beside this file."""
    photo, _, disparity = data.stereo_motorcycle()
    photo, disparity = photo[::2, ::2], disparity[::2, ::2]
    known = np.isfinite(disparity) & (disparity > 0)
    inverse = bilateral.solve(photo, np.where(known, disparity, np.nan), smoothness=0.1)
    y, x = np.mgrid[: len(photo), : photo.shape[1]]
    drift = 1 + 0.15 * np.sin(x / 110) * np.cos(y / 80)
    relative = 0.03 * inverse * drift + 0.4
    truth = 100 / inverse
    rng = np.random.default_rng(4)
    rows, columns = (rng.integers(0, size, POINTS) for size in truth.shape)
    metric = np.zeros(truth.shape)
    metric[rows, columns] = truth[rows, columns] * (1 + 0.01 * rng.normal(size=POINTS))
    metric[rows[:WRONG], columns[:WRONG]] *= 1.8
    aligned = align_depth(relative, metric)
    fit = np.polyfit(relative.ravel(), 1 / truth.ravel(), 1)
    globally = 1 / np.polyval(fit, relative)
    pictures = [
        ("photo", photo),
        (f"{POINTS} metric points, {WRONG} of them wrong", dots(photo, rows, columns)),
        ("a network's inverse depth: scale and shift drift", paint(relative)),
    ]
    results = [
        ("true depth", paint(truth)),
        (f"error of the best scale and shift: {rmse(globally, truth)}", error(globally, truth)),
        (f"error of align_depth: {rmse(aligned, truth)}", error(aligned, truth)),
    ]
    both = [row(pictures), row(results)]
    canvas = Image.new("RGB", (WIDTH, both[0].height + GAP + both[1].height), "white")
    canvas.paste(both[0], (0, 0))
    canvas.paste(both[1], (0, both[0].height + GAP))
    canvas.save(Path(__file__).with_name("alignment.jpg"), quality=85, optimize=True)


def rmse(x: Array, truth: Array) -> str:
    """Return the RMS of the relative errors as text."""
    return f"{100 * np.sqrt(np.mean((x / truth - 1) ** 2)):.1f} %"


def dots(photo: Array, rows: Array, columns: Array) -> Array:
    """Mark the points on a gray photograph, the wrong ones in red."""
    picture = np.repeat(photo.mean(axis=-1, keepdims=True), 3, axis=-1).astype(np.uint8)
    for i, (y, x) in enumerate(zip(rows, columns, strict=True)):
        colour = (230, 40, 40) if i < WRONG else (90, 230, 90)
        picture[max(y - 3, 0) : y + 4, max(x - 3, 0) : x + 4] = colour
    return picture


def paint(values: Array) -> Array:
    """Draw a map in colours."""
    low, high = np.percentile(values, [1, 99])
    return np.asarray(turbo(np.clip((values - low) / (high - low), 0, 1)))


def error(x: Array, truth: Array) -> Array:
    """Draw relative errors: blue too near, red too far, 15 % at both ends."""
    e = np.clip((x / truth - 1) / 0.15, -1, 1)[..., np.newaxis]
    ends = np.where(e > 0, (200, 30, 30), (30, 60, 200))
    return np.asarray((255 + np.abs(e) * (ends - 255)).astype(np.uint8))


if __name__ == "__main__":
    main()
