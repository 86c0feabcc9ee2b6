"""Complete few points to dense depth, against interpolation, the ordinary solver and OpenCV.

IP-Basic is a peer if the environment variable IP_BASIC names its file depth_map_utils.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import Array, photos
from benchmarks.common.cells import Results, Setting
from benchmarks.common.published import KITTI_COMPLETION
from benchmarks.common.tables import at_most, bullets, page, table
from benchmarks.common.timing import repeated
from benchmarks.quality.completion_inputs import cameras, stereo
from benchmarks.quality.completion_peers import maps

TITLE, REPEATS = "Few points to dense depth", 5
OPENCV = "fast bilateral solver"
METHODS = (
    "nearest",
    "linear",
    "natural neighbour",
    "ordinary solver",
    "preset sparse",
    "OpenCV solver",
    "OpenCV smoother",
    "IP-Basic",
    "complete_depth",
)
OURS, BASE = "complete_depth", "linear"
AIM, WORST, SECONDS = 0.72, 1.0, 0.8
PUBLISHED_ON = "test set, published"
TIMED = (0.0005, 0.01, 0.1)  # known parts of the photographs for timing


def errors(x: Array, truth: Array) -> tuple[float, float]:
    """Return the mean absolute error and the RMSE."""
    e = (x - truth)[np.isfinite(truth)]
    return float(np.abs(e).mean()), float(np.sqrt(np.square(e).mean()))


def measure_case(case: Any, python: str | None) -> Results:
    """Measure all methods on one input; of several maps of a method, the smallest errors count."""
    best: dict[str, tuple[float, float]] = {}
    for name, x in maps(case, python):
        found = errors(x, case.truth)
        before = best.get(name, (np.inf, np.inf))
        best[name] = min(found[0], before[0]), min(found[1], before[1])
    base = best[BASE]
    ratios = {name: [e[0] / base[0], e[1] / base[1]] for name, e in best.items()}
    return {
        **{"scene": case.scene, "group": case.group, "points": case.points, "ratios": ratios},
        "errors": {name: list(best[name]) for name in (BASE, OURS)},
    }


def seconds(setting: Setting) -> list[Results]:
    """Time one megapixel of photographs, with planes as the scene."""
    rows = []
    for photo in photos.photographs(setting.data.photographs()):
        pixels = photos.resized(photo.pixels, (256, 320) if setting.quick else (1000, 1000))
        y, x = np.mgrid[: pixels.shape[0], : pixels.shape[1]]
        truth = 20 + x / 40 + y / 30
        for fraction in TIMED[1:2] if setting.quick else TIMED:
            known = np.random.default_rng(0).random(truth.shape) < fraction
            points = np.where(known, truth, np.nan)
            timing = repeated(bilateral.tasks.complete_depth, setting.repeats, points, pixels)
            per_megapixel = timing.median * 1e6 / truth.size
            rows.append({"photo": photo.name, "fraction": fraction, "seconds": per_megapixel})
        if setting.quick:
            break
    return rows


def measure(setting: Setting) -> Results:
    cases = [*stereo(setting), *cameras(setting)]
    rows = [measure_case(case, setting.python) for case in cases]
    return {"rows": rows, "times": seconds(setting)}


def means(rows: Sequence[Results], name: str) -> list[float] | None:
    """Return the geometric means of both ratios; None if a method was not measured."""
    ratios = [row["ratios"][name] for row in rows if name in row["ratios"]]
    return np.exp(np.log(ratios).mean(axis=0)).tolist() if ratios else None


def _beside_published(kitti: Sequence[Results]) -> str:
    """Show the published errors of other methods on KITTI, and ours on single frames."""
    lines = [
        {"name": name, "on": PUBLISHED_ON, "mae": mae / 1000, "rmse": rmse / 1000}
        for name, (mae, rmse) in KITTI_COMPLETION.items()
    ]
    for row in kitti:
        for name, (mae, rmse) in row["errors"].items():
            lines.append({"name": name, "on": row["scene"], "mae": mae, "rmse": rmse})
    return page(
        "## Beside published errors on KITTI",
        "Published errors are over KITTI's 1,000 test frames, whose truth is not public. They were "
        "not measured here, and errors on single frames do not compare with them: they show the "
        "order of magnitude. Trained methods learn from many frames of the same sensors.",
        table(lines, "method | {name}; on | {on}; MAE, m | {mae:.3f}; RMSE, m | {rmse:.3f}"),
    )


def as_text(results: Results) -> str:
    rows = results["rows"]
    groups = {row["group"]: [r for r in rows if r["group"] == row["group"]] for row in rows}
    summary = []
    for name in METHODS:
        row: dict[str, Any] = {"method": name}
        for group in ("stereo", "depth"):
            found = means(groups.get(group, []), name)
            row[group] = found or [None, None]
        worst = [r["ratios"][name] for r in rows if name in r["ratios"]]
        row["worst"] = np.max(worst, axis=0).tolist() if worst else [None, None]
        summary.append(row)
    everywhere = summary[-1]["worst"]
    verdicts = [
        f"{group}, {unit}: {at_most(mean, AIM)}"
        for group, members in groups.items()
        for unit, mean in zip(("MAE", "RMSE"), means(members, OURS) or (), strict=True)
    ]
    verdicts += [
        f"worst input, {unit}: {at_most(value, WORST)}"
        for unit, value in zip(("MAE", "RMSE"), everywhere, strict=True)
    ]
    losses = [
        f"{row['scene']}, {row['points']}: {name} has {row['ratios'][name][i]:.2f}, we have "
        f"{row['ratios'][OURS][i]:.2f} ({unit})"
        for row in rows
        for i, unit in enumerate(("MAE", "RMSE"))
        for name in row["ratios"]
        if name != OURS and row["ratios"][name][i] < row["ratios"][OURS][i]
    ]
    slowest = max(row["seconds"] for row in results["times"])
    each = [{**row, "ours": row["ratios"][OURS]} for row in rows]
    kitti = [row for row in rows if row["scene"].startswith("kitti")]
    return page(
        "Errors relative to linear interpolation in the map's own unit (nearest outside of the "
        "points' hull): geometric means over stereo scenes and depth maps, and the worst input. "
        "The ordinary solver and OpenCV's filters have their best parameters for each input.",
        table(
            summary,
            "method | {method}; stereo MAE | {stereo[0]:.3f}; RMSE | {stereo[1]:.3f}",
            "depth MAE | {depth[0]:.3f}; RMSE | {depth[1]:.3f}",
            "worst MAE | {worst[0]:.2f}; RMSE | {worst[1]:.2f}",
        ),
        bullets("Ratio of `complete_depth` to linear interpolation:", verdicts),
        "## Each input",
        table(
            each, "scene | {scene}; points | {points}; MAE | {ours[0]:.3f}; RMSE | {ours[1]:.3f}"
        ),
        bullets("Where a peer is better:", losses or ["nowhere"]),
        _beside_published(kitti) if kitti else None,
        "## Time",
        table(
            results["times"],
            "photograph | {photo}; known | {fraction:.2%}; s / megapixel | {seconds:.2f}",
        ),
        bullets("Seconds per megapixel:", [f"slowest: {at_most(slowest, SECONDS)}"]),
    )
