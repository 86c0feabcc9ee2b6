"""The paper's section 3: what a backward pass costs in forward ones, by the PyTorch layer."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.paper.cells import Cell, Results, Setting, Values
from benchmarks.paper.pictures import per_photograph
from benchmarks.photos import Photo
from benchmarks.tables import as_json, table
from benchmarks.timing import geometric_mean

NAME = "layer"
TITLE = "Backward over forward (section 3)"
DATA = "hires"

SIDE = 1000


def cells(setting: Setting) -> Iterator[Cell]:
    if importlib.util.find_spec("torch") is not None:
        yield from per_photograph(measure, setting, at_most=3)


def measure(photo: Photo, setting: Setting) -> list[dict[str, Any]]:
    from benchmarks.torch_layer import cases  # PyTorch is an extra

    rows = []
    for kind, known, channels, smoothness in cases.SETTINGS:
        given = cases.case(photo, SIDE, known, channels, smoothness)
        timed = json.loads(as_json(cases.cost(given, setting.repeats)))
        rows.append(
            {
                "photograph": photo.name,
                "torch": cases.torch.__version__,
                "data": kind,
                "channels": channels,
                "smoothness": smoothness,
                "forward_ms": 1e3 * timed["forward_tc"]["median"],
                "backward_ms": 1e3 * timed["tc"]["median"],
                "ratio": timed["ratio_tc"],
                "error_percent": max(cases.error(given).values()),
            }
        )
    return rows


def summary(values: Values, _: Setting) -> Results:
    rows = [row for value in values.values() for row in value]
    if not rows:
        return {"rows": [], "ratio": None}
    return {
        "rows": rows,
        "ratio": geometric_mean([row["ratio"] for row in rows]),
        "largest_ratio": max(row["ratio"] for row in rows),
        "error_percent": max(row["error_percent"] for row in rows),
    }


def as_text(results: Results) -> str:
    if not results["rows"]:
        return "Skipped: PyTorch is not installed (`pip install '.[torch]'`)."
    rows = [
        [
            row["photograph"],
            f"{row['data']}, {row['channels']} ch., smoothness {row['smoothness']:g}",
            f"{row['forward_ms']:.1f}",
            f"{row['backward_ms']:.1f}",
            f"{row['ratio']:.2f}",
            f"{row['error_percent']:.2f}",
        ]
        for row in results["rows"]
    ]
    worst = results["largest_ratio"]
    behind = (
        f"**Behind**: the paper says that a backward pass costs no more than a forward one; our "
        f"dearest costs {worst:.2f} of it. Besides the solve, the backward multiplies at every "
        "pixel for both gradients, while the forward has its grid already."
        if worst > 1
        else "No case is behind."
    )
    return "\n\n".join(
        [
            f"CPU time of one thread by PyTorch {results['rows'][0]['torch']}, on a grid that is "
            "there, to target and confidence; and the largest error of a gradient, in % of its "
            "norm.",
            table(("photograph", "data", "forward, ms", "backward, ms", "ratio", "error, %"), rows),
            f'Geometric mean {results["ratio"]:.2f}. The paper: "no more costly than computing '
            'the forward pass".',
            behind,
        ]
    )


def draw(_: Values, results: Results, folder: Path) -> None:
    """No figure."""
