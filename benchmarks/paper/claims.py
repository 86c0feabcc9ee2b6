"""Collect the numbers that the README quotes, each with its place in the results."""

import re
from string import Formatter
from typing import Any

BEGIN, END = "<!-- results -->", "<!-- /results -->"

Stored = dict[str, dict[str, Any]]

# A field is an experiment and the place of the number below its "results". A line is left out if
# one of its numbers is missing.
_LINES = (
    "| speed (Table 1), {speed[megapixels]:.1f} megapixels, {speed[steps]} steps, sigma "
    "{speed[sigma]}, two threads | {OURS[total][0]:.0f} ms: construction "
    "{OURS[construction][0]:.0f}, optimization {OURS[optimization][0]:.0f} | the paper, in 2016, "
    "one thread: {speed[published][the paper][total][0]:.0f} ms |",
    "| the same, against OpenCV's FastBilateralSolver | {speed[ratio][geometric_mean]:.1f} times "
    "as fast | at least {speed[ratio][minimum]:.1f} times, photograph by photograph |",
    "| stereo (Table 2), quarter-size Middlebury, MC-CNN's maps | mean error "
    "{STEREO[MC-CNN raw][methods][input][mean]:.2f} to "
    "{STEREO[MC-CNN raw][methods][refine_depth][mean]:.2f} px | SGBM's maps: "
    "{STEREO[SGBM][methods][input][mean]:.2f} to "
    "{STEREO[SGBM][methods][refine_depth][mean]:.2f} |",
    "| depth super-resolution (Table 3), x2 to x16 | RMSE {BEST[mean]:.2f} in {BEST[seconds]:.2f} "
    's | the paper\'s {PAPER[published_mean]:.2f}, which `preset="paper"` gives again '
    "({PAPER[mean]:.2f}) in {PAPER[seconds]:.2f} s |",
    "| its nearest, bilinear, bicubic and domain-transform rows | off the paper's by at most "
    "{superres[largest_off_percent]:.2f} % | |",
    "| colorization (section 5.3) | chroma at {colorization[mean][best]:.1f} dB, "
    "{colorization[seconds_per_megapixel][ours]:.2f} s per megapixel | Levin et al. 2004: "
    "{colorization[mean][levin]:.1f} dB, {colorization[ratio]:.0f} times as long |",
    "| segmentation (Table 4) | IOU {segmentation[mean][network]:.1f} % to "
    "{segmentation[mean][ours]:.1f} % in {segmentation[ours_ms]:.0f} ms | dense CRF: "
    "{segmentation[mean][CRF 30 / 5]:.1f} %, {segmentation[ratio]:.1f} times as long |",
    "| low rank (supplement) | {lowrank[least_ratio]:.1f} to {lowrank[largest_ratio]:.1f} times as "
    "fast | the paper: about {lowrank[published]:.0f} |",
    "| backward time / forward time | {layer[ratio]:.2f} | {layer[largest_ratio]:.2f} at most |",
)
_SHORT = {
    "OURS": "speed[parts][bilateral, 2 threads]",
    "STEREO": "stereo[inputs]",
    "BEST": 'superres[methods][bilateral, preset="best"]',
    "PAPER": 'superres[methods][bilateral, preset="paper"]',
}
LINES = [re.sub("|".join(_SHORT), lambda match: _SHORT[match[0]], line) for line in _LINES]
PHOTO = ("photograph", "sigma", "vertices", "ms", "opencv_ms", "ratio")


def collect(stored: Stored) -> dict[str, dict[str, Any]]:
    """Each claim's value, with its file and its place there."""
    photographs = look_up(stored.get("speed"), ["results", "photographs"]) or []
    rows = [f"speed[photographs][{i}][{key}]" for i in range(len(photographs)) for key in PHOTO]
    collected = {}
    for name in [*(name for line in LINES for name in _names(line)), *rows]:
        experiment, *keys = re.findall(r"[^][]+", name)
        value = look_up(stored.get(experiment), ["results", *keys])
        if value is not None:
            place = {"file": f"{experiment}.json", "at": ["results", *keys]}
            collected[name] = {"value": value, **place}
    return collected


def look_up(value: Any, keys: list[str]) -> Any:
    """Follow a path of keys and, in lists, indices."""
    for key in keys:
        if isinstance(value, list):
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def block(claims: dict[str, dict[str, Any]]) -> str:
    """Write the README's block: a line per table, and whole calls against OpenCV's."""
    values = {name: claim["value"] for name, claim in claims.items()}
    lines = ["| | bilateral | compared with |", "| --- | --- | --- |"]
    for line in LINES:
        if all(name in values for name in _names(line)):
            lines.append(_Plain().vformat(line, (), values))
    photographs = []
    while f"speed[photographs][{len(photographs)}][ratio]" in values:
        names = (f"speed[photographs][{len(photographs)}][{key}]" for key in PHOTO)
        name, sigma, vertices, ms, opencv_ms, ratio = (values[name] for name in names)
        numbers = f"{vertices:,} | {ms:.0f} | {opencv_ms:.0f} | {ratio:.1f}"
        photographs.append(f"| {name} | {sigma} | {numbers} |")
    if photographs:
        lines += [
            *("", "| photograph | sigma | vertices | bilateral, ms | OpenCV, ms | ratio |"),
            *("| --- | ---: | ---: | ---: | ---: | ---: |", *photographs),
        ]
    return "\n".join([BEGIN, *lines, END]) + "\n"


class _Plain(Formatter):
    """Take a whole field, brackets included, as a key."""

    def get_field(self, field_name: str, _: Any, values: Any) -> tuple[Any, str]:
        return values[field_name], field_name


def _names(line: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(line) if name]
