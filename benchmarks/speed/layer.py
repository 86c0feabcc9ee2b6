"""Measure the PyTorch layer: backward against forward (section 3), gradients, memory, overhead."""

import importlib.util
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.common.cells import Cell, Results, Setting, Values, per_photograph
from benchmarks.common.photos import Photo
from benchmarks.common.tables import OTHERS, at_most, behind, bullets, page, table
from benchmarks.common.timing import geometric_mean

NAME = "layer"
TITLE = "Backward over forward (section 3)"
DATA = "hires"
REPEATS = 15

SIDE = 1000
MEMORY, OVERHEAD = "memory", "overhead"
STEPS = (10, 200)
GRADIENTS = ("target", "confidence", "smoothness")


def cells(setting: Setting) -> Iterator[Cell]:
    if importlib.util.find_spec("torch") is None:
        return
    yield from per_photograph(measure_photograph, setting, at_most=3)
    if not setting.paper:
        from benchmarks.speed import layer_cases

        side, calls = (200, 5) if setting.quick else (SIDE, 300)
        yield Cell(MEMORY, lambda: [layer_cases.peak_memory(side, steps) for steps in STEPS])
        yield Cell(OVERHEAD, partial(layer_cases.overhead, calls))


def measure_photograph(photo: Photo, setting: Setting) -> list[dict[str, Any]]:
    from benchmarks.speed import layer_cases  # PyTorch is an extra

    rows = []
    for kind, known, channels, smoothness in layer_cases.SETTINGS:
        case = layer_cases.case(photo, SIDE, known, channels, smoothness)
        name = {"photograph": photo.name, "torch": layer_cases.torch.__version__, "data": kind}
        name |= {"channels": channels, "smoothness": smoothness}
        times = layer_cases.cost(case, setting.repeats)
        rows.append(name | times | {"error": layer_cases.error(case)})
    return rows


def _rows(values: Values) -> list[dict[str, Any]]:
    return [row for name in values if name not in (MEMORY, OVERHEAD) for row in values[name]]


def summary(values: Values, _: Setting) -> Results:
    names = ("photograph", "torch", "data", "channels", "smoothness")
    rows = [
        {
            **{name: row[name] for name in names},
            "forward_ms": 1e3 * row["forward_tc"].median,
            "backward_ms": 1e3 * row["tc"].median,
            "ratio": row["ratio_tc"],
            "error_percent": max(row["error"].values()),
        }
        for row in _rows(values)
    ]
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
    worst = results["largest_ratio"]
    loss = (
        "the paper says that a backward pass costs no more than a forward pass; our largest ratio "
        f"is {worst:.2f}. Besides the solve, the backward pass multiplies at every pixel for both "
        "gradients, while the forward pass has its grid already."
    )
    return page(
        f"CPU time of one thread by PyTorch {results['rows'][0]['torch']}, on an existing "
        "grid, with gradients of target and confidence; and the largest error of a gradient, "
        "in % of its norm.",
        table(
            results["rows"],
            "photograph | {photograph}",
            "data | {data}, {channels} ch., smoothness {smoothness:g}",
            "forward, ms | {forward_ms:.1f}; backward, ms | {backward_ms:.1f}",
            "ratio | {ratio:.2f}; error, % | {error_percent:.2f}",
        ),
        f'Geometric mean {results["ratio"]:.2f}. The paper: "no more costly than computing '
        'the forward pass".',
        behind([loss] if worst > 1 else [], "No case is behind."),
    )


def details(values: Values) -> str:
    """Ratios for each set of gradients, errors, memory and overhead, with their targets."""
    rows = _rows(values)
    if not rows:
        return ""
    error = max(max(row["error"].values()) for row in rows)
    few, many = (row["bytes"] for row in values[MEMORY])
    calls = {name: 1e6 * seconds for name, seconds in values[OVERHEAD].items()}
    more = calls["tensors_with_grad"] - calls["arrays"]
    lines = [
        "backward time / forward time, to target and confidence: "
        f"{at_most(max(row['ratio_tc'] for row in rows), 1.2)}",
        f"error of a gradient at the tolerance 1e-3, % of its norm: {at_most(error, 1.0)}",
        f"peak memory of forward and backward, {few / 1e6:.1f} MB for {STEPS[0]} steps and "
        f"{many / 1e6:.1f} MB for {STEPS[1]}, growth in %: "
        f"{at_most(100 * (many / few - 1), 2.0, '.1f')}",
        f"a call on 48 x 32 pixels: arrays {calls['arrays']:.0f} microseconds, tensors "
        f"{calls['tensors']:.0f}, with a graph more than arrays: {at_most(more, 100.0, '.0f')}",
    ]
    return page(
        "## CPU time of one thread, on an existing grid: backward in ms and over the forward; and "
        "the error of each gradient in %",
        table(
            rows,
            "case | {photograph}, {data}, {channels} ch., {smoothness:g}",
            "forward, ms | {forward_t}; backward to target | {t:ms}: {ratio_t:.2f}",
            "and confidence | {tc:ms}: {ratio_tc:.2f}; and smoothness | {tcs:ms}: {ratio_tcs:.2f}",
            *(f"{name} | {{error[{name}]:.2f}}" for name in GRADIENTS),
            OTHERS,
        ),
        bullets("## Targets", lines),
    )
