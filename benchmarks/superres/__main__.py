"""The one command: ``python -m benchmarks.superres [--data DIR]``, from the repository's root."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks import command
from benchmarks.paper import published
from benchmarks.superres.scenes import FACTORS, Scene, made, rms, scenes
from benchmarks.tables import met, table
from benchmarks.timing import Timing, clock, geometric_mean
from bilateral.filters import resize
from bilateral.tasks import superres_depth

PRESETS = ("paper", "fast", "best")
NEAREST = {2: 0.1, 4: 0.1, 8: 0.2, 16: 0.4}  # RMS difference from the authors' files, at most
BEST = 2.60  # geometric mean over both scenes, at most


def main() -> None:
    options = command.options(
        "superres",
        "Depth super-resolution against the paper's table and its authors' output files.",
        data="a folder with depth_superres/; without it, a scene made from Motorcycle",
        quick="one repeat",
        repeats=5,
    )
    command.write("superres", measure(options), as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
    found = list(scenes((options.data or Path("no-data")) / "depth_superres"))
    return {
        **circumstances,
        "settings": {"repeats": options.repeats, "threads": bilateral.get_num_threads()},
        "made": not found,
        "cases": [
            case(scene, factor, options.repeats)
            for scene in found or [made()]
            for factor in FACTORS
        ],
    }


def case(scene: Scene, factor: int, repeats: int) -> dict[str, Any]:
    low = scene.low[factor]
    filled = np.where(np.isnan(low), np.nanmedian(low), low)
    row: dict[str, Any] = {
        "scene": scene.name,
        "factor": factor,
        "bicubic": scene.rmse(resize.bicubic(filled, scene.truth.shape)),
        "published": published.superres("bilateral solver", scene.name, factor),
        "authors_files": None,
        "difference": None,
        "seconds": {},
    }
    outputs = {}
    for preset in PRESETS:
        runs = [
            clock(superres_depth, low.astype(np.float32), scene.photo, preset=preset)
            for _ in range(repeats)
        ]
        outputs[preset] = runs[0][1]
        row[preset] = scene.rmse(outputs[preset])
        row["seconds"][preset] = Timing.of([seconds for seconds, _ in runs])
    if factor in scene.authors:
        theirs = scene.authors[factor]
        row["authors_files"] = scene.rmse(theirs)
        row["difference"] = rms(outputs["paper"] - theirs)
    return row


def as_text(results: dict[str, Any]) -> str:
    cases = results["cases"]
    header = ["scene", "factor", "bicubic", "published", "authors' files", "paper", "difference"]
    header += ["fast", "best", "paper s", "fast s", "best s"]
    rows = [
        [row["scene"], f"x{row['factor']}"]
        + [number(row[key]) for key in ("bicubic", "published", "authors_files")]
        + [number(row[key]) for key in ("paper", "difference", "fast", "best")]
        + [f"{row['seconds'][preset].median:.2f}" for preset in PRESETS]
        for row in cases
    ]
    means = {key: geometric_mean([row[key] for row in cases]) for key in ("bicubic", *PRESETS)}
    lines = [
        "# Depth super-resolution",
        "",
        "RMSE over the paper's window; `difference`: RMS of our output less the authors' file.",
        "",
        table(header, rows),
        "",
        "Geometric means: " + ", ".join(f"{key} {mean:.3f}" for key, mean in means.items()) + ".",
    ]
    if not results["made"]:
        lines += ["", *targets(cases, means["best"])]
    return "\n".join(lines) + "\n"


def targets(cases: list[dict[str, Any]], best: float) -> list[str]:
    near = [row for row in cases if row["published"] is not None]
    files = [row for row in cases if row["difference"] is not None]
    off = max((abs(row["paper"] - row["published"]) for row in near), default=0.0)
    close = all(row["difference"] < NEAREST[row["factor"]] for row in files)
    return [
        f"- The published figures to .03: {off:.3f} at most, {met(off <= 0.03)}.",
        f"- The authors' files to .1, .1, .2, .4 at x2 to x16: {met(close)}.",
        f"- The default's geometric mean at most {BEST}: {best:.3f}, {met(best <= BEST)}.",
    ]


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
