"""Draw pictures like the paper's figures, of scikit-image's scenes, which are free to show."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import figures
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.tables import page
from benchmarks.quality import baselines, colorization
from benchmarks.quality.colorization import chroma_psnr, clipped, levin_chroma
from benchmarks.quality.depth import MARGIN, errors, motorcycle
from benchmarks.quality.superres import made, rms
from bilateral.confidence import edge_aware_variance
from bilateral.tasks import colorize, refine_depth, superres_depth

NAME, TITLE = "gallery", "Pictures (Figures 1, 4 and 5)"
DATA: str | None = None

FACTOR = 8
STEREO, SUPERRES, COLOURS = (f"gallery-{name}.png" for name in ("stereo", "superres", "colours"))


def cells(setting: Setting) -> Iterator[Cell]:
    for name, work in (("stereo", stereo), ("superres", superres), ("colorization", colours)):
        yield Cell(name, partial(work, setting.quick))


def stereo(quick: bool) -> dict[str, Any]:
    case = motorcycle(quick)
    refined = refine_depth(case.disparity, case.photo, preset="stereo")
    target = np.where(case.disparity > 0, case.disparity, np.nan)
    confidence = np.clip(edge_aware_variance(target, case.photo, margin=MARGIN), 0, 1)
    return {
        **{"photo": case.photo, "input": case.disparity, "output": refined},
        "confidence": np.dstack([(255 * confidence).astype(np.uint8)] * 3),
        "before": errors(case.disparity, case.truth, case.seen),
        "after": errors(refined, case.truth, case.seen),
    }


def superres(quick: bool) -> dict[str, Any]:
    scene = made(quick)
    photo, truth, low = scene.photo, scene.truth, scene.low[FACTOR].astype(np.float32)
    maps = {
        "truth": truth.astype(np.float32),
        "input": baselines.nearest(low, truth.shape),
        "paper": superres_depth(low, photo, preset="paper"),
        "best": superres_depth(low, photo),
    }
    known = np.where(np.isfinite(maps["input"]), 1, np.nan)
    rmse = {name: rms((depth - truth) * known) for name, depth in maps.items()}
    return {"photo": photo, **maps, "rmse": rmse}


def colours(quick: bool) -> dict[str, Any]:
    scene = next(colorization.made())
    scene = colorization.small(scene, 160, 240) if quick else scene
    gray, true, painted = scene.gray, scene.colours, scene.painted
    marked = np.where(painted[..., np.newaxis], true, gray[..., np.newaxis])
    pictures = {"levin": clipped(gray, levin_chroma(scene)), "ours": colorize(gray, true, painted)}
    psnr = {name: chroma_psnr(picture, true) for name, picture in pictures.items()}
    return {"marked": marked, **pictures, "psnr": psnr}


def summary(values: Values, _: Setting) -> Results:
    return {
        "stereo": {name: values["stereo"][name] for name in ("before", "after")},
        **{"superres": values["superres"]["rmse"], "factor": FACTOR},
        "colorization": values["colorization"]["psnr"],
    }


def as_text(results: Results) -> str:
    before, after = results["stereo"].values()
    rmse, psnr = results["superres"], results["colorization"]
    return page(
        "Of scikit-image's Motorcycle (Scharstein et al. 2014) and coffee, whatever --data is: "
        "the data sets' own pictures are not ours to show.",
        f"![A disparity map before and after]({STEREO})",
        f"Like Figure 1: block matching (mean error {before['mean']:.2f}, RMSE "
        f"{before['rms']:.2f} px) and `refine_depth` ({after['mean']:.2f}, {after['rms']:.2f}).",
        f"![A depth map enlarged]({SUPERRES})",
        f"Like Figure 4: x{results['factor']}, RMSE where the input is known {rmse['input']:.2f} "
        f'(nearest), {rmse["paper"]:.2f} (`preset="paper"`), {rmse["best"]:.2f} (`best`).',
        f"![A photograph colorized]({COLOURS})",
        f"Like Figure 5: chroma at {psnr['levin']:.1f} dB (Levin et al.) and "
        f"{psnr['ours']:.1f} dB (ours).",
    )


def draw(values: Values, _: Results, folder: Path) -> None:
    stereo = {
        **{"input": "input: block matching", "output": "output: refine_depth"},
        **{"confidence": "input confidence", "photo": "reference"},
    }
    superres = {"truth": "true depth", "input": f"input, x{FACTOR}"}
    superres |= {"paper": 'preset="paper"', "best": 'preset="best"'}
    colours = {"marked": "input", "levin": "Levin et al. 2004", "ours": "bilateral"}
    for file, name, titles, columns, width in (
        (STEREO, "stereo", stereo, 2, 6.4),
        (SUPERRES, "superres", superres, 4, 9.0),
        (COLOURS, "colorization", colours, 3, 7.5),
    ):
        pictures = [(title, values[name][key]) for key, title in titles.items()]
        rows = [pictures[i : i + columns] for i in range(0, len(pictures), columns)]
        figures.panels(rows, folder / file, width)
