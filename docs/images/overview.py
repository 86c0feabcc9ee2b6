"""Draw README's picture, overview.jpg, from the scenes of ``bilateral demo``.

Run ``python docs/images/overview.py``; it needs ``pip install '.[demo]'``.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import bilateral
from bilateral.cli.demo import scenes

Array = NDArray[Any]

WIDTH, GAP, TITLE = 1200, 10, 30


def main() -> None:
    """Solve the scenes and write the picture beside this file."""
    noise = scenes.noise()
    repaired = repair(noise)
    top = [
        ("photo", noise.reference),
        ("broken depth: noise, 10 % wrong", noise.view.paint(noise.target)),
        ("repaired", noise.view.paint(repaired)),
    ]
    stereo = scenes.stereo()
    assert stereo.extra_panel is not None
    refocused = stereo.extra_panel(repair(stereo)).image
    strip = [
        ("1 % of a depth map", *before_after(scenes.sparse())),
        ("8 x super-resolution", *before_after(scenes.superres())),
        ("colours from strokes", *before_after(scenes.colorize())),
        ("a network's masks", *before_after(scenes.segment())),
        ("refocus", stereo.reference, refocused),
    ]
    rows = [row(top), row([(title, halves(a, b)) for title, a, b in strip])]
    height = sum(image.height for image in rows) + GAP
    canvas = Image.new("RGB", (WIDTH, height), "white")
    canvas.paste(rows[0], (0, 0))
    canvas.paste(rows[1], (0, rows[0].height + GAP))
    canvas.save(Path(__file__).with_name("overview.jpg"), quality=85, optimize=True)


def repair(problem: scenes.Problem) -> Array:
    """Solve a scene."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
        return problem.repair(None)[0]


def before_after(problem: scenes.Problem) -> tuple[Array, Array]:
    """Draw input and output of a scene."""
    return problem.view.paint(problem.target), problem.view.paint(repair(problem))


def halves(before: Array, after: Array) -> Array:
    """Join the left half of one picture with the right half of another."""
    middle = before.shape[1] // 2
    picture = np.concatenate([before[:, :middle], after[:, middle:]], axis=1)
    picture[:, middle - 2 : middle + 2] = 255
    return picture


def row(panels: list[tuple[str, Array]]) -> Image.Image:
    """Draw pictures of one height side by side, each under its title."""
    width = (WIDTH - GAP * (len(panels) - 1)) // len(panels)
    height = min(width * p.shape[0] // p.shape[1] for _, p in panels)
    image = Image.new("RGB", (WIDTH, TITLE + height), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=18)
    for i, (title, picture) in enumerate(panels):
        left = i * (width + GAP)
        draw.text((left, 2), title, fill="black", font=font)
        scaled = Image.fromarray(picture).resize(
            (width, width * picture.shape[0] // picture.shape[1]), Image.Resampling.LANCZOS
        )
        image.paste(scaled.crop((0, 0, width, height)), (left, TITLE))
    return image


if __name__ == "__main__":
    main()
