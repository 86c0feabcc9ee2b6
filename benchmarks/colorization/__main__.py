"""The one command: ``python -m benchmarks.colorization [--data DIR]``, from the root."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.color import deltaE_ciede2000, rgb2lab

import bilateral
from benchmarks import command
from benchmarks.colorization.scenes import Scene, made, megapixel, scenes
from benchmarks.paper import levin
from benchmarks.tables import met, spread, table
from benchmarks.timing import Timing, clock, repeated
from bilateral import color
from bilateral.tasks import Colorizer, colorize

Array = NDArray[Any]

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


def quality(scene: Scene) -> dict[str, Any]:
    theirs = levin_chroma(scene)
    pictures = {
        "levin": clipped(scene.gray, theirs),
        "levin_mapped": color.colored(luma(scene), theirs, 255, np.dtype(np.uint8)),
        "paper": colorize(scene.gray, scene.colours, scene.painted, preset="paper"),
        "best": colorize(scene.gray, scene.colours, scene.painted),
    }
    row: dict[str, Any] = {"scene": scene.name, "painted": float(scene.painted.mean())}
    for name, picture in pictures.items():
        row[name] = None if scene.original is None else chroma_psnr(picture, scene.original)
        row[f"{name}_difference"] = (
            None if scene.authors is None else difference(picture, scene.authors)
        )
    return row


def speed(scene: Scene, repeats: int) -> dict[str, Any]:
    """Whole calls, and one more stroke."""
    layer = np.dstack([scene.colours, np.uint8(255) * scene.painted])
    seconds, _ = clock(levin_chroma, scene)
    ours = repeated(colorize, repeats, scene.gray, layer)
    painter, again = Colorizer(scene.gray), []
    painter.colorize(layer)
    for i in range(repeats):
        row = 20 + 8 * i
        layer[row : row + 4, 100:200] = (200, 40, 40, 255)
        again.append(clock(painter.colorize, layer)[0])
    return {
        "megapixels": scene.gray.size / 1e6,
        "levin": seconds,
        "ours": ours,
        "again": Timing.of(again),
        "ratio": seconds / ours.median,
    }


def luma(scene: Scene) -> Array:
    return color.luma(scene.gray[..., np.newaxis])


def levin_chroma(scene: Scene) -> Array:
    chroma = color.chroma(scene.colours, 255)
    return levin.propagate(luma(scene) / 255, chroma, scene.painted).astype(np.float32)


def clipped(gray: Array, chroma: Array) -> Array:
    """Colours cut off at black and white channel by channel, as Levin et al. do."""
    yuv = np.concatenate([gray[..., np.newaxis], chroma], axis=2)
    rgb = yuv @ np.linalg.inv(color.RGB_TO_YUV).T
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def chroma_psnr(picture: Array, original: Array) -> float:
    """Of U and V together, in dB; the peak is 255."""
    error = color.chroma(picture, 255) - color.chroma(original, 255)
    return float(10 * np.log10(255**2 / np.mean(np.square(error, dtype=np.float64))))


def difference(picture: Array, authors: Array) -> float:
    """Mean CIEDE2000."""
    return float(deltaE_ciede2000(rgb2lab(picture[: len(authors)]), rgb2lab(authors)).mean())


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
