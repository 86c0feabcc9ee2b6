"""Solve for many class probabilities through few channels (supplement, section 4)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.special import softmax
from skimage.io import imread

import bilateral
from benchmarks.common import Array, middlebury, published
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.data import files
from benchmarks.common.machine import Others
from benchmarks.common.tables import behind, page, table
from benchmarks.common.timing import clock, geometric_mean, in_turns, stopwatch
from bilateral import BilateralGrid, BilateralSolver
from bilateral.numerics import lowrank
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.pcg import SystemSolver
from bilateral.numerics.problem import set_up, start

NAME, TITLE, DATA = "lowrank", "Low rank (supplement, section 4)", "segmentation"
TOLERANCE, CLASSES = 0.01, 21
STRIDE = 8  # of the network's coarse scores, in pixels of its input


class Labelled(NamedTuple):
    """A photograph and its class probabilities, (H, W, classes)."""

    name: str
    reference: Array
    probabilities: Array


def read_images(folder: Path) -> Iterator[Labelled]:
    """Read scores in deeplab_probs/NAME.npz, each with a photograph NAME*.png or .jpg."""
    for file in sorted(folder.glob("**/deeplab_probs/*.npz")):
        pictures = sorted(folder.glob(f"**/{file.stem}*"))
        pictures = [p for p in pictures if p.suffix == ".jpg" or p.stem.endswith("_0img")]
        if pictures:
            yield Labelled(file.stem, imread(pictures[0]), _probabilities(file))


def _probabilities(file: Path) -> Array:
    with np.load(file) as scores:
        logits, (valid_h, valid_w) = scores["logits33"], scores["valid_hw"]
        height, width = scores["image_hw"]
    y = ((np.arange(height) + 0.5) * valid_h / height - 0.5) / STRIDE
    x = ((np.arange(width) + 0.5) * valid_w / width - 0.5) / STRIDE
    places = np.meshgrid(y, x, indexing="ij")
    options: dict[str, Any] = {"order": 1, "mode": "nearest"}
    fine = [map_coordinates(logits[:, :, k], places, **options) for k in range(CLASSES)]
    return softmax(np.dstack(fine).astype(np.float32), axis=2)


def compare(image: Labelled, repeats: int, threads: int = 1) -> dict[str, Any]:
    """Time all channels and few in turns; count the pixels whose best class stays the same."""
    bilateral.set_num_threads(threads)
    grid = BilateralGrid(image.reference)
    solver = BilateralSolver(grid)
    p, low_rank = image.probabilities, {"rank_tolerance": TOLERANCE, "return_info": True}
    others = Others()
    calls = {
        "all": stopwatch(solver.solve, p),
        "few": stopwatch(solver.solve, p, **low_rank),
        "all_system": partial(_system_seconds, solver, p, None),
        "few_system": partial(_system_seconds, solver, p, TOLERANCE),
    }
    times = in_turns(calls, repeats)
    full, (few, info) = solver.solve(p), solver.solve(p, **low_rank)
    return {
        "image": image.name,
        "megapixels": image.reference.shape[0] * image.reference.shape[1] / 1e6,
        **{"vertices": grid.n_vertices, "rank": info.rank},
        **times,
        "ratio": times["all"].median / times["few"].median,
        "system_ratio": times["all_system"].median / times["few_system"].median,
        "same_class": 100 * float(np.mean(full.argmax(axis=2) == few.argmax(axis=2))),
        "largest_difference": float(np.abs(full - few).max()),
        "other_work": others.cores(),
    }


def _system_seconds(solver: BilateralSolver, target: Array, tolerance: float | None) -> float:
    """Time the part that grows with the channels: from the splat target to the solution."""
    grid, options = solver.grid, SolveOptions()
    problem = set_up(grid, target, None, solver.smoothness, options)

    def from_system_to_solution() -> None:
        reduced = None if tolerance is None else lowrank.reduce(problem.system, tolerance)
        part = problem if reduced is None else problem._replace(system=reduced.system)
        y = start(grid, part, options)
        SystemSolver(grid, options).solve(part.system, y, part.preconditioner)
        if reduced is not None:
            reduced.expand(y)

    return clock(from_system_to_solution)[0]


def made(quick: bool) -> Labelled:
    """Take Motorcycle's disparities as classes, of which most never occur."""
    part = np.s_[:120, :160] if quick else np.s_[:]
    photo, _, truth = (map_[part] for map_ in middlebury.motorcycle())
    kind = np.minimum(np.nan_to_num(truth) // 16, CLASSES - 1)
    powers = np.exp(-3 * np.abs(kind[..., np.newaxis] - np.arange(CLASSES))).astype(np.float32)
    return Labelled("Motorcycle", photo, powers / powers.sum(axis=2, keepdims=True))


def cells(setting: Setting) -> Iterator[Cell]:
    folder = setting.data.folder("segmentation") or setting.data.root
    images = [] if folder is None else list(read_images(folder))
    inputs = files(folder) if images else ()
    for image in images or [made(setting.quick)]:
        work = partial(compare, image, setting.repeats, setting.threads[-1])
        yield Cell(image.name, work, inputs)


def summary(values: Values, _: Setting | None) -> Results:
    rows = list(values.values())
    ratios = [row["ratio"] for row in rows]
    return {
        **{"rows": rows, "tolerance": TOLERANCE, "ratio": geometric_mean(ratios)},
        **{"least_ratio": min(ratios), "largest_ratio": max(ratios)},
        "system_ratio": geometric_mean([row["system_ratio"] for row in rows]),
        "same_class": min(row["same_class"] for row in rows),
        "published": published.LOW_RANK_SPEED_UP,
    }


def as_text(results: Results) -> str:
    ratio, quoted = results["ratio"], results["published"]
    loss = (
        "splat, slice and the expansion to all channels are the same work either way, and in our "
        "code the solve is a smaller part of it ([notes](../notes/supplement.md))"
    )
    return page(
        f"{CLASSES} class probabilities solved with a rank tolerance of "
        f"{results['tolerance']:g}, and for all channels; in turns, medians.",
        table(
            results["rows"],
            "image | {image}; vertices | {vertices:,}; rank | {rank}",
            "all, ms | {all[median]:ms}; few, ms | {few[median]:ms}; ratio | {ratio:.1f}",
            "system alone | {system_ratio:.1f}; same class, % | {same_class:.2f}",
        ),
        f"Geometric mean of the ratios {ratio:.1f}, of the linear systems alone "
        f"{results['system_ratio']:.1f}; the paper: about {quoted:g}. At least "
        f"{results['same_class']:.1f} % of the pixels keep their best class.",
        behind([loss] if ratio < quoted else [], "Not behind the paper."),
    )
