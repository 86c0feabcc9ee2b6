"""The results in words."""

from typing import Any

import numpy as np

from benchmarks.tables import cores, met, spread, table

Row = dict[str, Any]


def as_text(results: dict[str, Any]) -> str:
    machine, rows = results["machine"], results["cases"]
    ways = list(rows[0]["iou"])
    lines = [
        "# Segmentation",
        "",
        f"{results['date']}, {machine['cpu']}, {machine['cores']} cores",
        "",
        "Mean IoU in percent, per image over the classes of the truth, without a band of 2 pixels "
        "at its edges.",
    ]
    if results["crf_skipped"]:
        lines += ["", results["crf_skipped"]]
    for source in dict.fromkeys(row["source"] for row in rows):
        part = [row for row in rows if row["source"] == source]
        body = [[row["name"], *(f"{row['iou'][way]:.2f}" for way in ways)] for row in part]
        body.append(["mean", *(f"{mean(part, way):.2f}" for way in ways)])
        lines += ["", f"## {source}", "", table(("", *ways), body)]
    lines += ["", "## Time", "", *_times(results["speed"])]
    if any(row["source"] == "network" for row in rows):
        lines += ["", "## Targets", "", *_targets(results)]
    return "\n".join(lines) + "\n"


def mean(rows: list[Row], way: str) -> float:
    return float(np.mean([row["iou"][way] for row in rows]))


def _times(speed: list[Row]) -> list[str]:
    header = ["", "ours, ms", "CRF, ms", "CRF / ours", "other work, cores"]
    body = [
        [
            row["name"],
            spread(row["ours"]),
            spread(row["crf"]) if row["crf"] else "",
            f"{row['ratio']:.1f}" if row["ratio"] else "",
            cores(row["other_work"]),
        ]
        for row in speed
    ]
    return [
        table(header, body),
        "",
        "The CRF is the faster of the two settings, for the classes "
        "that are the label of a pixel; ours does all of them.",
    ]


def _targets(results: dict[str, Any]) -> list[str]:
    rows = [row for row in results["cases"] if row["source"] == "network"]
    targets = results["targets"]
    gains = [row["iou"]["ours"] - row["iou"]["network"] for row in rows]
    gain, worst = float(np.mean(gains)), min(gains)
    lines = [
        f"- {targets['gain_at_least']} points more than the network in the mean: {gain:.2f}, "
        f"{met(gain >= targets['gain_at_least'])}.",
        f"- No image loses more than {targets['loss_at_most']}: {worst:+.2f} at worst, "
        f"{met(worst >= -targets['loss_at_most'])}.",
    ]
    ratios = [row["ratio"] for row in results["speed"] if row["ratio"]]
    if ratios:
        least = min(ratios)
        limit = targets["crf_over_ours_at_least"]
        lines.append(
            f"- {limit} times as fast as the CRF: {least:.1f} at least, {met(least >= limit)}."
        )
    return lines
