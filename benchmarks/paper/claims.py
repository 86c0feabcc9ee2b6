"""Collect the numbers that the README quotes, each with its place in the results."""

from string import Formatter
from typing import Any

BEGIN, END = "<!-- results -->", "<!-- /results -->"

Stored = dict[str, dict[str, Any]]

_OURS = "bilateral, 2 threads"
_TASK, _INPUT = ("methods", "refine_depth", "mean"), ("methods", "input", "mean")
# name: experiment, and place below "results"
PLACES: dict[str, tuple[str, ...]] = {
    "megapixels": ("speed", "megapixels"),
    "steps": ("speed", "steps"),
    "sigma": ("speed", "sigma"),
    "total": ("speed", "parts", _OURS, "total", "0"),
    "construction": ("speed", "parts", _OURS, "construction", "0"),
    "optimization": ("speed", "parts", _OURS, "optimization", "0"),
    "paper_total": ("speed", "published", "the paper", "total", "0"),
    "opencv_ratio": ("speed", "ratio", "geometric_mean"),
    "opencv_least": ("speed", "ratio", "minimum"),
    "interval_ratio": ("interval", "total_ratio"),
    "interval_paper": ("interval", "published"),
    "mccnn_input": ("stereo", "inputs", "MC-CNN raw", *_INPUT),
    "mccnn": ("stereo", "inputs", "MC-CNN raw", *_TASK),
    "sgbm_input": ("stereo", "inputs", "SGBM", *_INPUT),
    "sgbm": ("stereo", "inputs", "SGBM", *_TASK),
    "superres_best": ("superres", "methods", 'bilateral, preset="best"', "mean"),
    "superres_best_seconds": ("superres", "methods", 'bilateral, preset="best"', "seconds"),
    "superres_paper": ("superres", "methods", 'bilateral, preset="paper"', "mean"),
    "superres_paper_seconds": ("superres", "methods", 'bilateral, preset="paper"', "seconds"),
    "superres_published": ("superres", "methods", 'bilateral, preset="paper"', "published_mean"),
    "superres_opencv": ("superres", "methods", "fast bilateral solver, OpenCV", "mean"),
    "superres_off": ("superres", "largest_off_percent"),
    "colour": ("colorization", "mean", "best"),
    "colour_levin": ("colorization", "mean", "levin"),
    "colour_seconds": ("colorization", "seconds_per_megapixel", "ours"),
    "colour_ratio": ("colorization", "ratio"),
    "network": ("segmentation", "mean", "network"),
    "segmentation": ("segmentation", "mean", "ours"),
    "segmentation_ms": ("segmentation", "ours_ms"),
    "crf": ("segmentation", "mean", "CRF 30 / 5"),
    "crf_ratio": ("segmentation", "ratio"),
    "rank_least": ("lowrank", "least_ratio"),
    "rank_most": ("lowrank", "largest_ratio"),
    "rank_paper": ("lowrank", "published"),
    "backward": ("layer", "ratio"),
    "backward_most": ("layer", "largest_ratio"),
}
# of each photograph of the speed table
PHOTO = ("sigma", "vertices", "ms", "opencv_ms", "ratio")
# a line is left out if one of its numbers is missing
LINES = (
    "| speed (Table 1), {megapixels:.1f} megapixels, {steps} steps, sigma {sigma}, two threads "
    "| {total:.0f} ms: construction {construction:.0f}, optimization {optimization:.0f} "
    "| the paper, in 2016, one thread: {paper_total:.0f} ms |",
    "| the same, against OpenCV's FastBilateralSolver | {opencv_ratio:.1f} times as fast "
    "| at least {opencv_least:.1f} times, photograph by photograph |",
    "| stereo (Table 2), quarter-size Middlebury, MC-CNN's maps | mean error {mccnn_input:.2f} to "
    "{mccnn:.2f} px | SGBM's maps: {sgbm_input:.2f} to {sgbm:.2f} |",
    "| depth super-resolution (Table 3), x2 to x16 | RMSE {superres_best:.2f} in "
    "{superres_best_seconds:.2f} s | the paper's {superres_published:.2f}, which "
    '`preset="paper"` gives again ({superres_paper:.2f}) in {superres_paper_seconds:.2f} s |',
    "| its nearest, bilinear, bicubic and domain-transform rows | off the paper's by at most "
    "{superres_off:.2f} % | |",
    "| colorization (section 5.3) | chroma at {colour:.1f} dB, {colour_seconds:.2f} s per "
    "megapixel | Levin et al. 2004: {colour_levin:.1f} dB, {colour_ratio:.0f} times as long |",
    "| segmentation (Table 4) | IOU {network:.1f} % to {segmentation:.1f} % in "
    "{segmentation_ms:.0f} ms | dense CRF: {crf:.1f} %, {crf_ratio:.1f} times as long |",
    "| low rank (supplement) | {rank_least:.1f} to {rank_most:.1f} times as fast "
    "| the paper: about {rank_paper:.0f} |",
    "| a backward pass, in forward ones | {backward:.2f} | {backward_most:.2f} at most |",
)


def collect(stored: Stored) -> dict[str, dict[str, Any]]:
    """Each claim's value, with its file and its place there."""
    photographs = look_up(stored.get("speed"), ["results", "photographs"]) or []
    places = PLACES | {
        f"{row['photograph']}, {row['sigma']}, {key}": ("speed", "photographs", str(i), key)
        for i, row in enumerate(photographs)
        for key in PHOTO
    }
    collected = {}
    for name, (experiment, *keys) in places.items():
        place = ["results", *keys]
        value = look_up(stored.get(experiment), place)
        if value is not None:
            collected[name] = {"value": value, "file": f"{experiment}.json", "at": place}
    return collected


def look_up(value: Any, keys: list[str]) -> Any:
    """Follow a path of keys and, in lists, indices."""
    for key in keys:
        if isinstance(value, list):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def block(claims: dict[str, dict[str, Any]]) -> str:
    """Write the README's block."""
    values = {name: claim["value"] for name, claim in claims.items()}
    lines = [line.format(**values) for line in LINES if _needs(line) <= values.keys()]
    table = ["| | bilateral | beside it |", "| --- | --- | --- |", *lines]
    return "\n".join([BEGIN, *table, "", *_photographs(claims), END]) + "\n"


def _photographs(claims: dict[str, dict[str, Any]]) -> list[str]:
    """Write the table of whole calls against OpenCV's, photograph by photograph."""
    rows: dict[str, dict[str, Any]] = {}
    for name, claim in claims.items():
        photo, _, key = name.rpartition(", ")
        if photo:
            rows.setdefault(photo, {})[key] = claim["value"]
    if not any("ratio" in row for row in rows.values()):
        return []
    return [
        "| photograph | sigma | vertices | bilateral, ms | OpenCV, ms | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {photo.rpartition(', ')[0]} | {row['sigma']} | {row['vertices']:,} "
            f"| {row['ms']:.0f} | {row['opencv_ms']:.0f} | {row['ratio']:.1f} |"
            for photo, row in rows.items()
        ),
    ]


def _needs(line: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(line) if name}
