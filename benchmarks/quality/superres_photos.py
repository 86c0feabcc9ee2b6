"""Super-resolution of maps with little or much noise, with photographs that help and that do not.

The maps are block means of true disparities, scaled to 200 grey levels, with white noise.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

from benchmarks.common import Array
from benchmarks.common.cells import Cell, Setting
from benchmarks.common.tables import at_most, bullets, page, table
from benchmarks.common.timing import geometric_mean
from benchmarks.quality.sparse import Scene, scenes
from bilateral import BlockMeans
from bilateral.filters import resize
from bilateral.tasks import superres_depth

NOISES = {"none": 0.0, "1 level": 1.0, "640 / depth": None, "30 levels": 30.0}
FACTORS = (4, 8)
LARGEST = (320, 448)
BLUR = 2.0  # pixels
WORST = 1.02  # of bicubic's error, with any photograph
PHOTOS = ("right", "blurred", "another scene", "turned around", "random texture", "constant")


def prepared(scene: Scene) -> Scene:
    """Crop the middle, fill unknown values with the nearest, and scale them to 40 to 240."""
    height, width = (min(n, m) // 16 * 16 for n, m in zip(scene.truth.shape, LARGEST, strict=True))
    top, left = (scene.truth.shape[0] - height) // 2, (scene.truth.shape[1] - width) // 2
    window = slice(top, top + height), slice(left, left + width)
    truth = scene.truth[window].astype(np.float64)
    nearest = distance_transform_edt(
        ~np.isfinite(truth), return_distances=False, return_indices=True
    )
    truth = truth[tuple(nearest)]
    return Scene(scene.name, scene.photo[window], 40 + 200 * (truth - truth.min()) / np.ptp(truth))


def photographs(scene: Scene, another: Scene) -> dict[str, Array]:
    photo = scene.photo
    texture = np.random.default_rng(0).integers(0, 256, photo.shape)
    rows, columns = (np.arange(photo.shape[i]) % another.photo.shape[i] for i in (0, 1))
    blurred = gaussian_filter(photo.astype(np.float64), (BLUR, BLUR, 0)[: photo.ndim])
    found = (
        photo,
        np.rint(blurred),
        another.photo[rows[:, np.newaxis], columns],
        photo[::-1, ::-1],
        texture,
        np.full(photo.shape, 128),
    )
    return {name: image.astype(np.uint8) for name, image in zip(PHOTOS, found, strict=True)}


def lowered(truth: Array, factor: int, noise: float | None) -> Array:
    """Average blocks and add noise; None: 640 / depth, as in Ferstl et al.'s maps."""
    shape = (truth.shape[0] // factor, truth.shape[1] // factor)
    low = BlockMeans(np.zeros(shape), truth.shape).means(truth)
    size = 640 / np.maximum(low, 40) if noise is None else noise
    return np.asarray(low + size * np.random.default_rng(0).normal(size=shape), np.float32)


def cells(setting: Setting) -> Iterator[Cell]:
    found = [prepared(scene) for scene in scenes(setting)]
    for i, scene in enumerate(found[:1] if setting.quick else found):
        # Without a second scene, a mirrored one is another.
        another = found[(i + 2) % len(found)]
        if another is scene:
            another = scene._replace(photo=scene.photo[:, ::-1])
        yield Cell(f"{scene.name}, photographs", partial(compare, scene, another, setting))


def compare(scene: Scene, another: Scene, setting: Setting) -> dict[str, Any]:
    """Return RMSE relative to bicubic enlargement by noise, photograph and factor."""
    ratios = {}
    for noise in list(NOISES)[::2] if setting.quick else NOISES:
        for factor in FACTORS[:1] if setting.quick else FACTORS:
            low = lowered(scene.truth, factor, NOISES[noise])
            bicubic = _rms(resize.bicubic(low, scene.truth.shape) - scene.truth)
            for name, photo in photographs(scene, another).items():
                error = _rms(superres_depth(low, photo) - scene.truth)
                ratios[f"{noise}; {name}; x{factor}"] = error / bicubic
    return {"ratios": ratios}


def _rms(error: Array) -> float:
    return float(np.sqrt(np.mean(error**2)))


def as_text(values: Mapping[str, Any]) -> str:
    """Show means over scenes and factors, and the worst."""
    found: dict[tuple[str, str], list[float]] = {}
    for value in values.values():
        for key, ratio in value["ratios"].items():
            noise, photo, _ = key.split("; ")
            found.setdefault((noise, photo), []).append(ratio)
    rows = [
        {"noise": noise, "photo": photo, "mean": geometric_mean(each), "worst": max(each)}
        for (noise, photo), each in found.items()
    ]
    worst = max(row["worst"] for row in rows)
    return page(
        "## Little and much noise, other photographs\n\nRMSE relative to bicubic enlargement's: "
        "geometric mean over scenes and factors, and the largest. A photograph that does not help "
        "must do no harm.",
        table(
            rows, "noise | {noise}; photograph | {photo}; mean | {mean:.3f}; worst | {worst:.3f}"
        ),
        bullets("Relative to bicubic:", [f"worst: {at_most(worst, WORST, '.3f')}"]),
    )
