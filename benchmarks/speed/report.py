"""The report on speed: one section of text per question."""

from typing import Any

from benchmarks.speed.convergence import EASY_AT_LEAST, SPARSE_AT_LEAST
from benchmarks.speed.stages import STAGES
from benchmarks.tables import cores, met, ms, spread, table
from benchmarks.timing import geometric_mean

TARGETS = {
    "ratio_geometric_mean_at_least": 10.0,
    "ratio_minimum_at_least": 6.0,
    "bytes_per_pixel_at_most": 40.0,
    "growth_ratio_off_1_at_most": 0.2,
    "import_seconds_at_most": 0.1,
    "convergence_sparse_ratio_at_least": SPARSE_AT_LEAST,
    "convergence_easy_ratio_at_least": EASY_AT_LEAST,
}


def as_text(results: dict[str, Any]) -> str:
    sections = (
        _heading,
        _against_opencv,
        _stages,
        _threads,
        _convergence,
        _oracle,
        _memory,
        _growth,
        _startup,
    )
    return "\n\n".join(section(results) for section in sections) + "\n"


def _heading(results: dict[str, Any]) -> str:
    machine, settings = results["machine"], results["settings"]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return (
        f"# Speed\n\n{results['date']}, {machine['cpu']}, {machine['cores']} cores, "
        f"load average {machine['load_before']:.1f} before the start; {versions}.\n\n"
        f"Times in ms: median (quartiles) of {settings['repeats']} repeats after a warm-up. "
        f"Photographs: {settings['photographs']}. The target is the gray photograph plus noise, "
        f"the confidence 1 at 1/16 of the pixels and 0.01 elsewhere, both float32; smoothness "
        f"{settings['smoothness']:g}, {settings['steps']} PCG steps; sigma is the same in space, "
        f"luma and chroma. Other work: how many cores something else kept busy meanwhile; where "
        f"it is not near 0, two threads had less than two cores and the times say little."
    )


def _against_opencv(results: dict[str, Any]) -> str:
    threads = results["settings"]["threads"][-1]
    rows = []
    for case in results["cases"]:
        cells = [case["photo"], str(case["sigma"]), f"{case['vertices']:,}"]
        cells.append(spread(case["ours"][threads]["whole"]))
        if case["opencv"]:
            cells += [spread(case["opencv"]), f"{case['ratio']:.1f}"]
            cells += [f"{case['error']:.4f}", f"{case['opencv_error']:.4f}"]
        else:
            cells += ["-", "-", f"{case['error']:.4f}", "-"]
        rows.append([*cells, cores(case["other_work"])])
    header = ("photograph", "sigma", "vertices", "ours", "OpenCV", "ratio")
    text = f"## The whole call against OpenCV's FastBilateralSolver, {threads} threads each\n\n"
    text += table((*header, "our error", "OpenCV's", "other work"), rows)
    if not results["summary"]:
        return f"{text}\n\n{results['opencv_skipped']}"
    mean, least = results["summary"]["geometric_mean"], results["summary"]["minimum"]
    wanted_mean = TARGETS["ratio_geometric_mean_at_least"]
    wanted_least = TARGETS["ratio_minimum_at_least"]
    return (
        f"{text}\n\nRatio, geometric mean: {mean:.2f} "
        f"(target at least {wanted_mean:g}: {met(mean >= wanted_mean)}); "
        f"minimum: {least:.2f} (target at least {wanted_least:g}: {met(least >= wanted_least)}).\n"
        f"Ours uses the paper's pyramid start and preconditioner, OpenCV a flat start and Jacobi; "
        f"the errors are RMS differences from the gray photograph without the noise "
        f"({results['settings']['noise']:g})."
    )


def _stages(results: dict[str, Any]) -> str:
    """One row per case and number of threads; "rest" is what the whole call adds to the stages."""
    rows = []
    for case in results["cases"]:
        for threads, timings in case["ours"].items():
            parts = [timings[stage].median for stage in STAGES]
            whole = timings["whole"].median
            seconds = (*parts, whole - sum(parts), whole)
            name = f"{case['photo']}, {case['sigma']}"
            rows.append([name, str(threads), *(ms(value) for value in seconds)])
    header = ("photograph, sigma", "threads", *STAGES, "rest", "whole")
    return "## Stages, medians in ms\n\n" + table(header, rows)


def _threads(results: dict[str, Any]) -> str:
    counts = results["settings"]["threads"]
    if len(counts) == 1:
        return "## Threads\n\nThis machine has one core: no scaling to show."
    rows = []
    columns = (*STAGES, "whole")
    for threads in counts[1:]:
        cells = [f"{threads} threads over 1"]
        for column in columns:
            pairs = [
                (case["ours"][1][column], case["ours"][threads][column])
                for case in results["cases"]
            ]
            cells.append(f"{geometric_mean([one.median / many.median for one, many in pairs]):.2f}")
        rows.append(cells)
    return "## Threads: speed-up, geometric mean over the cases\n\n" + table(("", *columns), rows)


def _convergence(results: dict[str, Any]) -> str:
    rows, reached = [], []
    for case in results["convergence"]:
        wanted = EASY_AT_LEAST if case["easy"] else SPARSE_AT_LEAST
        reached.append(case["ratio"] >= wanted)
        cells = [case["photo"], f"{case['known']:.1%}", f"{case['smoothness']:g}"]
        for name in ("paper", "default"):
            cells += [str(case["steps"][name]), spread(case["seconds"][name])]
        rows.append([*cells, f"{case['ratio']:.2f}", f"{wanted:.2f}", cores(case["other_work"])])
    header = ["photograph", "known", "smoothness", "steps", "the paper's", "steps", "default"]
    return (
        "## Time to a true RMS error of 0.1 % of the range, hierarchy included, grid not\n\n"
        + table([*header, "ratio", "wanted", "other work"], rows)
        + f"\n\nTargets: {met(all(reached))}."
    )


def _oracle(results: dict[str, Any]) -> str:
    rows = [
        [
            f"{case['photo']}, {case['shape'][0]} x {case['shape'][1]}",
            str(case["sigma"]),
            spread(case["ours"]),
            ms(case["oracle"]),
            f"{case['ratio']:,.0f}",
            f"{case['largest_difference']:.1e}",
        ]
        for case in results["oracle"]
    ]
    header = ("crop", "sigma", "ours", "oracle", "ratio", "largest difference")
    return "## Against the tests' oracle (NumPy and SciPy, float64, one run)\n\n" + table(
        header, rows
    )


def _memory(results: dict[str, Any]) -> str:
    rows = [
        [
            row["photo"],
            f"{row['sigma']:g}",
            f"{row['bytes_per_pixel']:.1f}",
            f"{row['bytes_per_pixel_with_output']:.1f}",
        ]
        for row in results["memory"]
    ]
    worst = max(row["bytes_per_pixel"] for row in results["memory"])
    wanted = TARGETS["bytes_per_pixel_at_most"]
    text = table(("photograph", "sigma", "bytes per pixel", "with the output"), rows)
    return (
        f"## Peak memory beyond inputs and output\n\n{text}\n\n"
        f"Largest: {worst:.1f} (target at most {wanted:g}: {met(worst <= wanted)})."
    )


def _growth(results: dict[str, Any]) -> str:
    growth = results["growth"]
    rows = [
        [
            f"{row['megapixels']:.1f} MP",
            f"{row['vertices'] / row['megapixels']:,.0f}",
            spread(row["seconds"]),
            ms(row["seconds"].median / row["megapixels"]),
        ]
        for row in growth["sizes"]
    ]
    sizes, wanted = growth["sizes"], TARGETS["growth_ratio_off_1_at_most"]
    return (
        f"## Growth: {growth['photo']}, sigma {growth['sigma']}\n\n"
        + table(("size", "vertices per MP", "ours", "ms per MP"), rows)
        + f"\n\n{sizes[-1]['megapixels']:.1f} MP takes {growth['ratio']:.2f} of "
        f"{sizes[-1]['factor']:g} times {sizes[1]['megapixels']:.1f} MP (target 1, off by at most "
        f"{wanted:.0%}: {met(abs(growth['ratio'] - 1) <= wanted)}). "
        f"Other work: {cores(growth['other_work'])} cores."
    )


def _startup(results: dict[str, Any]) -> str:
    timing, wanted = results["import"], TARGETS["import_seconds_at_most"]
    return (
        f"## Import\n\n`import bilateral` after `import numpy`: {spread(timing)} ms "
        f"(target at most {ms(wanted)}: {met(timing.median <= wanted)})."
    )
