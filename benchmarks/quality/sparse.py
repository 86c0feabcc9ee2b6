"""Fill maps of few known pixels at several smoothnesses, against linear interpolation."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

from benchmarks.common import Array, middlebury
from benchmarks.common.cells import Results, Setting
from benchmarks.common.tables import page, table
from bilateral import BilateralGrid, BilateralSolver

TITLE, REPEATS = "Few known pixels", 1
FRACTIONS = (0.0005, 0.005, 0.01, 0.05, 0.2, 1.0)
SMOOTHNESSES = (0.01, 0.03, 0.1, 0.3, 1, 4, 16)
# sigma_xy, sigma_luma and sigma_chroma: the default, and cells that suit exact values
SIGMAS = ((8, 8, 8), (4, 16, 12))
MODELS = ("constant", "planar")
NOISES = (0.0, 1.0, 4.0)  # standard deviation of the known disparities in pixels


class Scene(NamedTuple):
    name: str
    photo: Array
    truth: Array  # NaN where unknown


def name(smoothness: float | str) -> str:
    return f"smoothness {smoothness}"


def scenes(setting: Setting) -> Iterator[Scene]:
    folder = setting.data.folder("stereo")
    for scene in middlebury.folders(folder) if folder else []:
        yield Scene(scene.name, middlebury.view(scene), middlebury.truth(scene))
    if folder is None:
        photo, _, truth = middlebury.motorcycle()
        step = 2 if setting.quick else 1
        yield Scene("Motorcycle", photo[::step, ::step], truth[::step, ::step] / step)


def interpolated(target: Array) -> Array:
    """Interpolate linearly between the known pixels; outside of them take the nearest."""
    known = np.argwhere(np.isfinite(target))
    values = target[tuple(known.T)]
    at = np.mgrid[: target.shape[0], : target.shape[1]].reshape(2, -1).T
    filled = LinearNDInterpolator(known, values)(at)
    outside = np.isnan(filled)
    filled[outside] = NearestNDInterpolator(known, values)(at[outside])
    return np.asarray(filled.reshape(target.shape))


def measure_scene(
    scene: Scene, fractions: Sequence[float]
) -> Iterator[tuple[tuple[Any, ...], dict[str, float]]]:
    """Yield the mean absolute errors by smoothness, and of linear interpolation, per input."""
    grids = {sigmas: BilateralGrid(scene.photo, *sigmas) for sigmas in SIGMAS}
    for noise, fraction in itertools.product(NOISES, fractions):
        rng = np.random.default_rng(0)
        known = rng.random(scene.truth.shape) < fraction
        noisy = scene.truth + noise * rng.normal(size=scene.truth.shape)
        target = np.where(known, noisy, np.nan)
        linear = interpolated(target) if fraction < 1 else target
        for (sigmas, grid), model in itertools.product(grids.items(), MODELS):
            maps = {}
            for smoothness in (*SMOOTHNESSES, "auto"):
                solver = BilateralSolver(grid, smoothness, model=model)
                maps[name(smoothness)] = solver.solve(target)
            maps["linear"] = linear
            errors = {key: float(np.nanmean(abs(x - scene.truth))) for key, x in maps.items()}
            yield (model, sigmas, noise, fraction), errors


def measure(setting: Setting) -> Results:
    """Mean the errors over the scenes, for each kind of input."""
    fractions = (0.05,) if setting.quick else FRACTIONS
    inputs: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    names = []
    for scene in scenes(setting):
        names.append(scene.name)
        for key, errors in measure_scene(scene, fractions):
            inputs.setdefault(key, []).append(errors)
    return {
        "scenes": names,
        "rows": [
            {"model": model, "sigmas": sigmas, "noise": noise, "fraction": fraction}
            | {"errors": {key: float(np.mean([e[key] for e in every])) for key in every[0]}}
            for (model, sigmas, noise, fraction), every in inputs.items()
        ],
    }


def as_text(results: Results) -> str:
    rows = [{**row, **ratios(row["errors"])} for row in results["rows"]]
    columns = "; ".join(f"{s:g} | {{errors[{name(s)}]:.2f}}" for s in SMOOTHNESSES)
    tables = [
        page(
            f"## {model.capitalize()} model, noise of {noise:g} pixels",
            table(
                [row for row in rows if (row["model"], row["noise"]) == (model, noise)],
                "known | {fraction:.2%}; sigmas | {sigmas[0]}, {sigmas[1]}, {sigmas[2]}",
                columns,
                f"auto | {{errors[{name('auto')}]:.2f}}; linear | {{errors[linear]:.2f}}",
                "auto / best | {of_best:.2f}; auto / linear | {of_linear}",
            ),
        )
        for model, noise in itertools.product(MODELS, NOISES)
    ]
    what = (
        f"Mean absolute error in pixels of disparity by smoothness, mean of "
        f"{', '.join(results['scenes'])}. The sigmas are those of x and y, luma, and chroma. The "
        f"best smoothness is that of the columns. With all pixels known, linear is the input."
    )
    return page(what, *tables)


def ratios(errors: dict[str, float]) -> dict[str, Any]:
    """Compare "auto" with the best of the columns and with linear interpolation."""
    auto, linear = errors[name("auto")], errors["linear"]
    best = min(errors[name(s)] for s in SMOOTHNESSES)
    return {"of_best": auto / best, "of_linear": f"{auto / linear:.2f}" if linear > 0 else "-"}
