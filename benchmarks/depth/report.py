"""The results in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.depth.pairs import WAYS
from benchmarks.tables import cores, met, spread, table

NUMBERS = ("bad_1", "mean", "rms", "seen_bad_1", "seen_mean")
Row = dict[str, Any]


def as_text(results: dict[str, Any]) -> str:
    machine, speed = results["machine"], results["speed"]
    sections = [
        f"# Depth refinement\n\n{results['date']}, {machine['cpu']}, {machine['cores']} cores"
    ]
    if results["opencv_skipped"]:
        sections.append(results["opencv_skipped"])
    for source in dict.fromkeys(row["input"] for row in results["maps"]):
        rows = [row for row in results["maps"] if row["input"] == source]
        sections.append(f"## {source}: means over {len(rows)} scenes\n\n{_means(rows)}")
    sections.append(f"## Scene by scene\n\n{_scenes(results['maps'])}")
    sections.append(f"## Targets\n\n{_targets(results)}")
    if results["pairs"]:
        limit = results["targets"]["matching_over_sgbm_at_most"]
        sections.append(f"## From the pairs\n\n{_pairs(results['pairs'], limit)}")
    sections.append(
        f"One call on {speed['scene']} ({speed['megapixels']:.2f} megapixels): "
        f"{spread(speed['wall'])} ms, {1e3 * speed['cpu']:.0f} ms of CPU time, with "
        f"{cores(speed['other_work'])} cores busy with other work."
    )
    return "\n\n".join(sections) + "\n"


def _pairs(pairs: Sequence[Row], limit: float) -> str:
    means = {way: mean([pair[way] for pair in pairs]) for way in WAYS}
    lines = [[way, *(f"{means[way][name]:.2f}" for name in NUMBERS)] for way in WAYS]
    scenes = [[pair["scene"], *(f"{pair[way]['mean']:.2f}" for way in WAYS)] for pair in pairs]
    ratio = means["stereo_depth, refined"]["mean"] / means["SGBM, refined"]["mean"]
    return (
        table(("", "bad-1 %", "mean", "RMS", "seen: bad-1 %", "mean"), lines)
        + "\n\nMean errors by scene:\n\n"
        + table(("", *WAYS), scenes)
        + f"\n\nstereo_depth over SGBM, both refined: {ratio:.3f}, at most {limit}: "
        + met(ratio <= limit)
        + "."
    )


def mean(rows: Sequence[Row]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in NUMBERS}


def best_settings(rows: Sequence[Row]) -> dict[str, tuple[Any, dict[str, float], float]]:
    """For each filter the setting with the least mean error over the scenes."""
    found: dict[str, tuple[Any, dict[str, float], float]] = {}
    runs = [run for row in rows for run in row["peers"]]
    for name, setting in dict.fromkeys((run["filter"], tuple(run["setting"])) for run in runs):
        same = [run for run in runs if (run["filter"], tuple(run["setting"])) == (name, setting)]
        errors = mean(same)
        if name not in found or errors["mean"] < found[name][1]["mean"]:
            found[name] = setting, errors, float(np.median([run["seconds"] for run in same]))
    return found


def _means(rows: Sequence[Row]) -> str:
    before = mean([row["before"] for row in rows])
    lines = [("input", before)]
    for name, (setting, errors, _) in best_settings(rows).items():
        lines.append((f"{name} {setting[0]:g}, {setting[1]:g}", errors))
    lines.append(('refine_depth, "sensor", invalid=0', mean([row["sensor"] for row in rows])))
    lines.append(('refine_depth, "stereo"', mean([row["stereo"] for row in rows])))
    return table(
        ("", "bad-1 %", "mean", "RMS", "change of mean, RMS", "seen: bad-1 %", "mean"),
        [
            (
                name,
                f"{errors['bad_1']:.1f}",
                f"{errors['mean']:.2f}",
                f"{errors['rms']:.2f}",
                f"{_change(errors, before, 'mean')}, {_change(errors, before, 'rms')}",
                f"{errors['seen_bad_1']:.1f}",
                f"{errors['seen_mean']:.2f}",
            )
            for name, errors in lines
        ],
    )


def _scenes(rows: Sequence[Row]) -> str:
    return table(
        ("scene", "input", "mean", "seen: bad-1 %", "seen: mean", "harm, stereo", "harm, sensor"),
        [
            (
                row["scene"],
                row["input"],
                *(
                    f"{row['before'][name]:.2f} to {row['stereo'][name]:.2f}"
                    for name in ("mean", "seen_bad_1", "seen_mean")
                ),
                *(f"{harm(row, preset):+.1f} %" for preset in ("stereo", "sensor")),
            )
            for row in rows
        ],
    )


def harm(row: Row, preset: str) -> float:
    """The larger rise, in percent, of bad-1 and of the mean error where both views see."""
    return max(
        100 * (row[preset][name] / row["before"][name] - 1) for name in ("seen_bad_1", "seen_mean")
    )


def _targets(results: dict[str, Any]) -> str:
    targets, lines = results["targets"], []
    for source, least in targets["cut_percent_at_least"].items():
        rows = [row for row in results["maps"] if row["input"] == source]
        if rows:
            before, after = (mean([row[k] for row in rows]) for k in ("before", "stereo"))
            cuts = [100 * (1 - after[name] / before[name]) for name in ("mean", "rms")]
            fine = min(cuts) >= least and after["bad_1"] <= before["bad_1"]
            lines.append(
                f"- {source}: mean error cut by {cuts[0]:.0f} %, RMS by {cuts[1]:.0f} %, at least "
                f"{least:g} % wanted, bad-1 not raised: {met(fine)}"
            )
    for preset in ("stereo", "sensor"):
        most = max(harm(row, preset) for row in results["maps"])
        fine = most <= targets["harm_percent_at_most"]
        lines.append(f"- largest rise anywhere, {preset}: {most:+.1f} %: {met(fine)}")
    seconds = results["speed"]["wall"].median
    lines.append(
        f"- seconds of a call: {seconds:.2f}: {met(seconds <= targets['seconds_at_most'])}"
    )
    return "\n".join(lines)


def _change(errors: dict[str, float], before: dict[str, float], name: str) -> str:
    return f"{100 * (errors[name] / before[name] - 1):+.0f} %"
