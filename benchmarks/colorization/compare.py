"""Ours and Levin et al.'s: how near the original, and how fast."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.color import deltaE_ciede2000, rgb2lab

from benchmarks.colorization.scenes import Scene
from benchmarks.paper import levin
from benchmarks.timing import Timing, clock, repeated
from bilateral import color
from bilateral.tasks import Colorizer, colorize

Array = NDArray[Any]


def quality(scene: Scene) -> dict[str, Any]:
    theirs = levin_chroma(scene)
    pictures = {
        "levin": clipped(scene.gray, theirs),
        "levin_mapped": color.colored(luma(scene), theirs, 255, np.dtype(np.uint8)),
        "paper": colorize(scene.gray, scene.colours, scene.painted, preset="paper"),
        "best": colorize(scene.gray, scene.colours, scene.painted),
    }
    row: dict[str, Any] = {"scene": scene.name, "painted": float(scene.painted.mean())}
    for name, picture in pictures.items():
        row[name] = None if scene.original is None else chroma_psnr(picture, scene.original)
        row[f"{name}_difference"] = (
            None if scene.authors is None else difference(picture, scene.authors)
        )
    return row


def speed(scene: Scene, repeats: int) -> dict[str, Any]:
    """Whole calls, and one more stroke."""
    layer = np.dstack([scene.colours, np.uint8(255) * scene.painted])
    seconds, _ = clock(levin_chroma, scene)
    ours = repeated(colorize, repeats, scene.gray, layer)
    painter, again = Colorizer(scene.gray), []
    painter.colorize(layer)
    for i in range(repeats):
        row = 20 + 8 * i
        layer[row : row + 4, 100:200] = (200, 40, 40, 255)
        again.append(clock(painter.colorize, layer)[0])
    return {
        "megapixels": scene.gray.size / 1e6,
        "levin": seconds,
        "ours": ours,
        "again": Timing.of(again),
        "ratio": seconds / ours.median,
    }


def luma(scene: Scene) -> Array:
    return color.luma(scene.gray[..., np.newaxis])


def levin_chroma(scene: Scene) -> Array:
    chroma = color.chroma(scene.colours, 255)
    return levin.propagate(luma(scene) / 255, chroma, scene.painted).astype(np.float32)


def clipped(gray: Array, chroma: Array) -> Array:
    """Colours cut off at black and white channel by channel, as Levin et al. do."""
    yuv = np.concatenate([gray[..., np.newaxis], chroma], axis=2)
    rgb = yuv @ np.linalg.inv(color.RGB_TO_YUV).T
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def chroma_psnr(picture: Array, original: Array) -> float:
    """Of U and V together, in dB; the peak is 255."""
    error = color.chroma(picture, 255) - color.chroma(original, 255)
    return float(10 * np.log10(255**2 / np.mean(np.square(error, dtype=np.float64))))


def difference(picture: Array, authors: Array) -> float:
    """Mean CIEDE2000."""
    return float(deltaE_ciede2000(rgb2lab(picture[: len(authors)]), rgb2lab(authors)).mean())
