"""The one command: ``python -m benchmarks.torch_layer [--data DIR]``, from the root."""

import argparse
from itertools import islice
from typing import Any

import torch

from benchmarks import command
from benchmarks.photos import photographs
from benchmarks.tables import cores, met, spread, table
from benchmarks.torch_layer import cases, memory

TARGETS = {
    "backward_in_forwards_at_most": 1.2,
    "memory_growth_percent_at_most": 2.0,
    "gradient_error_percent_at_most": 1.0,
    "overhead_microseconds_at_most": 100.0,
}
STEPS = (10, 200)


def main() -> None:
    options = command.options(
        "torch_layer",
        "Time the layer's backward against its forward, and check its memory and its gradients.",
        data="photographs (*.jpg, *.png); scikit-image's own without it",
        quick="one repeat on a small crop",
        repeats=15,
    )
    command.write("torch_layer", measure(options), as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    side = 200 if options.quick else 1000
    photos = list(islice(photographs(None if options.quick else options.data), 3))
    photos = photos[:1] if options.quick else photos
    rows = []
    for photo in photos:
        for kind, known, channels, smoothness in cases.SETTINGS:
            given = cases.case(photo, side, known, channels, smoothness)
            name = f"{photo.name}, {kind}, {channels} ch., {smoothness:g}"
            timed = cases.cost(given, options.repeats)
            rows.append({"case": name, **timed, "error": cases.error(given)})
    return {
        **command.circumstances(),
        "torch": torch.__version__,
        "targets": TARGETS,
        "rows": rows,
        "memory": memory.peaks(side, STEPS),
        "overhead": cases.overhead(5 if options.quick else 300),
    }


def as_text(results: dict[str, Any]) -> str:
    made_on = f"{results['machine']['cpu']}, {results['machine']['cores']} cores"
    return (
        f"# The PyTorch layer\n\n{results['date']}, {made_on}, PyTorch {results['torch']}\n\n"
        "## Backward in forwards: CPU time of one thread, on a grid that is there\n\n"
        f"{_cost(results)}\n\n"
        "## Error of the gradients at the tolerance 1e-3, % of their norm\n\n"
        f"{_error(results)}\n\n"
        f"## Peak memory of forward and backward\n\n{_memory(results)}\n\n"
        f"## A call on 48 x 32 pixels\n\n{_overhead(results)}\n"
    )


def _cost(results: dict[str, Any]) -> str:
    limit = results["targets"]["backward_in_forwards_at_most"]
    made = table(
        ("case", "forward, ms", "backward to target", "and confidence", "and smoothness", "others"),
        [
            (
                row["case"],
                spread(row["forward_t"]),
                *(
                    f"{row[name].median * 1e3:.1f}: {row[f'ratio_{name}']:.2f}"
                    for name in ("t", "tc", "tcs")
                ),
                cores(row["other_work"]),
            )
            for row in results["rows"]
        ],
    )
    worst = max(row["ratio_tc"] for row in results["rows"])
    return (
        f"{made}\n\nAt most {limit}, to target and confidence: {worst:.2f}, {met(worst <= limit)}."
    )


def _error(results: dict[str, Any]) -> str:
    limit = results["targets"]["gradient_error_percent_at_most"]
    names = "target", "confidence", "smoothness"
    made = table(
        ("case", *names),
        [
            (row["case"], *(f"{row['error'][name]:.2f}" for name in names))
            for row in results["rows"]
        ],
    )
    worst = max(row["error"][name] for row in results["rows"] for name in names)
    return f"{made}\n\nAt most {limit}: {worst:.2f}, {met(worst <= limit)}."


def _memory(results: dict[str, Any]) -> str:
    few, many = (row["bytes"] for row in results["memory"])
    growth, limit = 100 * (many / few - 1), results["targets"]["memory_growth_percent_at_most"]
    return (
        f"{few / 1e6:.1f} MB for {STEPS[0]} steps, {many / 1e6:.1f} MB for {STEPS[1]}: "
        f"{growth:+.1f} %, at most {limit} %, {met(growth <= limit)}."
    )


def _overhead(results: dict[str, Any]) -> str:
    times = {name: 1e6 * value for name, value in results["overhead"].items()}
    limit = results["targets"]["overhead_microseconds_at_most"]
    more = times["tensors_with_grad"] - times["arrays"]
    return (
        f"Arrays {times['arrays']:.0f} microseconds, tensors {times['tensors']:.0f}, with a graph "
        f"{times['tensors_with_grad']:.0f}: {more:.0f} more, at most {limit:.0f}, "
        f"{met(more <= limit)}."
    )


if __name__ == "__main__":
    main()
