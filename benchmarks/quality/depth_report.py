"""Write the report on depth refinement beyond Table 2: scenes, pairs, targets."""

from typing import Any

from benchmarks.common.cells import Values
from benchmarks.common.tables import at_least, at_most, cores, met, table
from benchmarks.quality.stereo_page import SENSOR, TASK, mean, of_source

NUMBERS = {"bad_1": "bad-1 %", "mean": "mean", "rms": "RMS", "seen_bad_1": "seen: bad-1 %"}
PAIRS = ("SGBM, refined", "stereo_depth", "stereo_depth, refined", "match_blocks, refined")
CUTS = {"MC-CNN raw": 55.0, "SGBM": 45.0}
"""Targets: least reduction of the mean and RMS error, in percent."""
TARGETS = {"harm_percent": 5.0, "seconds": 0.6, "matching_over_sgbm": 1.15}
Row = dict[str, Any]


def details(values: Values) -> str:
    maps = [value for value in values.values() if "source" in value]
    pairs = [value for value in values.values() if "pair" in value]
    speed = values["speed"]
    parts = ["## Scene by scene", _scenes(maps), "## Targets", _targets(values, maps)]
    if pairs:
        parts += ["## From the pairs", _pairs(pairs)]
    parts.append(
        f"One call on {speed['scene']} ({speed['megapixels']:.2f} megapixels): "
        f"{speed['wall']} ms, {1e3 * speed['cpu']:.0f} ms of CPU time, with "
        f"{cores(speed['other_work'])} cores busy with other work."
    )
    return "\n\n".join(parts)


def _scenes(maps: list[Row]) -> str:
    def change(name: str) -> str:
        return f"{{ours[input][{name}]:.2f}} to {{ours[{TASK}][{name}]:.2f}}"

    rows = [row | {"stereo": harm(row, TASK), "sensor": harm(row, SENSOR)} for row in maps]
    return table(
        rows,
        f"scene | {{scene}}; input | {{source}}; mean | {change('mean')}",
        f"seen: bad-1 % | {change('seen_bad_1')}; seen: mean | {change('seen_mean')}",
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
        worst = at_most(max(harm(row, method) for row in maps), TARGETS["harm_percent"], ".1f")
        lines.append(f"largest rise in percent, {preset}: {worst}")
    seconds = at_most(values["speed"]["wall"].median, TARGETS["seconds"])
    return "\n".join(f"- {line}" for line in [*lines, f"seconds of a call: {seconds}"])


def _pairs(pairs: list[Row]) -> str:
    means = {name: mean([pair["pair"][name] for pair in pairs]) for name in PAIRS}
    ratio = means["stereo_depth, refined"]["mean"] / means["SGBM, refined"]["mean"]
    numbers = [f"{label} | {{{n}:.2f}}" for n, label in NUMBERS.items()]
    errors = [f"{name} | {{pair[{name}][mean]:.2f}}" for name in PAIRS]
    return "\n\n".join(
        [
            table(
                [{"name": name, **row} for name, row in means.items()],
                *(" | {name}", *numbers, "mean | {seen_mean:.2f}"),
            ),
            "Mean errors by scene, and seconds of stereo_depth:",
            table(pairs, " | {scene}", *errors, "s | {seconds:.2f}"),
            "stereo_depth over SGBM, both refined: "
            f"{at_most(ratio, TARGETS['matching_over_sgbm'], '.3f')}.",
        ]
    )
