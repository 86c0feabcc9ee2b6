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
FRACTIONS = (0.001, 0.005, 0.01, 0.05)
SMOOTHNESSES = (0.003, 0.01, 0.03, 0.1, 0.3, 1, 4)
# sigma_xy, sigma_luma and sigma_chroma: the default, and cells that suit exact values
SIGMAS = ((8, 8, 8), (4, 16, 12))
NOISES = (0.0, 1.0)  # standard deviation of the known disparities in pixels


class Scene(NamedTuple):
    name: str
    photo: Array
    truth: Array  # NaN where unknown


def name(smoothness: float) -> str:
    return f"smoothness {smoothness:g}"


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
        linear = interpolated(target)
        for sigmas, grid in grids.items():
            maps = {name(s): BilateralSolver(grid, s).solve(target) for s in SMOOTHNESSES}
            maps["linear"] = linear
            errors = {key: float(np.nanmean(abs(x - scene.truth))) for key, x in maps.items()}
            yield (sigmas, noise, fraction), errors


def measure(setting: Setting) -> Results:
    """Mean the errors over the scenes, for each kind of input."""
    fractions = FRACTIONS[-1:] if setting.quick else FRACTIONS
    inputs: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    names = []
    for scene in scenes(setting):
        names.append(scene.name)
        for key, errors in measure_scene(scene, fractions):
            inputs.setdefault(key, []).append(errors)
    return {
        "scenes": names,
        "rows": [
            {"sigmas": sigmas, "noise": noise, "fraction": fraction}
            | {"errors": {key: float(np.mean([e[key] for e in every])) for key in every[0]}}
            for (sigmas, noise, fraction), every in inputs.items()
        ],
    }


def as_text(results: Results) -> str:
    rows = [
        {**row, "least": min(SMOOTHNESSES, key=lambda s, e=row["errors"]: e[name(s)])}
        for row in results["rows"]
    ]
    columns = "; ".join(f"{s:g} | {{errors[{name(s)}]:.2f}}" for s in SMOOTHNESSES)
    tables = [
        page(
            f"## Noise of {noise:g} pixels",
            table(
                [row for row in rows if row["noise"] == noise],
                "known | {fraction:.1%}; sigmas | {sigmas[0]}, {sigmas[1]}, {sigmas[2]}",
                columns,
                "linear | {errors[linear]:.2f}; best smoothness | {least:g}",
            ),
        )
        for noise in NOISES
    ]
    what = (
        f"Mean absolute error in pixels of disparity by smoothness, mean of "
        f"{', '.join(results['scenes'])}. The sigmas are those of x and y, luma, and chroma."
    )
    return page(what, *tables)
