"""Write the report on CUDA: stages beside their lower bounds, calls, and a table for the notes."""

from collections.abc import Callable
from typing import Any

from benchmarks.common.tables import met, table, text_table
from benchmarks.common.timing import microseconds, ms

TARGETS = {
    "whole_seconds_at_most": 2e-3,
    "middle_seconds_at_most": 2e-3,
    "images_per_second_at_least": 4000.0,
    "backward_in_forwards_at_most": 1.2,
    "difference_at_most": 1e-4,
}
GIB = 2**30


def as_text(results: dict[str, Any]) -> str:
    sections = (_method, _stages, _calls, _training, _segmentation, _agreement, _once, _notes)
    return "\n\n".join(section(results) for section in sections)


def _method(results: dict[str, Any]) -> str:
    settings, device = results["settings"], results["device"]
    quick = " A quick run, of a small crop: the targets are for other sizes." * settings["quick"]
    return (
        f"{device['name']} with {device['bytes'] / GIB:.0f} GiB, PyTorch {device['torch']}, CUDA "
        f"{device['cuda']}, Triton {device['triton']}.\n\n"
        f"Photographs: {settings['photographs']}. Target and confidence as for "
        f"`python -m benchmarks speed` unless noted otherwise; sigmas 8, smoothness "
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
    def cells(name: str, measured: str, median: float, floor: float) -> list[str]:
        return [name, measured, microseconds(floor), f"{median / floor:.1f}"]

    times, floors, sizes = row["stages"], row["floors"], row["sizes"]
    rows = [cells(name, f"{t:us}", t.median, floors[name]) for name, t in times.items()]
    total = sum(time.median for time in times.values())
    rows.append(cells("all", microseconds(total), total, sum(floors.values())))
    return (
        f"{row['photo']}: {sizes.pixels / 1e6:.1f} megapixels, {sizes.vertices:,} vertices, "
        f"{sizes.edges:,} edges, {sizes.coarse:,} coarse vertices, {sizes.balance_steps} steps "
        f"of bistochastization, {sizes.steps} steps.\n\n"
        + text_table(("stage", "measured", "floor", "ratio"), rows)
    )


def _calls(results: dict[str, Any]) -> str:
    rows, settings = [], results["settings"]
    for row in results["photographs"]:
        whole, middle, batch = row["whole"], row["middle"], row["batch"]
        name, rate = row["photo"], f"{batch['images_per_second']:,.0f} images/s"
        calls = [
            (f"{_size(whole)}, {settings['steps']} steps", whole["seconds"], ""),
            (f"{_size(middle)}, confidences 0 to 1", middle["everywhere"], ""),
            (f"{_size(middle)}, 2 % known", middle["few"], ""),
            (f"16 of {_size(batch)}, confidences 0 to 1", batch["seconds"], rate),
        ]
        rows += [[name, call, f"{timing}", rate] for call, timing, rate in calls]
    return (
        f"## Whole calls, in ms\n\nBy the host's clock, until the device has finished: median "
        f"(quartiles) of {settings['repeats']} calls after {settings['warm_ups']}; default options "
        f"where no steps are named.\n\n"
        + text_table(("photograph", "call", "time", "images per second"), rows)
    )


def _named(results: dict[str, Any], part: str) -> list[dict[str, Any]]:
    """One part of each photograph, with a name."""
    rows = [(row["photo"], row[part]) for row in results["photographs"]]
    return [{"name": f"{photo}, {_size(row)}", **row} for photo, row in rows]


def _training(results: dict[str, Any]) -> str:
    columns = "photograph | {name}", "forward | {forward}", "backward | {backward}"
    rows = _named(results, "training")
    return "## With the target's gradient, in ms\n\n" + table(rows, *columns, "ratio | {ratio:.2f}")


def _segmentation(results: dict[str, Any]) -> str:
    rows = _named(results, "segmentation")
    return f"## refine_segmentation, {rows[0]['classes']} classes, in ms\n\n" + table(
        [row | {"pixels": row["size"][0] * row["size"][1]} for row in rows],
        "photograph | {name}; device | {seconds}; CPU | {cpu_seconds}",
        "labels that differ | {labels_differ:,} of {pixels:,}",
    )


def _agreement(results: dict[str, Any]) -> str:
    rows = _named(results, "agreement")
    columns = [
        f"cells of {cell} | {{differences[{i}]:.1e}}" for i, cell in enumerate(rows[0]["cells"])
    ]
    repeats = "identical repeats | {identical} of {repeats}"
    return "## Difference from the CPU at a tolerance of 1e-6, relative to the norm\n\n" + table(
        rows, "photograph | {name}", *columns, repeats
    )


def _once(results: dict[str, Any]) -> str:
    """Report as sentences what is measured once."""
    many, large, memory = (results[name] for name in ("many_sizes", "large", "out_of_memory"))
    lines = [
        f"- {many['images']} images of {many['sizes']} sizes, {_by(many['smallest'])} to "
        f"{_by(many['largest'])}: {ms(many['seconds'] / many['images'])} ms per image, "
        f"{ms(many['first_seconds'] / many['images'])} the first time; "
        f"{many['bytes_reserved'] / GIB:.1f} GiB reserved afterwards."
    ]
    if large:
        lines.append(
            f"- {_size(large)}: {ms(large['seconds'])} ms, the first call, with compilations, "
            f"{ms(large['first_seconds'])}, "
            f"{large['bytes_beyond_inputs'] / GIB:.1f} GiB beyond the inputs at most."
        )
    if memory:
        raised = ", ".join(name or "nothing" for name in memory["raised"])
        works = "works" if memory["next_works"] else "does NOT work"
        lines.append(
            f"- {memory['images']} images of {_size(memory)} without the memory for them, twice: "
            f"raised {raised} ({met(memory['as_expected'])}); the next small call {works}."
        )
    return "## Once\n\n" + "\n".join(lines)


def _notes(results: dict[str, Any]) -> str:
    """One row per question, with a number per photograph, the target and the verdict."""
    photos, steps = results["photographs"], results["settings"]["steps"]
    right_sizes = not results["settings"]["quick"]

    def row(
        what: str, values: list[float], show: Callable[[float], str], target: str = ""
    ) -> list[str]:
        cells = [what, ", ".join(map(show, values))]
        if not target:
            return [*cells, "", ""]
        limit = results["targets"][target]
        reached = min(values) >= limit if target.endswith("least") else max(values) <= limit
        judged = right_sizes or target == "difference_at_most"
        return [*cells, show(limit), met(reached) if judged else "-"]

    def each(part: str, value: str) -> list[Any]:
        return [photo[part][value] for photo in photos]

    def medians(part: str, value: str) -> list[float]:
        return [timing.median for timing in each(part, value)]

    def sizes(part: str) -> str:
        return ", ".join(dict.fromkeys(map(_by, each(part, "size"))))

    same = each("agreement", "identical") == each("agreement", "repeats")
    whole, middle = "whole_seconds_at_most", "middle_seconds_at_most"
    reference = f"{sizes('whole')}, {steps} steps, reference to output, ms"
    rate, few = each("batch", "images_per_second"), medians("middle", "few")
    ratio, difference = each("training", "ratio"), each("agreement", "difference")
    size, count = sizes("middle"), "{:,.0f}".format
    rows = [
        row(reference, medians("whole", "seconds"), ms, whole),
        row(f"{size}, tolerance 1e-3, ms", medians("middle", "everywhere"), ms, middle),
        row(f"{size}, 2 % of the pixels known, ms", few, ms, middle),
        row(f"16 images of {sizes('batch')}, images/s", rate, count, "images_per_second_at_least"),
        row(f"{size}, forward for a gradient, ms", medians("training", "forward"), ms),
        row("backward time / forward time", ratio, "{:.2f}".format, "backward_in_forwards_at_most"),
        row(
            "from the CPU's solution, tolerance 1e-6",
            difference,
            "{:.0e}".format,
            "difference_at_most",
        ),
        ["repeats, bit by bit", "the same" if same else "differ", "the same", met(same)],
    ]
    if results["large"]:
        large = results["large"]
        measured = f"{ms(large['seconds'])}, {large['bytes_beyond_inputs'] / GIB:.1f} GiB"
        rows.append([f"{_size(large)}, ms", measured, "works", met(large["finite"])])
    names = ", ".join(photo["photo"] for photo in photos)
    return f"## For the notes: {names}\n\n" + text_table(("", "measured", "wanted", ""), rows)


def _size(row: dict[str, Any]) -> str:
    return _by(row["size"])


def _by(size: tuple[int, int]) -> str:
    """Format a size as width x height."""
    return f"{size[1]} x {size[0]}"
