"""The one command: ``python -m benchmarks.colorization [--data DIR]``, from the root."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks import command
from benchmarks.colorization.compare import quality, speed
from benchmarks.colorization.scenes import made, megapixel, scenes
from benchmarks.tables import met, spread, table

GAIN = 2.0  # dB, at least
SPEED = 50  # times, at least
DIFFERENCE = 1.5  # CIEDE2000, at most
SECONDS = 0.25  # at most


def main() -> None:
    options = command.options(
        "colorization",
        "Colorization against Levin et al. 2004: quality and speed.",
        data="a folder with colorization/; without it, scikit-image's photographs",
        quick="one repeat, and no megapixel",
        repeats=5,
    )
    command.write("colorization", measure(options), as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
    folder = (options.data or Path("no-data")) / "colorization"
    found = list(scenes(folder)) if folder.is_dir() else []
    return {
        **circumstances,
        "settings": {"repeats": options.repeats, "threads": bilateral.get_num_threads()},
        "made": not found,
        "cases": [quality(scene) for scene in found or made()],
        "speed": None if options.quick else speed(megapixel(), options.repeats),
    }


def as_text(results: dict[str, Any]) -> str:
    names = ("levin", "levin_mapped", "paper", "best")
    header = ["scene", "painted", "Levin", "Levin, mapped", 'preset="paper"', "default"]
    scored = [row for row in results["cases"] if row["best"] is not None]
    rows = [
        [row["scene"], f"{100 * row['painted']:.0f} %"] + [f"{row[name]:.2f}" for name in names]
        for row in scored
    ]
    means = {name: float(np.mean([row[name] for row in scored])) for name in names}
    rows.append(["mean", ""] + [f"{means[name]:.2f}" for name in names])
    lines = [
        "# Colorization",
        "",
        "PSNR of the chroma in dB. Levin et al. 2004 solved exactly, colours cut off channel by "
        "channel as theirs, and made paler instead, as ours (mapped).",
        "",
        table(header, rows),
        "",
    ]
    gain = means["best"] - means["levin"]
    mapped = means["best"] - means["levin_mapped"]
    verdict = "" if results["made"] else f", {met(gain >= GAIN)} (wanted {GAIN:g})"
    lines.append(f"- Above Levin by {gain:.2f} dB{verdict}, and mapped by {mapped:.2f}")
    lines += [
        f"- Mean CIEDE2000 from {row['scene']}'s published result below {DIFFERENCE}: "
        f"{row['best_difference']:.2f}, {met(row['best_difference'] < DIFFERENCE)} "
        f"(our Levin {row['levin_difference']:.2f})"
        for row in results["cases"]
        if row["best_difference"] is not None
    ]
    if results["speed"] is not None:
        lines += speed_text(results["speed"])
    return "\n".join(lines) + "\n"


def speed_text(speed: dict[str, Any]) -> list[str]:
    ratio, median = speed["ratio"], speed["ours"].median
    return [
        f"- A whole call at {speed['megapixels']:.2f} megapixels below {SECONDS} s: "
        f"{spread(speed['ours'])} ms, {met(median < SECONDS)}",
        f"- {SPEED} times Levin's speed: {speed['levin']:.1f} s, {ratio:.0f} times, "
        f"{met(ratio >= SPEED)}",
        f"- One more stroke: {spread(speed['again'])} ms",
    ]


if __name__ == "__main__":
    main()
