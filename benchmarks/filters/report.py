"""The report on filters: one section of text per question."""

from typing import Any

from benchmarks.filters import median
from benchmarks.tables import cores, met, spread, table

TARGETS = {
    "authors_rms_below": 1.0,
    "superres_off_by_at_most": 0.01,
    "ratio_to_opencv_at_least": 1.0,
}


def as_text(results: dict[str, Any]) -> str:
    sections = (_heading, _authors, _superres, _speed, _median)
    return "\n\n".join(section(results) for section in sections) + "\n"


def _heading(results: dict[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return (
        f"# Filters\n\n{results['date']}, {machine['cpu']}, {machine['cores']} cores, "
        f"load average {machine['load_before']:.1f} before the start; {versions}."
    )


def _authors(results: dict[str, Any]) -> str:
    title = "## Against the domain transform's authors\n\n"
    row, wanted = results["authors"], TARGETS["authors_rms_below"]
    if row is None:
        return f"{title}Skipped: no folder domain_transform in --data."
    return (
        f"{title}RMS difference from their output on {row['picture']}: {row['rms']:.3f} grey "
        f"levels, {row['rms_uint8']:.3f} when rounded as theirs (target below {wanted:g}: "
        f"{met(row['rms'] < wanted)}). Rounding alone makes 0.289."
    )


def _superres(results: dict[str, Any]) -> str:
    title = "## Depth super-resolution by the domain transform alone, RMSE\n\n"
    rows, wanted = results["superres"], TARGETS["superres_off_by_at_most"]
    if rows is None:
        return f"{title}Skipped: no folder depth_superres in --data."
    off = [abs(row["rmse"] / row["paper"] - 1) for row in rows]
    cells = [
        [
            f"{row['scene']} x{row['factor']}",
            f"{row['rmse']:.3f}",
            f"{row['paper']:.2f}",
            f"{o:.2%}",
        ]
        for row, o in zip(rows, off, strict=True)
    ]
    text = table(("map", "ours", "the paper's", "off by"), cells)
    return (
        f"{title}{text}\n\nLargest: {max(off):.2%} (target at most {wanted:.0%}: "
        f"{met(max(off) <= wanted)})."
    )


def _speed(results: dict[str, Any]) -> str:
    counts = results["settings"]["threads"]
    rows = [
        [
            f"{row['photo']}, {row['megapixels']:.1f} MP, {row['dtype']}",
            *(spread(row["ours"][threads]) for threads in counts),
            spread(row["opencv"]) if row["opencv"] else "-",
            f"{row['ratio']:.2f}" if row["ratio"] else "-",
            "-" if row["rms_difference"] is None else f"{row['rms_difference']:.3f}",
            cores(row["other_work"]),
        ]
        for row in results["speed"]
    ]
    ours = tuple(f"ours, {threads} threads" for threads in counts)
    header = ("photograph", *ours, "OpenCV", "ratio", "RMS difference", "other work")
    text = (
        f"## Against OpenCV's dtFilter (DTF_RF), {counts[-1]} threads\n\n"
        f"RGB along itself, {results['settings']['iterations']} iterations; ms, median (quartiles) "
        f"of {results['settings']['repeats']} repeats in turns; other work: cores that something "
        f"else kept busy.\n\n" + table(header, rows)
    )
    ratios = [row["ratio"] for row in results["speed"] if row["ratio"]]
    if not ratios:
        return f"{text}\n\n{results['opencv_skipped']}"
    wanted = TARGETS["ratio_to_opencv_at_least"]
    return (
        f"{text}\n\nRatio, minimum: {min(ratios):.2f} (target at least {wanted:g}: "
        f"{met(min(ratios) >= wanted)})."
    )


def _median(results: dict[str, Any]) -> str:
    return median.as_text(results["median"], results["settings"]["threads"])
