"""The paper's Table 4: class probabilities of a network, refined."""

import json
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import bilateral
from benchmarks.paper import published
from benchmarks.paper.cells import Cell, Results, Setting, Values
from benchmarks.paper.data import files
from benchmarks.segmentation import peers
from benchmarks.segmentation.cases import CELLS, Case, from_folder, made, pictures
from benchmarks.segmentation.compare import compare, speed
from benchmarks.tables import as_json, ms, table
from benchmarks.timing import geometric_mean

NAME = "segmentation"
TITLE = "Segmentation (Table 4)"
DATA = "segmentation"

SIDE, SMALL = 512, 128
NETWORK, OURS = "network", "ours"
NAMES = {
    NETWORK: "the network alone",
    "plain solve": "bilateral solver alone, uniform confidence",
    "uniform": "refine_segmentation, uniform confidence",
    OURS: "refine_segmentation",
}
# of our rows, the paper's
PAPERS = {
    NETWORK: "network",
    "plain solve": "the paper",
    **dict.fromkeys(peers.SETTINGS, "dense CRF"),
}


def cells(setting: Setting) -> Iterator[Cell]:
    folder = setting.data.folder(DATA)
    real = [] if folder is None else list(from_folder(folder))
    inputs = () if folder is None else files(folder)
    for case in real or _made(setting.quick):
        work = partial(measure, case, setting)
        yield Cell(case.name, work, inputs if real else (), f"CRF {_crf_version()}")


def _crf_version() -> str | None:
    return version("pydensecrf2") if peers.densecrf else None


def _made(quick: bool) -> Iterator[Case]:
    """Scores as a network with the coarsest cells might give them to scikit-image's pictures."""
    for i, picture in enumerate(pictures(SMALL if quick else SIDE)):
        if i == 0 or not quick:
            yield made(*picture, CELLS[-1], i)


def measure(case: Case, setting: Setting) -> dict[str, Any]:
    bilateral.set_num_threads(setting.threads[-1])
    timed = json.loads(as_json(speed(case, setting.repeats)))
    return {
        "iou": compare(case)["iou"],
        "ours_ms": 1e3 * timed["ours"]["median"],
        "crf_ms": None if timed["crf"] is None else 1e3 * timed["crf"]["median"],
        "ratio": timed["ratio"],
    }


def summary(values: Values, _: Setting) -> Results:
    rows = [{"image": name, **value} for name, value in values.items()]
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    times = [row["crf_ms"] for row in rows if row["crf_ms"] is not None]
    return {
        "rows": rows,
        "mean": {way: float(np.mean([row["iou"][way] for row in rows])) for way in rows[0]["iou"]},
        "ours_ms": float(np.mean([row["ours_ms"] for row in rows])),
        "crf_ms": float(np.mean(times)) if times else None,
        "ratio": geometric_mean(ratios) if ratios else None,
        "crf_skipped": None if peers.densecrf else peers.MISSING,
        "crf_version": _crf_version(),
        "published": published.SEGMENTATION,
    }


def as_text(results: Results) -> str:
    quoted, means = results["published"], results["mean"]
    base, theirs = means[NETWORK], quoted["network"][0]
    times = {OURS: results["ours_ms"]}
    if results["crf_ms"] is not None:
        times |= dict.fromkeys(peers.SETTINGS, results["crf_ms"])
    rows = []
    for way, mean in means.items():
        paper = quoted.get(PAPERS.get(way, ""))
        rows.append(
            [
                NAMES.get(way, f"dense {way}"),
                f"{mean:.2f}",
                "" if way == NETWORK else f"{mean - base:+.2f}",
                ms(times[way] / 1e3) if way in times else "",
                "" if paper is None else f"{paper[0]:.2f}",
                "" if paper is None or way == NETWORK else f"{paper[0] - theirs:+.2f}",
                "" if paper is None or way == NETWORK else str(paper[1]),
            ]
        )
    header = ("", "IOU, %", "gain", "ms", "the paper's IOU, %", "gain", "ms")
    images = [
        [row["image"], *(f"{row['iou'][way]:.2f}" for way in means), ms(row["ours_ms"] / 1e3)]
        for row in results["rows"]
    ]
    count = len(results["rows"])
    parts = [
        f"Mean IOU of {count} image{'s' if count > 1 else ''}, each over the classes of its truth "
        "and without a thin band at the edges; the paper's is over Pascal VOC's validation set "
        "and DeepLab-LargeFOV: compare the gains. Times are of what follows the network; the CRF's "
        "(pydensecrf2, bilateral kernels of so many pixels / grey levels) is its faster setting's.",
        table(header, rows),
        "### Image by image, IOU in %\n\n"
        + table(("", *(NAMES.get(way, f"dense {way}") for way in means), "ours, ms"), images),
    ]
    if results["crf_skipped"]:
        parts.append(results["crf_skipped"])
    if results["ratio"] is not None:
        ratio = quoted["dense CRF"][1] / quoted["the paper"][1]
        parts.append(
            f"The dense CRF takes {results['ratio']:.1f} times as long as `refine_segmentation` "
            f"(geometric mean); in the paper {ratio:.1f} times as long as the solver."
        )
    return "\n\n".join([*parts, _behind(results)])


def _behind(results: Results) -> str:
    means = results["mean"]
    lines = []
    ahead = [
        f"{NAMES.get(way, f'dense {way}')} ({mean:.2f})"
        for way, mean in means.items()
        if mean > means[OURS]
    ]
    if ahead:
        lines.append(f"- ahead of `refine_segmentation` ({means[OURS]:.2f}): {'; '.join(ahead)}")
    worse = [
        f"{row['image']} ({row['iou'][OURS] - max(row['iou'].values()):+.2f})"
        for row in results["rows"]
        if row["iou"][OURS] < max(row["iou"].values())
    ]
    if worse:
        lines.append(
            f"- not the best of the table on {', '.join(worse)}: the [notes](../segmentation.md) "
            "look into it"
        )
    gain = means["plain solve"] - means[NETWORK]
    quoted = results["published"]
    paper = quoted["the paper"][0] - quoted["network"][0]
    if gain < paper:
        lines.append(
            f"- a plain solve gains {gain:+.2f}, the paper's {paper:+.2f}: this network's scores "
            "are better to begin with, and the images few"
        )
    return "**Behind**:\n\n" + "\n".join(lines) if lines else "No row is ahead of ours."


def draw(_: Values, results: Results, folder: Path) -> None:
    """No figure: the pictures are not ours to show."""
