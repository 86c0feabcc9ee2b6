"""The one command: ``python -m benchmarks.supplement [--data DIR]``, from the repository's root."""

import argparse
import datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.supplement import lowrank, robust
from benchmarks.tables import as_json, cores, ms, spread, table
from benchmarks.timing import geometric_mean

TARGETS = {
    "rounds_in_solves_at_most": 8.0,
    "lowrank_ratio_at_least": 4.0,
    "lowrank_same_class_percent_at_least": 99.5,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.supplement",
        description="Time robust rounds and low-rank solves against plain ones, and check both.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="Middlebury scenes and class scores, anywhere below; a made scene without it",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("benchmark-results"),
        help="where to write supplement.json and supplement.md (%(default)s)",
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", default=7, help="after one warm-up (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="one repeat of a small made scene")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {options.repeats}.")
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data: expected a folder, got {options.data}.")
    return options


def main() -> None:
    options = arguments()
    results = measure(options)
    text = as_text(results)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "supplement.json").write_text(as_json(results))
    (options.output / "supplement.md").write_text(text)
    print(text)
    print(f"Written: {options.output / 'supplement.json'}, {options.output / 'supplement.md'}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    data = None if options.quick else options.data
    repeats, pixels = (1, 40_000) if options.quick else (options.repeats, 1_000_000)
    scenes = list(robust.read_scenes(data)) if data else []
    images = list(lowrank.read_images(data)) if data else []
    scenes = scenes or [robust.made_scene(*((160, 240) if options.quick else (500, 741)))]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": machine.cpu_model(), "cores": machine.cores()},
        "versions": machine.versions(),
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
