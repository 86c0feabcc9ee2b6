"""Write the report on depth refinement beyond Table 2: all inputs, scenes, pairs, targets."""

from typing import Any

from benchmarks.common.cells import Values
from benchmarks.common.tables import at_least, at_most, cores, met, table
from benchmarks.quality.stereo_page import TASK, best_settings, mean, of_source

NUMBERS = ("bad_1", "mean", "rms", "seen_bad_1", "seen_mean")
HEADER = ("bad-1 %", "mean", "RMS", "seen: bad-1 %", "mean")
SENSOR = 'refine_depth, "sensor", invalid=0'
PAIRS = ("SGBM, refined", "stereo_depth", "stereo_depth, refined", "match_blocks, refined")
CUTS = {"MC-CNN raw": 55.0, "SGBM": 45.0}
"""Targets: least reduction of the mean and RMS error, in percent."""
TARGETS = {"harm_percent": 5.0, "seconds": 0.6, "matching_over_sgbm": 1.15}
Row = dict[str, Any]


def details(values: Values) -> str:
    maps = [value for value in values.values() if "source" in value]
    pairs = [value for value in values.values() if "pair" in value]
    speed = values["speed"]
    parts = []
    for source in dict.fromkeys(row["source"] for row in maps):
        rows = of_source(values, source)
        parts.append(f"## {source}: means over {len(rows)} scenes\n\n{_means(rows)}")
    parts.append(f"## Scene by scene\n\n{_scenes(maps)}")
    parts.append(f"## Targets\n\n{_targets(values, maps)}")
    if pairs:
        parts.append(f"## From the pairs\n\n{_pairs(pairs)}")
    parts.append(
        f"One call on {speed['scene']} ({speed['megapixels']:.2f} megapixels): "
        f"{speed['wall']} ms, {1e3 * speed['cpu']:.0f} ms of CPU time, with "
        f"{cores(speed['other_work'])} cores busy with other work."
    )
    return "\n\n".join(parts)


def _means(rows: list[Row]) -> str:
    """Means over the scenes, each filter in its setting with the least mean error."""
    before = mean([row["ours"]["input"] for row in rows])
    runs = [run for row in rows for run in row["peers"]]
    lines = {"input": before}
    for name, setting in best_settings(runs, ("mean",)).items():
        same = [r for r in runs if r["filter"] == name and list(r["setting"]) == setting]
        lines[f"{name} {setting[0]:g}, {setting[1]:g}"] = mean(same)
    for name, key in ((SENSOR, SENSOR), ('refine_depth, "stereo"', TASK)):
        lines[name] = mean([row["ours"][key] for row in rows])
    changes = [
        {"name": name, **errors}
        | {f"{n}_change": 100 * (errors[n] / before[n] - 1) for n in ("mean", "rms")}
        for name, errors in lines.items()
    ]
    return table(
        changes,
        " | {name}; bad-1 % | {bad_1:.1f}; mean | {mean:.2f}; RMS | {rms:.2f}",
        "change of mean, RMS | {mean_change:+.0f} %, {rms_change:+.0f} %",
        "seen: bad-1 % | {seen_bad_1:.1f}; mean | {seen_mean:.2f}",
    )


def _scenes(maps: list[Row]) -> str:
    def change(name: str) -> str:
        return f"{{ours[input][{name}]:.2f}} to {{ours[{TASK}][{name}]:.2f}}"

    rows = [row | {"stereo": harm(row, TASK), "sensor": harm(row, SENSOR)} for row in maps]
    return table(
        rows,
        "scene | {scene}; input | {source}",
        f"mean | {change('mean')}",
        f"seen: bad-1 % | {change('seen_bad_1')}",
        f"seen: mean | {change('seen_mean')}",
        "harm, stereo | {stereo:+.1f} %; harm, sensor | {sensor:+.1f} %",
    )


def harm(row: Row, method: str) -> float:
    """The larger rise, in percent, of bad-1 and of the mean error where both views see."""
    before, after = row["ours"]["input"], row["ours"][method]
    return max(100 * (after[name] / before[name] - 1) for name in ("seen_bad_1", "seen_mean"))


def _targets(values: Values, maps: list[Row]) -> str:
    lines = []
    for source, least in CUTS.items():
        rows = of_source(values, source)
        if rows:
            before, after = (mean([row["ours"][k] for row in rows]) for k in ("input", TASK))
            cuts = {n: 100 * (1 - after[n] / before[n]) for n in ("mean", "rms")}
            lines.append(
                f"{source}: mean error cut by {at_least(cuts['mean'], least, '.0f')} percent, RMS "
                f"by {at_least(cuts['rms'], least, '.0f')}; bad-1 not raised: "
                f"{met(after['bad_1'] <= before['bad_1'])}"
            )
    for preset, method in {"stereo": TASK, "sensor": SENSOR}.items():
        worst = max(harm(row, method) for row in maps)
        limit = TARGETS["harm_percent"]
        lines.append(f"largest rise in percent, {preset}: {at_most(worst, limit, '.1f')}")
    seconds = at_most(values["speed"]["wall"].median, TARGETS["seconds"])
    lines.append(f"seconds of a call: {seconds}")
    return "\n".join(f"- {line}" for line in lines)


def _pairs(pairs: list[Row]) -> str:
    means = {name: mean([pair["pair"][name] for pair in pairs]) for name in PAIRS}
    ratio = means["stereo_depth, refined"]["mean"] / means["SGBM, refined"]["mean"]
    numbers = [f"{label} | {{{n}:.2f}}" for label, n in zip(HEADER, NUMBERS, strict=True)]
    return (
        table([{"name": name, **row} for name, row in means.items()], " | {name}", *numbers)
        + "\n\nMean errors by scene, and seconds of stereo_depth:\n\n"
        + table(
            pairs,
            " | {scene}",
            *(f"{name} | {{pair[{name}][mean]:.2f}}" for name in PAIRS),
            "s | {seconds:.2f}",
        )
        + "\n\nstereo_depth over SGBM, both refined: "
        + at_most(ratio, TARGETS["matching_over_sgbm"], ".3f")
        + "."
    )
