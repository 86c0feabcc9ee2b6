"""Refine disparities of the stereo scenes with both presets and with spoiled photographs.

Maps of matching show the strength of a preset, true disparities its harm.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.camera.metrics import harm
from benchmarks.camera.spoil import AS_IT_IS, FEATURELESS, PHOTOS
from benchmarks.common.cells import Results, Setting
from benchmarks.common.tables import at_least, at_most, bullets, page, table
from benchmarks.quality import depth
from benchmarks.quality.depth import Case
from benchmarks.quality.stereo_page import mean
from bilateral.tasks import refine_depth

SOURCES = ("MC-CNN raw", "SGBM")
PRESETS: dict[str, dict[str, Any]] = {
    "sensor": {"preset": "sensor", "invalid": 0},
    "stereo": {"preset": "stereo"},
}
# Least cuts of mean and RMS error in percent: "sensor" as before, "stereo" 2 points less.
AIMS = {
    ("sensor", "MC-CNN raw"): (48.5, 44.5),
    ("sensor", "SGBM"): (33.5, 32.5),
    ("stereo", "MC-CNN raw"): (60, 55),
    ("stereo", "SGBM"): (47, 49),
}
QUICK_SHAPE = (120, 160)
MOST_HARM = 0.1  # percent


def cases(setting: Setting) -> Iterator[Case]:
    """Yield the maps of each scene, made ones for a quick run and without data."""
    scenes = [] if setting.quick else setting.data.scenes()
    for folder in scenes:
        yield from map(partial(depth.from_folder, folder), SOURCES)
    if not scenes:
        yield from depth.made_here(QUICK_SHAPE if setting.quick else (480, 720))


def measure(setting: Setting) -> Results:
    """Measure the cut of errors of matching, and the harm to true disparities."""
    return {"cuts": cuts(setting), "harm": list(harms(setting))}


def harms(setting: Setting) -> Iterator[Results]:
    """Yield the harm of each preset to the true disparities of each scene, by photograph."""
    scenes = {case.scene: case for case in cases(setting)}
    for name, case in scenes.items():
        truth = np.nan_to_num(case.truth).astype(np.float32)
        for preset, options in PRESETS.items():
            row = {
                photo: harm(truth, refine_depth(truth, spoil(case.photo), **options))
                for photo, spoil in PHOTOS.items()
            }
            yield {"scene": name, "preset": preset, "harm": row}


def cuts(setting: Setting) -> list[Results]:
    """Return the cuts of the mean errors over all scenes, for each input, preset and photograph."""
    errors: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    inputs: dict[str, list[dict[str, float]]] = {}
    for case in cases(setting):
        inputs.setdefault(case.source, []).append(depth.errors(case.disparity, case.truth))
        for photo, spoil in PHOTOS.items():
            spoiled = spoil(case.photo)
            for preset, options in PRESETS.items():
                refined = refine_depth(case.disparity, spoiled, **options)
                row = depth.errors(refined, case.truth)
                errors.setdefault((case.source, preset, photo), []).append(row)
    rows = []
    for (source, preset, photo), every in errors.items():
        before, after = mean(inputs[source]), mean(every)
        cut = {key: 100 * (1 - after[key] / before[key]) for key in ("mean", "rms")}
        rows.append({"input": source, "preset": preset, "photo": photo, **after, "cut": cut})
    return rows


def as_text(results: Results) -> str:
    rows, verdicts = results["cuts"], []
    for row in rows:
        name = f'"{row["preset"]}", {row["input"]}'
        aim = AIMS.get((row["preset"], row["input"]))
        if aim is not None and row["photo"] == AS_IT_IS:
            pairs = zip(("mean", "rms"), aim, strict=True)
            texts = [at_least(row["cut"][key], least, ".1f") for key, least in pairs]
            verdicts.append(f"{name}: mean {texts[0]}, RMS {texts[1]}")
        if row["photo"] == FEATURELESS:
            verdicts.append(f"{name}, {FEATURELESS}: mean {at_least(row['cut']['mean'], 0, '.1f')}")
    worst = {
        preset: max(max(row["harm"].values()) for row in results["harm"] if row["preset"] == preset)
        for preset in PRESETS
    }
    return page(
        "## Disparities\n\nMean and RMS error in pixels, means over the stereo scenes, and their "
        "cut in percent of the input's.",
        table(
            rows,
            "input | {input}; preset | {preset}; photograph | {photo}",
            "mean | {mean:.2f}; RMS | {rms:.2f}",
            "cut, mean | {cut[mean]:.0f}; cut, RMS | {cut[rms]:.0f}",
        ),
        bullets("Cuts in percent:", verdicts),
        "Harm to true disparities, in percent of the pixels inside surfaces.",
        table(
            results["harm"],
            "scene | {scene}; preset | {preset}",
            *(f"{name} | {{harm[{name}]:.3f}}" for name in PHOTOS),
        ),
        bullets(
            "Largest harm, in percent:",
            [f'"{name}": {at_most(value, MOST_HARM, ".3f")}' for name, value in worst.items()],
        ),
    )
