"""Write the sections of the speed report that the paper's page does not have."""

from typing import Any

from benchmarks.common.cells import Values
from benchmarks.common.tables import OTHERS, at_least, at_most, bullets, page, table, text_table
from benchmarks.common.timing import Timing, geometric_mean, ms
from benchmarks.speed.cases import NOISE, SMOOTHNESS, STAGES, STEPS
from benchmarks.speed.convergence import EASY_AT_LEAST, SPARSE_AT_LEAST

Rows = list[dict[str, Any]]
METHOD = (
    "Times in ms: median (quartiles) of the repeats after a warm-up. The target is the gray "
    f"photograph plus noise ({NOISE:g}), the confidence 1 at 1/16 of the pixels and 0.01 "
    f"elsewhere, both float32; smoothness {SMOOTHNESS:g}, {STEPS} PCG steps; sigma is the same in "
    "space, luma and chroma. Ours uses the paper's pyramid start and preconditioner, OpenCV a flat "
    "start and Jacobi. Other work: cores that other processes kept busy; distrust times with it."
)


def details(values: Values) -> str:
    photographs = [value for value in values.values() if "sigmas" in value]
    cases = [row for value in photographs for row in value["sigmas"].values()]
    races, oracle, memory = (
        [row for value in photographs for row in value[part]]
        for part in ("convergence", "oracle", "memory")
    )
    growth = values["growth"]
    sizes = [
        row | {"density": row["vertices"] / mp, "pace": row["seconds"].median / mp}
        for row in growth["sizes"]
        for mp in [row["megapixels"]]
    ]
    for row in races:
        row["limit"] = EASY_AT_LEAST if row["easy"] else SPARSE_AT_LEAST
    return page(
        f"## Stages\n\n{METHOD}",
        _stages(cases),
        *_threads(cases),
        "## Time to a true RMS error of 0.1 % of the range, hierarchy included, grid not",
        table(
            races,
            "photograph | {photo}; known | {known:.1%}; smoothness | {smoothness:g}",
            "steps | {steps[paper]}; the paper's | {seconds[paper]}; steps | {steps[default]}",
            "default | {seconds[default]}; ratio | {ratio:.2f}; wanted | {limit:.2f}",
            OTHERS,
        ),
        "## Against the tests' oracle (NumPy and SciPy, float64, one run)",
        table(
            oracle,
            "crop | {photo}, {shape[0]} x {shape[1]}; sigma | {sigma}; ours | {ours}",
            "oracle | {oracle:ms}; ratio | {ratio:,.0f}",
            "largest difference | {largest_difference:.1e}",
        ),
        "## Peak memory beyond inputs and output",
        table(
            memory,
            "photograph | {photo}; sigma | {sigma:g}; bytes per pixel | {bytes_per_pixel:.1f}",
            "with the output | {bytes_per_pixel_with_output:.1f}",
        ),
        f"## Growth: {growth['photo']}, sigma {growth['sigma']}",
        table(
            sizes,
            "size | {megapixels:.1f} MP; vertices per MP | {density:,.0f}; ours | {seconds}",
            "ms per MP | {pace:ms}",
        ),
        f"`import bilateral` after `import numpy`: {values['import']['seconds']} ms.",
        _targets(cases, races, memory, growth, values["import"]["seconds"]),
    )


def _stages(cases: Rows) -> str:
    """One row per case and number of threads; "rest": the whole call minus its stages."""
    rows = []
    for case in cases:
        name = f"{case['photo']}, {case['sigma']}"
        for threads, timings in case["ours"].items():
            parts = [timings[stage].median for stage in STAGES]
            rest = timings["whole"].median - sum(parts)
            rows.append([name, str(threads), *map(ms, (*parts, rest)), f"{timings['whole']}"])
        if case["opencv"]:
            blank = [""] * (1 + len(STAGES))
            rows.append([f"{name}, OpenCV", str(threads), *blank, f"{case['opencv']}"])
    return text_table(("photograph, sigma", "threads", *STAGES, "rest", "whole"), rows)


def _threads(cases: Rows) -> list[str]:
    columns, counts = (*STAGES, "whole"), list(cases[0]["ours"])

    def speed_up(threads: int, column: str) -> str:
        pairs = [(case["ours"][1][column], case["ours"][threads][column]) for case in cases]
        return f"{geometric_mean([one.median / many.median for one, many in pairs]):.2f}"

    rows = [[f"{n} threads over 1", *(speed_up(n, c) for c in columns)] for n in counts[1:]]
    return [text_table(("speed-up, geometric mean", *columns), rows)] if rows else []


def _targets(
    cases: Rows, races: Rows, memory: Rows, growth: dict[str, Any], imported: Timing
) -> str:
    ratios = [case["ratio"] for case in cases if case["ratio"] is not None]
    largest, last = max(row["bytes_per_pixel"] for row in memory), growth["sizes"][-1]
    least = min(row["ratio"] / row["limit"] for row in races)
    lines = [
        f"the paper's time / ours over what is wanted, minimum: {at_least(least, 1.0)}",
        f"bytes per pixel: {at_most(largest, 40.0, '.1f')}",
        f"time at {last['megapixels']:.1f} MP over {last['factor']:g} times that of the "
        f"photograph, off 1: {at_most(abs(growth['ratio'] - 1), 0.2)}",
        f"seconds of the import: {at_most(imported.median, 0.1)}",
    ]
    if ratios:
        lines.append(f"OpenCV / ours, geometric mean: {at_least(geometric_mean(ratios), 10.0)}")
        lines.append(f"OpenCV / ours, minimum: {at_least(min(ratios), 6.0)}")
    return bullets("## Targets", lines)
