"""Write the report on CUDA: stages beside their lower bounds, and calls with their targets."""

from typing import Any

from benchmarks.common.tables import bullets, met, page, text_table
from benchmarks.common.timing import Timing, microseconds, ms

TARGETS = {"whole_seconds_at_most": 2e-3, "middle_seconds_at_most": 2e-3}
TARGETS |= {"images_per_second_at_least": 4000.0, "backward_in_forwards_at_most": 1.2}
TARGETS |= {"difference_at_most": 1e-4}
TARGETS |= {"camera_seconds_at_most": 8e-3, "camera_difference_at_most": 1e-3}
PLANE_DIFFERENCES = {1e-3: 1e-3, 1e-5: 1e-4}
"""Tolerance of a planar solve, and its largest difference from the CPU's."""
GIB = 2**30
# What is measured, part and key of a photograph's results, format, target. A part's name in
# braces is the size of its images.
QUESTIONS = (
    (
        "{whole}, {steps} steps, reference to output, ms",
        *("whole", "seconds", "", "whole_seconds_at_most"),
    ),
    ("{middle}, tolerance 1e-3, ms", "middle", "everywhere", "", "middle_seconds_at_most"),
    ("{middle}, 2 % of the pixels known, ms", "middle", "few", "", "middle_seconds_at_most"),
    ("16 images of {batch}, ms", "batch", "seconds", "", ""),
    (
        "16 images of {batch}, images/s",
        *("batch", "images_per_second", ",.0f", "images_per_second_at_least"),
    ),
    ("{training}, forward for the target's gradient, ms", "training", "forward", "", ""),
    ("{training}, backward, ms", "training", "backward", "", ""),
    ("backward time / forward time", "training", "ratio", ".2f", "backward_in_forwards_at_most"),
    ("{segmentation}, refine_segmentation, 21 classes, ms", "segmentation", "seconds", "", ""),
    ("the same on the CPU, ms", "segmentation", "cpu_seconds", "", ""),
    ("pixels whose labels differ", "segmentation", "labels_differ", ",d", ""),
    (
        "{camera}, refine_depth, a camera's map, ms",
        "camera",
        "seconds",
        "",
        "camera_seconds_at_most",
    ),
    ("its first call, ms", "camera", "first_seconds", "", ""),
    ("the same on the CPU, ms", "camera", "cpu_seconds", "", ""),
    (
        "RMS difference from the CPU's map, of its range",
        *("camera", "difference", ".0e", "camera_difference_at_most"),
    ),
    ("largest difference, of its range", "camera", "largest", ".0e", ""),
    ("its part of unknown pixels", "camera", "unknown", ".2f", ""),
    (
        "{agreement}, from the CPU's solution, tolerance 1e-6",
        *("agreement", "difference", ".0e", "difference_at_most"),
    ),
)


def as_text(results: dict[str, Any]) -> str:
    settings, device = results["settings"], results["device"]
    quick = " A quick run, of a small crop: the targets are for other sizes." * settings["quick"]
    names = ", ".join(row["photo"] for row in results["photographs"])
    return page(
        f"{device['name']} with {device['bytes'] / GIB:.0f} GiB, PyTorch {device['torch']}, CUDA "
        f"{device['cuda']}, Triton {device['triton']}.",
        f"Photographs: {settings['photographs']}. Target and confidence as for "
        f"`python -m benchmarks speed` unless noted otherwise; sigmas 8, smoothness "
        f"{settings['smoothness']:g}, float32.{quick}",
        f"## Stages, in microseconds\n\nEach is a CUDA graph of its own, timed by events: median "
        f"(quartiles) of {settings['replays']} replays after {settings['warm_ups']}. The floor: "
        f"inputs and outputs moved once at the {results['bandwidth'] / 1e12:.2f} TB/s of a copy of "
        f"1 GiB. Inputs that fit stay in the L2 cache ({device['cache_bytes'] / 1e6:.0f} MB): a "
        "ratio may be below 1.",
        *(_stages(row) for row in results["photographs"]),
        f"## Whole calls: {names}\n\nBy the host's clock, until the device has finished: median "
        f"(quartiles) of {settings['repeats']} calls after {settings['warm_ups']}; default options "
        "where no steps are named.",
        text_table(("", "measured", "wanted", ""), _calls(results)),
        bullets("## Once", _once(results)),
        f'## Planes: {names}\n\nWith `model="planar"`, launched kernel by kernel. Differences from '
        "the CPU are RMS, relative to the range of the known values; those of gradients are "
        "relative to their norm.",
        text_table(("", "measured", "wanted", ""), _planes(results)),
    )


def _stages(row: dict[str, Any]) -> str:
    times, floors, sizes = row["stages"], row["floors"], row["sizes"]
    total = sum(time.median for time in times.values())
    lines = [(name, f"{t:us}", t.median, floors[name]) for name, t in times.items()]
    lines.append(("all", microseconds(total), total, sum(floors.values())))
    cells = [[n, text, microseconds(floor), f"{t / floor:.1f}"] for n, text, t, floor in lines]
    return page(
        f"{row['photo']}: {sizes.pixels / 1e6:.1f} megapixels, {sizes.vertices:,} vertices, "
        f"{sizes.edges:,} edges, {sizes.coarse:,} coarse vertices, {sizes.balance_steps} steps "
        f"of bistochastization, {sizes.steps} steps.",
        text_table(("stage", "measured", "floor", "ratio"), cells),
    )


def _calls(results: dict[str, Any]) -> list[list[str]]:
    """One row per question, with a value per photograph, the target and the verdict."""
    photos, settings = results["photographs"], results["settings"]
    parts = ("whole", "middle", "batch", "training", "segmentation", "camera", "agreement")
    sizes = {k: ", ".join(dict.fromkeys(_by(photo[k]["size"]) for photo in photos)) for k in parts}
    rows = []
    for label, part, key, form, target in QUESTIONS:
        values = [photo[part][key] for photo in photos]
        name = label.format(**sizes, steps=settings["steps"])
        cells = [name, ", ".join(format(value, form) for value in values), "", ""]
        if target:
            limit = results["targets"][target]
            plain = [v.median if isinstance(v, Timing) else v for v in values]
            reached = min(plain) >= limit if target.endswith("least") else max(plain) <= limit
            judged = not settings["quick"] or key == "difference"
            cells[2:] = format(limit, form) if form else ms(limit), met(reached) if judged else "-"
        rows.append(cells)
    agreement = [photo["agreement"] for photo in photos]
    for i, cell in enumerate(agreement[0]["cells"]):
        differences = ", ".join(f"{row['differences'][i]:.1e}" for row in agreement)
        rows.append([f"the same with cells of {cell}", differences, "", ""])
    same = all(row["identical"] == row["repeats"] for row in agreement)
    counts = ", ".join(f"{row['identical']} of {row['repeats']}" for row in agreement)
    rows.append(["repeats that are the same bit by bit", counts, "all", met(same)])
    return rows


def _planes(results: dict[str, Any]) -> list[list[str]]:
    """One row per number of each kind of data, with a value per photograph."""
    photos = [photo["planes"] for photo in results["photographs"]]
    return [
        [f"{name}: {cells[0]}", *cells[1:]]
        for name in photos[0]
        for cells in _plane_rows([photo[name] for photo in photos])
    ]


def _plane_rows(cases: list[dict[str, Any]]) -> list[list[str]]:
    rows = []

    def row(label: str, values: list[str], wanted: str = "", verdict: str = "") -> None:
        rows.append([label, ", ".join(values), wanted, verdict])

    size = _by(cases[0]["size"])
    for label, key in (
        (f"{size}, ms", "seconds"),
        (f"{size}, forward for the target's gradient, ms", "forward"),
        (f"{size}, backward, ms", "backward"),
        (f"{size} on the CPU, ms", "cpu_seconds"),
    ):
        row(label, [format(case[key], "") for case in cases])
    row("first call, ms", [ms(case["first_seconds"]) for case in cases])
    for i, (tolerance, limit) in enumerate(PLANE_DIFFERENCES.items()):
        values = [case["differences"][i] for case in cases]
        verdict = met(max(values) <= limit)
        label = f"from the CPU's solution, tolerance {tolerance:g}"
        row(label, [f"{value:.1e}" for value in values], f"{limit:.0e}", verdict)
    for i, of in enumerate(("target", "confidence", "smoothness")):
        row(f"from the CPU's gradient of the {of}", [f"{c['gradients'][i]:.1e}" for c in cases])
    same = [case["identical"] for case in cases]
    row("repeats that are the same bit by bit", [str(s) for s in same], "all", met(all(same)))
    return rows


def _once(results: dict[str, Any]) -> list[str]:
    many, large, memory = (results[name] for name in ("many_sizes", "large", "out_of_memory"))
    lines = [
        f"{many['images']} images of {many['sizes']} sizes, {_by(many['smallest'])} to "
        f"{_by(many['largest'])}: {ms(many['seconds'] / many['images'])} ms per image, "
        f"{ms(many['first_seconds'] / many['images'])} the first time; "
        f"{many['bytes_reserved'] / GIB:.1f} GiB reserved afterwards."
    ]
    if large:
        lines.append(
            f"{_by(large['size'])}: {ms(large['seconds'])} ms, the first call, with compilations, "
            f"{ms(large['first_seconds'])}, {large['bytes_beyond_inputs'] / GIB:.1f} GiB beyond "
            f"the inputs at most; finite: {met(large['finite'])}."
        )
    if memory:
        raised = ", ".join(name or "nothing" for name in memory["raised"])
        works = "works" if memory["next_works"] else "does NOT work"
        lines.append(
            f"{memory['images']} images of {_by(memory['size'])} without the memory for them, "
            f"twice: raised {raised} ({met(memory['as_expected'])}); the next small call {works}."
        )
    return lines


def _by(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"
