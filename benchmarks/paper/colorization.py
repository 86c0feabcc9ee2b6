"""The paper's section 5.3: colorization from strokes, beside Levin et al. 2004."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.colorization.compare import quality, speed
from benchmarks.colorization.scenes import Scene, made, megapixel, scenes
from benchmarks.paper import published
from benchmarks.paper.cells import Cell, Results, Setting, Values
from benchmarks.paper.data import files
from benchmarks.tables import as_json, ms, table

NAME = "colorization"
TITLE = "Colorization (section 5.3)"
DATA = "colorization"

NAMES = {
    "levin": "Levin et al.",
    "levin_mapped": "Levin et al., mapped",
    "paper": 'preset="paper"',
    "best": "default",
}
SPEED = "one megapixel"
SMALL = (160, 200)


def cells(setting: Setting) -> Iterator[Cell]:
    folder = setting.data.folder("colorization")
    if folder is not None:
        for scene in scenes(folder):
            yield Cell(scene.name, partial(quality, scene), files(folder / scene.name))
    else:
        for scene in made():
            yield Cell(scene.name, partial(quality, _small(scene) if setting.quick else scene))
            if setting.quick:
                break
    yield Cell(SPEED, partial(measure_speed, setting.quick, setting.repeats))


def _small(scene: Scene) -> Scene:
    part = tuple(slice(side) for side in SMALL)
    return Scene(
        scene.name,
        scene.gray[part],
        scene.colours[part],
        scene.painted[part],
        None if scene.original is None else scene.original[part],
        None,
    )


def measure_speed(quick: bool, repeats: int) -> dict[str, Any]:
    """Seconds of a call, and of Levin et al.'s exact solve."""
    scene = _small(next(made())) if quick else megapixel()
    found: dict[str, Any] = json.loads(as_json(speed(scene, repeats)))
    return found


def summary(values: Values, _: Setting) -> Results:
    cases = [value for name, value in values.items() if name != SPEED]
    scored = [case for case in cases if case["best"] is not None]
    timed = values[SPEED]
    size = timed["megapixels"]
    return {
        "cases": cases,
        "mean": {key: float(np.mean([case[key] for case in scored])) for key in NAMES},
        "megapixels": size,
        "seconds_per_megapixel": {
            "Levin et al. 2004": timed["levin"] / size,
            "ours": timed["ours"]["median"] / size,
        },
        "ratio": timed["ratio"],
        "one_more_stroke_ms": 1e3 * timed["again"]["median"],
        "published": published.COLORIZATION,
    }


def as_text(results: Results) -> str:
    scored = [case for case in results["cases"] if case["best"] is not None]
    rows = [[case["scene"], *(f"{case[key]:.2f}" for key in NAMES)] for case in scored]
    rows.append(["mean", *(f"{results['mean'][key]:.2f}" for key in NAMES)])
    ours, theirs = results["seconds_per_megapixel"], results["published"]
    ratio = theirs["Levin et al. 2004"] / theirs["the paper"]
    parts = [
        "PSNR of the chroma in dB, strokes in the colours of the original; the paper has no "
        "numbers. Levin et al. 2004 is solved exactly, and colours cut off at black and white as "
        "theirs, or made paler as ours (mapped).",
        table(("scene", *NAMES.values()), rows),
        *(
            f"{case['scene']}: mean CIEDE2000 from Levin et al.'s own published result: "
            f"{case['best_difference']:.2f} (default), {case['paper_difference']:.2f} "
            f'(`preset="paper"`), {case["levin_difference"]:.2f} (our Levin et al.).'
            for case in results["cases"]
            if case["best_difference"] is not None
        ),
        "### Seconds per megapixel\n\n"
        + table(
            ("", "Levin et al. 2004", "bilateral solver", "ratio"),
            [
                [
                    "the paper (2012, one thread, Matlab)",
                    f"{theirs['Levin et al. 2004']:.2f}",
                    f"{theirs['the paper']:.3f}",
                    f"{ratio:.0f}",
                ],
                [
                    "measured here (SciPy's SuperLU; default preset)",
                    f"{ours['Levin et al. 2004']:.2f}",
                    f"{ours['ours']:.3f}",
                    f"{results['ratio']:.0f}",
                ],
            ],
        )
        + f"\n\nOne more stroke on the same picture: {ms(results['one_more_stroke_ms'] / 1e3)} ms.",
        _behind(results, scored),
    ]
    return "\n\n".join(parts)


def _behind(results: Results, scored: list[dict[str, Any]]) -> str:
    lines = []
    for key in ("best", "paper"):
        worse = [
            f"{case['scene']} ({case[key] - max(case['levin'], case['levin_mapped']):+.2f} dB)"
            for case in scored
            if case[key] < max(case["levin"], case["levin_mapped"])
        ]
        if worse:
            lines.append(
                f"- {NAMES[key]}: Levin et al. is nearer the original on {', '.join(worse)}"
            )
    if lines:
        lines.append(
            "- why: cells of several pixels cannot follow strokes that lie close to each other "
            "within one brightness; Levin et al. work pixel by pixel"
        )
    theirs = results["published"]
    if results["ratio"] < theirs["Levin et al. 2004"] / theirs["the paper"]:
        lines.append("- the speed-up is below the paper's 95: SuperLU is faster than Matlab was")
    return "**Behind**:\n\n" + "\n".join(lines) if lines else "No scene is behind."


def draw(_: Values, results: Results, folder: Path) -> None:
    """No figure: the pictures are not ours to show; see the gallery."""
