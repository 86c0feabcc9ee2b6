"""Write the report on speed: one section per question."""

from typing import Any

from benchmarks.common.tables import OTHERS, at_least, at_most, cores, met, table, text_table
from benchmarks.common.timing import geometric_mean, ms
from benchmarks.speed.convergence import EASY_AT_LEAST, SPARSE_AT_LEAST
from benchmarks.speed.stages import STAGES

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
    sections = (_method, _against_opencv, _stages, _threads, _convergence)
    sections += (_oracle, _memory, _growth, _import)
    return "\n\n".join(section(results) for section in sections)


def _method(results: dict[str, Any]) -> str:
    settings = results["settings"]
    return (
        f"Times in ms: median (quartiles) of {settings['repeats']} repeats after a warm-up. "
        f"Photographs: {settings['photographs']}. The target is the gray photograph plus noise, "
        f"the confidence 1 at 1/16 of the pixels and 0.01 elsewhere, both float32; smoothness "
        f"{settings['smoothness']:g}, {settings['steps']} PCG steps; sigma is the same in space, "
        f"luma and chroma. Other work: the number of cores that other processes kept busy. Where "
        f"it is not near 0, two threads had less than two cores and the times say little."
    )


def _against_opencv(results: dict[str, Any]) -> str:
    threads = results["settings"]["threads"][-1]
    text = f"## The whole call against OpenCV's FastBilateralSolver, {threads} threads each\n\n"
    text += table(
        [{"opencv_error": None} | case for case in results["cases"]],
        "photograph | {photo}; sigma | {sigma}; vertices | {vertices:,}",
        f"ours | {{ours[{threads}][whole]}}",
        "OpenCV | {opencv}; ratio | {ratio:.1f}; our error | {error:.4f}",
        "OpenCV's | {opencv_error:.4f}",
        OTHERS,
    )
    if not results["summary"]:
        return text
    mean, least = results["summary"]["geometric_mean"], results["summary"]["minimum"]
    return (
        f"{text}\n\nRatio, geometric mean: "
        f"{at_least(mean, TARGETS['ratio_geometric_mean_at_least'])}; "
        f"minimum: {at_least(least, TARGETS['ratio_minimum_at_least'])}.\n"
        f"Ours uses the paper's pyramid start and preconditioner, OpenCV a flat start and Jacobi; "
        f"the errors are RMS differences from the gray photograph without the noise "
        f"({results['settings']['noise']:g})."
    )


def _stages(results: dict[str, Any]) -> str:
    """One row per case and number of threads; "rest": the whole call minus its stages."""
    rows = []
    for case in results["cases"]:
        for threads, timings in case["ours"].items():
            parts = [timings[stage].median for stage in STAGES]
            whole = timings["whole"].median
            seconds = (*parts, whole - sum(parts), whole)
            rows.append([f"{case['photo']}, {case['sigma']}", str(threads), *map(ms, seconds)])
    header = ("photograph, sigma", "threads", *STAGES, "rest", "whole")
    return "## Stages, medians in ms\n\n" + text_table(header, rows)


def _threads(results: dict[str, Any]) -> str:
    counts = results["settings"]["threads"]
    if len(counts) == 1:
        return "## Threads\n\nThis machine has one core: no scaling to show."
    columns = (*STAGES, "whole")

    def speed_up(threads: int, column: str) -> str:
        pairs = [(case["ours"][1], case["ours"][threads]) for case in results["cases"]]
        ratios = [one[column].median / many[column].median for one, many in pairs]
        return f"{geometric_mean(ratios):.2f}"

    rows = [[f"{n} threads over 1", *(speed_up(n, c) for c in columns)] for n in counts[1:]]
    title = "## Threads: speed-up, geometric mean over the cases\n\n"
    return title + text_table(("", *columns), rows)


def _convergence(results: dict[str, Any]) -> str:
    limits = {True: EASY_AT_LEAST, False: SPARSE_AT_LEAST}
    rows = [case | {"limit": limits[case["easy"]]} for case in results["convergence"]]
    return (
        "## Time to a true RMS error of 0.1 % of the range, hierarchy included, grid not\n\n"
        + table(
            rows,
            "photograph | {photo}; known | {known:.1%}; smoothness | {smoothness:g}",
            "steps | {steps[paper]}; the paper's | {seconds[paper]}; steps | {steps[default]}",
            "default | {seconds[default]}; ratio | {ratio:.2f}; wanted | {limit:.2f}",
            OTHERS,
        )
        + f"\n\nTargets: {met(all(row['ratio'] >= row['limit'] for row in rows))}."
    )


def _oracle(results: dict[str, Any]) -> str:
    return "## Against the tests' oracle (NumPy and SciPy, float64, one run)\n\n" + table(
        results["oracle"],
        "crop | {photo}, {shape[0]} x {shape[1]}; sigma | {sigma}; ours | {ours}",
        "oracle | {oracle:ms}; ratio | {ratio:,.0f}",
        "largest difference | {largest_difference:.1e}",
    )


def _memory(results: dict[str, Any]) -> str:
    worst = max(row["bytes_per_pixel"] for row in results["memory"])
    text = table(
        results["memory"],
        "photograph | {photo}; sigma | {sigma:g}; bytes per pixel | {bytes_per_pixel:.1f}",
        "with the output | {bytes_per_pixel_with_output:.1f}",
    )
    largest = at_most(worst, TARGETS["bytes_per_pixel_at_most"], ".1f")
    return f"## Peak memory beyond inputs and output\n\n{text}\n\nLargest: {largest}."


def _growth(results: dict[str, Any]) -> str:
    growth = results["growth"]
    sizes, limit = growth["sizes"], TARGETS["growth_ratio_off_1_at_most"]
    for row in sizes:
        row["density"] = row["vertices"] / row["megapixels"]
        row["pace"] = row["seconds"].median / row["megapixels"]
    return (
        f"## Growth: {growth['photo']}, sigma {growth['sigma']}\n\n"
        + table(
            sizes,
            "size | {megapixels:.1f} MP; vertices per MP | {density:,.0f}; ours | {seconds}",
            "ms per MP | {pace:ms}",
        )
        + f"\n\n{sizes[-1]['megapixels']:.1f} MP takes {growth['ratio']:.2f} of "
        f"{sizes[-1]['factor']:g} times {sizes[1]['megapixels']:.1f} MP (target 1, off by at most "
        f"{limit:.0%}: {met(abs(growth['ratio'] - 1) <= limit)}). "
        f"Other work: {cores(growth['other_work'])} cores."
    )


def _import(results: dict[str, Any]) -> str:
    timing, limit = results["import"], TARGETS["import_seconds_at_most"]
    return (
        f"## Import\n\n`import bilateral` after `import numpy`: {timing} ms "
        f"(target at most {ms(limit)}: {met(timing.median <= limit)})."
    )
