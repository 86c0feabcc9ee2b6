"""Measure the studio in Chromium: stroke to colour, frames per second, start and memory.

The studio runs in its own process, as people start it, on scikit-image's astronaut, enlarged. A
time ends with the frame after the one that draws the colours.
"""

import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.cells import Setting
from benchmarks.common.tables import at_least, at_most, bullets, page, text_table
from benchmarks.studio.driver import CHROMIUM, Page, Studio, chromium
from bilateral import io

TITLE, REPEATS = "The studio", 30
PARTS = ("start", "1 MP", "12 MP", "memory")
TARGETS = {
    "start_seconds": 2.0,
    "1 MP": {"median": 0.12, "95 %": 0.25},
    "12 MP": {"preview": 0.2, "full": 1.5, "frames": 50},
    "memory_growth": 0.1,
}


def skipped() -> str | None:
    if CHROMIUM is None or find_spec("playwright") is None:
        return "The studio's benchmark needs Chromium (apt-get install chromium) and playwright."
    return None


def measure(setting: Setting) -> dict[str, Any]:
    chosen = setting.only or PARTS
    results: dict[str, Any] = {"targets": TARGETS}
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        if "start" in chosen:
            results["start"] = [start(browser) for _ in range(1 if setting.quick else 5)]
        sizes = {"1 MP": (1000, 1000), "12 MP": (3000, 4000)}
        for part, shape in sizes.items():
            if part in chosen:
                path = photo(Path(name), (300, 300) if setting.quick else shape)
                results[part] = paint(browser, path, setting, frames=part == "12 MP")
        if "memory" in chosen:
            path = photo(Path(name), (300, 300) if setting.quick else (1000, 1000))
            results["memory"] = memory(browser, path, 2 if setting.quick else 60)
    return results


def photo(folder: Path, shape: tuple[int, int]) -> Path:
    from skimage import data, transform

    gray = data.astronaut() @ [0.299, 0.587, 0.114]
    path = folder / f"{shape[0]}.png"
    io.write(path, np.rint(transform.resize(gray, shape)).astype(np.uint8))
    return path


def start(browser: Any) -> float:
    """Seconds from the start of the process to a page that can be used."""
    with Studio() as studio:
        page = Page(browser, studio.url)
        seconds = time.perf_counter() - studio.began
        page.page.close()
        return seconds


def paint(browser: Any, path: Path, setting: Setting, frames: bool) -> dict[str, Any]:
    with Studio() as studio:
        page = Page(browser, studio.url)
        page.open(path)
        result: dict[str, Any] = dict(page.latency(2 if setting.quick else setting.repeats))
        if frames:
            result["frames"] = page.frame_rate(1 if setting.quick else 5)
        page.page.close()
        return result


def memory(browser: Any, path: Path, seconds: float) -> dict[str, Any]:
    """Memory before, during and after eight pages that paint at the same time."""
    with Studio() as studio:
        idle = studio.memory()
        first = Page(browser, studio.url)
        first.open(path)
        first.stroke(0)
        first.settle()
        first.page.close()
        time.sleep(1)
        before = studio.memory()
        pages = [Page(browser, studio.url) for _ in range(8)]
        for page in pages:
            page.open(path)
        end, strokes, most = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            for page in pages:
                page.stroke(strokes, steps=3)
                strokes += 1
            most = max(most, studio.memory())
        for page in pages:
            page.settle()
        bad = "document.querySelectorAll('#hint.bad').length"
        errors = sum(page.page.evaluate(bad) for page in pages)
        for page in pages:
            page.page.close()
        time.sleep(2)
        return {
            **{"idle": idle, "before": before, "most": most, "after": studio.memory()},
            **{"strokes": strokes, "errors": errors},
        }


def as_text(results: dict[str, Any]) -> str:
    rows, targets = [], []
    if "start" in results:
        median = float(np.median(results["start"]))
        targets.append(f"seconds of a start: {at_most(median, TARGETS['start_seconds'])}")
    for part in ("1 MP", "12 MP"):
        if part not in results:
            continue
        for name in ("first", "full"):
            median, high = (1000 * np.percentile(results[part][name], q) for q in (50, 95))
            rows.append([part, name, f"{median:.0f}", f"{high:.0f}"])
    if "1 MP" in results:
        median, high = (float(np.percentile(results["1 MP"]["first"], q)) for q in (50, 95))
        limits = TARGETS["1 MP"]
        targets.append(f"1 MP, median in seconds: {at_most(median, limits['median'])}")
        targets.append(f"1 MP, 95 % in seconds: {at_most(high, limits['95 %'])}")
    if "12 MP" in results:
        limits, values = TARGETS["12 MP"], results["12 MP"]
        first, full = (float(np.median(values[name])) for name in ("first", "full"))
        targets.append(f"12 MP, preview in seconds: {at_most(first, limits['preview'])}")
        targets.append(f"12 MP, full size in seconds: {at_most(full, limits['full'])}")
        for name in ("mean", "slowest"):
            rate = at_least(values["frames"][name], limits["frames"], ".0f")
            targets.append(f"12 MP, frames per second while painting, {name}: {rate}")
    if "memory" in results:
        m = results["memory"]
        growth = m["after"] / m["before"] - 1
        targets.append(
            f"eight pages, {m['strokes']} strokes, {m['errors']} errors: "
            f"{m['before'] / 1e6:.0f} MB before, {m['most'] / 1e6:.0f} at most, "
            f"{m['after'] / 1e6:.0f} after; growth: "
            f"{at_most(growth, TARGETS['memory_growth'])}"
        )
    header = ["photograph", "colours", "median ms", "95 % ms"]
    return page(
        "## From the end of a stroke to its colours on screen",
        "first: the first colours, of a preview or of the full size; full: all pixels.",
        text_table(header, rows) if rows else None,
        bullets("## Targets", targets),
    )
