"""Class probabilities of real images through few channels (supplement, section 4)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates
from skimage.io import imread

from benchmarks.machine import Others
from benchmarks.timing import Timing, clock
from bilateral import BilateralGrid, BilateralSolver
from bilateral.numerics import lowrank, system

Array = NDArray[Any]

TOLERANCE = 0.01
STRIDE = 8  # of the network's coarse scores, in pixels of its input


class Labelled(NamedTuple):
    """A photograph and its class probabilities, (H, W, classes)."""

    name: str
    reference: Array
    probabilities: Array


def read_images(folder: Path) -> Iterator[Labelled]:
    """Scores in deeplab_probs/NAME.npz, each with a photograph NAME*.png or .jpg beside them."""
    for file in sorted(folder.glob("**/deeplab_probs/*.npz")):
        pictures = sorted(
            picture
            for picture in folder.glob(f"**/{file.stem}*")
            if picture.suffix == ".jpg" or picture.stem.endswith("_0img")
        )
        if pictures:
            yield Labelled(file.stem, imread(pictures[0]), _probabilities(file))


def _probabilities(file: Path) -> Array:
    """Upsample the scores bilinearly, then softmax."""
    with np.load(file) as scores:
        logits, (valid_h, valid_w) = scores["logits33"], scores["valid_hw"]
        height, width = scores["image_hw"]
    y = ((np.arange(height) + 0.5) * valid_h / height - 0.5) / STRIDE
    x = ((np.arange(width) + 0.5) * valid_w / width - 0.5) / STRIDE
    places = np.meshgrid(y, x, indexing="ij")
    fine = np.dstack(
        [map_coordinates(logits[:, :, k], places, order=1, mode="nearest") for k in range(21)]
    ).astype(np.float32)
    powers = np.exp(fine - fine.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


def compare(image: Labelled, repeats: int) -> dict[str, Any]:
    """Time all channels and few of them in turns; and on how many pixels the best class stays."""
    grid = BilateralGrid(image.reference)
    solver = BilateralSolver(grid)
    seconds: dict[str, list[float]] = {"all": [], "few": [], "all_system": [], "few_system": []}
    others = Others()
    for repeat in range(repeats + 1):
        took, full = clock(solver.solve, image.probabilities)
        took_few, (few, info) = clock(
            solver.solve, image.probabilities, rank_tolerance=TOLERANCE, return_info=True
        )
        if repeat > 0:
            seconds["all"].append(took)
            seconds["few"].append(took_few)
            seconds["all_system"].append(_system_seconds(solver, image.probabilities, None))
            seconds["few_system"].append(_system_seconds(solver, image.probabilities, TOLERANCE))
    times = {name: Timing.of(values) for name, values in seconds.items()}
    return {
        "image": image.name,
        "megapixels": image.reference.shape[0] * image.reference.shape[1] / 1e6,
        "vertices": grid.n_vertices,
        "rank": info.rank,
        **times,
        "ratio": times["all"].median / times["few"].median,
        "system_ratio": times["all_system"].median / times["few_system"].median,
        "same_class": 100 * float(np.mean(full.argmax(axis=2) == few.argmax(axis=2))),
        "largest_difference": float(np.abs(full - few).max()),
        "other_work": others.cores(),
    }


def _system_seconds(solver: BilateralSolver, target: Array, tolerance: float | None) -> float:
    """From the splat target to all channels of the solution, which channels make dearer."""
    problem = solver._observe(solver.grid, target, None)

    def from_system_to_solution() -> None:
        few = None if tolerance is None else lowrank.reduce(problem, tolerance)
        y = solver._start(solver.grid, problem, None, few)
        reduced = problem if few is None else few.system
        system.Solver(solver.grid, solver._options).solve(reduced, y)
        if few is not None:
            few.expand(y)

    return clock(from_system_to_solution)[0]
