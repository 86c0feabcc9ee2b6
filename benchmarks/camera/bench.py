"""Refine depth cameras' maps: harm, error against truth, change in time, speed, and the peers.

With ``--data``, a folder with ``rgbd`` (frames of depth cameras) and ``stereo``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bilateral
from benchmarks.camera import errors, harm, realsense, speed, steadiness, stereo
from benchmarks.camera.pictures import Gallery
from benchmarks.camera.scenes import choose
from benchmarks.common.cells import Results, Setting
from benchmarks.common.command import say
from benchmarks.common.tables import bullets, page

TITLE, REPEATS, OPENCV = "Depth cameras", 5, "guided filter"
PICTURES = Path("camera")
TEXTS: dict[str, Callable[[Any], str]] = {
    "harm": harm.as_text,
    "errors": errors.as_text,
    "stereo": stereo.as_text,
    "time": steadiness.as_text,
    "speed": speed.as_text,
}
PARTS = tuple(TEXTS)


def measure(setting: Setting) -> Results:
    """Measure the parts that are asked for, and draw the worst of them."""
    bilateral.set_num_threads(setting.threads[-1])
    scenes, gallery = choose(setting), Gallery()
    parts: dict[str, Callable[[], Any]] = {
        "harm": lambda: list(harm.measure(scenes.maps, setting, gallery)),
        "errors": lambda: list(errors.measure(scenes.truths + scenes.spoiled, setting, gallery)),
        "stereo": lambda: stereo.measure(setting),
        "time": lambda: steadiness.measure(scenes, gallery),
        "speed": lambda: speed.measure(scenes.recorded, setting),
    }
    missing = [*scenes.missing, *filter(None, [realsense.skipped()])]
    results: Results = {"missing": missing}
    for name in setting.only or PARTS:
        say(name)
        results[name] = parts[name]()
    files = gallery.draw(setting.output / PICTURES)
    return results | {"pictures": [f"{PICTURES / name}" for name in files]}


def as_text(results: Results) -> str:
    return page(
        bullets("Left out:", results["missing"]) if results["missing"] else None,
        *(text(results[name]) for name, text in TEXTS.items() if name in results),
        bullets("## Pictures", results["pictures"]) if results["pictures"] else None,
    )
