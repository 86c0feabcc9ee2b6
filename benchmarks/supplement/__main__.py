"""The one command: ``python -m benchmarks.supplement [--data DIR]``, from the repository's root."""

import argparse
from typing import Any

from benchmarks import command
from benchmarks.supplement import lowrank, robust
from benchmarks.tables import cores, ms, spread, table
from benchmarks.timing import geometric_mean

TARGETS = {
    "rounds_in_solves_at_most": 8.0,
    "lowrank_ratio_at_least": 4.0,
    "lowrank_same_class_percent_at_least": 99.5,
}


def main() -> None:
    options = command.options(
        "supplement",
        "Time robust rounds and low-rank solves against plain ones, and check both.",
        data="Middlebury scenes and class scores, anywhere below; a made scene without it",
        quick="one repeat of a small made scene",
        repeats=7,
    )
    command.write("supplement", measure(options), as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    data = None if options.quick else options.data
    repeats, pixels = options.repeats, 40_000 if options.quick else 1_000_000
    scenes = list(robust.read_scenes(data)) if data else []
    images = list(lowrank.read_images(data)) if data else []
    scenes = scenes or [robust.made_scene(*((160, 240) if options.quick else (500, 741)))]
    return {
        **command.circumstances(),
        "targets": TARGETS,
        "cost": [
            robust.cost(robust.resized(scene, pixels), *setting, repeats)
            for scene in scenes
            for setting in robust.SETTINGS
        ],
        "gain": [robust.gain(scene, *setting) for scene in scenes for setting in robust.SETTINGS],
        "lowrank": [lowrank.compare(image, repeats) for image in images],
    }


def as_text(results: dict[str, Any]) -> str:
    made_on = f"{results['machine']['cpu']}, {results['machine']['cores']} cores"
    sections = [
        f"# The supplement's parts\n\n{results['date']}, {made_on}",
        f"## {robust.ROUNDS} robust rounds in single solves\n\n{_cost(results['cost'])}",
        f"## What they gain: bad-1 %, mean and RMS error\n\n{_gain(results['gain'])}",
    ]
    if results["lowrank"]:
        sections.append(f"## Low rank at {lowrank.TOLERANCE}\n\n{_lowrank(results['lowrank'])}")
    return "\n\n".join(sections) + "\n"


def _cost(rows: list[dict[str, Any]]) -> str:
    return table(
        ("scene", "sigmas", "vertices", "rounds, ms", "solve, ms", "ratio", "call, ms", "others"),
        [
            (
                row["scene"],
                f"{row['sigma']}, {row['smoothness']:g}",
                f"{row['vertices']:,}",
                spread(row["rounds"]),
                spread(row["solve"]),
                f"{row['rounds_in_solves']:.1f}",
                f"{ms(row['one_call'].median)}: {row['rounds_in_calls']:.1f}",
                cores(row["other_work"]),
            )
            for row in rows
        ],
    )


def _gain(rows: list[dict[str, Any]]) -> str:
    def three(errors: dict[str, float]) -> str:
        return " ".join(f"{value:5.2f}" for value in errors.values())

    return table(
        ("scene", "sigmas", "input", "least squares", "robust", "exact rounds"),
        [
            (
                row["scene"],
                f"{row['sigma']}, {row['smoothness']:g}",
                *(three(row[k]) for k in ("input", "least_squares", "robust", "exact_rounds")),
            )
            for row in rows
        ],
    )


def _lowrank(rows: list[dict[str, Any]]) -> str:
    made = table(
        (
            "image",
            "vertices",
            "rank",
            "all, ms",
            "few, ms",
            "ratio",
            "system alone",
            "same class, %",
            "others",
        ),
        [
            (
                row["image"],
                f"{row['vertices']:,}",
                str(row["rank"]),
                spread(row["all"]),
                spread(row["few"]),
                f"{row['ratio']:.1f}",
                f"{row['system_ratio']:.1f}",
                f"{row['same_class']:.2f}",
                cores(row["other_work"]),
            )
            for row in rows
        ],
    )
    whole, alone = (
        geometric_mean([row[name] for row in rows]) for name in ("ratio", "system_ratio")
    )
    return (
        f"{made}\n\nGeometric mean of the ratios: {whole:.1f}; of the linear systems alone, "
        f"without splat and slice, which both need: {alone:.1f}. The paper reports about 5."
    )


if __name__ == "__main__":
    main()
