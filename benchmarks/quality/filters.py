"""Compare the domain transform and the median with their authors, the paper and peers."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from skimage import io

import bilateral
from benchmarks.common import photos, published
from benchmarks.common.cells import Setting
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Photo
from benchmarks.common.tables import OTHERS, at_least, met, table
from benchmarks.common.turns import Row, with_opencv
from benchmarks.quality import median
from benchmarks.quality.superres import filtered
from benchmarks.quality.superres_scenes import rms, scenes
from bilateral.filters import resize

TITLE = "Filters"
REPEATS = 15
OPENCV = "domain transform"

QUICK_SHAPE = (1024, 1024)
DTYPES = ("uint8", "float32")
SIGMA_XY, SIGMA_RGB, ITERATIONS = 30.0, 51.0, 3
TARGETS = {
    "authors_rms_below": 1.0,
    "superres_off_by_at_most": 0.01,
    "ratio_to_opencv_at_least": 1.0,
}


def measure(setting: Setting) -> Row:
    images = list(photographs(setting))
    counts, repeats = setting.threads, setting.repeats
    sigmas = {"sigma_xy": SIGMA_XY, "sigma_rgb": SIGMA_RGB, "iterations": ITERATIONS}
    run = {"repeats": repeats, "quick": setting.quick, "threads": counts}
    return {
        "settings": run | sigmas,
        "targets": TARGETS,
        "authors": authors(setting.data.folder("domain_transform")),
        "superres": superres(setting.data.folder("depth_superres")),
        "speed": [row for photo in images for row in speed(photo, setting)],
        "median": median.compare(images[0], setting.any_python, counts, repeats),
    }


def photographs(setting: Setting) -> Iterator[Photo]:
    for photo in photos.photographs(setting.data.photographs()):
        if setting.quick:
            yield Photo(photo.name, photos.centre(photo.pixels, *QUICK_SHAPE))
            return
        yield photo


def authors(folder: Path | None) -> Row | None:
    """RMS difference from Gastal & Oliveira's own output, in grey levels."""
    if folder is None:
        return None
    photo = io.imread(folder / "statue.png")[..., :3]
    theirs = io.imread(folder / "dt_authors_statue_RF_ss30_sc0.2.png")[..., :3]
    ours = bilateral.domain_transform(photo.astype(np.float64), photo, 30, 0.2 * 255)
    rounded = np.asarray(np.rint(ours) - theirs)
    return {"picture": "statue", "rms": rms(ours - theirs), "rms_uint8": rms(rounded)}


def superres(folder: Path | None) -> list[Row] | None:
    """RMSE of the filter alone on bicubic depth, beside the paper's row."""
    rows = []
    for scene in scenes(folder) if folder else ():
        for factor, depth in scene.low.items():
            paper = published.superres("domain transform", scene.name, factor)
            target = resize.bicubic(depth, scene.truth.shape)
            rmse = scene.rmse(filtered(target, scene.photo, factor), full=factor == 2)
            rows.append({"scene": scene.name, "factor": factor, "rmse": rmse, "paper": paper})
    return rows or None


def speed(photo: Photo, setting: Setting) -> list[Row]:
    """One row per dtype. OpenCV may use as many threads as our largest count."""
    arrays = {"photo": photo.pixels} | {dtype: photo.pixels.astype(dtype) for dtype in DTYPES}
    with nullcontext() if setting.python is None else Worker(setting.python, arrays) as peer:
        return [_speed(photo, dtype, peer, setting) for dtype in DTYPES]


def _speed(photo: Photo, dtype: str, peer: Worker | None, setting: Setting) -> Row:
    image, settings = photo.pixels.astype(dtype), (SIGMA_XY, SIGMA_RGB, ITERATIONS)
    ours = bilateral.domain_transform, image, photo.pixels, *settings
    call = "domain transform", f"photo {dtype}", *settings
    row: Row = {"photo": photo.name, "megapixels": photo.pixels[..., 0].size / 1e6, "dtype": dtype}
    row["rms_difference"] = None

    def check(theirs: Any) -> None:
        result = bilateral.domain_transform(image, photo.pixels, *settings)
        row["rms_difference"] = rms(result - theirs.astype(np.float64))

    times = with_opencv(ours, call, peer, check, setting.threads, setting.repeats)
    return row | times


def as_text(results: Row) -> str:
    counts = results["settings"]["threads"]
    parts = _authors(results["authors"]), _superres(results["superres"]), _speeds(results)
    return "\n\n".join([*parts, median.as_text(results["median"], counts)])


def _authors(row: Row | None) -> str:
    title = "## Against the domain transform's authors\n\n"
    limit = TARGETS["authors_rms_below"]
    if row is None:
        return f"{title}Skipped: no folder domain_transform in --data."
    return (
        f"{title}RMS difference from their output on {row['picture']}: {row['rms']:.3f} grey "
        f"levels, {row['rms_uint8']:.3f} when rounded as theirs (target below {limit:g}: "
        f"{met(row['rms'] < limit)}). Rounding alone makes 0.289."
    )


def _superres(rows: list[Row] | None) -> str:
    title = "## Depth super-resolution by the domain transform alone, RMSE\n\n"
    if rows is None:
        return f"{title}Skipped: no folder depth_superres in --data."
    rows = [row | {"off": abs(row["rmse"] / row["paper"] - 1)} for row in rows]
    worst, limit = max(row["off"] for row in rows), TARGETS["superres_off_by_at_most"]
    text = table(
        rows,
        "map | {scene} x{factor}; ours | {rmse:.3f}; the paper's | {paper:.2f}",
        "off by | {off:.2%}",
    )
    verdict = f"(target at most {limit:.0%}: {met(worst <= limit)})"
    return f"{title}{text}\n\nLargest: {worst:.2%} {verdict}."


def _speeds(results: Row) -> str:
    settings = results["settings"]
    counts = settings["threads"]
    text = (
        f"## Against OpenCV's dtFilter (DTF_RF), {counts[-1]} threads\n\n"
        f"RGB along itself, {settings['iterations']} iterations; ms, median (quartiles) "
        f"of {settings['repeats']} repeats in turns; other work: cores that other processes kept "
        "busy.\n\n"
    )
    text += table(
        results["speed"],
        "photograph | {photo}, {megapixels:.1f} MP, {dtype}",
        *(f"ours, {n} threads | {{ours[{n}]}}" for n in counts),
        "OpenCV | {opencv}; ratio | {ratio:.2f}; RMS difference | {rms_difference:.3f}",
        OTHERS,
    )
    ratios = [row["ratio"] for row in results["speed"] if row["ratio"]]
    if not ratios:
        return text
    least = at_least(min(ratios), TARGETS["ratio_to_opencv_at_least"])
    return f"{text}\n\nRatio, minimum: {least}."
