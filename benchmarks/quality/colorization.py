"""Colorization from strokes (section 5.3) against Levin et al. 2004: quality and speed."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from skimage import data
from skimage.color import deltaE_ciede2000, rgb2lab

from benchmarks.common import Array, photos, published
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.data import files
from benchmarks.common.tables import at_least, at_most, behind, bullets, page, spread, table
from benchmarks.common.timing import Timing, clock, ms, repeated
from benchmarks.quality import baselines
from bilateral import color
from bilateral.cli.demo.strokes import strokes
from bilateral.tasks import Colorizer, colorize

NAME = DATA = "colorization"
TITLE, REPEATS = "Colorization (section 5.3)", 5

_DIFFERENT = 0.01 * 255  # summed over RGB: a marked picture differs this much where a stroke is
_STROKES, _RESULT = 40, "levin_result"
NAMES = {"levin": "Levin et al.", "levin_mapped": "Levin et al., mapped"}
NAMES |= {"paper": 'preset="paper"', "best": "default"}
SPEED = "one megapixel"


class Scene(NamedTuple):
    name: str
    gray: Array  # (H, W)
    colours: Array  # of the strokes
    painted: Array
    original: Array | None
    authors: Array | None  # Levin et al.'s own result, which may have fewer rows


def scenes(folder: Path) -> Iterator[Scene]:
    """One scene for each subfolder with `gray`, `marked`, and `original` or `levin_result`.

    Strokes get the colours of the original if there is one: the painted colours differ from it.
    """
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        pictures = {file.stem: file for file in sorted(path.iterdir())}
        if not {"gray", "marked"} <= pictures.keys() or not {"original", _RESULT} & pictures.keys():
            continue
        gray, marked = photos.read(pictures["gray"]).pixels, photos.read(pictures["marked"]).pixels
        painted = np.abs(gray.astype(int) - marked).sum(axis=2) > _DIFFERENT
        original = photos.read(pictures["original"]).pixels if "original" in pictures else None
        authors = photos.read(pictures[_RESULT]).pixels if _RESULT in pictures else None
        colours = marked if original is None else original
        yield Scene(path.name, gray[..., 0], colours, painted, original, authors)


def made() -> Iterator[Scene]:
    return (_made(name, getattr(data, name)()) for name in ("coffee", "chelsea", "astronaut"))


def megapixel() -> Scene:
    photo = data.coffee()
    side = np.sqrt(1e6 / (photo.shape[0] * photo.shape[1]))
    height, width = (round(side * n) for n in photo.shape[:2])
    return _made("coffee", photos.resized(photo, (height, width)))


def _made(name: str, photo: Array) -> Scene:
    gray = np.rint(color.luma(photo)).astype(np.uint8)
    return Scene(name, gray, photo, strokes(gray.shape, _STROKES), photo, None)


def small(scene: Scene, height: int = 160, width: int = 200) -> Scene:
    part = np.s_[:height, :width]
    return Scene(scene.name, *(picture[part] for picture in scene[1:5]), None)


def cells(setting: Setting) -> Iterator[Cell]:
    folder = setting.data.folder("colorization")
    stand_ins = [small(next(made()))] if setting.quick else made()
    for scene in scenes(folder) if folder else stand_ins:
        yield Cell(scene.name, partial(quality, scene), files(folder and folder / scene.name))
    large = small(next(made())) if setting.quick else megapixel()
    yield Cell(SPEED, partial(speed, large, setting.repeats))


def quality(scene: Scene) -> dict[str, Any]:
    theirs, luma = levin_chroma(scene), color.luma(scene.gray[..., np.newaxis])
    pictures = {
        "levin": clipped(scene.gray, theirs),
        "levin_mapped": color.colored(luma, theirs, 255, np.dtype(np.uint8)),
        "paper": colorize(scene.gray, scene.colours, scene.painted, preset="paper"),
        "best": colorize(scene.gray, scene.colours, scene.painted),
    }
    row: dict[str, Any] = {"scene": scene.name, "painted": float(scene.painted.mean())}
    for name, picture in pictures.items():
        row[name] = chroma_psnr(picture, scene.original)
        row[f"{name}_difference"] = difference(picture, scene.authors)
    return row


def speed(scene: Scene, repeats: int) -> dict[str, Any]:
    layer = np.dstack([scene.colours, np.uint8(255) * scene.painted])
    seconds, _ = clock(levin_chroma, scene)
    ours = repeated(colorize, repeats, scene.gray, layer)
    painter, again = Colorizer(scene.gray), []
    painter.colorize(layer)
    for row in range(20, 20 + 8 * repeats, 8):
        layer[row : row + 4, 100:200] = (200, 40, 40, 255)
        again.append(clock(painter.colorize, layer)[0])
    return {
        **{"megapixels": scene.gray.size / 1e6, "levin": seconds, "ratio": seconds / ours.median},
        **{"ours": ours, "again": Timing.of(again)},
    }


def levin_chroma(scene: Scene) -> Array:
    luma, chroma = color.luma(scene.gray[..., np.newaxis]), color.chroma(scene.colours, 255)
    return baselines.levin(luma / 255, chroma, scene.painted).astype(np.float32)


def clipped(gray: Array, chroma: Array) -> Array:
    yuv = np.concatenate([gray[..., np.newaxis], chroma], axis=2)
    rgb = yuv @ np.linalg.inv(color.RGB_TO_YUV).T
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def chroma_psnr(picture: Array, original: Array | None) -> float | None:
    """PSNR of U and V together, in dB; the peak is 255."""
    if original is None:
        return None
    error = color.chroma(picture, 255) - color.chroma(original, 255)
    return float(10 * np.log10(255**2 / np.mean(np.square(error, dtype=np.float64))))


def difference(picture: Array, authors: Array | None) -> float | None:
    """Mean CIEDE2000."""
    if authors is None:
        return None
    return float(deltaE_ciede2000(rgb2lab(picture[: len(authors)]), rgb2lab(authors)).mean())


def summary(values: Values, _: Setting | None) -> Results:
    timed, cases = values[SPEED], [value for name, value in values.items() if name != SPEED]
    scored = [case for case in cases if case["best"] is not None]
    size, seconds = timed["megapixels"], {"Levin et al. 2004": timed["levin"]}
    seconds |= {"ours": timed["ours"].median}
    return {
        "cases": cases,
        "mean": {key: float(np.mean([case[key] for case in scored])) for key in NAMES},
        "megapixels": size,
        "seconds_per_megapixel": {name: value / size for name, value in seconds.items()},
        **{"ratio": timed["ratio"], "one_more_stroke_ms": 1e3 * timed["again"].median},
        "published": published.COLORIZATION,
    }


def as_text(results: Results) -> str:
    scored = [case for case in results["cases"] if case["best"] is not None]
    ours, theirs = results["seconds_per_megapixel"], results["published"]
    ratio = theirs["Levin et al. 2004"] / theirs["the paper"]
    seconds = [
        ("the paper (2012, one thread, Matlab)", *theirs.values(), ratio),
        ("measured here (SciPy's SuperLU; default preset)", *ours.values(), results["ratio"]),
    ]
    return page(
        "PSNR of the chroma in dB, strokes in the colours of the original; the paper has no "
        "numbers. Levin et al. 2004 is solved exactly, with colours clipped at black and white as "
        "in their program, or desaturated as in ours (mapped).",
        table(
            [*scored, {"scene": "mean", **results["mean"]}],
            "scene | {scene}",
            *(f"{name} | {{{key}:.2f}}" for key, name in NAMES.items()),
        ),
        *(
            f"{case['scene']}: mean CIEDE2000 from Levin et al.'s own published result: "
            f"{case['best_difference']:.2f} (default), {case['paper_difference']:.2f} "
            f'(`preset="paper"`), {case["levin_difference"]:.2f} (our Levin et al.).'
            for case in results["cases"]
            if case["best_difference"] is not None
        ),
        "### Seconds per megapixel",
        table(
            [dict(zip("nabr", row, strict=True)) for row in seconds],
            " | {n}; Levin et al. 2004 | {a:.2f}; bilateral solver | {b:.3f}; ratio | {r:.0f}",
        ),
        f"One more stroke on the same picture: {ms(results['one_more_stroke_ms'] / 1e3)} ms.",
        behind(_losses(scored, results["ratio"], ratio), "No scene is behind."),
    )


def _losses(scored: list[dict[str, Any]], ratio: float, published_ratio: float) -> list[str]:
    lines = []
    for key in ("best", "paper"):
        gains = {c["scene"]: c[key] - max(c["levin"], c["levin_mapped"]) for c in scored}
        worse = [f"{scene} ({gain:+.2f} dB)" for scene, gain in gains.items() if gain < 0]
        if worse:
            lines.append(f"{NAMES[key]}: Levin et al. is nearer the original on {', '.join(worse)}")
    if lines:
        lines.append("the [notes](../notes/colorization.md) say why")
    if ratio < published_ratio:
        lines.append("the speed-up is below the paper's 95: SuperLU is faster than Matlab was")
    return lines


def details(values: Values) -> str:
    results, timed = summary(values, None), values[SPEED]
    means = results["mean"]
    above, mapped = (means["best"] - means[name] for name in ("levin", "levin_mapped"))
    lines = [
        f"dB above Levin et al.: {at_least(above, 2.0)}, mapped: {mapped:.2f}",
        *(
            f"mean CIEDE2000 from {case['scene']}'s published result: "
            f"{at_most(case['best_difference'], 1.5)}"
            for case in results["cases"]
            if case["best_difference"] is not None
        ),
        f"seconds of a whole call: {at_most(timed['ours'].median, 0.25)}",
        f"Levin et al.'s time over ours: {at_least(timed['ratio'], 50, '.0f')}",
    ]
    painted = table(results["cases"], "scene | {scene}; painted pixels | {painted:.0%}")
    return page(painted, spread(values), bullets("## Targets", lines))
