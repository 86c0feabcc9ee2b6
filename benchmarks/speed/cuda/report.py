"""The report: stages beside their floors, calls, and a table for the notes."""

from collections.abc import Callable
from typing import Any

from benchmarks.tables import met, ms, spread, table
from benchmarks.timing import Timing

Shown = Callable[[float], str]

TARGETS = {
    "whole_seconds_at_most": 2e-3,
    "middle_seconds_at_most": 2e-3,
    "images_per_second_at_least": 4000.0,
    "backward_in_forwards_at_most": 1.2,
    "difference_at_most": 1e-4,
}


def as_text(results: dict[str, Any]) -> str:
    sections = (
        _heading,
        _stages,
        _calls,
        _training,
        _segmentation,
        _agreement,
        _once,
        _for_the_notes,
    )
    return "\n\n".join(section(results) for section in sections) + "\n"


def _heading(results: dict[str, Any]) -> str:
    machine, settings, device = results["machine"], results["settings"], results["device"]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    quick = " A quick run, of a small crop: the targets are for other sizes." * settings["quick"]
    return (
        f"# Speed on CUDA\n\n{results['date']}, {device['name']} with "
        f"{device['bytes'] / 2**30:.0f} GiB, PyTorch {device['torch']}, CUDA {device['cuda']}, "
        f"Triton {device['triton']}; {machine['cpu']}, {machine['cores']} cores, {versions}.\n\n"
        f"Photographs: {settings['photographs']}. Target and confidence as for "
        f"`python -m benchmarks.speed` where nothing else is said; sigmas 8, smoothness "
        f"{settings['smoothness']:g}, float32.{quick}"
    )


def _stages(results: dict[str, Any]) -> str:
    settings, cache = results["settings"], results["device"]["cache_bytes"]
    text = (
        f"## Stages, in microseconds\n\nEach is a CUDA graph of its own, timed by events: median "
        f"(quartiles) of {settings['replays']} replays after {settings['warm_ups']}. The floor is "
        f"the time in which the fewest bytes could be moved, all inputs and outputs once, at the "
        f"{results['bandwidth'] / 1e12:.2f} TB/s of a copy of 1 GiB (read and written). Inputs "
        f"are the same each time and stay in the L2 cache where they fit "
        f"({cache / 1e6:.0f} MB), so that a ratio may be below 1."
    )
    return "\n\n".join([text, *(_stages_of(row) for row in results["photographs"])])


def _stages_of(row: dict[str, Any]) -> str:
    def cells(name: str, taken: str, median: float, floor: float) -> list[str]:
        return [name, taken, _us(floor), f"{median / floor:.1f}"]

    times, floors, sizes = row["stages"], row["floors"], row["sizes"]
    rows = [cells(k, _us_spread(t), t.median, floors[k]) for k, t in times.items()]
    total = sum(time.median for time in times.values())
    rows.append(cells("all", _us(total), total, sum(floors.values())))
    return (
        f"{row['photo']}: {sizes.pixels / 1e6:.1f} megapixels, {sizes.vertices:,} vertices, "
        f"{sizes.edges:,} edges, {sizes.coarse:,} coarse vertices, {sizes.balance_steps} steps "
        f"of bistochastization, {sizes.steps} steps.\n\n"
        + table(("stage", "measured", "floor", "ratio"), rows)
    )


def _calls(results: dict[str, Any]) -> str:
    rows = []
    for row in results["photographs"]:
        whole, middle, batch = row["whole"], row["middle"], row["batch"]
        name, rate = row["photo"], f"{batch['images_per_second']:,.0f} images/s"
        crops = f"16 of {_by(batch)}"
        steps = f"{results['settings']['steps']} steps"
        rows += [
            [name, f"{_by(whole)}, {steps}", spread(whole["seconds"]), ""],
            [name, f"{_by(middle)}, confidences 0 to 1", spread(middle["everywhere"]), ""],
            [name, f"{_by(middle)}, 2 % known", spread(middle["few"]), ""],
            [name, f"{crops}, confidences 0 to 1", spread(batch["seconds"]), rate],
        ]
    settings = results["settings"]
    return (
        f"## Whole calls, in ms\n\nBy the host's clock, until the device has finished: median "
        f"(quartiles) of {settings['repeats']} calls after {settings['warm_ups']}; default options "
        f"where no steps are named.\n\n"
        + table(("photograph", "call", "time", "images per second"), rows)
    )


def _training(results: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['photo']}, {_by(row['training'])}",
            spread(row["training"]["forward"]),
            spread(row["training"]["backward"]),
            f"{row['training']['ratio']:.2f}",
        ]
        for row in results["photographs"]
    ]
    header = ("photograph", "forward", "backward", "ratio")
    return "## With the target's gradient, in ms\n\n" + table(header, rows)


def _segmentation(results: dict[str, Any]) -> str:
    rows, given = [], results["photographs"]
    for row in given:
        found = row["segmentation"]
        times = spread(found["seconds"]), spread(found["cpu_seconds"])
        pixels = found["size"][0] * found["size"][1]
        differ = f"{found['labels_differ']:,} of {pixels:,}"
        rows.append([f"{row['photo']}, {_by(found)}", *times, differ])
    header = ("photograph", "device", "CPU", "labels that differ")
    classes = given[0]["segmentation"]["classes"]
    return f"## refine_segmentation, {classes} classes, in ms\n\n" + table(header, rows)


def _agreement(results: dict[str, Any]) -> str:
    rows, given = [], results["photographs"]
    for row in given:
        found = row["agreement"]
        differences = (f"{difference:.1e}" for difference in found["differences"])
        same = f"{found['identical']} of {found['repeats']}"
        rows.append([f"{row['photo']}, {_by(found)}", *differences, same])
    cells = (f"cells of {cell}" for cell in given[0]["agreement"]["cells"])
    header = ("photograph", *cells, "identical repeats")
    return "## Difference from the CPU at a tolerance of 1e-6, relative to the norm\n\n" + table(
        header, rows
    )


def _once(results: dict[str, Any]) -> str:
    """What is done once, as sentences."""
    many, large, memory = (results[name] for name in ("many_sizes", "large", "out_of_memory"))
    lines = [
        f"- {many['images']} images of {many['sizes']} sizes, {_size(many['smallest'])} to "
        f"{_size(many['largest'])}: {ms(many['seconds'] / many['images'])} ms per image, "
        f"{ms(many['first_seconds'] / many['images'])} the first time; "
        f"{many['bytes_reserved'] / 2**30:.1f} GiB reserved afterwards."
    ]
    if large:
        lines.append(
            f"- {_by(large)}: {ms(large['seconds'])} ms, the first call, with compilations, "
            f"{ms(large['first_seconds'])}, "
            f"{large['bytes_beyond_inputs'] / 2**30:.1f} GiB beyond the inputs at most."
        )
    if memory:
        raised = ", ".join(name or "nothing" for name in memory["raised"])
        works = "works" if memory["next_works"] else "does NOT work"
        lines.append(
            f"- {memory['images']} images of {_by(memory)} without the memory for them, twice: "
            f"raised {raised} ({met(memory['as_expected'])}); the next small call {works}."
        )
    return "## Once\n\n" + "\n".join(lines)


def _for_the_notes(results: dict[str, Any]) -> str:
    """One row per question, a figure per photograph, what is wanted and whether it is so."""
    photos, targets, steps = (
        results["photographs"],
        results["targets"],
        results["settings"]["steps"],
    )
    right_sizes = not results["settings"]["quick"]

    def row(what: str, values: list[float], shown: Shown, target: str = "") -> list[str]:
        cells = [what, ", ".join(map(shown, values))]
        if not target:
            return [*cells, "", ""]
        limit = targets[target]
        reached = min(values) >= limit if target.endswith("least") else max(values) <= limit
        judged = right_sizes or target == "difference_at_most"
        return [*cells, shown(limit), met(reached) if judged else "-"]

    def each(part: str, value: str) -> list[Any]:
        return [photo[part][value] for photo in photos]

    def medians(part: str, value: str) -> list[float]:
        return [timing.median for timing in each(part, value)]

    def sizes(part: str) -> str:
        return ", ".join(dict.fromkeys(map(_size, each(part, "size"))))

    same = each("agreement", "identical") == each("agreement", "repeats")
    rates, ratios = each("batch", "images_per_second"), each("training", "ratio")
    whole, middle, batch = sizes("whole"), sizes("middle"), sizes("batch")
    rows = [
        row(
            f"{whole}, {steps} steps, reference to output, ms",
            medians("whole", "seconds"),
            ms,
            "whole_seconds_at_most",
        ),
        row(
            f"{middle}, tolerance 1e-3, ms",
            medians("middle", "everywhere"),
            ms,
            "middle_seconds_at_most",
        ),
        row(
            f"{middle}, 2 % of the pixels known, ms",
            medians("middle", "few"),
            ms,
            "middle_seconds_at_most",
        ),
        row(
            f"16 images of {batch}, images/s", rates, "{:,.0f}".format, "images_per_second_at_least"
        ),
        row(f"{middle}, forward for a gradient, ms", medians("training", "forward"), ms),
        row(
            "and its backward, in forwards", ratios, "{:.2f}".format, "backward_in_forwards_at_most"
        ),
        row(
            "from the CPU's solution, tolerance 1e-6",
            each("agreement", "difference"),
            "{:.0e}".format,
            "difference_at_most",
        ),
        ["repeats, bit by bit", "the same" if same else "differ", "the same", met(same)],
    ]
    if results["large"]:
        large = results["large"]
        taken = f"{ms(large['seconds'])}, {large['bytes_beyond_inputs'] / 2**30:.1f} GiB"
        rows.append([f"{_by(large)}, ms", taken, "works", met(large["finite"])])
    names = ", ".join(photo["photo"] for photo in photos)
    return f"## For the notes: {names}\n\n" + table(("", "measured", "wanted", ""), rows)


def _by(row: dict[str, Any]) -> str:
    return _size(row["size"])


def _size(size: tuple[int, int]) -> str:
    """As photographers write it."""
    return f"{size[1]} x {size[0]}"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def _us_spread(timing: Timing) -> str:
    return f"{_us(timing.median)} ({_us(timing.low)} .. {_us(timing.high)})"
