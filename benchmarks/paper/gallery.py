"""Draw pictures like the paper's figures, of scikit-image's scenes, which are free to show."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import figures
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.quality import baselines, colorization_scenes
from benchmarks.quality.colorization import chroma_psnr, clipped, levin_chroma
from benchmarks.quality.depth import MARGIN
from benchmarks.quality.depth_cases import errors, motorcycle
from benchmarks.quality.superres_scenes import made, rms
from bilateral.confidence import edge_aware_variance
from bilateral.tasks import colorize, refine_depth, superres_depth

NAME = "gallery"
TITLE = "Pictures (Figures 1, 4 and 5)"
DATA: str | None = None

Array = NDArray[Any]

FACTOR = 8
STEREO, SUPERRES, COLOURS = (f"gallery-{name}.png" for name in ("stereo", "superres", "colours"))


def cells(setting: Setting) -> Iterator[Cell]:
    yield Cell("stereo", partial(stereo, setting.quick))
    yield Cell("superres", partial(superres, setting.quick))
    yield Cell("colorization", partial(colours, setting.quick))


def stereo(quick: bool) -> dict[str, Any]:
    case = motorcycle(quick)
    refined = refine_depth(case.disparity, case.photo, preset="stereo")
    target = np.where(case.disparity > 0, case.disparity, np.nan)
    return {
        "photo": case.photo,
        "input": case.disparity,
        "confidence": edge_aware_variance(target, case.photo, margin=MARGIN),
        "output": refined,
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
    scene = next(colorization_scenes.made())
    scene = colorization_scenes.small(scene, 160, 240) if quick else scene
    gray, true, painted = scene.gray, scene.colours, scene.painted
    marked = np.where(painted[..., np.newaxis], true, gray[..., np.newaxis])
    pictures = {"levin": clipped(gray, levin_chroma(scene)), "ours": colorize(gray, true, painted)}
    psnr = {name: chroma_psnr(picture, true) for name, picture in pictures.items()}
    return {"marked": marked, **pictures, "psnr": psnr}


def summary(values: Values, _: Setting) -> Results:
    return {
        "stereo": {name: values["stereo"][name] for name in ("before", "after")},
        "superres": values["superres"]["rmse"],
        "factor": FACTOR,
        "colorization": values["colorization"]["psnr"],
    }


def as_text(results: Results) -> str:
    before, after = (results["stereo"][name] for name in ("before", "after"))
    rmse, psnr = results["superres"], results["colorization"]
    return "\n\n".join(
        [
            "Of scikit-image's Motorcycle (Scharstein et al. 2014) and coffee, whatever --data is: "
            "the data sets' own pictures are not ours to show.",
            f"![A disparity map before and after]({STEREO})",
            f"Like Figure 1: block matching (mean error {before['mean']:.2f}, RMSE "
            f"{before['rms']:.2f} px) and `refine_depth` ({after['mean']:.2f}, "
            f"{after['rms']:.2f}).",
            f"![A depth map enlarged]({SUPERRES})",
            f"Like Figure 4: x{results['factor']}, RMSE where the input is known "
            f"{rmse['input']:.2f} (nearest), "
            f'{rmse["paper"]:.2f} (`preset="paper"`), {rmse["best"]:.2f} (`best`).',
            f"![A photograph colorized]({COLOURS})",
            f"Like Figure 5: chroma at {psnr['levin']:.1f} dB (Levin et al.) and "
            f"{psnr['ours']:.1f} dB (ours).",
        ]
    )


def draw(values: Values, _: Results, folder: Path) -> None:
    s, z, c = (values[name] for name in ("stereo", "superres", "colorization"))
    confidence = (255 * plain_gray(s["confidence"])).astype(np.uint8)
    figures.panels(
        [
            [("input: block matching", s["input"]), ("output: refine_depth", s["output"])],
            [("input confidence", confidence), ("reference", s["photo"])],
        ],
        folder / STEREO,
        width=6.4,
    )
    figures.panels(
        [
            [
                ("true depth", z["truth"]),
                (f"input, x{FACTOR}", z["input"]),
                ('preset="paper"', z["paper"]),
                ('preset="best"', z["best"]),
            ]
        ],
        folder / SUPERRES,
    )
    figures.panels(
        [[("input", c["marked"]), ("Levin et al. 2004", c["levin"]), ("bilateral", c["ours"])]],
        folder / COLOURS,
        width=7.5,
    )


def plain_gray(values: Array) -> Array:
    """Clip to 0 to 1 and repeat as three equal channels."""
    return np.repeat(np.clip(values, 0, 1)[..., np.newaxis], 3, axis=2)
